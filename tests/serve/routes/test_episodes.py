"""Sessions over plain HTTP, as with curl."""
from __future__ import annotations

import pytest
import requests

from f1_pipelines.serve.openenv.sessions import NoSession, Sessions
from f1_pipelines.sim.environment.environment import EpisodeOver, RaceEnvironment

STAY = {"action": {"command": "STAY_OUT"}}


def test_a_race_by_session_id_in_header_or_body(url):
    reset = requests.post(f"{url}/reset", json={"family": "late_safety_car", "seed": 3}, timeout=30)
    key = reset.headers["X-Session-Id"]
    assert reset.status_code == 200 and reset.json()["session_id"] == key
    environment, done, k = RaceEnvironment(), False, 0
    environment.reset(3, "late_safety_car")
    while not done:
        step, k = environment.step("STAY_OUT"), k + 1
        request = {"headers": {"X-Session-Id": key}, "json": STAY} if k % 2 else {"json": {**STAY, "session_id": key}}
        served = requests.post(f"{url}/step", timeout=30, **request).json()
        assert (served["reward"], served["done"], served["observation"]["text"]) == (
            step.reward, step.done, step.observation.text)
        done = served["done"]
    state = requests.get(f"{url}/state", headers={"X-Session-Id": key}, timeout=30).json()
    assert state == requests.get(f"{url}/state", params={"session_id": key}, timeout=30).json()
    assert (state["lap"], state["done"], state["step_count"]) == (k, True, k)
    after = requests.post(f"{url}/step", json={**STAY, "session_id": key}, timeout=30)
    assert after.status_code == 409 and "the race is over" in after.json()["detail"]
    second = requests.post(f"{url}/reset", json={"seed": 4}, headers={"X-Session-Id": key}, timeout=30)
    assert second.json()["session_id"] == key and second.json()["observation"]["race"]["lap"] == 1


def test_sessions_are_independent(url):
    keys = [requests.post(f"{url}/reset", json={"seed": seed}, timeout=30).json()["session_id"] for seed in (1, 2)]
    requests.post(f"{url}/step", json={**STAY, "session_id": keys[0]}, timeout=30)
    laps = [requests.get(f"{url}/state", params={"session_id": key}, timeout=30).json()["lap"] for key in keys]
    assert laps == [1, 0] and keys[0] != keys[1]


def test_a_closed_session_is_unknown(url):
    key = requests.post(f"{url}/reset", timeout=30).json()["session_id"]
    assert requests.post(f"{url}/close", json={"session_id": key}, timeout=30).status_code == 204
    for reply in (requests.post(f"{url}/step", json={**STAY, "session_id": key}, timeout=30),
                  requests.get(f"{url}/state", params={"session_id": key}, timeout=30),
                  requests.post(f"{url}/step", json=STAY, timeout=30)):
        assert reply.status_code == 404 and "start one with POST /reset" in reply.json()["detail"]


@pytest.mark.parametrize(("fields", "message"), [
    ({"family": "le_mans"}, "unknown family 'le_mans'. Valid: dry_strategy_sprint"),
    ({"seed": 1, "split": "exam"}, "has no split 'exam'"),
    ({"circuit": "nordschleife"}, "unknown circuit 'nordschleife'. Valid: "),
    ({"family": "grand_prix", "weekend": "../../etc", "car": "x"}, "a weekend key is season-slug"),
    ({"family": "grand_prix", "weekend": "2026-monaco", "car": "leclerc"}, "no warehouse is published yet"),
    ({"weekend": "2026-monaco"}, "weekend and car belong to grand_prix")])
def test_an_impossible_race_is_refused_with_the_reason(url, fields, message):
    reply = requests.post(f"{url}/reset", json=fields, timeout=30)
    assert reply.status_code == 422 and message in reply.json()["detail"] and "X-Session-Id" not in reply.headers


@pytest.mark.parametrize("body", ['{"seed": NaN}', '{"\\ud800": 1}', '{"family": "\\ud800"}', "[" * 50_000, "{", "\xff",
                                  '{"seed": 1e400}', '{"seed": ' + "9" * 5000 + "}"])
def test_malformed_bodies_are_refused(url, body):
    reply = requests.post(f"{url}/reset", data=body.encode("latin-1"), timeout=30,
                          headers={"Content-Type": "application/json"})
    assert reply.status_code in (400, 422) and reply.json()["detail"]


def test_a_full_server_refuses_new_sessions(serve):
    address = serve(sessions=1)
    key = requests.post(f"{address}/reset", timeout=30).json()["session_id"]
    full = requests.post(f"{address}/reset", timeout=30)
    assert full.status_code == 503 and "all 1 sessions are in use" in full.json()["detail"]
    requests.post(f"{address}/close", json={"session_id": key}, timeout=30)
    assert requests.post(f"{address}/reset", json={"family": "x"}, timeout=30).status_code == 422  # uses no session
    assert requests.post(f"{address}/reset", timeout=30).status_code == 200


def test_idle_and_old_sessions_end():
    now = [0.0]
    sessions = Sessions(max_sessions=9, idle_s=10, max_age_s=25, clock=lambda: now[0])
    busy, idle = sessions.open(), sessions.open()
    for now[0] in (9.0, 18.0):
        sessions.get(busy.id)
    assert len(sessions) == 1
    with pytest.raises(NoSession, match="no such session"):
        sessions.get(idle.id)
    with pytest.raises(EpisodeOver):
        idle.environment.reset(seed=1)
    now[0] = 26.0
    with pytest.raises(NoSession):
        sessions.get(busy.id)
