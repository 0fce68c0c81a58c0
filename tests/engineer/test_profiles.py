"""Settings of profiles: stored names don't change when fields are renamed."""
import pytest

from f1_pipelines.engineer.profiles import PROFILES, UnknownProfile, profile_of, stored_settings, with_changes

# As in meta.json of `tiny` checkpoints, which their ids hash.
STORED_SFT = {"epochs": 1.0, "rounds": 2, "round_races": 40, "round_epochs": 1.25, "batch": 16, "accumulate": 1,
              "lr": 3e-3, "muon_lr": 0.02, "lr_floor": 0.05, "warmup_steps": 50, "weight_decay": 0.01,
              "max_turns": None}
STORED_GRPO = {"steps": 40, "races": 10, "states": 16, "looks": 4, "samples": 8, "lr": 3e-4, "temperature": 1.0,
               "beta": 0.0, "entropy": 0.0, "agreement": 0.0, "two_compounds": 0.0, "easy_steps": 0,
               "rejection_rounds": 0, "copies": 0.0, "batch": 128}


def test_stored_settings_keep_their_names_and_constants():
    assert stored_settings(PROFILES["tiny"].sft) == STORED_SFT
    assert stored_settings(PROFILES["tiny"].grpo) == STORED_GRPO


def test_settings_change_by_either_name():
    grpo = PROFILES["tiny"].grpo
    assert with_changes(grpo, {"lr": 1e-4}) == with_changes(grpo, {"learning_rate": 1e-4}) != grpo
    assert with_changes(PROFILES["tiny"].sft, {"rounds": 0, "batch": 2}).dagger_rounds == 0


@pytest.mark.parametrize("name", ["agreement", "learning_rates"])
def test_unknown_settings_are_refused(name):
    with pytest.raises(TypeError, match=name):
        with_changes(PROFILES["tiny"].grpo, {name: 0.1})


def test_unknown_profiles_are_refused():
    with pytest.raises(UnknownProfile, match="Valid: tiny"):
        profile_of("huge")
