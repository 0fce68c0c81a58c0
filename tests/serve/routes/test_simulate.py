"""`POST /simulate` and the race behind it."""
from __future__ import annotations

import json
import threading
import time

import pytest
import requests

from f1_pipelines.serve.live_race import LiveRace
from f1_pipelines.serve.race_factory import BY_HAND, RaceRequest, begin_race
from f1_pipelines.sim.environment.environment import EpisodeOver
from f1_pipelines.sim.policies.play import play

RACE = {"family": "weather_roulette", "seed": 4, "policy": "fixed_stop"}


def test_simulate_drives_the_same_race_as_play(url):
    expected = play("weather_roulette", 4, "fixed_stop")
    served = requests.post(f"{url}/simulate", json=RACE, timeout=60).json()
    laps, start = served["laps"], served["start"]
    assert (start["circuit"], start["split"], start["policy"]) == (expected.circuit, expected.split, "fixed_stop")
    assert [lap["lap"] for lap in laps] == list(range(start["laps"] + 1))
    assert [lap["call"]["command"] for lap in laps[1:]] == [d["command"] for d in expected.decisions]
    assert all(lap["call"]["reason"] for lap in laps[1:])
    assert [car["number"] for car in laps[0]["cars"]] == expected.grid
    rows = {(row["lap"], row["car"]): row for row in expected.laps}
    for lap in laps[1:]:
        for car in lap["cars"]:
            row = rows[lap["lap"], car["number"]]
            assert [car[k] for k in ("gap_s", "lap_time_s", "compound", "tyre_age_laps", "stopped")] == \
                [row[k] for k in ("gap_s", "lap_time_s", "compound", "tyre_age_laps", "stopped")]
            assert (lap["status"], lap["rain"]) == (row["status"], row["rain"])
    assert {**served["end"]["dimensions"], "score": served["end"]["score"]} == expected.score
    assert laps[-1]["score_so_far"] == pytest.approx(expected.info["score"], abs=1e-3)


@pytest.mark.parametrize("arguments", [{"json": {**RACE, "stream": True}},
                                       {"json": RACE, "headers": {"Accept": "text/event-stream"}}])
def test_the_stream_contains_the_same_laps(url, arguments):
    race = requests.post(f"{url}/simulate", json=RACE, timeout=60).json()
    with requests.post(f"{url}/simulate", stream=True, timeout=60, **arguments) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        lines = [line.decode().partition(": ")[2] for line in stream.iter_lines() if line]
    events = [(name, json.loads(data)) for name, data in zip(lines[::2], lines[1::2], strict=True)]
    assert events == [("start", race["start"]), *(("lap", lap) for lap in race["laps"]), ("end", race["end"])]


@pytest.mark.parametrize(("fields", "message"), [
    ({"policy": "sft"}, "unknown policy 'sft'. Valid: random, "), ({"family": "x"}, "unknown family 'x'"),
    ({"policy": BY_HAND}, "POST /reset"), ({"circuit": "x", "stream": True}, "unknown circuit 'x'")])
def test_unknown_policies_and_races_are_refused(url, fields, message):
    reply = requests.post(f"{url}/simulate", json=fields, timeout=60)
    assert reply.status_code == 422 and message in reply.json()["detail"]


def test_a_race_that_takes_too_long_is_stopped(serve):
    address = serve(race_s=1e-9, races=1)
    for _ in range(2):  # a stopped race frees its slot
        reply = requests.post(f"{address}/simulate", json=RACE, timeout=60)
        assert reply.status_code == 503 and "stopped at lap 0" in reply.json()["detail"]
    with requests.post(f"{address}/simulate", json={**RACE, "stream": True}, timeout=60) as stream:
        assert stream.text.endswith('stopped at lap 0."}\n\n') and "event: error" in stream.text


def test_races_above_the_limit_are_refused(serve, monkeypatch):
    address, released, lap = serve(races=1), threading.Event(), LiveRace.lap
    monkeypatch.setattr(LiveRace, "lap", lambda race: released.wait(30) and lap(race))
    with requests.post(f"{address}/simulate", json={**RACE, "stream": True}, stream=True, timeout=60) as first:
        second = requests.post(f"{address}/simulate", json=RACE, timeout=60)
        released.set()
        assert second.status_code == 503 and b"event: end" in first.content
    assert requests.post(f"{address}/simulate", json=RACE, timeout=60).status_code == 200


def test_a_race_ends_when_its_client_disconnects(serve, monkeypatch):
    address, released, lap = serve(races=1), threading.Event(), LiveRace.lap
    monkeypatch.setattr(LiveRace, "lap", lambda race: released.wait(30) and lap(race))
    with requests.post(f"{address}/simulate", json={**RACE, "stream": True}, stream=True, timeout=60):
        pass
    released.set()
    replies = (requests.post(f"{address}/simulate", json=RACE, timeout=60) for _ in range(100))
    assert any(reply.status_code == 200 or time.sleep(0.1) for reply in replies)


def test_policies_lists_the_valid_values(url):
    choices = requests.get(f"{url}/policies", timeout=60).json()
    kinds = {policy["name"]: policy["kind"] for policy in choices["policies"]}
    assert kinds["expert"] == "scripted" and kinds["oracle"] == "oracle" and "language model" not in kinds.values()
    assert "grand_prix" in choices["families"] and "monza" in choices["circuits"] and len(choices["commands"]) == 21


@pytest.fixture
def by_hand() -> LiveRace:
    return begin_race(RaceRequest(seed=7), BY_HAND)


def test_by_hand_every_lap_has_its_command_with_reply_or_error(by_hand):
    with pytest.raises(EpisodeOver, match=r"drive\(command\)"):
        by_hand.lap()
    assert by_hand.laps[0].call is None and len(by_hand.opponents) == 5
    first = by_hand.drive("REQUEST_INFO tyres")
    assert first.lap == 1 and first.call.answer and first.call.error is None
    assert "unknown command" in by_hand.drive("BOX").call.error
    third = by_hand.drive("PIT_NOW hard")
    ours = next(car for car in third.cars if car.ours)
    assert ours.stopped and ours.stops == 1 and not by_hand.over
    while not by_hand.over:
        by_hand.drive("STAY_OUT")
    assert by_hand.end.score == pytest.approx(by_hand.laps[-1].score_so_far, abs=1e-3)
    with pytest.raises(EpisodeOver, match="over after"):
        by_hand.drive("STAY_OUT")


def test_after_done_the_remaining_laps_are_returned_one_by_one(by_hand):
    assert by_hand.drive("DONE").lap == 1 and by_hand.handed_over
    with pytest.raises(EpisodeOver, match="DONE was called"):
        by_hand.drive("STAY_OUT")
    laps = [by_hand.lap() for _ in range(by_hand.scenario.laps - 1)]
    assert by_hand.over and [lap.lap for lap in laps] == list(range(2, by_hand.scenario.laps + 1))
    assert all(lap.call is None for lap in laps) and by_hand.laps[-1].score_so_far == round(by_hand.end.score, 4) != 0
