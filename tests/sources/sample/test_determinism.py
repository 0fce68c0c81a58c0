from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.identity.line_ups import embedded_weekends

METHODS = ("practice", "qualifying", "results", "laps")
_ELSEWHERE = """
import hashlib, json, sys
from datetime import datetime, timezone
from f1_pipelines.identity.line_ups import embedded_weekends
from f1_pipelines.sources.sample import SampleSource
weekends = [embedded_weekends()[key] for key in sys.argv[1].split(",")]
source = SampleSource(lambda: datetime(2029, 5, 1, tzinfo=timezone.utc))
print(json.dumps({name: hashlib.sha256(frame.drop(columns="fetched_at").to_csv(index=False).encode()).hexdigest()
    for method in ("practice", "qualifying", "results", "laps")
    for name, frame in getattr(source, method)(weekends).tables.items()}))
"""


@pytest.mark.parametrize("method", METHODS)
def test_asking_again_or_another_source_gives_the_same_bytes(make, few, digests, method):
    source = make()
    first = digests(getattr(source, method)(few))
    assert digests(getattr(source, method)(few)) == first
    assert digests(getattr(make(datetime(2027, 2, 3, tzinfo=UTC)), method)(few)) == first


def test_another_process_with_other_hashes_says_the_same_on_another_day(make, few, digests):
    done = subprocess.run([sys.executable, "-c", _ELSEWHERE, ",".join(weekend.key for weekend in few)],
                          env={**os.environ, "PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True)
    source = make()
    here = {name: digest for method in METHODS for name, digest in digests(getattr(source, method)(few)).items()}
    assert json.loads(done.stdout) == here


@pytest.mark.parametrize("key", ["2022-emilia-romagna", "2024-sao-paulo", "2025-australia", "2026-monaco"])
def test_a_weekend_alone_is_as_among_all(make, everything, key):
    source, weekend = make(), embedded_weekends()[key]
    for method in ("laps", "qualifying", "results", "practice"):
        for name, alone in getattr(source, method)([weekend]).tables.items():
            among = everything[name].query("weekend == @key")
            if name == "race.weather":
                among = among[among["session"].isin(alone["session"])]
            pd.testing.assert_frame_equal(alone.reset_index(drop=True), among.reset_index(drop=True))


def test_a_refreshed_calendar_changes_nothing_that_was_run(make, digests, tmp_path, monkeypatch):
    from dataclasses import replace
    weekend = embedded_weekends()["2025-bahrain"]
    moved = replace(weekend, race_laps=12, event_name="Another Name",
                    sessions={name: start.replace(minute=31) for name, start in weekend.sessions.items()})
    assert digests(make().results([moved])) == digests(make().results([weekend]))
