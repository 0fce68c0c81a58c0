"""Client of Dagster's GraphQL API: start runs, read their status, list recent runs. Stores nothing.

It talks to the webserver of `make dev`, whose daemon launches the runs. Both may be on another machine.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import requests

UNFINISHED = ("QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING")
ASSET_JOB = "__ASSET_JOB"  # Dagster's job name for runs of selected assets
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
    """Dagster does not answer, or no daemon would launch a run. The message says what to do."""


@dataclass(frozen=True)
class Run:
    """A run as Dagster reports it. `job` is `__ASSET_JOB` for a run of selected assets."""

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
    """When an asset was last materialized, and for which weekend."""

    asset: str
    group: str
    materialized_at: datetime | None
    weekend: str | None


class DagsterApi:
    """Client of one Dagster webserver."""

    def __init__(self, url: str):
        """
        Args:
            url: Address of the webserver; `http://127.0.0.1:3000` for `make dev`.
        """
        self.url = url.rstrip("/")

    def start(self, job: str, weekend: str, assets: Sequence[str] = ()) -> str:
        """Start a run of a job for one weekend and return the run's id.

        Args:
            job: Name of the job, or `ASSET_JOB` to materialize `assets`.
            weekend: Key of the weekend, the run's partition.
            assets: Names of the assets to materialize; empty for all assets of the job.

        Raises:
            DagsterUnavailable: The webserver or the daemon is not running, or Dagster rejects the run.
        """
        state = self._query(f"{{ {_LOCATION} {_DAEMONS} }}")
        if problem := _queue_problem(state["instance"]):
            raise DagsterUnavailable(problem)
        repositories = [node for node in state["repositoriesOrError"].get("nodes", [])
                        if job in {node_job["name"] for node_job in node["jobs"]}]
        if not repositories:
            raise DagsterUnavailable(f"Dagster is running but has no job {job}: its code location failed to load; see "
                                     "the Dagster UI")
        selector = {"repositoryLocationName": repositories[0]["location"]["name"],
                    "repositoryName": repositories[0]["name"],
                    "jobName": job, "assetSelection": [{"path": [asset]} for asset in assets] or None}
        tags = [{"key": "dagster/partition", "value": weekend}, {"key": "f1/asked_by", "value": "serve"}]
        launched = self._query(_LAUNCH, params={"selector": selector, "mode": "default",
                                                "executionMetadata": {"tags": tags}})["launchRun"]
        if launched["__typename"] != "LaunchRunSuccess":
            raise DagsterUnavailable(f"Dagster rejected {job} for {weekend} ({launched['__typename']}); see the "
                                     "Dagster UI")
        return launched["run"]["id"]

    def run(self, run_id: str) -> Run | None:
        """Return the run with that id, or None if Dagster has none."""
        runs = self.runs(1, run_ids=[run_id])
        return runs[0] if runs else None

    def unfinished_run(self, job: str, weekend: str) -> Run | None:
        """Return a run of that job and weekend that has not ended, or None."""
        runs = self.runs(1, pipelineName=job, statuses=UNFINISHED,
                         tags=[{"key": "dagster/partition", "value": weekend}])
        return runs[0] if runs else None

    def runs(self, limit: int, run_ids: Sequence[str] | None = None, **filters: object) -> list[Run]:
        """List at most `limit` runs, newest first; `filters` are fields of Dagster's RunsFilter."""
        ids = {"runIds": list(run_ids)} if run_ids else {}
        reply = self._query(_RUNS, filter={**ids, **filters}, limit=limit)["runsOrError"]
        return [_parse_run(run) for run in reply.get("results", [])]

    def asset_freshness(self) -> list[AssetFreshness]:
        """List when each asset was last materialized, by group and name."""
        assets = []
        for node in self._query(_FRESHNESS)["assetNodes"]:
            last: dict[str, Any] = next(iter(node["assetMaterializations"]), {"timestamp": 0, "partition": None})
            assets.append(AssetFreshness(node["assetKey"]["path"][-1], node["groupName"] or "",
                                         _utc(float(last["timestamp"]) / 1000), last["partition"]))
        return sorted(assets, key=lambda row: (row.group, row.asset))

    def queue_problem(self) -> str | None:
        """Return why a queued run would never start, or None if it would."""
        return _queue_problem(self._query(f"{{ {_DAEMONS} }}")["instance"])

    def _query(self, query: str, **variables: object) -> dict[str, Any]:
        try:
            body: dict[str, Any] = {"query": query, "variables": variables}
            response = requests.post(f"{self.url}/graphql", json=body, timeout=_TIMEOUT_S)
            response.raise_for_status()
            reply = response.json()
        except (requests.RequestException, ValueError):
            raise DagsterUnavailable("Dagster's webserver does not answer; start it with `make dev`, or set "
                                     "F1_DAGSTER_URL to its address") from None
        if reply.get("errors") or not reply.get("data"):
            raise DagsterUnavailable("Dagster's webserver rejected the query; this project needs Dagster 1.13")
        return reply["data"]


def _queue_problem(instance: dict[str, Any]) -> str | None:
    healthy = {status["daemonType"] for status in instance["daemonHealth"]["allDaemonStatuses"] if status["healthy"]}
    if instance["runQueuingSupported"] and "QUEUED_RUN_COORDINATOR" not in healthy:
        return ("Dagster's daemon is not running, so a queued run would never start; start it with `make dev` or "
                "`dagster-daemon run`")
    return None


def _parse_run(run: dict[str, Any]) -> Run:
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    first, last = (tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end"))
    weekend = tags.get("dagster/partition") or (f"{first}...{last}" if first and last else None)
    return Run(run["id"], run["jobName"], run["status"], weekend,
               tuple(key["path"][-1] for key in run["assetSelection"] or ()),
               datetime.fromtimestamp(run["creationTime"], UTC),
               _utc(run["startTime"]), _utc(run["endTime"]))


def _utc(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
