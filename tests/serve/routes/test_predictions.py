"""The prediction API over races of the sample: ranked cars with chances, their outcome, and two orders side by side."""
from __future__ import annotations

import shutil

import duckdb
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from f1_pipelines.serve.routes import predictions
from f1_pipelines.serve.settings import ServeSettings

pytestmark = pytest.mark.xdist_group("serve-stored")


@pytest.fixture(scope="module")
def client(stored) -> TestClient:
    app = FastAPI()
    app.include_router(predictions.router(ServeSettings()))
    return TestClient(app)


def predicted(client: TestClient, **question: object) -> dict:
    reply = client.post("/predict", json=question)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_past_race_has_ranked_cars_with_chances_and_what_came_of_them(client):
    told = predicted(client, weekend="2026-japan")
    cars = told["ranking"]
    assert [car["predicted_position"] for car in cars] == list(range(1, len(cars) + 1))
    assert sorted(car["actual_position"] for car in cars) == list(range(1, len(cars) + 1))
    assert sum(car["p_win"] for car in cars) == pytest.approx(1)
    assert sum(car["p_podium"] for car in cars) == pytest.approx(3)
    assert all(car["exact_match"] == (car["predicted_position"] == car["actual_position"]) for car in cars)
    assert told["exact_matches"] == sum(car["exact_match"] for car in cars)
    assert told["spearman"] > 0.2
    assert (told["stage"], told["kind"]) == ("grid", "pretrained")
    assert told["model"] in {row["checkpoint"] for row in client.get("/models").json() if row["promoted"]}


def test_season_and_round_name_the_same_weekend(client):
    assert predicted(client, season=2026, round=3) == predicted(client, weekend="2026-japan")


def test_the_next_race_has_no_outcome_yet(client):
    told = predicted(client, weekend="next")
    assert told["weekend"] == "2026-miami"
    assert told["spearman"] is None and told["exact_matches"] is None
    assert {car["actual_position"] for car in told["ranking"]} == {None}


def test_an_earlier_stage_is_what_was_known_then(client):
    early, late = (predicted(client, weekend="2026-japan", stage=stage) for stage in ("entry", "grid"))
    assert early["stage"] == "entry"
    order = [[car["driver"] for car in told["ranking"]] for told in (early, late)]
    assert order[0] != order[1] and sorted(order[0]) == sorted(order[1])


def test_made_up_and_stale_data_are_said_to_be(client):
    notices = predicted(client, weekend="2026-japan")["notices"]
    assert any(notice.startswith("SAMPLE") for notice in notices)
    assert any(notice.startswith("STALE") and "2026-miami" in notice for notice in notices)


def test_a_provisional_result_is_said_to_be(stored, client, tmp_path, monkeypatch):
    shutil.copy(stored / "f1.published.duckdb", tmp_path / "f1.published.duckdb")
    with duckdb.connect(tmp_path / "f1.published.duckdb") as connection:
        connection.execute("UPDATE race.results SET result_status = 'provisional' WHERE weekend = '2026-japan'")
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    assert any(notice.startswith("PROVISIONAL") for notice in predicted(client, weekend="2026-japan")["notices"])
    assert not any(notice.startswith("PROVISIONAL") for notice in predicted(client, weekend="2026-china")["notices"])


def test_a_model_that_has_learnt_from_the_race_makes_no_forecast(client):
    model = predicted(client, weekend="next")["model"]
    told = predicted(client, weekend="2025-japan", model=model)
    assert not told["stored"]
    assert any(notice.startswith("LOOK BACK") for notice in told["notices"])


def test_the_other_model_ranks_for_the_question(client):
    other = next(row["checkpoint"] for row in client.get("/models").json() if row["model"] == "f1net_reference")
    told = predicted(client, weekend="2026-japan", model=other)
    assert told["model"] == other and not told["stored"]
    assert sorted(car["actual_position"] for car in told["ranking"]) == list(range(1, len(told["ranking"]) + 1))


@pytest.mark.parametrize("question, sentence", [
    ({"weekend": "2026-monco"}, "did you mean 2026-monaco?"),
    ({"weekend": "2026-monaco"}, "nothing is known of 2026-monaco yet"),
    ({"season": 2026, "round": 39}, "season 2026 has no round 39"),
    ({"weekend": "2026-japan", "model": "nobody"}, "there is no model 'nobody'"),
])
def test_what_is_not_known_is_said_in_a_sentence(client, question, sentence):
    reply = client.post("/predict", json=question)
    assert reply.status_code == 404
    assert sentence in reply.json()["detail"]


@pytest.mark.parametrize("question", [{}, {"weekend": "2026-japan", "season": 2026, "round": 3}, {"season": 2026},
                                      {"weekend": "x" * 61}, {"weekend": "2026-japan", "stage": "lunch"}])
def test_half_a_question_is_refused(client, question):
    assert client.post("/predict", json=question).status_code == 422


def test_weekends_say_what_is_stored_of_them(client):
    rows = {row["weekend"]: row for row in client.get("/weekends", params={"season": 2026}).json()}
    assert rows["2026-japan"]["result_status"] == "official"
    assert rows["2026-japan"]["source"] == "sample"
    assert rows["2026-japan"]["stages"] == ["entry", "practice", "qualifying", "grid"]
    assert rows["2026-miami"]["result_status"] is None
    assert len(client.get("/weekends").json()) > len(rows)


def test_two_orders_side_by_side(client):
    told = client.get("/compare", params={"weekend": "2026-japan", "a": "grid", "b": "result"}).json()
    assert all(car["b"] == car["actual_position"] for car in told["cars"])
    assert told["b"]["spearman"] == pytest.approx(1)
    assert told["a"]["spearman"] == pytest.approx(told["spearman_between"])
    back = client.get("/compare", params={"weekend": "2026-japan", "a": "result", "b": "grid"}).json()
    assert back["spearman_between"] == pytest.approx(told["spearman_between"])


def test_two_models_side_by_side(client):
    a, b = (next(row["checkpoint"] for row in client.get("/models").json() if row["model"] == model)
            for model in ("champion", "f1net_reference"))
    told = client.get("/compare", params={"weekend": "2026-japan", "a": a, "b": b}).json()
    assert (told["a"]["name"], told["b"]["name"]) == (a, b)
    assert {car["a"] for car in told["cars"]} == {car["b"] for car in told["cars"]}
    assert -1 <= told["spearman_between"] < 1


def test_without_a_warehouse_it_says_what_to_do_and_names_no_path(client, tmp_path, monkeypatch):
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    for reply in (client.post("/predict", json={"weekend": "next"}), client.get("/weekends"), client.get("/models"),
                  client.get("/compare", params={"weekend": "2026-japan"})):
        assert reply.status_code == 503
        assert "make demo" in reply.json()["detail"]
        assert str(tmp_path) not in reply.text
