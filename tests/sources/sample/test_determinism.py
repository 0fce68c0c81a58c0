from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.identity.line_ups import embedded_weekends

METHODS = ("practice", "qualifying", "results", "laps")
_SCRIPT = """
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
def test_a_second_call_and_another_source_give_the_same_bytes(make_source, weekends, digests, method):
    source = make_source()
    first = digests(getattr(source, method)(weekends))
    assert digests(getattr(source, method)(weekends)) == first
    assert digests(getattr(make_source(datetime(2027, 2, 3, tzinfo=UTC)), method)(weekends)) == first


def test_another_process_with_other_hashes_gives_the_same_bytes_on_another_day(make_source, weekends, digests):
    process = subprocess.run([sys.executable, "-c", _SCRIPT, ",".join(weekend.key for weekend in weekends)],
                             env={**os.environ, "PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True)
    source = make_source()
    expected = {name: digest for method in METHODS
                for name, digest in digests(getattr(source, method)(weekends)).items()}
    assert json.loads(process.stdout) == expected


@pytest.mark.parametrize("key", ["2022-emilia-romagna", "2024-sao-paulo", "2025-australia", "2026-monaco"])
def test_a_weekend_alone_is_the_same_as_among_all(make_source, all_tables, key):
    source, weekend = make_source(), embedded_weekends()[key]
    for method in ("laps", "qualifying", "results", "practice"):
        for name, alone in getattr(source, method)([weekend]).tables.items():
            expected = all_tables[name].query("weekend == @key")
            if name == "race.weather":
                expected = expected[expected["session"].isin(alone["session"])]
            pd.testing.assert_frame_equal(alone.reset_index(drop=True), expected.reset_index(drop=True))


def test_a_refreshed_calendar_changes_no_results(make_source, digests):
    weekend = embedded_weekends()["2025-bahrain"]
    moved = replace(weekend, race_laps=12, event_name="Another Name",
                    sessions={name: start.replace(minute=31) for name, start in weekend.sessions.items()})
    assert digests(make_source().results([moved])) == digests(make_source().results([weekend]))
