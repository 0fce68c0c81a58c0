"""From stored results to a model and its predictions: what trains, what does not, and what is the same twice."""
import pytest

from f1_pipelines.sources.base import Fetched
from f1_pipelines.sources.classification import classification_hash
from f1_pipelines.tables.race import RESULTS
from f1_pipelines.warehouse.ingest import store

SEASON = {"partition": "2025-australia", "until": "2025-miami"}
TRAIN_ON_2025 = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}


@pytest.fixture
def trained(run, rows):
    """Trains on the first races of 2025; returns (checkpoint, data_version) of the promoted ranker."""
    def train() -> tuple[str, str]:
        assert run("ranking_features", "pretrained_ranker", **SEASON, run_config=TRAIN_ON_2025, raises=True).success
        [promoted] = rows("SELECT checkpoint, data_version FROM ranking.checkpoints WHERE promoted")
        return promoted

    assert run("race_calendar", "practice_results", "qualifying_results", "race_results", **SEASON).success
    return train


def told(resources, result_status: str, first: str, second: str) -> None:
    """Another sheet of 2025-australia comes in, with these two in front."""
    with resources["warehouse"].write("another sheet") as connection:
        sheet = RESULTS.conform(connection.execute(
            "SELECT * FROM race.current_results WHERE weekend = '2025-australia' ORDER BY official_order").df())
        places = sheet.set_index("driver")[["official_order", "finish_position"]]
        places.loc[[first, second]] = [[1, 1], [2, 2]]
        moved = {name: sheet["driver"].map(places[name]) for name in places}
        sheet = sheet.assign(**moved, result_status=result_status)
        store(connection, Fetched({RESULTS.qualified: sheet.assign(content_hash=classification_hash(sheet))}))


def test_only_another_official_sheet_makes_another_model(trained, resources, rows):
    checkpoint = trained()
    assert trained() == checkpoint
    told(resources, "provisional", "max-verstappen", "lando-norris")
    assert trained() == checkpoint, "a provisional sheet trains nothing"
    told(resources, "official", "max-verstappen", "lando-norris")
    amended = trained()
    assert amended[0] != checkpoint[0] and amended[1] != checkpoint[1]
    told(resources, "official", "max-verstappen", "lando-norris")
    assert trained() == amended, "the same sheet again is no news"
    assert rows("SELECT version, result_status FROM race.results WHERE weekend = '2025-australia' "
                "GROUP BY ALL ORDER BY version") == [(1, "official"), (2, "provisional"), (3, "amended")]


def test_a_race_without_laps_is_ranked_from_its_results(trained, run, rows):
    trained()
    assert run("race_laps", "race_predictions", **SEASON).success
    assert rows("SELECT count(*) FROM race.laps") == [(0,)]
    ranked = rows("SELECT weekend, count(*), count(DISTINCT predicted_position), count(actual_position) "
                  "FROM ranking.predictions GROUP BY ALL")
    assert len(ranked) == 6
    assert all(told[1:] == (20, 20, 20) for told in ranked)
