"""An invalid race stops its own run and is named; the season continues without it until it is corrected."""
from functools import partial
from pathlib import Path

import dagster as dg

from f1_pipelines.resources.race_data import RaceData

BAD, NEXT = "2026-australia", "2026-china"
LOADED = ("race_calendar", "practice_results", "qualifying_results", "race_results", "ranking_features")
ALL_ASSETS = (*LOADED, "ewc_ranker", "promoted_ranker", "race_predictions", "ranking_evaluation")
TRAINING = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}
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
               run_config=TRAINING).success

    result = bad(*ALL_ASSETS, partition=BAD)
    assert not result.success
    [(name, failure)] = failures(result).items()
    assert (name, failure.severity) == ("grid_has_no_sentinels", dg.AssetCheckSeverity.ERROR)
    assert failure.description == f"in this run: {BAD}. {BAD}: none of 22 cars has a slot on the grid"
    assert not result.asset_materializations_for_node("ranking_features")

    after = bad(*ALL_ASSETS, partition=NEXT)
    assert after.success, rows("SELECT decision, reason FROM ranking.promotions")
    [(name, warning)] = failures(after).items()
    assert (name, warning.severity) == ("grid_has_no_sentinels", dg.AssetCheckSeverity.WARN)
    assert warning.description.startswith(f"in other weekends, which don't stop this run: {BAD}. ")
    for asset in ("ranking_features", "ewc_ranker", "ranking_evaluation"):
        [event] = after.asset_materializations_for_node(asset)
        assert f"{BAD}: none of 22 cars has a slot" in event.metadata["weekends_not_learnt_from"].value
    assert rows("SELECT weekend, fault FROM race.unlearnable_weekends") == [(BAD, "no_grid")]
    assert rows(f"SELECT count(*) FROM features.ranking WHERE weekend = '{NEXT}'") == [(22,)]
    chain = rows(CHAIN)
    assert [link[:2] for link in chain] == [(NEXT, "adapted"), (NEXT, "ewc")]
    assert rows("SELECT DISTINCT weekend FROM ranking.evaluation WHERE protocol = 'prequential_2026'") == [(NEXT,)]

    corrected = good(*LOADED, "ewc_ranker", partition=BAD)
    assert corrected.success and not failures(corrected)
    assert rows("SELECT * FROM race.unlearnable_weekends") == []
    renewed = rows(CHAIN)
    assert [link[:2] for link in renewed] == [(BAD, "adapted"), (BAD, "ewc"), (NEXT, "ewc")]
    assert [link[3] for link in renewed[1:]] == [link[2] for link in renewed[:-1]]
    assert not {link[2] for link in renewed} & {link[2] for link in chain}

    # Races that were learnt from become invalid: the last one of the pretraining, then all later ones.
    for amended, remaining in (("2025-abu-dhabi", renewed), (NEXT, renewed[:2]), (BAD, [])):
        with resources["warehouse"].write("amended") as connection:
            connection.execute("UPDATE race.results SET official_order = 2 WHERE official_order = 1 AND weekend = ?",
                               [amended])
        assert good("ewc_ranker", partition=NEXT, raises=True).success
        assert rows(CHAIN) == remaining
    assert good("ranking_features", "race_predictions", partition=BAD, until=NEXT, raises=True).success
    assert rows("SELECT weekend, count(*) > 15, count(actual_position) FROM ranking.predictions "
                "WHERE weekend LIKE '2026%' AND stage = 'grid' GROUP BY ALL ORDER BY ALL") == [
        (BAD, True, 0), (NEXT, True, 0)]
