"""Results of the demo in three short tables with notes: forecast, evaluation, engineers."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any

import duckdb
from tabulate import tabulate

from f1_pipelines.forecast.report import predict_stored
from f1_pipelines.settings import settings
from f1_pipelines.warehouse.database import WarehouseFile

OURS = ">"  # marks the rows of our models
_TOP = 10
_WIDTH = 96  # of the notes, in characters
_CHANCES = ("win %", "podium %", "points %")
# The first protocol with a race is shown as a table, the others as a sentence.
_PROTOCOLS = {
    "rolling_2019_2025": "each season forecast by models that learned from earlier seasons only",
    "holdout_2025": "the season 2025 forecast by models that learned from earlier seasons only",
    "prequential_2026": "each race of 2026 forecast by models that learned from earlier races only",
}
_ENGINEERS = ("untrained", "sft", "grpo")
_SAMPLE = ("THE DATA ARE SIMULATED: this project's simulator made these seasons, with real calendars and line-ups.\n"
           "They show how everything works; no result in them is real. F1_SOURCE=f1db uses real seasons.")


def summary(weekend: str, engineer: str) -> Iterator[str]:
    """Yield the blocks of the summary, each several lines; a notice on simulated data comes first.

    Args:
        weekend: Key of the weekend to forecast.
        engineer: Size of the race engineer: demo, toy, or none (no block).
    """
    chosen = settings()
    if chosen.f1_source == "sample":
        yield _SAMPLE
    yield forecast(weekend)
    with WarehouseFile(chosen.f1_warehouse).read() as connection:
        yield evaluation(connection)
        if engineer != "none":
            yield engineers(connection, toy=engineer == "toy")


def forecast(weekend: str) -> str:
    """Format the first ten places of the promoted model's forecast, with probabilities."""
    prediction = predict_stored(weekend)
    columns = [name for name in ("place", "driver", "constructor", *_CHANCES, "actual") if name in prediction.ranking]
    rows = prediction.ranking[columns].head(_TOP)
    cells = [[_percent(value) if name in _CHANCES else str(value) for name, value in zip(columns, row, strict=True)]
             for row in rows.itertuples(index=False)]
    return _block(
        f"FORECAST: the first {len(rows)} of {len(prediction.ranking)} cars", prediction.heading.splitlines(), columns,
        cells,
        ["place: finishing order expected by our ranker.",
         "win, podium, points %: probability of a win, a place in the first three, a place in the first ten."
         if set(_CHANCES) <= set(columns) else "The model was stored without probabilities.",
         *(["actual: place in the real race."] if "actual" in columns else [])],
        f"f1 predict {weekend}")


def evaluation(connection: duckdb.DuckDBPyConnection) -> str:
    """Format the accuracy of all predictors on unseen races, compared with grid order."""
    rows = connection.execute("""
        SELECT protocol, predictor, n_races, spearman, delta_spearman, delta_low, delta_high, top1
        FROM ranking.evaluation_summary WHERE population = 'starters' ORDER BY spearman DESC, predictor""").fetchall()
    by_protocol = {name: [row[1:] for row in rows if row[0] == name] for name in _PROTOCOLS}
    protocol = next((name for name in _PROTOCOLS if by_protocol[name]), None)
    if protocol is None:
        return ("EVALUATION: no test race\n"
                "  A test needs an earlier season to learn from, and later races to forecast.")
    best_first = by_protocol[protocol]
    return _block(
        f"EVALUATION: {best_first[0][1]} races unseen in training",
        [f"{protocol}: {_PROTOCOLS[protocol]}"],
        ["", "predictor", "Spearman", "against grid [95 %]", "winner"],
        [[_mark(_ours(predictor)), predictor, f"{spearman:.3f}",
          "" if predictor == "grid" else f"{delta:+.3f} [{low:+.3f}, {high:+.3f}]", _percent(100 * top1)]
         for predictor, _, spearman, delta, low, high, top1 in best_first],
        [f"{OURS} our ranker; champion_simulated: its forecast from simulated races.",
         "f1net_reference: F1Net as its authors describe it. The others are simple rules.",
         "Spearman: rank correlation of forecast and real order (1 equal, 0 unrelated), mean of the races.",
         "against grid: difference to the starting order as forecast; an interval above 0 is better.",
         "winner: share of races whose winner was forecast.",
         *(_other_test(name, by_protocol[name]) for name in _PROTOCOLS if name != protocol and by_protocol[name])],
        "f1 query --file warehouse/queries/ranking_table.sql")


def _other_test(protocol: str, rows: Sequence[tuple[Any, ...]]) -> str:
    best = [f"{predictor} {spearman:.3f}" for predictor, _, spearman, *_ in rows
            if predictor in ("champion", "champion_ewc", "grid")]
    learning = "; _ewc learns after each race" if any(row[0] == "champion_ewc" for row in rows) else ""
    return f"{protocol} ({rows[0][1]} races): {', '.join(best)}{learning}."


def engineers(connection: duckdb.DuckDBPyConnection, toy: bool = False) -> str:
    """Format the scores of all policies on the held-out races."""
    rows = connection.execute("""
        SELECT policy, n, mean, low, high, gap_closed FROM strategy.leaderboard
        WHERE family = 'all' AND variant = 'plain' ORDER BY mean DESC, policy""").fetchall()
    if not rows:
        return "ENGINEERS: no engineer was evaluated"
    return _block(
        f"ENGINEERS: {rows[0][1]} simulated races unseen in training",
        ["The engineer decides when to stop, on which tyres, and how fast to drive."],
        ["", "policy", "score [95 %]", "share of gap"],
        [[_mark(policy in _ENGINEERS), policy, f"{mean:.3f} [{low:.3f}, {high:.3f}]",
          "" if gap is None else _percent(100 * gap)] for policy, _, mean, low, high, gap in rows],
        [f"{OURS} our language model: untrained, after imitating the expert (sft), after GRPO (grpo).",
         "expert is a rule-based strategist, oracle knows the future; the others are simple scripts.",
         "score: 0 to 1, from the result of the race, decisions, tyres, fuel and communication.",
         "share of gap: closed share of the score gap from untrained to expert.",
         *(["Toy size: everything runs, but learns almost nothing; without --engineer toy it trains longer."]
           if toy else [])],
        "f1 query --file warehouse/queries/leaderboard.sql")


def _block(title: str, heading: Iterable[str], columns: Sequence[str], cells: Sequence[Sequence[str]],
           notes: Iterable[str], command: str) -> str:
    numeric = {"place", "Spearman", "winner", "share of gap", "actual", *_CHANCES}
    table = tabulate(cells, headers=columns, tablefmt="plain", disable_numparse=True,
                     colalign=["right" if name in numeric else "left" for name in columns])
    wrapped = (line for note in notes for line in wrap(note, _WIDTH, subsequent_indent="  "))
    lines = [*heading, "", *table.splitlines(), "", *wrapped, f"Full table: {command}"]
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])


def _ours(predictor: str) -> bool:
    return predictor.split("_")[0] == "champion"


def _mark(ours: bool) -> str:
    return OURS if ours else ""


def _percent(value: float) -> str:
    return f"{value:.1f} %"
