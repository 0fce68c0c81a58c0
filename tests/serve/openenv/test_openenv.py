"""OpenEnv sessions over WebSocket, with the typed client and with raw frames."""
from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec

import pytest
import yaml
from openenv.cli._validation import validate_running_environment
from openenv.validation.parsers.openenv_yaml import OpenEnvYamlParser
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from f1_pipelines.serve import F1Action, F1Env
from f1_pipelines.serve.openenv.environment import F1Environment
from f1_pipelines.serve.openenv.sockets import NAME
from f1_pipelines.settings import PROJECT_ROOT
from f1_pipelines.sim.environment.environment import EpisodeOver, RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.expert import Expert
from f1_pipelines.sim.scenarios import FAMILIES

STAY = F1Action(command="STAY_OUT")


def socket_of(url: str):
    return connect(url.replace("http", "ws") + "/ws")


def send(socket, frame: object) -> dict:
    """Send a frame and return the reply."""
    socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
    return json.loads(socket.recv(timeout=30))


def test_the_server_passes_openenvs_validation(url):
    report = validate_running_environment(url, timeout_s=30)
    assert report["passed"], [criterion for criterion in report["criteria"] if not criterion["passed"]]


def test_openenv_can_read_the_manifest():
    assert OpenEnvYamlParser().parse(PROJECT_ROOT).reward.range == (0.0, 1.0)
    manifest = yaml.safe_load((PROJECT_ROOT / "openenv.yaml").read_text())
    module, _, name = manifest["app"].partition(":")
    assert find_spec(module) and name == "app" and manifest["name"] == NAME


def test_the_synchronous_client_plays_a_race_to_the_flag(url):
    with F1Env(base_url=url).sync() as env:
        result = env.reset(family="late_safety_car", seed=3)
        assert result.observation.race.lap == 1 and result.observation.text.startswith("late_safety_car")
        rewards = []
        while not result.done:
            result = env.step(STAY)
            rewards.append(result.reward)
        state = env.state()
    assert result.observation.end.score == pytest.approx(sum(rewards)) and len(result.observation.end.dimensions) == 6
    assert (state.family, state.seed, state.lap, state.done) == ("late_safety_car", 3, state.laps, True)


def test_a_policy_plays_the_same_through_the_client_and_locally(url):
    """The typed observation is all that the expert needs: same commands, same rewards."""
    family, seed = "tyre_cliff_management", 5
    environment, local_expert = RaceEnvironment(), Expert()
    observation, local_rewards, done = environment.reset(seed, family), [], False
    local_expert.begin(observation)
    while not done:
        step = environment.step(local_expert.decide(observation).command)
        local_rewards.append(step.reward)
        observation, done = step.observation, step.done

    async def served() -> tuple[list[float], Observation]:
        expert, rewards = Expert(), []
        async with F1Env(base_url=url) as env:
            result = await env.reset(family=family, seed=seed, text=False)
            expert.begin(result.observation.race)
            while not result.done:
                assert result.observation.text == ""
                result = await env.step(F1Action(command=str(expert.decide(result.observation.race).command)))
                rewards.append(result.reward)
        return rewards, result.observation.race

    assert asyncio.run(served()) == (local_rewards, observation)


def test_64_concurrent_clients_get_their_own_races(url):
    """128 races; each client's rewards equal, to the last bit, those of its race played alone."""
    commands = ["STAY_OUT", "PIT_NOW hard", "SET_MODE push", "nonsense", "REQUEST_FORECAST"]
    plans = {}
    for k in range(8):
        family, environment, done = list(FAMILIES)[k % len(FAMILIES)], RaceEnvironment(), False
        environment.reset(k, family)
        plans[family, k] = []
        while not done:
            command = commands[(k + len(plans[family, k])) % len(commands)]
            step = environment.step(command)
            plans[family, k].append((command, step.reward, step.observation.number))
            done = step.done
    remaining = list(plans) * 16

    async def client() -> int:
        played = 0
        async with F1Env(base_url=url) as env:
            while remaining:
                family, seed = remaining.pop()
                await env.reset(family=family, seed=seed, text=False)
                for command, reward, number in plans[family, seed]:
                    result = await env.step(F1Action(command=command))
                    assert (result.reward, result.observation.race.number) == (reward, number)
                assert result.done
                played += 1
        return played

    async def all_clients() -> int:
        return sum(await asyncio.gather(*(client() for _ in range(64))))

    assert asyncio.run(all_clients()) == 128


def test_an_invalid_call_is_an_error_and_the_session_continues(url):
    with F1Env(base_url=url).sync() as env:
        with pytest.raises(RuntimeError, match=r"no race has begun: call reset"):
            env.step(STAY)
        with pytest.raises(RuntimeError, match=r"unknown family 'le_mans'. Valid: dry_strategy_sprint"):
            env.reset(family="le_mans")
        with pytest.raises(RuntimeError, match=r"reset: famly: Extra inputs are not permitted. Valid: family, seed"):
            env.reset(famly="late_safety_car")
        result = env.reset(family="dry_strategy_sprint", seed=1)
        result = env.step(F1Action(command="BOX BOX"))
        assert "unknown command" in result.observation.error and result.observation.race.lap == 2
        while not result.done:
            result = env.step(STAY)
        with pytest.raises(RuntimeError, match=r"the race is over after \d+ laps: call reset"):
            env.step(STAY)
        assert env.reset(seed=2).observation.race.lap == 1


def test_a_reset_without_a_seed_draws_one_and_state_returns_it(url):
    with F1Env(base_url=url).sync() as env:
        first, seed = env.reset(), env.state().seed
        assert env.reset(seed=seed).observation.text == first.observation.text


@pytest.mark.parametrize(("fields", "split"), [
    ({}, "train"), ({"split": "test"}, "test"), ({"family": "virtual_safety_car_window"}, "unseen_family")])
def test_a_drawn_seed_belongs_to_the_split(url, fields, split):
    with F1Env(base_url=url).sync() as env:
        for _ in range(5):
            env.reset(**fields)
            assert env.state().split == split
        with pytest.raises(RuntimeError, match="has no split 'exam'"):
            env.reset(split="exam")


def test_a_step_after_close_is_an_error():
    environment = F1Environment()
    environment.reset(seed=1)
    environment.close()
    for call in (lambda: environment.step(STAY), lambda: environment.reset(seed=1)):
        with pytest.raises(EpisodeOver, match="this session is closed"):
            call()


def test_a_close_message_closes_the_socket(url):
    with socket_of(url) as socket:
        send(socket, {"type": "reset", "data": {"seed": 1}})
        socket.send(json.dumps({"type": "close"}))
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)


@pytest.mark.parametrize("frame", [
    "[]", "7", "{", b"\x00\x01", {"type": "dance"}, {"type": "step"}, {"type": "step", "data": {"command": 7}},
    '{"type": "step", "data": {"command": "\\ud800"}}', '{"type": "reset", "data": {"seed": NaN}}',
    {"type": "step", "data": {"command": "x" * 4001}}, {"type": "reset", "data": {"seed": [], "family": {}}}])
def test_malformed_frames_get_an_error_and_the_session_continues(url, frame):
    with socket_of(url) as socket:
        reply = send(socket, frame)
        assert reply["type"] == "error" and "Traceback" not in str(reply) and "/" not in reply["data"]["message"]
        assert send(socket, {"type": "reset", "data": {"seed": 1}})["type"] == "observation"


def test_a_frame_that_is_too_large_ends_the_session(serve):
    with socket_of(serve(body_kib=1)) as socket:
        socket.send(json.dumps({"type": "reset", "data": {"episode_id": "x" * 5000}}))
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)


def test_the_number_of_sessions_is_limited_and_ended_ones_make_room(serve):
    address = serve(sockets=2)
    with socket_of(address) as first, socket_of(address) as second:
        assert send(first, {"type": "state"})["type"] == send(second, {"type": "state"})["type"] == "state"
        with socket_of(address) as third:
            assert json.loads(third.recv(timeout=30))["data"]["code"] == "CAPACITY_REACHED"
    with socket_of(address) as later:
        assert send(later, {"type": "state"})["type"] == "state"


def test_an_idle_session_gets_a_message_and_ends(serve):
    with socket_of(serve(idle_s=0.2, sockets=1)) as socket:
        assert "idle" in json.loads(socket.recv(timeout=30))["data"]["message"]
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)


def test_a_client_above_the_message_rate_waits_and_loses_no_reply(serve):
    with socket_of(serve(messages_per_s=40)) as socket:
        for _ in range(60):
            socket.send('{"type": "state"}')
        assert [json.loads(socket.recv(timeout=30))["type"] for _ in range(60)] == ["state"] * 60


def test_an_internal_error_reveals_nothing(url, monkeypatch):
    monkeypatch.setattr(F1Environment, "_begin", lambda *_: 1 / int("/secret/path"))
    with socket_of(url) as socket:
        assert send(socket, {"type": "reset", "data": {}})["data"]["message"] == \
            "internal server error; see the server log."
