"""A race that can't be right stops itself and is named; the season goes on without it, until it is mended."""
from functools import partial
from pathlib import Path

import dagster as dg

from f1_pipelines.resources.race_data import RaceData

BAD, NEXT = "2026-australia", "2026-china"
LOADED = ("race_calendar", "practice_results", "qualifying_results", "race_results", "ranking_features")
WHOLE = (*LOADED, "ewc_ranker", "promoted_ranker", "race_predictions", "ranking_evaluation")
TAUGHT = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}
CHAIN = """SELECT u.weekend, u.kind, u.checkpoint, u.parent FROM ranking.updates u JOIN race.calendar USING (weekend)
           WHERE u.current AND u.model = 'champion' ORDER BY race_start, u.kind"""


def release(resources: dict, folder: Path) -> dict:
    return resources | {"race_data": RaceData(source="f1db", f1db_path=str(folder), f1db_folder=str(folder),
                                              fastf1_cache=str(folder / "fastf1"))}


def failures(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {check.check_name: check for check in result.get_asset_check_evaluations()
            if not check.passed and check.blocking}


def test_a_race_without_a_grid_stops_itself_and_not_the_season(resources, rows, materialize, without_grid, f1db_folder,
                                                               monkeypatch):
    monkeypatch.setenv("F1_SIMULATED_RACES", "0")
    bad, good = (partial(materialize, release(resources, folder)) for folder in (without_grid, f1db_folder))
    assert bad(*LOADED, "pretrained_ranker", partition="2025-qatar", until="2025-abu-dhabi",
               run_config=TAUGHT).success

    own = bad(*WHOLE, partition=BAD)
    assert not own.success
    [(name, failure)] = failures(own).items()
    assert (name, failure.severity) == ("grid_has_no_sentinels", dg.AssetCheckSeverity.ERROR)
    assert failure.description == f"in this run: {BAD}. {BAD}: none of 22 cars has a slot on the grid"
    assert not own.asset_materializations_for_node("ranking_features")

    after = bad(*WHOLE, partition=NEXT)
    assert after.success, rows("SELECT decision, reason FROM ranking.promotions")
    [(name, warning)] = failures(after).items()
    assert (name, warning.severity) == ("grid_has_no_sentinels", dg.AssetCheckSeverity.WARN)
    assert warning.description.startswith(f"in other weekends, which doesn't stop this run: {BAD}. ")
    for asset in ("ranking_features", "ewc_ranker", "ranking_evaluation"):
        [shown] = after.asset_materializations_for_node(asset)
        assert f"{BAD}: none of 22 cars has a slot" in shown.metadata["weekends_not_learnt_from"].value
    assert rows("SELECT weekend, fault FROM race.unlearnable_weekends") == [(BAD, "no_grid")]
    assert rows(f"SELECT count(*) FROM features.ranking WHERE weekend = '{NEXT}'") == [(22,)]
    without = rows(CHAIN)
    assert [link[:2] for link in without] == [(NEXT, "adapted"), (NEXT, "ewc")]
    assert rows("SELECT DISTINCT weekend FROM ranking.evaluation WHERE protocol = 'prequential_2026'") == [(NEXT,)]

    mended = good(*LOADED, "ewc_ranker", partition=BAD)
    assert mended.success and not failures(mended)
    assert rows("SELECT * FROM race.unlearnable_weekends") == []
    renewed = rows(CHAIN)
    assert [link[:2] for link in renewed] == [(BAD, "adapted"), (BAD, "ewc"), (NEXT, "ewc")]
    assert [link[3] for link in renewed[1:]] == [link[2] for link in renewed[:-1]]
    assert not {link[2] for link in renewed} & {link[2] for link in without}

    # Races that were learnt from are amended to what can't be: the last one of the pretraining, then all since.
    for amended, left in (("2025-abu-dhabi", renewed), (NEXT, renewed[:2]), (BAD, [])):
        with resources["warehouse"].write("amended") as connection:
            connection.execute("UPDATE race.results SET official_order = 2 WHERE official_order = 1 AND weekend = ?",
                               [amended])
        assert good("ewc_ranker", partition=NEXT, raises=True).success
        assert rows(CHAIN) == left
    assert good("ranking_features", "race_predictions", partition=BAD, until=NEXT, raises=True).success
    assert rows("SELECT weekend, count(*) > 15, count(actual_position) FROM ranking.predictions "
                "WHERE weekend LIKE '2026%' AND stage = 'grid' GROUP BY ALL ORDER BY ALL") == [
        (BAD, True, 0), (NEXT, True, 0)]
