"""The sensor in the 2026 season with its incidents: real ticks, real runs, a real warehouse.

Ticks only happen after changes; ticks in between would change nothing.
"""
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest

PRE, POST, NEXT = "pre_race", "post_race", "next_prediction"
LOADED_BY_HAND = {"2026-singapore", "2026-united-states", "2026-mexico", "2026-las-vegas", "2026-qatar"}


def planned_requests(key: str, following: str | None) -> list[tuple[str, str]]:
    """Requests of an ordinary weekend, and of the prediction of the following one."""
    key = f"2026-{key}"
    return [(key, PRE), (key, POST), *([(f"2026-{following}", NEXT)] if following else [])]


@pytest.mark.timeout(600)
def test_the_sensor_runs_a_whole_season(season):
    an_ordinary_and_a_sprint_weekend_get_their_runs(season)
    a_provisional_result_is_not_run(season)
    a_cancelled_race_is_skipped(season)
    a_failed_run_is_retried(season)
    a_weekend_is_given_up_after_three_failures_until_its_data_change(season)
    missed_races_are_run_in_order_without_forecasts(season)
    an_outage_of_the_source_delays_runs(season)
    a_dead_run_and_an_amended_result_are_run_again(season)
    a_lost_cursor_and_a_clock_set_back_repeat_no_run(season)
    a_postponed_race_is_run_at_its_new_time(season)
    a_race_cancelled_late_moves_the_next_prediction(season)
    races_loaded_by_hand_need_no_run(season)
    an_added_weekend_runs_after_a_reload(season)
    the_season_ends(season)
    each_version_of_the_data_succeeded_once(season)
    each_race_had_a_forecast_from_before_its_start(season)


def an_ordinary_and_a_sprint_weekend_get_their_runs(season):
    season.at("2026-03-07T05:30:00+00:00").settle()
    assert "2026-australia pre_race: qualifying ends at 2026-03-07 06:00 UTC" in season.why
    assert season.weekend("2026-australia") == planned_requests("australia", "china")
    # On a sprint weekend, qualifying comes after the sprint. The afternoon in Shanghai is a morning in UTC.
    season.at("2026-03-14T15:30:00+08:00").settle()
    assert "2026-china pre_race: qualifying ends at 2026-03-14 08:00 UTC" in season.why
    assert season.weekend("2026-china") == planned_requests("china", "japan")


def a_provisional_result_is_not_run(season):
    """Japan, when Europe's clocks change: the result is provisional until Monday."""
    season.world.provisional.add("2026-japan")
    assert season.weekend("2026-japan") == [("2026-japan", PRE)]
    assert "2026-japan post_race: no usable data yet (no official sheet yet)" in season.why
    season.world.provisional.clear()
    assert season.at("2026-03-30T09:00:00+00:00").settle() == [("2026-japan", POST), ("2026-miami", NEXT)]


def a_cancelled_race_is_skipped(season):
    assert season.at("2026-04-19T21:00:00+00:00").settle() == []
    assert "2026-saudi-arabia post_race: cancelled" in season.why


def a_failed_run_is_retried(season):
    season.world.unreadable.add("2026-miami")
    assert season.weekend("2026-miami") == [("2026-miami", PRE), ("2026-miami", POST)]
    assert "failed, attempt 2 of 3 at 2026-05-03 21:15 UTC" in season.why
    season.world.unreadable.clear()
    assert season.at("2026-05-03T21:14:00+00:00").settle() == []
    assert season.at("2026-05-03T21:15:00+00:00").settle() == [("2026-miami", POST), ("2026-canada", NEXT)]


def a_weekend_is_given_up_after_three_failures_until_its_data_change(season):
    season.world.unreadable.add("2026-canada")
    assert season.weekend("2026-canada") == [("2026-canada", PRE), ("2026-canada", POST)]
    for hour in range(12):
        season.at(f"2026-05-25T{hour:02}:30:00+00:00").settle()
    assert season.requests[-2:] == [("2026-canada", POST)] * 2
    assert "2026-canada post_race: GIVEN UP after 3 attempts" in season.why
    assert season.weekend("2026-monaco") == planned_requests("monaco", "barcelona-catalunya")
    season.world.unreadable.clear()
    season.world.amended.add("2026-canada")
    assert season.at("2026-06-08T10:00:00+00:00").settle() == [
        ("2026-canada", POST), ("2026-barcelona-catalunya", NEXT)]


def missed_races_are_run_in_order_without_forecasts(season):
    """The sensor is off for five weeks and three races."""
    season.cursor = None
    assert season.at("2026-07-13T10:00:00+00:00").settle() == [
        ("2026-barcelona-catalunya", POST), ("2026-austria", POST), ("2026-great-britain", POST),
        ("2026-belgium", NEXT)]


def an_outage_of_the_source_delays_runs(season):
    season.at("2026-07-18T16:00:00+00:00").settle()
    season.world.down = True
    for minute in (0, 20, 40):
        assert season.at(f"2026-07-19T17:{minute:02}:00+00:00").tick() is None
        assert "f1db can't be reached: no answer" in season.why
    season.world.down = False
    assert season.at("2026-07-19T18:00:00+00:00").settle() == [("2026-belgium", POST), ("2026-hungary", NEXT)]


def a_dead_run_and_an_amended_result_are_run_again(season):
    """The machine dies during Hungary's run, which stays STARTED. Then Belgium's result is amended."""
    season.at("2026-07-25T16:00:00+00:00").settle()
    season.start_and_die(season.at("2026-07-26T17:00:00+00:00").tick())
    assert season.at("2026-07-26T19:59:00+00:00").settle() == []
    assert "2026-hungary post_race: run" in season.why and "is running" in season.why
    assert season.at("2026-07-26T20:01:00+00:00").settle() == [("2026-hungary", POST), ("2026-netherlands", NEXT)]
    season.world.amended.add("2026-belgium")
    assert season.at("2026-07-28T12:00:00+00:00").settle() == [("2026-belgium", POST), ("2026-netherlands", NEXT)]


def a_lost_cursor_and_a_clock_set_back_repeat_no_run(season):
    assert season.weekend("2026-netherlands") == planned_requests("netherlands", "italy")
    for back_s in (0, 1, 90):
        season.cursor = None
        season.at(f"2026-08-23T17:0{2 - back_s // 60}:00+00:00")
        assert season.at(season.world.weekends["2026-netherlands"].race_start + timedelta(hours=4, seconds=-back_s)
                         ).settle() == []
    assert season.weekend("2026-italy") == planned_requests("italy", "spain")


def a_postponed_race_is_run_at_its_new_time(season):
    """Spain is postponed by a week."""
    season.world.move("2026-spain", timedelta(days=7))
    assert season.at("2026-09-12T16:00:00+00:00").settle() == []
    assert "2026-spain pre_race: qualifying ends at 2026-09-19 15:00 UTC" in season.why
    assert season.at("2026-09-13T18:00:00+00:00").settle() == []
    assert season.weekend("2026-spain") == planned_requests("spain", "azerbaijan")


def a_race_cancelled_late_moves_the_next_prediction(season):
    """Bahrain is cancelled, and later rounds are renumbered. Singapore is next."""
    world = season.world
    assert season.weekend("2026-azerbaijan") == planned_requests("azerbaijan", "bahrain")
    world.change("2026-bahrain", planned="cancelled", round=None)
    for key, known in world.weekends.items():
        if known.season == 2026 and known.race_start > world.weekends["2026-bahrain"].race_start:
            world.change(key, round=known.round - 1)
    assert season.at("2026-10-02T12:00:00+00:00").settle() == [("2026-singapore", NEXT)]
    assert season.at("2026-10-04T12:00:00+00:00").settle() == []
    assert "2026-bahrain post_race: cancelled" in season.why


def races_loaded_by_hand_need_no_run(season):
    season.at("2026-11-03T12:00:00+00:00").load_by_hand("2026-singapore", "2026-mexico", "race_results")
    assert season.settle() == []


def an_added_weekend_runs_after_a_reload(season):
    """Turkey is added: the skip reason names it until the code is reloaded, and it blocks no other weekend."""
    world = season.world
    sao_paulo = world.weekends["2026-sao-paulo"]
    world.templates["2026-turkey"] = "2026-sao-paulo"
    world.weekends["2026-turkey"] = replace(
        sao_paulo, key="2026-turkey", slug="turkey", event_name="Turkish Grand Prix", round=30, circuit="istanbul",
        layout="istanbul-1", sessions={name: start + timedelta(days=7) for name, start in sao_paulo.sessions.items()})
    assert season.weekend("2026-sao-paulo") == planned_requests("sao-paulo", None)
    assert season.at("2026-11-14T22:00:00+00:00").settle() == []
    assert "2026-turkey pre_race: in the calendar but not yet a partition: reload" in season.why
    season.reload()
    assert season.weekend("2026-turkey") == [("2026-turkey", PRE), *planned_requests("turkey", "las-vegas")[1:]]


def the_season_ends(season):
    season.at("2026-12-01T12:00:00+00:00").load_by_hand("2026-las-vegas", "2026-qatar", "race_results")
    assert season.weekend("2026-abu-dhabi") == planned_requests("abu-dhabi", None)
    assert season.at("2027-01-10T12:00:00+00:00").settle() == []
    assert season.why == "no weekend is left in the calendar"


def raced_weekends(season) -> set[str]:
    return {weekend.key for weekend in season.world.weekends.values()
            if weekend.season == 2026 and weekend.planned == "scheduled"}


def each_version_of_the_data_succeeded_once(season):
    succeeded, raced = Counter(run[:3] for run in season.runs() if run[3] == "SUCCESS"), raced_weekends(season)
    assert set(succeeded.values()) == {1}
    assert {weekend for weekend, phase, _ in succeeded if phase == POST} == raced - LOADED_BY_HAND
    assert season.rows("SELECT count(DISTINCT weekend) FROM race.results WHERE weekend LIKE '2026%'") == [(len(raced),)]
    assert season.rows("SELECT weekend, max(version) FROM race.results WHERE weekend LIKE '2026%' "
                       "GROUP BY ALL HAVING max(version) > 1 ORDER BY 1") == [("2026-belgium", 2)]


def each_race_had_a_forecast_from_before_its_start(season):
    """All but the races during which the sensor was off."""
    forecast = {weekend for (weekend,) in season.rows(
        "SELECT DISTINCT weekend FROM ranking.predictions p JOIN race.calendar c USING (weekend) "
        "WHERE p.made_at < c.race_start")}
    assert raced_weekends(season) - forecast == {"2026-barcelona-catalunya", "2026-austria", "2026-great-britain",
                                                 *LOADED_BY_HAND}
    assert season.rows("SELECT count(*) FROM ranking.predictions p JOIN race.calendar c USING (weekend) "
                       "WHERE p.made_at >= c.race_start") == [(0,)]


def test_the_jobs_update_everything_that_an_amended_result_affects(season):
    """Runs the whole jobs, with checks."""
    monaco, barcelona, models = "2026-monaco", "2026-barcelona-catalunya", ("champion", "f1net_reference")
    learnt = ("race_results", "ranking_features", "ewc_ranker", "promoted_ranker")
    season.at("2026-05-25T12:00:00+00:00").load_by_hand("2026-canada", "2026-canada", "qualifying_results", *learnt)
    assert season.run(season.at("2026-06-06T17:00:00+00:00").tick(), all_assets=True)
    assert season.rows("SELECT weekend, stage FROM ranking.predictions GROUP BY ALL ORDER BY 2")[-1] == (
        monaco, "qualifying")
    season.at("2026-06-07T17:00:00+00:00").load_by_hand(monaco, monaco, *learnt)
    # Predict with another champion, and promote the old one again.
    [(other,)] = season.rows("SELECT checkpoint FROM ranking.updates WHERE model = 'champion' AND kind = 'ewc' "
                             "AND weekend = '2026-canada'")
    [(champion,)] = season.rows("SELECT checkpoint FROM ranking.checkpoints WHERE promoted")
    season.promote(other)
    season.load_by_hand(monaco, monaco, "race_predictions")
    season.promote(champion)
    season.at("2026-06-14T17:00:00+00:00").load_by_hand(barcelona, barcelona, "qualifying_results", *learnt,
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
    race_start = season.world.weekends[monaco].race_start
    assert {(checkpoint, made_at < race_start) for _, checkpoint, _, made_at, *_ in before[orders]} == {
        (champion, True), (other, False)}
    season.world.amended.add(monaco)
    request = season.at("2026-06-15T12:00:00+00:00").tick()
    assert season.requests[-1] == (monaco, POST)
    assert season.run(request, all_assets=True)
    for table in ("race.practice", "race.qualifying", "race.results", "race.laps"):
        assert season.rows(f"SELECT count(*) > 0 FROM {table} WHERE weekend = '{monaco}'") == [(True,)], table
    after = {sql: season.rows(sql) for sql in before}

    # Both models have new links for this race and the next, as parent and child; earlier links are unchanged.
    assert [link[:3] for link in after[links]] == [link[:3] for link in before[links]]
    renewed = {link[:2] for link in set(after[links]) - set(before[links])}
    assert renewed == {(model, weekend) for model in models for weekend in (monaco, barcelona)}
    learning = {link[:2]: link[3:5] for link in after[links] if link[2] == "ewc"}
    for model in models:
        (first, _), (second, on_first), (_, on_second) = (
            learning[model, weekend] for weekend in ("2026-canada", monaco, barcelona))
        assert (on_first, on_second) == (first, second)

    # All orders are still stored, with the outcome of the amended result.
    amended = {(*order, {1: 2, 2: 1}.get(place, place)) for *order, place, _ in before[orders]}
    assert amended <= {row[:-1] for row in after[orders]}
    assert {row[-1] for row in after[orders]} == {True}

    # Scores change in Monaco, and in the next race for predictors that learnt from it.
    assert [row[:3] for row in after[races]] == [row[:3] for row in before[races]]
    changed = {row[:2] for row in set(after[races]) - set(before[races])}
    assert changed >= {(monaco, "grid"), (monaco, "champion"), (monaco, "champion_ewc"), (barcelona, "champion_ewc")}
    assert {weekend for weekend, _ in changed} == {monaco, barcelona}

    assert season.run(season.tick(), all_assets=True)
    assert season.rows(f"SELECT DISTINCT weekend, stage FROM ranking.predictions WHERE weekend <> '{monaco}'") == [
        ("2026-austria", "entry")]
    assert season.tick() is None


def test_missing_timing_fails_manual_runs_but_not_unattended_jobs(season):
    season.world.without_timing.add("2026-australia")
    request = season.at("2026-03-08T09:00:00+00:00").tick()
    assert season.run(request, only="race_laps") and season.run(request, only="practice_results")
    assert season.rows("SELECT count(*) FROM race.laps") == [(0,)]
    season.world.unreadable.add("2026-australia")
    assert not season.run(request, only="race_results")
    with pytest.raises(dg.Failure, match="nothing could be loaded"):
        season.load_by_hand("2026-australia", "2026-australia", "race_laps")


def test_a_race_that_fails_its_checks_is_given_up_and_the_next_one_is_run(season):
    """Australia has no grid: a check fails its three runs. China's run succeeds."""
    season.world.without_grid.add("2026-australia")
    for time in ("2026-03-08T09:00", "2026-03-08T09:16", "2026-03-08T11:17"):
        request = season.at(f"{time}:00+00:00").tick()
        assert season.requests[-1] == ("2026-australia", POST)
        assert not season.run(request, checked=True)
    assert season.at("2026-03-09T09:00:00+00:00").tick() is None
    assert "2026-australia post_race: GIVEN UP after 3 attempts" in season.why
    request = season.at("2026-03-15T12:00:00+00:00").tick()
    assert season.requests[-1] == ("2026-china", POST)
    assert season.run(request, checked=True)
    assert season.rows("SELECT weekend, fault FROM race.unlearnable_weekends") == [("2026-australia", "no_grid")]

    # The grid is added: the new version of the weekend's data runs automatically.
    season.world.without_grid.clear()
    season.settle()
    request = season.at("2026-03-16T12:00:00+00:00").tick()
    assert season.requests[-1] == ("2026-australia", POST)
    assert season.run(request, checked=True)
    assert season.rows("SELECT * FROM race.unlearnable_weekends") == []
