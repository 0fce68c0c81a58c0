"""An operator can promote and roll back, and a refused request changes nothing."""
import json
import shutil
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.cli import main
from f1_pipelines.promotion import CantPromote, promote, roll_back, store_checkpoints
from f1_pipelines.tracking.registry import MODEL
from f1_pipelines.tracking.store import TrackingStore

# Weights of the qualifying gap and the form.
GOOD, FAIR, OTHER, POOR = (-1.0, -1.0), (-1.0, -0.3), (-0.3, -1.0), (0.3, -0.1)


@pytest.fixture(autouse=True)
def stored_races(store, races):
    """Store the races of the acceptance test."""
    store.load(races)


@pytest.fixture
def by_hand(store):
    """Function that promotes a checkpoint, or rolls back without one; each call is one day later."""
    days = iter(range(1, 31))

    def change(checkpoint: str | None = None, reason: str = "", force: bool = False) -> str:
        now = datetime(2026, 8, next(days), tzinfo=UTC)
        with store.file.write("test") as connection:
            if checkpoint:
                promote(connection, checkpoint, reason, now, store.folder, force)
            else:
                roll_back(connection, reason, now, store.folder, force)
        return store.champion

    return change


def test_each_rollback_goes_one_champion_further_back_until_there_is_none(store, by_hand):
    first, second, third = (store.add(weights) for weights in (FAIR, GOOD, OTHER))
    assert [by_hand(checkpoint) for checkpoint in (first, second, third)] == [first, second, third]
    assert by_hand(reason="it looks odd") == second
    assert by_hand() == first
    with pytest.raises(CantPromote, match=f"no champion before {first}"):
        by_hand()
    assert by_hand(third) == third
    assert by_hand() == first, "champions that were rolled back are skipped"
    assert store.rows("SELECT decision, decided_by, candidate, champion, reason FROM ranking.promotions "
                      "ORDER BY decided_at")[3] == ("rolled_back", "operator", second, third, "it looks odd")


@pytest.mark.parametrize(("damage", "message"), [
    ("unknown", '"nobody" is no checkpoint'), ("corrupt", "is damaged, their digests differ"),
    ("other features", "trained on features of version 0"), ("gone", "train or copy the checkpoint again"),
    ("champion", "is champion already"), ("poor", "fails the acceptance test: its own weights have Spearman"),
    ("never examined", "0 races are stored to examine it by")])
def test_an_unusable_checkpoint_is_refused_and_nothing_changes(store, by_hand, damage, message):
    champion, other = store.add(FAIR), store.add(POOR if damage == "poor" else GOOD)
    by_hand(champion)
    files = store.folder / other
    if damage == "corrupt":
        (files / "model.safetensors").write_bytes(b"damaged")
    elif damage == "gone":
        (files / "model.safetensors").unlink()
    elif damage == "other features":
        meta = json.loads((files / "meta.json").read_text())
        (files / "meta.json").write_text(json.dumps(meta | {"feature_version": "0"}))
    elif damage == "never examined":
        with store.file.write("test") as connection:
            connection.execute("DELETE FROM features.ranking")
    before = store.rows("FROM ranking.promotions")
    with pytest.raises(CantPromote, match=message):
        by_hand({"unknown": "nobody", "champion": champion}.get(damage, other))
    assert store.champion == champion
    assert store.rows("FROM ranking.promotions") == before


def test_a_checkpoint_that_fails_the_acceptance_test_is_only_promoted_or_rolled_back_to_by_force(store, by_hand):
    poor, good = store.add(POOR), store.add(GOOD)
    assert by_hand(poor, "to see what happens", force=True) == poor
    assert by_hand(good) == good
    with pytest.raises(CantPromote, match="fails the acceptance test"):
        by_hand()
    assert store.champion == good
    assert by_hand(force=True) == poor
    rows = store.rows("SELECT reason, own_spearman < 0, n_examined_races FROM ranking.promotions ORDER BY decided_at")
    assert rows[0][0].startswith("to see what happens (forced: its own weights have Spearman -0.")
    assert rows[2][0].startswith(f"rolled back from {good} (forced: ")
    assert [row[1:] for row in rows] == [(True, 8), (False, 8), (True, 8)]


def test_storing_a_champion_again_keeps_it_champion(store, by_hand):
    champion, other = store.add(FAIR), store.add(GOOD)
    by_hand(champion)
    with store.file.write("test") as connection:
        rows = connection.execute("SELECT * FROM ranking.checkpoints").df()
        store_checkpoints(connection, pd.DataFrame(rows).assign(promoted=False))
    assert store.champion == champion
    assert by_hand(other) == other


@pytest.fixture
def f1(capsys, monkeypatch):
    """Function that runs `f1 promote` and returns its output."""
    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["f1", "promote", *arguments])
        main.main()
        return capsys.readouterr().out

    return run


def test_aliases_follow_even_if_the_registry_was_away_at_training(store, f1, migrated, tmp_path, monkeypatch):
    shutil.copy(migrated, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    first, second = store.add(FAIR), store.add(GOOD)
    champions = []
    for arguments in ([first], [second], ["--back"]):
        f1(*arguments)
        with TrackingStore(uri, tmp_path).open() as opened:
            champions.append(opened.client.get_model_version_by_alias(MODEL, "champion").tags["checkpoint"])
    assert champions == [first, second, first]


def test_promotion_works_without_the_registry(store, f1, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    checkpoint = store.add(GOOD)
    monkeypatch.setattr("sys.argv", ["f1", "promote", checkpoint])
    main.main()
    output = capsys.readouterr()
    assert "is champion now" in output.out and "not tracked" in output.err
    assert store.champion == checkpoint


def test_the_command_promotes_and_rolls_back(store, f1, capsys):
    first, second = store.add(FAIR), store.add(GOOD)
    assert f"{first} is champion now" in f1(first)
    f1(second, "--reason", "won the benchmark")
    assert store.rows("SELECT reason FROM ranking.promotions ORDER BY decided_at")[1] == ("won the benchmark",)
    assert f"{first} is champion now; before: {second}" in f1("--back")
    assert store.champion == first
    poor = store.add(POOR)
    with pytest.raises(SystemExit, match="1"):
        f1(poor)
    assert "fails the acceptance test" in capsys.readouterr().err and store.champion == first
    assert f"{poor} is champion now" in f1(poor, "--force")
    with pytest.raises(SystemExit, match="1"):
        f1("nobody")
    assert '"nobody" is no checkpoint of this warehouse' in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        f1()
    with pytest.raises(SystemExit, match="2"):
        f1(first, "--back")
