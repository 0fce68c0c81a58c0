"""The season of 2026, lived through by the sensor: real ticks, real runs, a real warehouse, and all that goes wrong.

Ticks are where something is to be seen: in between nothing changes that a tick could see.
"""
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest

PRE, POST, NEXT = "pre_race", "post_race", "next_prediction"


def as_planned(key: str, then: str | None) -> list[tuple[str, str]]:
    """What a weekend without trouble asks for, `then` being the weekend after it."""
    key, then = f"2026-{key}", then and f"2026-{then}"
    return [(key, PRE), (key, POST), *([(then, NEXT)] if then else [])]


@pytest.mark.timeout(600)
def test_a_season_runs_itself(season):
    world = season.world

    # The season opens. Between the flag and the sheet, and before qualifying is over, there is nothing to do.
    season.at("2026-03-07T05:30:00+00:00").settle()
    assert "2026-australia pre_race: qualifying is over at 2026-03-07 06:00 UTC" in season.why
    assert season.weekend("2026-australia") == as_planned("australia", "china")
    # A sprint weekend: qualifying comes after the sprint. The afternoon in Shanghai is a morning in UTC.
    season.at("2026-03-14T15:30:00+08:00").settle()
    assert "2026-china pre_race: qualifying is over at 2026-03-14 08:00 UTC" in season.why
    assert season.weekend("2026-china") == as_planned("china", "japan")

    # Japan, while Europe's clocks change: the sheet is provisional until Monday.
    world.provisional.add("2026-japan")
    assert season.weekend("2026-japan") == [("2026-japan", PRE)]
    assert "2026-japan post_race: nothing to go by yet (no official sheet yet)" in season.why
    world.provisional.clear()
    assert season.at("2026-03-30T09:00:00+00:00").settle() == [("2026-japan", POST), ("2026-miami", NEXT)]

    # Saudi Arabia is cancelled.
    assert season.at("2026-04-19T21:00:00+00:00").settle() == []
    assert "2026-saudi-arabia post_race: cancelled" in season.why

    # Miami: the first run fails, the second does not.
    world.torn.add("2026-miami")
    assert season.weekend("2026-miami") == [("2026-miami", PRE), ("2026-miami", POST)]
    assert "failed, try 2 of 3 at 2026-05-03 21:15 UTC" in season.why
    world.torn.clear()
    assert season.at("2026-05-03T21:14:00+00:00").settle() == []
    assert season.at("2026-05-03T21:15:00+00:00").settle() == [("2026-miami", POST), ("2026-canada", NEXT)]

    # Canada: it fails for good, is named loudly, and the season goes on without it.
    world.torn.add("2026-canada")
    assert season.weekend("2026-canada") == [("2026-canada", PRE), ("2026-canada", POST)]
    for hour in range(12):
        season.at(f"2026-05-25T{hour:02}:30:00+00:00").settle()
    assert season.asked[-2:] == [("2026-canada", POST)] * 2
    assert "2026-canada post_race: GIVEN UP after 3 tries" in season.why
    assert season.weekend("2026-monaco") == as_planned("monaco", "barcelona-catalunya")
    # Its sheet was mended at the source, so that it says something else now.
    world.torn.clear()
    world.amended.add("2026-canada")
    assert season.at("2026-06-08T10:00:00+00:00").settle() == [
        ("2026-canada", POST), ("2026-barcelona-catalunya", NEXT)]

    # Nobody is there for five weeks and three races; then they come in order, and what is over is not forecast.
    season.cursor = None
    assert season.at("2026-07-13T10:00:00+00:00").settle() == [
        ("2026-barcelona-catalunya", POST), ("2026-austria", POST), ("2026-great-britain", POST),
        ("2026-belgium", NEXT)]

    # Belgium: the source is out when the race ends, for some ticks.
    season.at("2026-07-18T16:00:00+00:00").settle()
    world.down = True
    for minute in (0, 20, 40):
        assert season.at(f"2026-07-19T17:{minute:02}:00+00:00").tick() is None
        assert "f1db can't be asked: nobody answers" in season.why
    world.down = False
    assert season.at("2026-07-19T18:00:00+00:00").settle() == [("2026-belgium", POST), ("2026-hungary", NEXT)]

    # Hungary: the machine dies in the middle of the run, and the run says for ever that it is running.
    season.at("2026-07-25T16:00:00+00:00").settle()
    season.start_and_die(season.at("2026-07-26T17:00:00+00:00").tick())
    assert season.at("2026-07-26T19:59:00+00:00").settle() == []
    assert "2026-hungary post_race: run" in season.why and "is on it" in season.why
    assert season.at("2026-07-26T20:01:00+00:00").settle() == [("2026-hungary", POST), ("2026-netherlands", NEXT)]
    # Meanwhile Belgium's result has been amended.
    world.amended.add("2026-belgium")
    assert season.at("2026-07-28T12:00:00+00:00").settle() == [("2026-belgium", POST), ("2026-netherlands", NEXT)]

    # The Netherlands: the cursor is deleted again and again, and the clock is set back a little. Nothing runs twice.
    assert season.weekend("2026-netherlands") == as_planned("netherlands", "italy")
    for back_s in (0, 1, 90):
        season.cursor = None
        season.at(f"2026-08-23T17:0{2 - back_s // 60}:00+00:00")
        assert season.at(world.weekends["2026-netherlands"].race_start + timedelta(hours=4, seconds=-back_s)
                         ).settle() == []
    assert season.weekend("2026-italy") == as_planned("italy", "spain")

    # Spain is put off by a week.
    world.move("2026-spain", timedelta(days=7))
    assert season.at("2026-09-12T16:00:00+00:00").settle() == []
    assert "2026-spain pre_race: qualifying is over at 2026-09-19 15:00 UTC" in season.why
    assert season.at("2026-09-13T18:00:00+00:00").settle() == []
    assert season.weekend("2026-spain") == as_planned("spain", "azerbaijan")

    # Bahrain is called off, and the rounds after it count one less. Singapore is next now.
    assert season.weekend("2026-azerbaijan") == as_planned("azerbaijan", "bahrain")
    world.change("2026-bahrain", planned="cancelled", round=None)
    for key, known in world.weekends.items():
        if known.season == 2026 and known.race_start > world.weekends["2026-bahrain"].race_start:
            world.change(key, round=known.round - 1)
    assert season.at("2026-10-02T12:00:00+00:00").settle() == [("2026-singapore", NEXT)]
    assert season.at("2026-10-04T12:00:00+00:00").settle() == []
    assert "2026-bahrain post_race: cancelled" in season.why
    # Three races are loaded by hand while the sensor is off: they need no run.
    season.at("2026-11-03T12:00:00+00:00").load_by_hand("2026-singapore", "2026-mexico", "race_results")
    assert season.settle() == []

    # Turkey is added: it is named until somebody reloads the code, and holds nobody up.
    sao_paulo = world.weekends["2026-sao-paulo"]
    world.stand_ins["2026-turkey"] = "2026-sao-paulo"
    world.weekends["2026-turkey"] = replace(
        sao_paulo, key="2026-turkey", slug="turkey", event_name="Turkish Grand Prix", round=30, circuit="istanbul",
        layout="istanbul-1", sessions={name: start + timedelta(days=7) for name, start in sao_paulo.sessions.items()})
    assert season.weekend("2026-sao-paulo") == as_planned("sao-paulo", None)
    assert season.at("2026-11-14T22:00:00+00:00").settle() == []
    assert "2026-turkey pre_race: the calendar has it and the loaded code does not: reload" in season.why
    season.reload()
    assert season.weekend("2026-turkey") == [("2026-turkey", PRE), *as_planned("turkey", "las-vegas")[1:]]
    season.at("2026-12-01T12:00:00+00:00").load_by_hand("2026-las-vegas", "2026-qatar", "race_results")
    assert season.weekend("2026-abu-dhabi") == as_planned("abu-dhabi", None)
    assert season.at("2027-01-10T12:00:00+00:00").settle() == []
    assert season.why == "no weekend is left in the calendar"

    # Each version of the data ran well once, whatever came between.
    succeeded = Counter(run[:3] for run in season.runs() if run[3] == "SUCCESS")
    assert set(succeeded.values()) == {1}
    by_hand = {"2026-singapore", "2026-united-states", "2026-mexico", "2026-las-vegas", "2026-qatar"}
    raced = {w.key for w in world.weekends.values() if w.season == 2026 and w.planned == "scheduled"}
    assert {weekend for weekend, phase, _ in succeeded if phase == POST} == raced - by_hand
    assert season.rows("SELECT count(DISTINCT weekend) FROM race.results WHERE weekend LIKE '2026%'") == [(len(raced),)]
    assert season.rows("SELECT weekend, max(version) FROM race.results WHERE weekend LIKE '2026%' "
                       "GROUP BY ALL HAVING max(version) > 1 ORDER BY 1") == [("2026-belgium", 2)]
    # Each race was forecast by a run before its lights went out, but those that began while the sensor was off.
    forecast = {weekend for (weekend,) in season.rows(
        "SELECT DISTINCT weekend FROM ranking.predictions p JOIN race.calendar c USING (weekend) "
        "WHERE p.made_at < c.race_start")}
    assert raced - forecast == {"2026-barcelona-catalunya", "2026-austria", "2026-great-britain", *by_hand}
    assert season.rows("SELECT count(*) FROM ranking.predictions p JOIN race.calendar c USING (weekend) "
                       "WHERE p.made_at >= c.race_start") == [(0,)]


def test_each_job_does_all_that_it_is_for(season):
    """The jobs as they are, checks included, for a result that is amended: all that it decides is made anew."""
    monaco, after_it, models = "2026-monaco", "2026-barcelona-catalunya", ("champion", "f1net_reference")
    learnt = ("race_results", "ranking_features", "ewc_ranker", "promoted_ranker")
    season.at("2026-05-25T12:00:00+00:00").load_by_hand("2026-canada", "2026-canada", "qualifying_results", *learnt)
    assert season.run(season.at("2026-06-06T17:00:00+00:00").tick(), whole=True)
    assert season.rows("SELECT weekend, stage FROM ranking.predictions GROUP BY ALL ORDER BY 2")[-1] == (
        monaco, "qualifying")
    season.at("2026-06-07T17:00:00+00:00").load_by_hand(monaco, monaco, *learnt)
    # Somebody looks at what another champion would have said, and goes back.
    [(other,)] = season.rows("SELECT checkpoint FROM ranking.updates WHERE model = 'champion' AND kind = 'ewc' "
                             "AND weekend = '2026-canada'")
    [(champion,)] = season.rows("SELECT checkpoint FROM ranking.checkpoints WHERE promoted")
    season.promote(other)
    season.load_by_hand(monaco, monaco, "race_predictions")
    season.promote(champion)
    season.at("2026-06-14T17:00:00+00:00").load_by_hand(after_it, after_it, "qualifying_results", *learnt,
                                                        "ranking_evaluation")
    assert season.tick() is None

    links = ("SELECT model, weekend, kind, checkpoint, parent, created_at FROM ranking.updates WHERE current "
             "ORDER BY ALL")
    orders = ("SELECT driver, checkpoint, stage, made_at, actual_position, "
              "exact_match IS NOT DISTINCT FROM (predicted_position = actual_position) FROM ranking.predictions "
              f"WHERE weekend = '{monaco}' ORDER BY ALL")
    races = ("SELECT weekend, predictor, population, spearman, log_loss_win FROM ranking.evaluation "
             "WHERE protocol = 'prequential_2026' ORDER BY ALL")
    before = {sql: season.rows(sql) for sql in (links, orders, races)}
    lights_out = season.world.weekends[monaco].race_start
    assert {(checkpoint, made_at < lights_out) for _, checkpoint, _, made_at, *_ in before[orders]} == {
        (champion, True), (other, False)}
    season.world.amended.add(monaco)
    request = season.at("2026-06-15T12:00:00+00:00").tick()
    assert season.asked[-1] == (monaco, POST)
    assert season.run(request, whole=True)
    for table in ("race.practice", "race.qualifying", "race.results", "race.laps"):
        assert season.rows(f"SELECT count(*) > 0 FROM {table} WHERE weekend = '{monaco}'") == [(True,)], table
    after = {sql: season.rows(sql) for sql in before}

    # Of both models the links of that race and the next are others, one on the other; those before are the same rows.
    assert [link[:3] for link in after[links]] == [link[:3] for link in before[links]]
    renewed = {link[:2] for link in set(after[links]) - set(before[links])}
    assert renewed == {(model, weekend) for model in models for weekend in (monaco, after_it)}
    learning = {link[:2]: link[3:5] for link in after[links] if link[2] == "ewc"}
    for model in models:
        (first, _), (second, on_first), (_, on_second) = (
            learning[model, weekend] for weekend in ("2026-canada", monaco, after_it))
        assert (on_first, on_second) == (first, second)

    # Whoever made an order, and whenever: it is still there, and judged by the sheet as it is now.
    amended = {(*order, {1: 2, 2: 1}.get(place, place)) for *order, place, _ in before[orders]}
    assert amended <= {row[:-1] for row in after[orders]}
    assert {row[-1] for row in after[orders]} == {True}

    # Each predictor had been judged by the old sheet in Monaco, and those that learn were taught by it.
    assert [row[:3] for row in after[races]] == [row[:3] for row in before[races]]
    changed = {row[:2] for row in set(after[races]) - set(before[races])}
    assert changed >= {(monaco, "grid"), (monaco, "champion"), (monaco, "champion_ewc"), (after_it, "champion_ewc")}
    assert {weekend for weekend, _ in changed} == {monaco, after_it}

    assert season.run(season.tick(), whole=True)
    assert season.rows(f"SELECT DISTINCT weekend, stage FROM ranking.predictions WHERE weekend <> '{monaco}'") == [
        ("2026-austria", "entry")]
    assert season.tick() is None


def test_a_job_that_runs_unattended_does_without_timing_and_a_person_is_told(season):
    season.world.untimed.add("2026-australia")
    request = season.at("2026-03-08T09:00:00+00:00").tick()
    assert season.run(request, only="race_laps") and season.run(request, only="practice_results")
    assert season.rows("SELECT count(*) FROM race.laps") == [(0,)]
    season.world.torn.add("2026-australia")
    assert not season.run(request, only="race_results")
    with pytest.raises(dg.Failure, match="nothing could be loaded"):
        season.load_by_hand("2026-australia", "2026-australia", "race_laps")


def test_a_race_that_its_checks_refuse_is_given_up_and_the_next_one_is_run(season):
    """Australia has no grid: three runs of it fail by the check of its results. China's succeeds, and names it."""
    season.world.gridless.add("2026-australia")
    for instant in ("2026-03-08T09:00", "2026-03-08T09:16", "2026-03-08T11:17"):
        request = season.at(f"{instant}:00+00:00").tick()
        assert season.asked[-1] == ("2026-australia", POST)
        assert not season.run(request, checked=True)
    assert season.at("2026-03-09T09:00:00+00:00").tick() is None
    assert "2026-australia post_race: GIVEN UP after 3 tries" in season.why
    request = season.at("2026-03-15T12:00:00+00:00").tick()
    assert season.asked[-1] == ("2026-china", POST)
    assert season.run(request, checked=True)
    assert season.rows("SELECT weekend, fault FROM race.unlearnable_weekends") == [("2026-australia", "no_grid")]

    # Somebody fills in the grid: other data of that weekend are tried by themselves.
    season.world.gridless.clear()
    season.settle()
    request = season.at("2026-03-16T12:00:00+00:00").tick()
    assert season.asked[-1] == ("2026-australia", POST)
    assert season.run(request, checked=True)
    assert season.rows("SELECT * FROM race.unlearnable_weekends") == []
