"""Dagster over its own GraphQL API: start a run, ask for its state, list the recent ones. Nothing is kept here.

The webserver that answers is the one of `make dev`, whose daemon takes the runs up. Neither has to be on this machine.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import requests

UNFINISHED = ("QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING")
ASSET_JOB = "__ASSET_JOB"  # Dagster's own name of a run of chosen assets
_TIMEOUT_S = 10.0
_RUN = "id jobName status creationTime startTime endTime tags { key value } assetSelection { path }"
_LOCATION = "repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } jobs { name } } } }"
_DAEMONS = "instance { runQueuingSupported daemonHealth { allDaemonStatuses { daemonType healthy } } }"
_LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
    ... on LaunchRunSuccess { run { id } } ... on Error { message } } }"""
_RUNS = ("query($filter: RunsFilter, $limit: Int) { runsOrError(filter: $filter, limit: $limit) { __typename "
         "... on Runs { results { " + _RUN + " } } } }")
_FRESHNESS = "{ assetNodes { assetKey { path } groupName assetMaterializations(limit: 1) { timestamp partition } } }"


class DagsterUnavailable(RuntimeError):
    """Dagster does not answer, or nothing would take a run up. The message says what to do."""


@dataclass(frozen=True)
class Run:
    """A run as Dagster knows it. `job` is `__ASSET_JOB` for a run of chosen assets."""

    id: str
    job: str
    state: str
    weekend: str | None
    assets: tuple[str, ...]
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True)
class AssetFreshness:
    """When an asset was last made, and of which weekend."""

    asset: str
    group: str
    at: datetime | None
    weekend: str | None


class DagsterApi:
    """One Dagster webserver."""

    def __init__(self, url: str):
        """
        Args:
            url: Of the webserver, `http://127.0.0.1:3000` for `make dev`.
        """
        self.url = url.rstrip("/")

    def start(self, job: str, weekend: str, assets: Sequence[str] = ()) -> str:
        """Start a job for a weekend; the id of its run.

        Args:
            job: Its name, or `ASSET_JOB` with the assets to materialize.

        Raises:
            DagsterUnavailable: The webserver or the daemon is not running, or it refuses.
        """
        state = self._ask(f"{{ {_LOCATION} {_DAEMONS} }}")
        if problem := _queue_problem(state["instance"]):
            raise DagsterUnavailable(problem)
        repositories = [node for node in state["repositoriesOrError"].get("nodes", [])
                        if job in {known["name"] for known in node["jobs"]}]
        if not repositories:
            raise DagsterUnavailable(f"Dagster runs, but knows no job {job}; its code location failed to load: the "
                                     "Dagster UI says why")
        selector = {"repositoryLocationName": repositories[0]["location"]["name"],
                    "repositoryName": repositories[0]["name"],
                    "jobName": job, "assetSelection": [{"path": [asset]} for asset in assets] or None}
        tags = [{"key": "dagster/partition", "value": weekend}, {"key": "f1/asked_by", "value": "serve"}]
        launched = self._ask(_LAUNCH, params={"selector": selector, "mode": "default",
                                              "executionMetadata": {"tags": tags}})["launchRun"]
        if launched["__typename"] != "LaunchRunSuccess":
            raise DagsterUnavailable(f"Dagster refused {job} of {weekend} ({launched['__typename']}); "
                                     "the Dagster UI says why")
        return launched["run"]["id"]

    def run(self, run_id: str) -> Run | None:
        """The run of that id, None where Dagster knows none."""
        runs = self.runs(1, run_ids=[run_id])
        return runs[0] if runs else None

    def at_work(self, job: str, weekend: str) -> Run | None:
        """A run of that job and weekend that has not ended."""
        runs = self.runs(1, pipelineName=job, statuses=UNFINISHED,
                         tags=[{"key": "dagster/partition", "value": weekend}])
        return runs[0] if runs else None

    def runs(self, limit: int, run_ids: Sequence[str] | None = None, **chosen: object) -> list[Run]:
        """The newest runs first, at most so many; `chosen` are fields of Dagster's RunsFilter."""
        ids = {"runIds": list(run_ids)} if run_ids else {}
        answer = self._ask(_RUNS, filter={**ids, **chosen}, limit=limit)["runsOrError"]
        return [_parse_run(run) for run in answer.get("results", [])]

    def materialized(self) -> list[AssetFreshness]:
        """When each asset was last made, by group and name."""
        assets = []
        for node in self._ask(_FRESHNESS)["assetNodes"]:
            last: dict[str, Any] = next(iter(node["assetMaterializations"]), {"timestamp": 0, "partition": None})
            assets.append(AssetFreshness(node["assetKey"]["path"][-1], node["groupName"] or "",
                                         _utc(float(last["timestamp"]) / 1000), last["partition"]))
        return sorted(assets, key=lambda made: (made.group, made.asset))

    def idle_queue(self) -> str | None:
        """Why a run would only be queued and never begin; None where it would."""
        return _queue_problem(self._ask(f"{{ {_DAEMONS} }}")["instance"])

    def _ask(self, query: str, **variables: object) -> dict[str, Any]:
        try:
            body: dict[str, Any] = {"query": query, "variables": variables}
            reply = requests.post(f"{self.url}/graphql", json=body,
                                  timeout=_TIMEOUT_S)
            reply.raise_for_status()
            body_of_reply = reply.json()
        except (requests.RequestException, ValueError):
            raise DagsterUnavailable("Dagster's webserver does not answer; start it with `make dev`, or say where it "
                                     "is in F1_DAGSTER_URL") from None
        if body_of_reply.get("errors") or not body_of_reply.get("data"):
            raise DagsterUnavailable("Dagster's webserver does not understand this project's questions; is it of "
                                     "version 1.13?")
        return body_of_reply["data"]


def _queue_problem(instance: dict[str, Any]) -> str | None:
    healthy = {status["daemonType"] for status in instance["daemonHealth"]["allDaemonStatuses"] if status["healthy"]}
    if instance["runQueuingSupported"] and "QUEUED_RUN_COORDINATOR" not in healthy:
        return ("Dagster's daemon is not running, so a run would be queued and never begin; start it with `make dev`, "
                "or `dagster-daemon run`")
    return None


def _parse_run(run: dict[str, Any]) -> Run:
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    span = [tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end")]
    weekend = tags.get("dagster/partition") or (f"{span[0]}...{span[1]}" if all(span) else None)
    return Run(run["id"], run["jobName"], run["status"], weekend,
               tuple(key["path"][-1] for key in run["assetSelection"] or ()),
               datetime.fromtimestamp(run["creationTime"], UTC),
               _utc(run["startTime"]), _utc(run["endTime"]))


def _utc(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
