"""Hyperparameters of the updates after each race."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Method = Literal["none", "finetune", "ewc", "online_ewc", "replay", "freeze", "constructors"]
METHODS: tuple[str, ...] = get_args(Method)
PULLED_BACK = ("ewc", "online_ewc")  # by the penalty
# Stored chains, checkpoint ids and hashed settings spell lambda this way; another spelling would train them again.
_STORED_NAMES = {"ewc_lambda": "penalty"}


@dataclass(frozen=True, repr=False)
class UpdateConfig:
    """Hyperparameters of one update after a race. The defaults are the documented ones of the reference system.

    Attributes:
        method: What keeps old knowledge: nothing happens at all (`none`); nothing keeps it (`finetune`); EWC's pull to
            the pretrained weights (`ewc`), or to the weights before, by a Fisher that moves along (`online_ewc`); old
            races mixed in (`replay`); only the read-out learns (`freeze`: F1Net's last two layers, our ranker's line
            and `narrow`); only the constructors' embedding learns (`constructors`, F1Net alone has one).
        epochs: Times that each race of the window is seen.
        lr: Learning rate of Adam, whose state starts afresh with each update.
        ewc_lambda: Weight of the EWC penalty against the loss of the new races.
        window_races: Latest races learnt from, those of the pretraining left out.
        races_per_step: Races in one optimizer step.
        freeze_drivers: Keep the driver embedding as it was; newcomers' own rows learn all the same.
        fisher_decay: Share of the Fisher that stays after each race, `online_ewc` only.
        replayed_races: Old races beside each new one, `replay` only.
        restart: Start each update from the pretrained weights instead of those of the update before.
        seed: Of dropout, the order of races and the draw of old ones.
    """

    method: Method = "ewc"
    epochs: int = 10
    lr: float = 0.003
    ewc_lambda: float = 10.0
    window_races: int = 6
    races_per_step: int = 1
    freeze_drivers: bool = True
    fisher_decay: float = 0.9
    replayed_races: int = 1
    restart: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f'"{self.method}" is no way to learn on; one of {", ".join(METHODS)} is wanted')
        for name in ("epochs", "window_races", "races_per_step", "replayed_races"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; at least 1 is wanted, and method none to learn "
                                 "nothing")
        if not self.lr > 0:
            raise ValueError(f"lr is {self.lr}; a rate above 0 is wanted")
        if not self.ewc_lambda >= 0:
            raise ValueError(f"ewc_lambda is {self.ewc_lambda}; 0 or more is wanted, a negative one would push away "
                             "from what was learnt")
        if not 0 <= self.fisher_decay <= 1:
            raise ValueError(f"fisher_decay is {self.fisher_decay}; a share from 0 to 1 is wanted")


    def stored(self) -> dict[str, Any]:
        """The settings by the names that are stored and hashed."""
        return {_STORED_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def from_stored(cls, settings: Mapping[str, Any]) -> UpdateConfig:
        """The settings that `stored` wrote."""
        names = {stored: name for name, stored in _STORED_NAMES.items()}
        return cls(**{names.get(name, name): value for name, value in settings.items()})

    def __repr__(self) -> str:
        """Hashed by the versions of an evaluation, so with the stored names."""
        return f"UpdateConfig({', '.join(f'{name}={value!r}' for name, value in self.stored().items())})"


DOCUMENTED = UpdateConfig()
# At this lambda EWC is Bayes' rule (`benchmarks.continual.bayes`): the loss curves 137 times as much as the Fisher
# says, and 92 races of pretraining stand against 6 new ones. A step an epoch from the pretrained weights was the best
# of what was tried at it on 2022-2025: docs/lab-notes/continual-learning.md.
DEFAULT = UpdateConfig(ewc_lambda=2e3, races_per_step=6, restart=True)
