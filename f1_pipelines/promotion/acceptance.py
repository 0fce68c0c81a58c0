"""The acceptance test of a candidate's own weights, which a checkpoint must pass before it may predict.

Notable choices, measured on real chains of 2018-2026 (nine pretrainings, 290 links after a race):
- The candidate has learnt from most of the test races, which flatters it a little. That is harmless: this test detects
  broken rankers, and the rule (`promotion.rule`) compares good ones.
- The floor is far above chance and below all healthy rankers: over 24 races .41 (chance 0, standard deviation .05;
  healthy at least .56), over 3 races .25 (chance 0, standard deviation .13; healthy at least .35).
- A healthy link agrees with the ranker that its update started from to at least .957, also with the documented
  settings. Another pretraining of our ranker agrees with it to .947, F1Net to .88.
- Adam moves a weight by about its learning rate per step, at most 1.02 times that in any link. Shuffled layers, flipped
  inputs and heavy noise move weights further, even if the five members and redundant inputs hide the damage.
- Forgetting is measured here on the last season of the pretraining (healthy: at most .012), not read from what was
  stored at training.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from f1_pipelines.evaluation.baselines import Baseline, by_grid
from f1_pipelines.evaluation.bootstrap import mean_interval
from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.evaluation.probabilities import PODIUM, POINTS, position_probabilities, rng_for
from f1_pipelines.features.ranking import as_known_at

if TYPE_CHECKING:
    from f1_pipelines.models.checkpoints import Checkpoint
    from f1_pipelines.models.trained import TrainedRanker

LEVEL = 0.99  # of the intervals that can refuse: there are 24 decisions per season, one after each race


@dataclass(frozen=True)
class Limits:
    """Limits of the acceptance test.

    Attributes:
        races: Number of latest stored races to test on.
        fewest_races: Minimum number of test races; with fewer the candidate is refused.
        grid_races: Minimum number of races to compare with grid order. Over 12 races 2 of 326 healthy rankers were
            worse than it, over 14 or more none.
        chance_races: Number of latest races whose probabilities are tested, at each stage.
        constant: Maximum share of races in which all cars may have the same score.
        link_agreement: Minimum Spearman between a link and the ranker that its update started from.
        early_agreement: Replaces `link_agreement` and `chance_agreement` below `settled_races` training races: six new
            races move such a ranker far (one of seven races to .82), and its probabilities are rough (two: .63).
        settled_races: Pretraining races from which a link hardly moves (21 and 24 races: .97).
        champion_agreement: Minimum Spearman between a pretrained candidate and the champion.
        chance_agreement: Minimum Spearman between the orders by probabilities and by scores (healthy: .97).
        moved: Maximum distance that a weight may move, in learning rates times steps.
        forgotten: Maximum Spearman lost on the last season of the pretraining.
        season_races: Minimum number of races of that season for `forgotten` to apply: a ranker pretrained on few races
            overfits them, and loses that with its first update (.05 over four).
    """

    races: int = 24
    fewest_races: int = 3
    grid_races: int = 18
    chance_races: int = 4
    constant: float = 0.1
    link_agreement: float = 0.9
    early_agreement: float = 0.5
    settled_races: int = 20
    champion_agreement: float = 0.8
    chance_agreement: float = 0.7
    moved: float = 1.5
    forgotten: float = 0.02
    season_races: int = 12

    def floor(self, races: int) -> float:
        """Minimum mean Spearman over this many races: two standard errors (.21 per race) below .5."""
        return 0.5 - 2 * 0.21 / races**0.5


LIMITS = Limits()


@dataclass(frozen=True)
class AcceptanceResult:
    """Result of the acceptance test. `refusal` is the reason as a sentence, None if accepted."""

    refusal: str | None = None
    n_examined_races: int | None = None
    own_spearman: float | None = None
    own_grid_spearman: float | None = None
    agreement: float | None = None
    forgotten: float | None = None

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers by column of `ranking.promotions`."""
        return {name: value for name, value in vars(self).items() if name != "refusal"}


def acceptance_test(candidate: Checkpoint, rows: pd.DataFrame, ancestors: Sequence[Checkpoint] = (),
                    champion: Checkpoint | None = None, limits: Limits = LIMITS) -> AcceptanceResult:
    """Test a candidate's own weights.

    Args:
        candidate: The checkpoint.
        rows: Starters of completed races with features and outcome.
        ancestors: From its parent to the pretrained checkpoint of its chain; empty for a pretrained candidate.
        champion: Checkpoint that a pretrained candidate should agree with; None to skip this test.
        limits: Limits of the test.
    """
    latest = _latest(rows, limits.races)
    races = latest["weekend"].nunique()
    if races < limits.fewest_races:
        return AcceptanceResult(f"{races} races are stored to examine it by (needs {limits.fewest_races})", races)
    scores = _scores(candidate.trained, latest)
    if broken := _broken(scores, limits):
        return AcceptanceResult(broken, races)
    own, grid = _spearman(scores, latest), _spearman(Baseline("grid", by_grid).scores(latest), latest)
    origin, limit, whose = _reference(candidate, ancestors, champion, limits)
    agreement = _agreement(scores, _scores(origin.trained, latest)) if origin else None
    lost, season_races = _forgotten(candidate.trained, ancestors[-1].trained, rows) if ancestors else (None, 0)
    refusal = _below_floor(own, grid, limits)
    if not refusal and origin is not None and agreement is not None and agreement < limit:
        refusal = (f"its own weights disagree with {whose} {origin.id}: Spearman {agreement:.3f} between their orders "
                   f"(needs {limit:g})")
    if not refusal and ancestors and origin is not None:
        refusal = _moved_too_far(candidate, origin, limits)
    if not refusal and lost is not None and season_races >= limits.season_races and lost > limits.forgotten:
        refusal = (f"its own weights have forgotten: Spearman {lost:.3f} less than the pretrained {ancestors[-1].id} "
                   f"over {season_races} races of the last pretraining season (at most {limits.forgotten:g})")
    refusal = refusal or _wrong_chances(candidate.trained, latest, limits)  # last, since it is the slowest
    return AcceptanceResult(refusal, races, float(own.mean()), float(grid.mean()), agreement, lost)


def _latest(rows: pd.DataFrame, races: int) -> pd.DataFrame:
    """Rows of the latest races with at least two starters, sorted by race."""
    cars = rows.groupby("weekend")["race_start"].agg(["first", "size"])
    latest = cars.loc[cars["size"] > 1, "first"].sort_values().index[-races:]
    return rows[rows["weekend"].isin(latest)].sort_values(["race_start", "driver"], ignore_index=True)


def _scores(trained: TrainedRanker, rows: pd.DataFrame) -> pd.Series:
    """Scores of all rows at once, indexed by weekend: 100 times as fast as race by race."""
    from f1_pipelines.models.training import one_thread

    with one_thread():
        return pd.Series(trained.scores(rows), rows["weekend"]).astype("float64")


def _spearman(scores: pd.Series | np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    """Spearman of each race against the official order, (races,)."""
    values, order = np.asarray(scores), rows["official_order"].to_numpy("float64")
    return np.array([spearman(values[at], order[at]) for at in rows.groupby("weekend", sort=False).indices.values()])


def _broken(scores: pd.Series, limits: Limits) -> str | None:
    """Reason to refuse the scores themselves: not finite, or constant."""
    races = scores.groupby(level=0)
    infinite = int((~np.isfinite(scores)).groupby(level=0).any().sum())
    if infinite:
        return f"its own weights give scores that are not finite, in {infinite} of {len(races)} races"
    constant = int((races.max() - races.min() < 1e-9).sum())
    if constant > limits.constant * len(races):
        return f"its own weights give all cars the same score in {constant} of {len(races)} races"
    return None


def _below_floor(own: np.ndarray, grid: np.ndarray, limits: Limits) -> str | None:
    """Reason to refuse the skill, of the candidate (`own`) and grid order, (races,)."""
    mean, floor = own.mean(), limits.floor(len(own))
    if mean < floor:
        return (f"its own weights have Spearman {mean:.3f} over the latest {len(own)} races, which it may know (needs "
                f"{floor:.3f}; grid order {grid.mean():.3f})")
    high = mean_interval(own - grid, level=LEVEL)[1]
    if len(own) >= limits.grid_races and high < 0:
        return (f"its own weights are worse than grid order over the latest {len(own)} races, which it may know: "
                f"Spearman {mean:.3f}, grid {grid.mean():.3f}, difference at most {high:.3f}")
    return None


def _wrong_chances(trained: TrainedRanker, latest: pd.DataFrame, limits: Limits) -> str | None:
    """Reason to refuse the probabilities, at any fitted stage."""
    if trained.places is None:
        return None
    rows = _latest(latest, limits.chance_races)
    for stage in trained.places.weights:
        known = as_known_at(rows, stage)
        scores, agreement = _scores(trained, known).to_numpy(), []
        for weekend, at in known.groupby("weekend", sort=False).indices.items():
            race = known.iloc[at]
            if not all(np.isfinite(part).all() for part in trained.places.of(race, scores[at])):
                return f"its chances of {weekend} at stage {stage} are not finite"
            table = position_probabilities(trained.places.drawn(race, scores[at], rng_for(weekend, stage)),
                                           race["constructor"])
            if not _add_up(table):
                return f"its chances of {weekend} at stage {stage} do not add up"
            agreement.append(spearman(scores[at], rankdata(table["expected_position"])))
        limit = limits.chance_agreement if trained.n_races >= limits.settled_races else limits.early_agreement
        if np.mean(agreement) < limit:
            return (f"its chances at stage {stage} contradict its scores: Spearman {np.mean(agreement):.3f} between "
                    f"their orders (needs {limit:g})")
    return None


def _add_up(table: pd.DataFrame) -> bool:
    values = table[["p_win", "p_podium", "p_points"]].to_numpy()
    sums = [min(places, len(table)) for places in (1, PODIUM, POINTS)]
    return bool(np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()
                and (np.diff(values, axis=1) >= 0).all() and np.allclose(values.sum(axis=0), sums, atol=1e-6))


def _reference(candidate: Checkpoint, ancestors: Sequence[Checkpoint], champion: Checkpoint | None,
               limits: Limits) -> tuple[Checkpoint | None, float, str]:
    """Checkpoint that the candidate should agree with, the minimum agreement, and a phrase for it.

    With the setting `restart` an update starts from the pretrained weights, so that a broken parent does not matter.
    """
    if not ancestors:
        return champion, limits.champion_agreement, "those of the champion"
    settled = ancestors[-1].trained.n_races >= limits.settled_races
    limit = limits.link_agreement if settled else limits.early_agreement
    if _settings(candidate).get("restart"):
        return ancestors[-1], limit, "the pretrained ones that its update began from,"
    return ancestors[0], limit, "those of its parent"


def _agreement(scores: pd.Series, other_scores: pd.Series) -> float:
    """Mean Spearman between two rankers' scores of the same rows."""
    other = np.nan_to_num(other_scores.to_numpy())
    return float(np.mean([spearman(scores.to_numpy()[at], rankdata(-other[at]))
                          for at in scores.groupby(level=0).indices.values()]))


def _moved_too_far(candidate: Checkpoint, origin: Checkpoint, limits: Limits) -> str | None:
    """Reason to refuse weights further from the start of the update than its steps reach; None without settings."""
    settings = _settings(candidate)
    if not {"lr", "epochs", "window_races", "races_per_step"} <= settings.keys():
        return None
    steps = settings["epochs"] * -(-settings["window_races"] // settings["races_per_step"])
    reach = settings["lr"] * steps if candidate.meta["kind"] == "ewc" else 0.0
    before = dict(origin.trained.model.named_parameters())
    for name, weight in candidate.trained.model.named_parameters():
        if name not in before or before[name].shape != weight.shape:
            continue  # an embedding that grew
        distance = float((weight.detach() - before[name].detach()).abs().max())
        if distance > limits.moved * reach + 1e-6:
            return (f"its own weights are not what an update makes: `{name}` is {distance:.3f} away from {origin.id}, "
                    f"{steps} steps of {settings['lr']:g} reach {reach:.3f}")
    return None


def _settings(checkpoint: Checkpoint) -> dict[str, Any]:
    """Settings of a link's update; empty for a pretrained checkpoint."""
    return (checkpoint.meta.get("learning") or {}).get("settings", {})


def _forgotten(trained: TrainedRanker, pretrained: TrainedRanker, rows: pd.DataFrame) -> tuple[float | None, int]:
    """Mean Spearman lost against the pretrained ranker on its last season, and the number of races."""
    last = rows.loc[rows["weekend"] == pretrained.trained_through, "race_start"]
    if last.empty:
        return None, 0
    races = _latest(rows[(rows["season"] == max(pretrained.seasons)) & (rows["race_start"] <= last.iloc[0])], len(rows))
    before, after = (_spearman(np.nan_to_num(_scores(ranker, races)), races) for ranker in (pretrained, trained))
    return (float((before - after).mean()), len(before)) if len(before) else (None, 0)
