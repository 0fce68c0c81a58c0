"""Tables of schema `race`: sessions and results of race weekends, from any source."""
from __future__ import annotations

from f1_pipelines.tables.schema import Column, Table

WEEKEND_STATES = ("upcoming", "live", "overdue", "done", "cancelled", "postponed")
FORMATS = ("conventional", "sprint", "sprint_shootout", "sprint_qualifying")
SESSIONS = ("practice_1", "practice_2", "practice_3", "sprint_qualifying", "sprint", "qualifying", "race")
GRID_STATUSES = ("grid", "pit_lane", "unknown", "not_started")
STATUSES = ("finished", "lapped", "retired", "not_classified", "disqualified", "not_started", "withdrawn")
NON_STARTERS = ("not_started", "withdrawn")  # the STATUSES of cars that entered but did not start
RESULT_STATUSES = ("provisional", "official", "amended")
SOURCES = ("fastf1", "f1db", "archive", "sample", "embedded")
COMPOUNDS = ("SOFT", "MEDIUM", "HARD", "INTERMEDIATE", "WET", "UNKNOWN")

WEEKEND = Column("weekend", "VARCHAR", "Weekend key {season}-{slug}, for example 2026-monaco", required=True)
DRIVER = Column("driver", "VARCHAR", "Stable driver id, for example max-verstappen", required=True)
CONSTRUCTOR = Column("constructor", "VARCHAR", "Stable constructor id of that season, for example red-bull")
CAR_NUMBER = Column("car_number", "INTEGER", "Car number, valid in this session only", minimum=0)
SESSION = Column("session", "VARCHAR", "Session", required=True, allowed=SESSIONS)
SOURCE = Column("source", "VARCHAR", "Source of the row", required=True, allowed=SOURCES)
SOURCE_VERSION = Column("source_version", "VARCHAR", "Version of the source's library or release")
FETCHED_AT = Column("fetched_at", "TIMESTAMPTZ", "When it was fetched (UTC)", required=True)

CALENDAR = Table(
    "race", "calendar", "Every Grand Prix weekend since 2018, cancelled ones included", ("weekend",), (
        WEEKEND,
        Column("season", "INTEGER", "Championship year", required=True, minimum=1950),
        Column("round", "INTEGER", "Current number in the season; missing if cancelled", minimum=1),
        Column("event_name", "VARCHAR", "Name of the Grand Prix in that season", required=True),
        Column("circuit", "VARCHAR", "Circuit id (location)", required=True),
        Column("layout", "VARCHAR", "Layout id; circuit and layout together identify the track", required=True),
        Column("format", "VARCHAR", "Weekend format", required=True, allowed=FORMATS),
        Column("state", "VARCHAR", "State of the weekend", required=True, allowed=WEEKEND_STATES),
        Column("race_laps", "INTEGER", "Race distance, planned before the race and driven after it [laps]", minimum=1),
        Column("practice_1_start", "TIMESTAMPTZ", "Start of first practice (UTC)"),
        Column("practice_2_start", "TIMESTAMPTZ", "Start of second practice (UTC)"),
        Column("practice_3_start", "TIMESTAMPTZ", "Start of third practice (UTC)"),
        Column("sprint_qualifying_start", "TIMESTAMPTZ", "Start of sprint qualifying or shootout (UTC)"),
        Column("sprint_start", "TIMESTAMPTZ", "Start of the sprint race (UTC)"),
        Column("qualifying_start", "TIMESTAMPTZ", "Start of qualifying (UTC)"),
        Column("race_start", "TIMESTAMPTZ", "Start of the Grand Prix (UTC)", required=True),
        SOURCE, FETCHED_AT,
    ))

PRACTICE = Table(
    "race", "practice", "Best lap of each car in each practice", ("weekend", "session", "driver"), (
        WEEKEND,
        Column("session", "VARCHAR", "Practice session", required=True, allowed=SESSIONS[:3]),
        DRIVER, CONSTRUCTOR, CAR_NUMBER,
        Column("position", "INTEGER", "Position by best lap; missing without a timed lap", minimum=1),
        Column("best_lap_s", "DOUBLE", "Best lap [s]", minimum=30, maximum=400),
        Column("laps", "INTEGER", "Laps driven", minimum=0),
        SOURCE, SOURCE_VERSION, FETCHED_AT,
    ), slice_by=("weekend", "session"))

QUALIFYING = Table(
    "race", "qualifying", "Qualifying and sprint qualifying, with segments", ("weekend", "session", "driver"), (
        WEEKEND,
        Column("session", "VARCHAR", "Qualifying session", required=True, allowed=("qualifying", "sprint_qualifying")),
        DRIVER, CONSTRUCTOR, CAR_NUMBER,
        Column("position", "INTEGER", "Classified position, 1..n; missing if excluded or without a time", minimum=1),
        Column("q1_s", "DOUBLE", "Best lap of the first segment [s]", minimum=30, maximum=400),
        Column("q2_s", "DOUBLE", "Best lap of the second segment [s]", minimum=30, maximum=400),
        Column("q3_s", "DOUBLE", "Best lap of the third segment [s]", minimum=30, maximum=400),
        SOURCE, SOURCE_VERSION, FETCHED_AT,
    ), slice_by=("weekend", "session"))

GRID = Table(
    "race", "grid", "Starting grid, known before the start", ("weekend", "session", "driver"), (
        WEEKEND,
        Column("session", "VARCHAR", "Sprint or race", required=True, allowed=("sprint", "race")),
        DRIVER, CONSTRUCTOR, CAR_NUMBER,
        Column("grid_position", "INTEGER", "Slot, 1 = pole; pit-lane starters have the last slots, never 0", minimum=1),
        Column("grid_status", "VARCHAR", "How the car starts", required=True, allowed=GRID_STATUSES),
        SOURCE, SOURCE_VERSION, FETCHED_AT,
    ), slice_by=("weekend", "session"))

_CLASSIFICATION = (
    DRIVER,
    Column("version", "INTEGER", "Version of this weekend's classification, 1 = first seen", required=True, minimum=1),
    CONSTRUCTOR, CAR_NUMBER,
    Column("grid_position", "INTEGER", "Slot, 1 = pole; pit-lane starters have the last slots, never 0", minimum=1),
    Column("grid_status", "VARCHAR", "How the car started", required=True, allowed=GRID_STATUSES),
    Column("official_order", "INTEGER", "1..n over the whole entry list in the order of the official sheet: finishers, "
           "retirements by distance, then disqualified, then non-starters", required=True, minimum=1),
    Column("finish_position", "INTEGER", "Classified position, 1 = winner; missing if not classified", minimum=1),
    Column("classified", "BOOLEAN", "Whether the car is classified", required=True),
    Column("status", "VARCHAR", "How the race ended for the car", required=True, allowed=STATUSES),
    Column("status_text", "VARCHAR", "Status in the source's words"),
    Column("points", "DOUBLE", "Championship points, half points included; missing if the source has none", minimum=0),
    Column("laps", "INTEGER", "Laps completed", minimum=0),
    Column("race_time_s", "DOUBLE", "Race time of cars on the lead lap [s]", minimum=0),
    Column("gap_s", "DOUBLE", "Gap to the winner of cars on the lead lap [s]", minimum=0),
    Column("gap_laps", "INTEGER", "Laps behind the winner of lapped cars", minimum=0),
    Column("fastest_lap_s", "DOUBLE", "The car's fastest lap [s]; missing without a racing lap", minimum=30),
    Column("result_status", "VARCHAR", "Status of the classification; training uses official and amended ones only",
           required=True, allowed=RESULT_STATUSES),
    Column("content_hash", "VARCHAR", "SHA-256 of the weekend's classification, the same in all its rows",
           required=True),
    SOURCE, SOURCE_VERSION, FETCHED_AT,
)

RESULTS = Table(
    "race", "results", "Classification of the Grand Prix, all versions", ("weekend", "driver", "version"),
    (WEEKEND, *_CLASSIFICATION))

SPRINT_RESULTS = Table(
    "race", "sprint_results", "Classification of the sprint race, all versions",
    ("weekend", "driver", "version"), (WEEKEND, *_CLASSIFICATION))

_LAP = (
    DRIVER,
    Column("lap", "INTEGER", "Lap number from 1", required=True, minimum=1),
    Column("lap_time_s", "DOUBLE", "Lap time [s]; missing if not timed; a red-flagged lap includes the stoppage",
           minimum=0.001),
    Column("compound", "VARCHAR", "Tyre compound", allowed=COMPOUNDS),
    Column("tyre_age_laps", "INTEGER", "Laps on this set at the end of the lap", minimum=0),
    Column("fresh_tyre", "BOOLEAN", "Whether the set was new when fitted"),
    Column("stint", "INTEGER", "Stint from 1", minimum=1),
    Column("track_status", "VARCHAR", "FastF1 digits of the lap: 1 clear, 2 yellow, 4 safety car, 5 red, 6 VSC, "
           "7 VSC ending"),
    Column("position", "INTEGER", "Position at the end of the lap", minimum=1),
    Column("is_pit_in", "BOOLEAN", "Whether the lap ends in the pit lane"),
    Column("is_pit_out", "BOOLEAN", "Whether the lap starts in the pit lane"),
    Column("is_accurate", "BOOLEAN", "Whether the lap time is reliable as pace"),
    Column("is_deleted", "BOOLEAN", "Whether the stewards deleted the lap time"),
    Column("session_time_s", "DOUBLE", "Session clock at the end of the lap [s]; differences are gaps"),
    SOURCE, SOURCE_VERSION, FETCHED_AT,
)

LAPS = Table("race", "laps", "Every lap of the Grand Prix", ("weekend", "driver", "lap"), (WEEKEND, *_LAP))

SESSION_LAPS = Table(
    "race", "session_laps", "Every lap of the practices, qualifyings and sprints",
    ("weekend", "session", "driver", "lap"),
    (WEEKEND, Column("session", "VARCHAR", "Session", required=True, allowed=SESSIONS[:-1]), *_LAP),
    slice_by=("weekend", "session"))

PIT_STOPS = Table(
    "race", "pit_stops", "Pit stops of the Grand Prix", ("weekend", "driver", "stop"), (
        WEEKEND, DRIVER, CONSTRUCTOR,
        Column("stop", "INTEGER", "Stop from 1", required=True, minimum=1),
        Column("lap", "INTEGER", "Lap of the stop", required=True, minimum=1),
        Column("pit_lane_time_s", "DOUBLE", "Time in the pit lane [s]; a red-flag stop includes the stoppage",
               minimum=0),
        SOURCE, SOURCE_VERSION, FETCHED_AT,
    ))

WEATHER = Table(
    "race", "weather", "Weather during each session", ("weekend", "session", "session_time_s"), (
        WEEKEND, SESSION,
        Column("session_time_s", "DOUBLE", "Session clock [s]", required=True),
        Column("air_temp_c", "DOUBLE", "Air temperature [degrees C]"),
        Column("track_temp_c", "DOUBLE", "Track temperature [degrees C]"),
        Column("humidity_pct", "DOUBLE", "Relative humidity [%]", minimum=0, maximum=100),
        Column("pressure_hpa", "DOUBLE", "Air pressure [hPa]"),
        Column("wind_speed_ms", "DOUBLE", "Wind speed [m/s]", minimum=0),
        Column("wind_direction_deg", "INTEGER", "Direction the wind comes from [degrees]", minimum=0, maximum=360),
        Column("rainfall", "BOOLEAN", "Whether the sensor reports rain; the track may still be dry"),
        SOURCE, SOURCE_VERSION, FETCHED_AT,
    ), slice_by=("weekend", "session"))

RACE_CONTROL = Table(
    "race", "race_control", "Race control messages of each session", ("weekend", "session", "message_number"), (
        WEEKEND, SESSION,
        Column("message_number", "INTEGER", "Number of the message, from 1", required=True, minimum=1),
        Column("sent_at", "TIMESTAMPTZ", "When it was sent (UTC)"),
        Column("lap", "INTEGER", "Lap of the leader", minimum=0),
        Column("category", "VARCHAR", "Flag, SafetyCar, Drs, CarEvent, Other, ..."),
        Column("flag", "VARCHAR", "Flag, if any"),
        Column("scope", "VARCHAR", "Track, Sector or Driver"),
        Column("sector", "INTEGER", "Marshalling sector", minimum=0),
        Column("car_number", "INTEGER", "Car addressed, if any", minimum=0),
        Column("message", "VARCHAR", "Text of the message", required=True),
        SOURCE, SOURCE_VERSION, FETCHED_AT,
    ), slice_by=("weekend", "session"))

RACE_TABLES = (CALENDAR, PRACTICE, QUALIFYING, GRID, RESULTS, SPRINT_RESULTS, LAPS,
               SESSION_LAPS, PIT_STOPS, WEATHER, RACE_CONTROL)
