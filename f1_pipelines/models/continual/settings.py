"""Hyperparameters of the updates after each race."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Method = Literal["none", "finetune", "ewc", "online_ewc", "replay", "freeze", "constructors"]
METHODS: tuple[str, ...] = get_args(Method)
PULLED_BACK = ("ewc", "online_ewc")  # methods with the EWC penalty
# Names in stored chains, checkpoint ids and hashed settings; other names would train stored chains again.
_STORED_NAMES = {"ewc_lambda": "penalty"}


@dataclass(frozen=True, repr=False)
class UpdateConfig:
    """Hyperparameters of one update after a race. The defaults are the documented ones of the reference system.

    Attributes:
        method: How to keep old knowledge: no update at all (`none`); nothing keeps it (`finetune`); EWC penalty towards
            the pretrained weights (`ewc`), or towards the previous weights with a moving Fisher (`online_ewc`); old
            races mixed in (`replay`); only the last layers learn (`freeze`: F1Net's last two layers, our ranker's
            `line` and `narrow`); only the constructor embedding learns (`constructors`, F1Net only).
        epochs: Passes over the races of the window.
        lr: Learning rate of Adam, whose state is new in each update.
        ewc_lambda: Weight of the EWC penalty relative to the loss of the new races.
        window_races: Number of latest races to learn from, without those of the pretraining.
        races_per_step: Races per optimizer step.
        freeze_drivers: Freeze the driver embedding, except the rows of newcomers.
        fisher_decay: Share of the old Fisher that remains after each race, `online_ewc` only.
        replayed_races: Old races per new race, `replay` only.
        restart: Start each update from the pretrained weights instead of the previous update's.
        seed: Seed of dropout, the order of races and the choice of old races.
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
            raise ValueError(f'"{self.method}" is no update method; wanted one of {", ".join(METHODS)}')
        for name in ("epochs", "window_races", "races_per_step", "replayed_races"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; wanted at least 1, or method none to learn "
                                 "nothing")
        if not self.lr > 0:
            raise ValueError(f"lr is {self.lr}; wanted a rate above 0")
        if not self.ewc_lambda >= 0:
            raise ValueError(f"ewc_lambda is {self.ewc_lambda}; wanted 0 or more, since a negative one would push the "
                             "weights away from the anchor")
        if not 0 <= self.fisher_decay <= 1:
            raise ValueError(f"fisher_decay is {self.fisher_decay}; wanted a share from 0 to 1")

    def stored(self) -> dict[str, Any]:
        """The settings under their stored and hashed names."""
        return {_STORED_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def from_stored(cls, settings: Mapping[str, Any]) -> UpdateConfig:
        """Inverse of `stored`."""
        names = {stored: name for name, stored in _STORED_NAMES.items()}
        return cls(**{names.get(name, name): value for name, value in settings.items()})

    def __repr__(self) -> str:
        """Uses the stored names, since `backtest.report.versions` hashes it."""
        return f"UpdateConfig({', '.join(f'{name}={value!r}' for name, value in self.stored().items())})"


DOCUMENTED = UpdateConfig()
# At this lambda EWC is Bayes' rule (`benchmarks.continual.bayes`): the loss has 137 times the curvature that the Fisher
# estimates, and 92 pretraining races stand against 6 new ones. One step per epoch from the pretrained weights gave the
# best results on 2022-2025: docs/lab-notes/continual-learning.md.
DEFAULT = UpdateConfig(ewc_lambda=2e3, races_per_step=6, restart=True)
