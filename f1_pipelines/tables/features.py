"""Tables of schema `features`: model inputs, all known before lights out."""
from __future__ import annotations

from f1_pipelines.tables.race import CONSTRUCTOR, DRIVER, SOURCE, WEEKEND
from f1_pipelines.tables.schema import Column, Table

STAGES = ("entry", "practice", "qualifying", "grid")


def _place(name: str, meaning: str) -> Column:
    return Column(name, "DOUBLE", f"{meaning}, as a share of the field: 0 = first, 1 = last", minimum=0, maximum=1)


def _gap(name: str, meaning: str) -> Column:
    return Column(name, "DOUBLE", f"{meaning} [%], at most 10", minimum=0, maximum=10)


def _form(prefix: str, subject: str) -> tuple[Column, ...]:
    scope = f"of {subject} over earlier races, weighted towards recent ones"
    return (
        _place(f"{prefix}_finish_form", f"Mean finish {scope}"),
        _gap(f"{prefix}_qualifying_gap_form_pct", f"Mean gap to the best qualifying lap {scope}"),
        _gap(f"{prefix}_race_gap_form_pct", f"Mean gap to the winner, without retirements, {scope}"),
        _gap(f"{prefix}_fastest_lap_gap_form_pct", f"Mean gap to the fastest lap, without retirements, {scope}"),
        Column(f"{prefix}_dnf_rate", "DOUBLE", f"Share of retirements {scope}", minimum=0, maximum=1),
    )


RANKING = Table(
    "features", "ranking", "Features of each car, known before lights out; missing = unknown", ("weekend", "driver"), (
        WEEKEND,
        Column("season", "INTEGER", "Championship year", required=True, minimum=1950),
        Column("race_start", "TIMESTAMPTZ", "Start of the Grand Prix (UTC)", required=True),
        DRIVER, CONSTRUCTOR, SOURCE,
        Column("stage", "VARCHAR", "Latest data of the weekend: entry list, practice, qualifying or grid",
               required=True, allowed=STAGES),
        Column("entered", "BOOLEAN", "Whether the car takes part. A mask of targets, not an input: for past races it "
               "comes from the classification", required=True),
        Column("feature_version", "VARCHAR", "Version of the code that computed the row", required=True),
        Column("grid_position", "DOUBLE", "Slot, 1 = pole, pit-lane starters last [places]", minimum=1),
        _place("grid_place", "Slot on the grid"),
        Column("qualifying_position", "DOUBLE", "Qualifying position before penalties [places]", minimum=1),
        _place("qualifying_place", "Qualifying position"),
        Column("qualifying_time_s", "DOUBLE", "Best lap of qualifying, any segment [s]", minimum=30, maximum=400),
        Column("delta_to_pole_s", "DOUBLE", "Gap to the best lap of qualifying [s]", minimum=0),
        _gap("qualifying_gap_pct", "Gap to the best lap of qualifying"),
        Column("out_of_position_places", "DOUBLE", "Slot minus qualifying position, + = starts further back [places]"),
        Column("practice_pace_s", "DOUBLE", "Mean of the best laps of the practices [s]", minimum=30, maximum=400),
        _gap("practice_1_gap_pct", "Gap to the best lap of practice 1"),
        _gap("practice_2_gap_pct", "Gap to the best lap of practice 2"),
        _gap("practice_3_gap_pct", "Gap to the best lap of practice 3"),
        _gap("practice_gap_pct", "Mean of the gaps in practice"),
        _place("practice_place", "Position by the mean gap in practice"),
        *_form("driver", "the driver"),
        Column("mean_last3_finish", "DOUBLE", "Mean finish of the driver's last three starts [places]", minimum=1),
        Column("season_mean_finish", "DOUBLE", "Mean finish of the driver's starts this season [places]", minimum=1),
        _place("points_place", "Position by Grand Prix points of the season so far"),
        *_form("constructor", "the team, through renames,"),
        Column("constructor_season_mean_finish", "DOUBLE", "Mean finish of the team's cars this season [places]",
               minimum=1),
    ))
