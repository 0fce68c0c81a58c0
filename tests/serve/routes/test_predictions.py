"""The prediction API on sample races: forecasts with probabilities, outcomes, and comparisons of two orders."""
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


def predict(client: TestClient, **request: object) -> dict:
    reply = client.post("/predict", json=request)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_past_race_has_ranked_cars_with_probabilities_and_outcomes(client):
    prediction = predict(client, weekend="2026-japan")
    cars = prediction["ranking"]
    assert [car["predicted_position"] for car in cars] == list(range(1, len(cars) + 1))
    assert sorted(car["actual_position"] for car in cars) == list(range(1, len(cars) + 1))
    assert sum(car["p_win"] for car in cars) == pytest.approx(1)
    assert sum(car["p_podium"] for car in cars) == pytest.approx(3)
    assert all(car["exact_match"] == (car["predicted_position"] == car["actual_position"]) for car in cars)
    assert prediction["exact_matches"] == sum(car["exact_match"] for car in cars)
    assert prediction["spearman"] > 0.2
    assert (prediction["stage"], prediction["kind"]) == ("grid", "pretrained")
    assert prediction["model"] in {row["checkpoint"] for row in client.get("/models").json() if row["promoted"]}


def test_season_and_round_identify_the_same_weekend(client):
    assert predict(client, season=2026, round=3) == predict(client, weekend="2026-japan")


def test_the_next_race_has_no_outcome_yet(client):
    prediction = predict(client, weekend="next")
    assert prediction["weekend"] == "2026-miami"
    assert prediction["spearman"] is None and prediction["exact_matches"] is None
    assert {car["actual_position"] for car in prediction["ranking"]} == {None}


def test_an_earlier_stage_uses_less_data(client):
    early, late = (predict(client, weekend="2026-japan", stage=stage) for stage in ("entry", "grid"))
    assert early["stage"] == "entry"
    orders = [[car["driver"] for car in prediction["ranking"]] for prediction in (early, late)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])


def test_notices_warn_about_sample_and_stale_data(client):
    notices = predict(client, weekend="2026-japan")["notices"]
    assert any(notice.startswith("SAMPLE") for notice in notices)
    assert any(notice.startswith("STALE") and "2026-miami" in notice for notice in notices)


def test_a_notice_warns_about_a_provisional_result(stored, client, tmp_path, monkeypatch):
    shutil.copy(stored / "f1.published.duckdb", tmp_path / "f1.published.duckdb")
    with duckdb.connect(tmp_path / "f1.published.duckdb") as connection:
        connection.execute("UPDATE race.results SET result_status = 'provisional' WHERE weekend = '2026-japan'")
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    assert any(notice.startswith("PROVISIONAL") for notice in predict(client, weekend="2026-japan")["notices"])
    assert not any(notice.startswith("PROVISIONAL") for notice in predict(client, weekend="2026-china")["notices"])


def test_a_notice_warns_that_the_model_was_trained_on_the_race(client):
    model = predict(client, weekend="next")["model"]
    prediction = predict(client, weekend="2025-japan", model=model)
    assert not prediction["stored"]
    assert any(notice.startswith("IN-SAMPLE") for notice in prediction["notices"])


def test_a_model_without_a_stored_forecast_computes_one(client):
    other = next(row["checkpoint"] for row in client.get("/models").json() if row["model"] == "f1net_reference")
    prediction = predict(client, weekend="2026-japan", model=other)
    cars = prediction["ranking"]
    assert prediction["model"] == other and not prediction["stored"]
    assert sorted(car["actual_position"] for car in cars) == list(range(1, len(cars) + 1))


@pytest.mark.parametrize("request_body, message", [
    ({"weekend": "2026-monco"}, "did you mean 2026-monaco?"),
    ({"weekend": "2026-monaco"}, "no data of 2026-monaco is loaded yet"),
    ({"season": 2026, "round": 39}, "season 2026 has no round 39"),
    ({"weekend": "2026-japan", "model": "nobody"}, "unknown model 'nobody'"),
])
def test_an_unknown_weekend_or_model_is_a_404_with_the_reason(client, request_body, message):
    reply = client.post("/predict", json=request_body)
    assert reply.status_code == 404
    assert message in reply.json()["detail"]


@pytest.mark.parametrize("request_body", [
    {}, {"weekend": "2026-japan", "season": 2026, "round": 3}, {"season": 2026}, {"weekend": "x" * 61},
    {"weekend": "2026-japan", "stage": "lunch"}])
def test_an_invalid_request_is_refused(client, request_body):
    assert client.post("/predict", json=request_body).status_code == 422


def test_weekends_list_their_stored_data(client):
    rows = {row["weekend"]: row for row in client.get("/weekends", params={"season": 2026}).json()}
    assert rows["2026-japan"]["result_status"] == "official"
    assert rows["2026-japan"]["source"] == "sample"
    assert rows["2026-japan"]["stages"] == ["entry", "practice", "qualifying", "grid"]
    assert rows["2026-miami"]["result_status"] is None
    assert len(client.get("/weekends").json()) > len(rows)


def test_compare_grid_and_result(client):
    comparison = client.get("/compare", params={"weekend": "2026-japan", "a": "grid", "b": "result"}).json()
    assert all(car["b"] == car["actual_position"] for car in comparison["cars"])
    assert comparison["b"]["spearman"] == pytest.approx(1)
    assert comparison["a"]["spearman"] == pytest.approx(comparison["spearman_between"])
    swapped = client.get("/compare", params={"weekend": "2026-japan", "a": "result", "b": "grid"}).json()
    assert swapped["spearman_between"] == pytest.approx(comparison["spearman_between"])


def test_compare_two_models(client):
    a, b = (next(row["checkpoint"] for row in client.get("/models").json() if row["model"] == model)
            for model in ("champion", "f1net_reference"))
    comparison = client.get("/compare", params={"weekend": "2026-japan", "a": a, "b": b}).json()
    assert (comparison["a"]["name"], comparison["b"]["name"]) == (a, b)
    assert {car["a"] for car in comparison["cars"]} == {car["b"] for car in comparison["cars"]}
    assert -1 <= comparison["spearman_between"] < 1


def test_without_a_warehouse_the_reply_says_what_to_do_and_names_no_path(client, tmp_path, monkeypatch):
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    for reply in (client.post("/predict", json={"weekend": "next"}), client.get("/weekends"), client.get("/models"),
                  client.get("/compare", params={"weekend": "2026-japan"})):
        assert reply.status_code == 503
        assert "make demo" in reply.json()["detail"]
        assert str(tmp_path) not in reply.text
