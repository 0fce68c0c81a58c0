"""The chain records parents, adds new links, and renews links after an amended race."""
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


class ChainStore:
    """Brings chains up to date and stores their rows, as the asset does in the warehouse."""

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
            new_rows = UPDATES.conform(pd.DataFrame([link.update for link in chain.made]))
            CHECKPOINTS.conform(pd.DataFrame([link.row for link in chain.made]))
            self.stored = new_rows if self.stored.empty else pd.concat([self.stored, new_rows], ignore_index=True)
        return chain


def new_links(chain):
    return [(link.update["kind"], link.update["weekend"]) for link in chain.made]


def amended(rows, weekend):
    """Copy of the rows with the first two of a race swapped."""
    swapped = rows.copy()
    race = swapped["weekend"] == weekend
    swapped.loc[race, "official_order"] = swapped.loc[race, "official_order"].replace({1: 2, 2: 1})
    return swapped


@pytest.fixture
def chains(f1net, seasons, new_season, tmp_path):
    return ChainStore(f1net, pd.concat([seasons, new_season], ignore_index=True), tmp_path / "checkpoints")


def test_the_parent_of_each_link_is_the_previous_one(chains):
    first = chains.through(RACES[0])
    assert new_links(first) == [("adapted", RACES[0]), ("ewc", RACES[0])]
    rest = chains.through(RACES[3])
    assert new_links(rest) == [("ewc", race) for race in RACES[1:]]
    assert rest.ids[:2] == first.ids and rest.newest.id == rest.ids[-1]
    assert list(chains.stored["parent"]) == [chains.root.id, *rest.ids[:-1]]
    for checkpoint, parent in zip(rest.ids, [chains.root.id, *rest.ids], strict=False):
        meta = load_checkpoint(chains.folder / checkpoint).meta
        assert (meta["parent"], meta["learning"]["pretrained"]) == (parent, chains.root.id)
        assert meta["learning"]["settings"]["penalty"] == QUICK.ewc_lambda
    assert [link.rows["weekend"].nunique() for link in rest.made] == [2, 2, 2], "a window of two races"
    assert list(chains.stored["n_races"]) == [0, 1, 2, 2, 2]


def test_a_current_chain_gets_no_new_links_and_is_reproducible(chains, f1net, tmp_path):
    chain = chains.through(RACES[2])
    again = chains.through(RACES[2])
    assert again.made == [] and again.ids == chain.ids
    earlier = chains.through(RACES[0])
    assert earlier.made == [] and earlier.ids == chain.ids, "an earlier `until` removes no links"
    elsewhere = ChainStore(f1net, chains.rows.sample(frac=1, random_state=1), tmp_path / "elsewhere")
    assert elsewhere.through(RACES[2]).ids == chain.ids


def test_an_amended_race_renews_its_link_and_the_later_ones(chains):
    before = chains.through(RACES[3])
    original, chains.rows = chains.rows, amended(chains.rows, RACES[2])
    after = chains.through(RACES[2])
    assert new_links(after) == [("ewc", RACES[2]), ("ewc", RACES[3])]
    assert after.ids[:3] == before.ids[:3] and not set(after.ids[3:]) & set(before.ids)
    chains.rows = original
    restored = chains.through(RACES[3])
    assert restored.made == [] and restored.ids == before.ids, "the old links are reused"


def test_a_race_before_the_window_of_the_last_link_still_renews_it(chains):
    """Its own rows are unchanged, but its parent is not."""
    before = chains.through(RACES[3])
    chains.rows = amended(chains.rows, RACES[0])
    after = chains.through(RACES[3])
    assert len(after.made) == 5 and not set(after.ids) & set(before.ids)


def test_an_amended_race_of_the_pretraining_renews_no_link(chains):
    chains.through(RACES[1])
    chains.rows = amended(chains.rows, "2024-race-03")
    assert chains.through(RACES[1]).made == []


@pytest.mark.parametrize("unlearnable", [0, 1, 3])
def test_an_unlearnable_race_is_left_out_until_it_returns(chains, unlearnable):
    """The first race of a season, one in the middle, and the last."""
    before = chains.through(RACES[3])
    learnable, original = [race for at, race in enumerate(RACES) if at != unlearnable], chains.rows
    chains.rows = original[original["weekend"] != RACES[unlearnable]]
    without = chains.through(learnable[-1])
    links = [(row.weekend, row.kind) for row in chains.stored.set_index("checkpoint").loc[without.ids].itertuples()]
    assert links == [(learnable[0], "adapted"), *((race, "ewc") for race in learnable)]
    assert without.ids[:unlearnable + 1 if unlearnable else 0] == before.ids[:unlearnable + 1 if unlearnable else 0]
    assert all(RACES[unlearnable] not in set(link.rows["weekend"]) for link in without.made)
    chains.rows = original
    restored = chains.through(learnable[-1])
    assert restored.made == [] and restored.ids == before.ids, "its links are reused"


def test_without_the_last_race_of_the_pretraining_the_calendar_gives_the_start_of_the_chain(chains):
    """An amendment made that race unlearnable."""
    through = "2024-abu-dhabi"  # 2024-12-08
    trained = replace(chains.root.trained, trained_through=through)
    chains.root = replace(chains.root, trained=trained)
    chains.rows = chains.rows[chains.rows["weekend"] != "2024-race-11"]
    assert new_links(chains.through(RACES[1])) == [("adapted", RACES[0]), ("ewc", RACES[0]), ("ewc", RACES[1])]


def test_other_settings_make_another_chain(chains):
    before = chains.through(RACES[1])
    after = chains.through(RACES[1], replace(QUICK, ewc_lambda=1e4))
    assert len(after.made) == 3 and not set(after.ids) & set(before.ids)


def test_lost_files_are_computed_again_identically(chains):
    before = chains.through(RACES[1])
    (chains.folder / before.ids[1] / "model.safetensors").unlink()
    after = chains.through(RACES[1])
    assert after.ids == before.ids and [link.checkpoint.id for link in after.made] == [before.ids[1]]


def test_every_season_begins_with_an_adapted_link(chains, planted):
    later = planted({2026: 1}, seed=8).replace({"driver": {"driver-00": "b-newcomer"}})
    chains.rows = pd.concat([chains.rows, later], ignore_index=True)
    chains.through(RACES[0])
    chain = chains.through("2026-race-00")
    assert [kind for kind, _ in new_links(chain)] == ["ewc"] * 7 + ["adapted", "ewc"]
    assert chain.newest.trained.seasons == (2022, 2023, 2024, 2025, 2026)
    assert chain.newest.trained.drivers.names[-3:] == ("a-newcomer", "z-newcomer", "b-newcomer")


@pytest.mark.parametrize("method", ["online_ewc", "replay", "finetune"])
def test_a_chain_continues_from_stored_links(chains, f1net, tmp_path, method):
    """Race by race, with everything read back from disk, equals all races in one call."""
    settings = replace(QUICK, method=method)
    for race in RACES[:3]:
        by_race = chains.through(race, settings)
    elsewhere = ChainStore(f1net, chains.rows, tmp_path / "elsewhere")
    assert elsewhere.through(RACES[2], settings).ids == by_race.ids


def test_the_stored_metrics_of_a_link(chains):
    chains.through(RACES[1])
    adapted, first, second = chains.stored.to_dict("records")
    assert adapted["spearman_before"] == first["spearman_before"], "adapting changes no ranking"
    assert pd.isna(adapted["loss"]) and adapted["old_season_after"] == adapted["old_season_before"]
    assert second["old_season_before"] == first["old_season_after"]
    assert json.loads(second["settings"])["window_races"] == 2
    assert second["loss"] > 0 and second["penalty"] >= 0 and second["seconds"] >= 0


def test_without_a_later_race_or_with_method_none_the_pretrained_ranker_is_newest(chains):
    assert chains.through("2024-race-11").newest.id == chains.root.id
    unchanged = chains.through(RACES[1], UpdateConfig(method="none"))
    assert unchanged.made == [] and unchanged.newest.id == chains.root.id


def test_a_missing_fisher_is_an_error_only_where_it_is_needed(chains):
    (chains.root.path / "fisher.safetensors").unlink()
    with pytest.raises(CheckpointError, match="fisher.safetensors: can't be read.*pretrained_ranker again"):
        chains.through(RACES[0])
    assert chains.through(RACES[0], replace(QUICK, method="finetune")).made


def test_missing_pretraining_results_are_an_error(chains, new_season):
    chains.rows = new_season
    with pytest.raises(ValueError, match="trained through 2024-race-11, of which no result is stored"):
        chains.through(RACES[0])
