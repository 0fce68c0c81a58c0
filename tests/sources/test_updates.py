"""Updates that a sensor reads: the version of a phase's data, or what is missing."""
from datetime import UTC, datetime

import pytest

from f1_pipelines.identity.weekends import weekend
from f1_pipelines.sources.sample import SampleSource


@pytest.mark.parametrize("phase", ["pre_race", "post_race"])
def test_the_version_of_f1db_is_that_of_its_rows(f1db, phase):
    monaco = weekend("2026-monaco")
    update = f1db.news(monaco, phase)
    assert update == f1db.news(monaco, phase) and update.version
    if phase == "post_race":
        assert [update.version] == list(f1db.results([monaco]).tables["race.results"]["content_hash"].unique())
    assert f1db.news(weekend("2026-canada"), phase).version != update.version
    assert f1db.news(weekend("2026-italy"), phase).version is None
    assert f1db.news(weekend("2026-italy"), phase).lacks


def test_updates_of_the_sample_follow_the_clock():
    before = SampleSource(lambda: datetime(2026, 6, 7, 14, tzinfo=UTC))
    after = SampleSource(lambda: datetime(2026, 6, 7, 18, tzinfo=UTC))
    monaco = weekend("2026-monaco")
    assert before.news(monaco, "pre_race").version
    assert before.news(monaco, "post_race").lacks == "not held yet (starts 2026-06-07 13:00 UTC)"
    assert [after.news(monaco, "post_race").version] == list(
        after.results([monaco]).tables["race.results"]["content_hash"].unique())
