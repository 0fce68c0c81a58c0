"""The chain says where each ranker came from, grows by what is new, and renews what an amended race made wrong."""
import json
from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.checkpoints.store import CheckpointError
from f1_pipelines.models.checkpoints import load_checkpoint, save_checkpoint
from f1_pipelines.models.continual.chain import bring_up_to_date
from f1_pipelines.models.continual.settings import UpdateConfig
from f1_pipelines.tables.learning import UPDATES
from f1_pipelines.tables.ranking import CHECKPOINTS

QUICK = UpdateConfig(epochs=1, window_races=2, races_per_step=2)
NOW = datetime(2026, 8, 22, 6, tzinfo=UTC)
RACES = [f"2025-race-{race:02d}" for race in range(4)]


class Keeper:
    """Brings chains up to date and keeps their rows, as the asset does in the warehouse."""

    def __init__(self, pretrained, rows, folder):
        self.rows, self.folder = rows, folder
        self.root = save_checkpoint(pretrained.trained, folder, kind="pretrained", data_version="data-1",
                                    fisher=pretrained.fisher)
        self.stored = UPDATES.empty()

    def through(self, weekend, settings=QUICK):
        until = self.rows.loc[self.rows["weekend"] == weekend, "race_start"].iloc[0]
        chain = bring_up_to_date(self.root, self.rows, until, settings, self.stored, folder=self.folder,
                                 created_at=NOW, log=lambda line: None)
        if chain.made:
            fresh = UPDATES.conform(pd.DataFrame([link.update for link in chain.made]))
            CHECKPOINTS.conform(pd.DataFrame([link.row for link in chain.made]))
            self.stored = fresh if self.stored.empty else pd.concat([self.stored, fresh], ignore_index=True)
        return chain


def made(chain):
    return [(link.update["kind"], link.update["weekend"]) for link in chain.made]


def amended(rows, weekend):
    """The first two change places."""
    swapped = rows.copy()
    race = swapped["weekend"] == weekend
    swapped.loc[race, "official_order"] = swapped.loc[race, "official_order"].replace({1: 2, 2: 1})
    return swapped


@pytest.fixture
def keeper(f1net, seasons, new_season, tmp_path):
    return Keeper(f1net, pd.concat([seasons, new_season], ignore_index=True), tmp_path / "checkpoints")


def test_each_link_comes_from_the_one_before(keeper):
    first = keeper.through(RACES[0])
    assert made(first) == [("adapted", RACES[0]), ("ewc", RACES[0])]
    rest = keeper.through(RACES[3])
    assert made(rest) == [("ewc", race) for race in RACES[1:]]
    assert rest.ids[:2] == first.ids and rest.newest.id == rest.ids[-1]
    assert list(keeper.stored["parent"]) == [keeper.root.id, *rest.ids[:-1]]
    for checkpoint, parent in zip(rest.ids, [keeper.root.id, *rest.ids], strict=False):
        meta = load_checkpoint(keeper.folder / checkpoint).meta
        assert (meta["parent"], meta["learning"]["pretrained"]) == (parent, keeper.root.id)
        assert meta["learning"]["settings"]["penalty"] == QUICK.penalty
    assert [link.rows["weekend"].nunique() for link in rest.made] == [2, 2, 2], "a window of two races"
    assert list(keeper.stored["n_races"]) == [0, 1, 2, 2, 2]


def test_up_to_date_makes_nothing_and_the_same_again_is_the_same(keeper, f1net, tmp_path):
    chain = keeper.through(RACES[2])
    again = keeper.through(RACES[2])
    assert again.made == [] and again.ids == chain.ids
    earlier = keeper.through(RACES[0])
    assert earlier.made == [] and earlier.ids == chain.ids, "asking for less takes nothing back"
    elsewhere = Keeper(f1net, keeper.rows.sample(frac=1, random_state=1), tmp_path / "elsewhere")
    assert elsewhere.through(RACES[2]).ids == chain.ids


def test_an_amended_race_renews_its_link_and_the_later_ones(keeper):
    before = keeper.through(RACES[3])
    original, keeper.rows = keeper.rows, amended(keeper.rows, RACES[2])
    after = keeper.through(RACES[2])
    assert made(after) == [("ewc", RACES[2]), ("ewc", RACES[3])]
    assert after.ids[:3] == before.ids[:3] and not set(after.ids[3:]) & set(before.ids)
    keeper.rows = original
    undone = keeper.through(RACES[3])
    assert undone.made == [] and undone.ids == before.ids, "the old links were still there"


def test_a_race_before_the_window_of_the_last_link_still_renews_it(keeper):
    """Its own rows are as they were, but its parent is another."""
    before = keeper.through(RACES[3])
    keeper.rows = amended(keeper.rows, RACES[0])
    after = keeper.through(RACES[3])
    assert len(after.made) == 5 and not set(after.ids) & set(before.ids)


def test_a_race_of_the_pretraining_renews_nothing_until_that_is_trained_again(keeper):
    keeper.through(RACES[1])
    keeper.rows = amended(keeper.rows, "2024-race-03")
    assert keeper.through(RACES[1]).made == []


@pytest.mark.parametrize("unlearnable", [0, 1, 3])
def test_a_race_that_can_no_longer_be_learnt_from_is_left_out_and_comes_back(keeper, unlearnable):
    """The first of a season, one in the middle, and the last one."""
    before = keeper.through(RACES[3])
    sound, original = [race for at, race in enumerate(RACES) if at != unlearnable], keeper.rows
    keeper.rows = original[original["weekend"] != RACES[unlearnable]]
    without = keeper.through(sound[-1])
    links = [(row.weekend, row.kind) for row in keeper.stored.set_index("checkpoint").loc[without.ids].itertuples()]
    assert links == [(sound[0], "adapted"), *((race, "ewc") for race in sound)]
    assert without.ids[:unlearnable + 1 if unlearnable else 0] == before.ids[:unlearnable + 1 if unlearnable else 0]
    assert all(RACES[unlearnable] not in set(link.rows["weekend"]) for link in without.made)
    keeper.rows = original
    mended = keeper.through(sound[-1])
    assert mended.made == [] and mended.ids == before.ids, "its links were still there"


def test_without_the_last_race_of_the_pretraining_the_calendar_says_where_the_chain_begins(keeper):
    """It was learnt from, and then its sheet was amended to one that can't be."""
    through = "2024-abu-dhabi"  # 2024-12-08
    trained = replace(keeper.root.trained, trained_through=through)
    keeper.root = replace(keeper.root, trained=trained)
    keeper.rows = keeper.rows[keeper.rows["weekend"] != "2024-race-11"]
    assert made(keeper.through(RACES[1])) == [("adapted", RACES[0]), ("ewc", RACES[0]), ("ewc", RACES[1])]


def test_other_settings_make_another_chain(keeper):
    before = keeper.through(RACES[1])
    after = keeper.through(RACES[1], replace(QUICK, penalty=1e4))
    assert len(after.made) == 3 and not set(after.ids) & set(before.ids)


def test_lost_files_are_made_again_as_they_were(keeper):
    before = keeper.through(RACES[1])
    (keeper.folder / before.ids[1] / "model.safetensors").unlink()
    after = keeper.through(RACES[1])
    assert after.ids == before.ids and [link.checkpoint.id for link in after.made] == [before.ids[1]]


def test_every_season_begins_with_an_adapted_link(keeper, planted):
    later = planted({2026: 1}, seed=8).replace({"driver": {"driver-00": "b-newcomer"}})
    keeper.rows = pd.concat([keeper.rows, later], ignore_index=True)
    keeper.through(RACES[0])
    chain = keeper.through("2026-race-00")
    assert [kind for kind, _ in made(chain)] == ["ewc"] * 7 + ["adapted", "ewc"]
    assert chain.newest.trained.seasons == (2022, 2023, 2024, 2025, 2026)
    assert chain.newest.trained.drivers.names[-3:] == ("a-newcomer", "z-newcomer", "b-newcomer")


@pytest.mark.parametrize("method", ["online_ewc", "replay", "finetune"])
def test_a_chain_goes_on_from_what_is_stored(keeper, f1net, tmp_path, method):
    """Race by race with everything read back from disk is the same as in one go."""
    settings = replace(QUICK, method=method)
    for race in RACES[:3]:
        by_race = keeper.through(race, settings)
    elsewhere = Keeper(f1net, keeper.rows, tmp_path / "elsewhere")
    assert elsewhere.through(RACES[2], settings).ids == by_race.ids


def test_what_is_told_of_a_link(keeper):
    keeper.through(RACES[1])
    adapted, first, second = keeper.stored.to_dict("records")
    assert adapted["spearman_before"] == first["spearman_before"], "adapting changes no ranking"
    assert pd.isna(adapted["loss"]) and adapted["old_season_after"] == adapted["old_season_before"]
    assert second["old_season_before"] == first["old_season_after"]
    assert json.loads(second["settings"])["window_races"] == 2
    assert second["loss"] > 0 and second["penalty"] >= 0 and second["seconds"] >= 0


def test_without_a_race_since_or_with_nothing_to_learn_the_pretrained_stays(keeper):
    assert keeper.through("2024-race-11").newest.id == keeper.root.id
    nothing = keeper.through(RACES[1], UpdateConfig(method="none"))
    assert nothing.made == [] and nothing.newest.id == keeper.root.id


def test_a_missing_fisher_is_told_where_it_is_needed(keeper):
    (keeper.root.path / "fisher.safetensors").unlink()
    with pytest.raises(CheckpointError, match="fisher.safetensors: can't be read.*pretrained_ranker again"):
        keeper.through(RACES[0])
    assert keeper.through(RACES[0], replace(QUICK, method="finetune")).made


def test_a_pretraining_that_is_not_loaded_is_an_error(keeper, new_season):
    keeper.rows = new_season
    with pytest.raises(ValueError, match="trained through 2024-race-11, of which no result is stored"):
        keeper.through(RACES[0])
