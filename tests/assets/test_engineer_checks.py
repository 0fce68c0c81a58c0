"""Each check of the race engineer, passing and failing, on hand-made rows."""
from datetime import UTC, datetime

import dagster as dg
import pandas as pd
import pytest

from f1_pipelines.assets.engineer import grpo_engineer, lineage
from f1_pipelines.assets.engineer_checks import LEAST_TURNS, engineer_checks
from f1_pipelines.definitions import defs
from f1_pipelines.sim.scenarios import FAMILIES
from f1_pipelines.tables.strategy import DIMENSIONS, ENGINEERS, EPISODES, LEADERBOARD, SFT_TURNS, TRAINING_CURVE
from f1_pipelines.warehouse.replace import replace_slices

VERSIONS = {"env_version": 2, "prompt_version": 2, "scenes_version": "x"}
RUN = "6d1a7e0e-33a6-4d8c-9f6c-7f6f4f0c8b11"
WHEN = datetime(2026, 11, 29, tzinfo=UTC)
VERBS = ("STAY_OUT", "PIT_NOW hard", "REQUEST_FORECAST", 'RADIO_DRIVER "Box"')


def engineer(checkpoint, stage, parent, hours=0, **values):
    return {"checkpoint": checkpoint, "stage": stage, "profile": "tiny", "parent": parent, "training_seed": 0,
            "n_turns": 1, "n_parameters": 1, "settings": "{}", "device": "cpu", "seconds": 1.0, "path": checkpoint,
            "promoted": True, "made_at": WHEN + pd.Timedelta(hours=hours), **VERSIONS, **values}


def put(connection, table, frame):
    """Write rows; missing columns become NULL."""
    replace_slices(connection, table, frame.reindex(columns=[column.name for column in table.columns]))


@pytest.fixture
def warehouse(resources):
    """Rows of a flow that passes all checks."""
    families = [family for family in FAMILIES][:5]
    turns = pd.DataFrame([{
        "turn": f"{families[k % 5]}/{k}/1", "collected_by": "expert",
        "family": families[k % 5], "seed": k, "split": "train",
        "circuit": "monza", "lap": 1, "prompt": "seen", "completion": VERBS[k % 4], "expert_value": 0.0,
        "values_s": "{}", "near_tie": False, "reason": "so", **VERSIONS} for k in range(LEAST_TURNS)])
    curve = [{"run": "grpo1", "stage": "grpo", "profile": "tiny", "training_seed": 0, "step": step, "metric": metric,
              "value": value} for step in (0, 1) for metric, value in (
                  ("loss", 0.1), ("kl_to_sft", 0.0), ("parse_failures", 0.0), ("clipped", 0.0),
                  ("frac_reward_zero_std", 0.5), ("entropy", 0.3))]
    raced = {"seed": 1, "circuit": "monza", "split": "test", "variant": "plain", "score": 0.5, "laps_called": 10,
             **dict.fromkeys(DIMENSIONS, 0.5), "regret": 0.1, "parse_failures": 0, "fallbacks": 0, "made_at": WHEN}
    board = {"variant": "plain", "family": "all", "n": 30, "mean": 0.5, "low": 0.4, "high": 0.6,
             **dict.fromkeys(DIMENSIONS, 0.5), "parse_failures": 0.0, "constant_score": False, "made_at": WHEN}
    policies = ("untrained", "sft", "grpo", "expert", "oracle")
    with resources["warehouse"].write("rows") as connection:
        for table, frame in (
                (SFT_TURNS, turns), (TRAINING_CURVE, pd.DataFrame(curve)),
                (ENGINEERS, pd.DataFrame([engineer("raw", "untrained", None), engineer("sft1", "sft", "raw"),
                                          engineer("grpo1", "grpo", "sft1", 1)])),
                (EPISODES, pd.DataFrame([{"policy": policy, "family": families[0], **raced, **VERSIONS}
                                         for policy in policies])),
                (LEADERBOARD, pd.DataFrame([{"policy": policy, **board, **VERSIONS} for policy in policies]))):
            put(connection, table, frame)
    return resources["warehouse"]


CURVE = "UPDATE strategy.training_curve SET value = {} WHERE metric = '{}'"
DAMAGE = [
    ("turns_are_for_learning", "UPDATE strategy.sft_turns SET split = 'test' WHERE seed = 7"),
    ("turns_are_for_learning", "UPDATE strategy.sft_turns SET completion = '' WHERE seed = 7"),
    ("turns_are_enough_and_balanced", "DELETE FROM strategy.sft_turns WHERE seed = 7"),
    ("turns_are_enough_and_balanced", "UPDATE strategy.sft_turns SET collected_by = 'student' WHERE seed % 2 = 0"),
    ("turns_are_enough_and_balanced", "UPDATE strategy.sft_turns SET completion = 'STAY_OUT' WHERE completion LIKE "
                                      "'PIT_NOW%'"),
    ("turns_are_enough_and_balanced", "UPDATE strategy.sft_turns SET completion = 'STAY_OUT' WHERE seed % 10 > 1"),
    ("practice_began_at_the_imitator", CURVE.format(0.01, "kl_to_sft")),
    ("practice_began_at_the_imitator", "DELETE FROM strategy.training_curve WHERE metric = 'kl_to_sft' AND step = 0"),
    ("numbers_are_finite", CURVE.format("'nan'", "loss")),
    ("numbers_are_finite", CURVE.format("NULL", "loss")),
    ("calls_stay_calls", CURVE.format(0.06, "parse_failures")),
    ("calls_stay_calls", CURVE.format(0.06, "clipped")),
    ("there_is_something_to_learn", CURVE.format(0.93, "frac_reward_zero_std")),
    ("the_policy_still_varies", CURVE.format(0.001, "entropy")),
    ("the_policy_still_varies", CURVE.format(1.5, "kl_to_sft")),
    ("commands_parse", "UPDATE strategy.leaderboard SET parse_failures = 0.006 WHERE policy = 'sft'"),
    ("scores_vary_with_the_seed", "UPDATE strategy.leaderboard SET constant_score = true WHERE policy = 'grpo'"),
    ("nobody_beats_the_oracle", "UPDATE strategy.episodes SET regret = -0.01 WHERE policy = 'expert'"),
    ("no_script_called_for_a_model", "UPDATE strategy.episodes SET fallbacks = 1 WHERE policy = 'sft'"),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGE)
def test_a_check_finds_damage(warehouse, name, damage):
    checks = {next(iter(check.check_keys)).name: check for check in engineer_checks}
    assert checks[name](warehouse).passed
    with warehouse.write("damage") as connection:
        connection.execute(damage)
    assert not checks[name](warehouse).passed


def test_damage_covers_all_checks_but_those_of_keys_and_tokens():
    names = {next(iter(check.check_keys)).name for check in engineer_checks}
    assert names - {name for name, _ in DAMAGE} == {"keys_are_unique", "prompts_are_token_identical"}


@pytest.mark.parametrize(("name", "old"), [
    ("turns_are_for_learning", "INSERT INTO strategy.sft_turns BY NAME SELECT * REPLACE ('student' AS collected_by, "
                               "'' AS prompt) FROM strategy.sft_turns LIMIT 1"),
    ("no_script_called_for_a_model", "INSERT INTO strategy.episodes BY NAME SELECT * REPLACE ('hints' AS variant, "
                                     "1 AS fallbacks) FROM strategy.episodes WHERE policy = 'sft'"),
    ("no_script_called_for_a_model", "UPDATE strategy.episodes SET fallbacks = 1, scenes_version = 'earlier' "
                                     "WHERE policy = 'random' OR policy = 'sft'"),
])
def test_rows_of_an_earlier_run_block_no_new_one(warehouse, name, old):
    with warehouse.write("earlier run") as connection:
        connection.execute(old)
    checks = {next(iter(check.check_keys)).name: check for check in engineer_checks}
    assert checks[name](warehouse).passed


def test_a_check_tests_the_engineer_of_its_run(warehouse):
    """A concurrent run of another profile may be newer by its clock."""
    with warehouse.write("two engineers") as connection:
        put(connection, ENGINEERS, pd.DataFrame([engineer("own", "grpo", "sft1", 1, dagster_run=RUN),
                                                 engineer("other", "grpo", "sft1", 2, profile="smollm2")]))
        for run, value in (("own", 0.0), ("other", "nan")):
            connection.execute("INSERT INTO strategy.training_curve BY NAME SELECT * REPLACE (? AS run, ? AS value) "
                               "FROM strategy.training_curve WHERE run = 'grpo1'", [run, value])
    key = dg.AssetCheckKey(dg.AssetKey("grpo_engineer"), "numbers_are_finite")
    [check] = [check for check in engineer_checks if key in check.check_keys]
    assert not check(warehouse).passed, "outside a run it tests the newest"
    job = dg.define_asset_job("checks", dg.AssetSelection.checks(key))
    result = dg.Definitions(assets=[grpo_engineer], asset_checks=[check], jobs=[job], resources={
        **defs.resources, "warehouse": warehouse}).resolve_job_def("checks").execute_in_process(run_id=RUN)
    assert [evaluation.passed for evaluation in result.get_asset_check_evaluations()] == [True]


def test_keys_are_unique_in_all_tables(warehouse):
    for check in engineer_checks:
        if next(iter(check.check_keys)).name == "keys_are_unique":
            assert check(warehouse).passed


def test_an_evaluation_covers_one_lineage(warehouse):
    """A GRPO engineer of an older SFT engineer is not compared with the newest one."""
    def stages():
        with warehouse.read() as connection:
            return lineage(connection, "tiny")["checkpoint"].tolist()

    def add(*rows):
        with warehouse.write("more engineers") as connection:
            put(connection, ENGINEERS, pd.DataFrame(rows))

    assert stages() == ["raw", "sft1", "grpo1"]
    add(engineer("grpo2", "grpo", "sft1", 2))
    assert stages() == ["raw", "sft1", "grpo2"]
    add(engineer("raw2", "untrained", None, 3), engineer("sft2", "sft", "raw2", 3))
    assert stages() == ["raw2", "sft2"]
    add(engineer("other", "sft", "raw", 9, profile="smollm2"))
    assert stages() == ["raw2", "sft2"]
