"""What a source says to a sensor: which version of a phase's data there is, and what is lacking."""
from datetime import UTC, datetime

import pytest

from f1_pipelines.identity.weekends import weekend
from f1_pipelines.sources.sample import SampleSource


@pytest.mark.parametrize(("phase", "what"), [("pre_race", "qualifying"), ("post_race", "results")])
def test_f1db_tells_the_version_of_what_it_would_hand_over(f1db, phase, what):
    monaco = weekend("2026-monaco")
    told = f1db.news(monaco, phase)
    assert told == f1db.news(monaco, phase) and told.version
    if phase == "post_race":
        assert [told.version] == list(f1db.results([monaco]).tables["race.results"]["content_hash"].unique())
    other = f1db.news(weekend("2026-canada"), phase)
    assert other.version != told.version
    assert f1db.news(weekend("2026-italy"), phase).version is None
    assert f1db.news(weekend("2026-italy"), phase).lacks


def test_the_sample_tells_by_the_clock():
    before = SampleSource(lambda: datetime(2026, 6, 7, 14, tzinfo=UTC))
    after = SampleSource(lambda: datetime(2026, 6, 7, 18, tzinfo=UTC))
    monaco = weekend("2026-monaco")
    assert before.news(monaco, "pre_race").version
    assert before.news(monaco, "post_race").lacks == "not held yet (starts 2026-06-07 13:00 UTC)"
    assert [after.news(monaco, "post_race").version] == list(
        after.results([monaco]).tables["race.results"]["content_hash"].unique())
