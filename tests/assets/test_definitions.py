"""The asset graph, and lazy imports when loading it."""
import subprocess
import sys

import dagster as dg

from f1_pipelines.assets.partitions import race_weekends
from f1_pipelines.definitions import defs
from f1_pipelines.identity.weekends import known_weekends

# asset: (dependencies, blocking checks, other checks)
GRAPH = {
    "race_calendar": ([], ["keys_are_unique"], []),
    "practice_results": (["race_calendar"], ["keys_are_unique"], []),
    "qualifying_results": (["race_calendar"], ["keys_are_unique", "places_are_permutations"],
                           ["sprint_places_are_permutations"]),
    "race_results": (["race_calendar"], ["classifications_are_permutations", "grid_has_no_sentinels", "keys_are_unique",
                                         "qualifying_covers_the_starters"],
                     ["sprint_classifications_are_permutations"]),
    "race_laps": (["race_calendar"], ["keys_are_unique"], ["laps_have_no_holes"]),
    "ranking_features": (["practice_results", "qualifying_results", "race_results"],
                         ["keys_are_unique", "no_feature_is_constant", "starters_have_features"],
                         ["run_races_have_grid_and_qualifying"]),
    "listnet_temperature": (["ranking_features"], ["keys_are_unique"], []),
    "pretrained_ranker": (["listnet_temperature", "ranking_features"], ["keys_are_unique"], []),
    "ewc_ranker": (["pretrained_ranker", "race_results", "ranking_features"],
                   ["every_link_has_its_parent", "keys_are_unique", "one_current_link_per_race"], []),
    "promoted_ranker": (["ewc_ranker", "pretrained_ranker"], ["keys_are_unique"],
                        ["little_is_forgotten", "newest_candidate_was_promoted"]),
    "race_predictions": (["promoted_ranker", "ranking_features"],
                         ["chances_add_up", "keys_are_unique", "predictions_are_permutations"], []),
    "ranking_evaluation": (["ranking_features"], ["keys_are_unique", "no_result_is_too_good_to_be_true"],
                           ["champion_beats_grid_order", "chances_beat_the_grid_alone"]),
    "circuit_fits": (["race_laps", "race_results"], ["keys_are_unique", "slow_laps_cost_less_than_racing_ones"], []),
    "simulator_validation": (["circuit_fits", "qualifying_results"], ["keys_are_unique"], ["targets_are_met"]),
    "sft_dataset": (["circuit_fits", "ranking_features"], ["keys_are_unique", "turns_are_for_learning"],
                    ["turns_are_enough_and_balanced"]),
    "sft_engineer": (["sft_dataset"], ["keys_are_unique", "prompts_are_token_identical"], []),
    "grpo_engineer": (["sft_engineer"], ["calls_stay_calls", "numbers_are_finite", "practice_began_at_the_imitator"],
                      ["the_policy_still_varies", "there_is_something_to_learn"]),
    "scripted_races": (["circuit_fits", "ranking_features"], ["keys_are_unique"], []),
    "strategy_evaluation": (["grpo_engineer", "scripted_races", "sft_engineer"],
                            ["keys_are_unique", "no_script_called_for_a_model"],
                            ["commands_parse", "nobody_beats_the_oracle", "scores_vary_with_the_seed"]),
    "promoted_engineers": (["grpo_engineer", "sft_engineer", "strategy_evaluation"], [],
                           ["newest_engineers_were_promoted"]),
    "race_story": (["strategy_evaluation"], [], []),
    "training_evidence": (["strategy_evaluation"], [], []),
}


def test_the_graph_matches_the_reviewed_one():
    graph = defs.resolve_asset_graph()
    actual = {}
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        checks = {True: [], False: []}
        for check in sorted(node.check_keys, key=lambda c: c.name):
            checks[graph.get(check).blocking].append(check.name)
        parents = sorted(parent.to_user_string() for parent in node.parent_keys)
        actual[key.to_user_string()] = (parents, checks[True], checks[False])
    assert actual == GRAPH


def test_every_asset_has_a_description_and_metadata():
    for asset in defs.assets:
        spec = next(iter(asset.specs))
        assert spec.description and "One row per" in spec.description, spec.key
        assert spec.owners and spec.kinds and spec.group_name != "default", spec.key
        assert isinstance(spec.metadata["dagster/column_schema"], dg.TableSchema), spec.key


def test_definitions_load_without_heavy_imports():
    code = """
        import sys
        import f1_pipelines.definitions
        heavy = {"torch", "transformers", "trl", "peft", "mlflow", "fastf1", "hyperopt", "sklearn", "matplotlib"}
        heavy |= {"numba"}
        print(sorted(heavy & set(sys.modules)))
    """
    process = subprocess.run([sys.executable, "-c", "\n".join(line.strip() for line in code.splitlines())],
                             capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_definitions_are_consistent():
    dg.Definitions.validate_loadable(defs)  # raises if an asset, job or resource doesn't fit
    assert {job.name for job in defs.jobs} == {"pre_race", "post_race", "next_prediction"}


def test_every_known_weekend_is_a_partition_in_race_order():
    assert race_weekends.get_partition_keys() == [weekend.key for weekend in known_weekends()]
    assert "2026-saudi-arabia" in race_weekends.get_partition_keys()
