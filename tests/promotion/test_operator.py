"""What a person may do: promote, roll back, and never break anything by it."""
import json
import shutil
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.cli import main
from f1_pipelines.promotion import CantPromote, promote, roll_back, store_checkpoints
from f1_pipelines.tracking.registry import MODEL
from f1_pipelines.tracking.store import TrackingStore

# How a ranker weighs the gap in qualifying and the form.
GOOD, FAIR, OTHER, POOR = (-1.0, -1.0), (-1.0, -0.3), (-0.3, -1.0), (0.3, -0.1)


@pytest.fixture(autouse=True)
def examined_by(place, races):
    """The races by which whoever is promoted is examined."""
    place.load(races)


@pytest.fixture
def by_hand(place):
    """Promote by hand, one day after the other; without a checkpoint roll back."""
    days = iter(range(1, 31))

    def change(checkpoint: str | None = None, reason: str = "", force: bool = False) -> str:
        now = datetime(2026, 8, next(days), tzinfo=UTC)
        with place.file.write("test") as connection:
            if checkpoint:
                promote(connection, checkpoint, reason, now, place.folder, force)
            else:
                roll_back(connection, reason, now, place.folder, force)
        return place.champion

    return change


def test_rolling_back_goes_one_further_each_time_and_says_when_there_is_no_more(place, by_hand):
    first, second, third = (place.made(weights) for weights in (FAIR, GOOD, OTHER))
    assert [by_hand(one) for one in (first, second, third)] == [first, second, third]
    assert by_hand(reason="it looks odd") == second
    assert by_hand() == first
    with pytest.raises(CantPromote, match=f"no champion before {first}"):
        by_hand()
    assert by_hand(third) == third
    assert by_hand() == first, "what was rolled back is not what came before"
    assert place.rows("SELECT decision, decided_by, candidate, champion, reason FROM ranking.promotions "
                      "ORDER BY decided_at")[3] == ("rolled_back", "operator", second, third, "it looks odd")


@pytest.mark.parametrize(("damage", "told"), [
    ("unknown", '"nobody" is no checkpoint'), ("corrupt", "is not what meta.json says it is"),
    ("other features", "trained on features of version 0"), ("gone", "train or copy the checkpoint again"),
    ("champion", "is champion already"), ("poor", "fails the acceptance test: its own weights have Spearman"),
    ("never examined", "0 races are stored to examine it by")])
def test_what_cannot_be_used_is_refused_and_nothing_changes(place, by_hand, damage, told):
    champion, other = place.made(FAIR), place.made(POOR if damage == "poor" else GOOD)
    by_hand(champion)
    files = place.folder / other
    if damage == "corrupt":
        (files / "model.safetensors").write_bytes(b"damaged")
    elif damage == "gone":
        (files / "model.safetensors").unlink()
    elif damage == "other features":
        meta = json.loads((files / "meta.json").read_text())
        (files / "meta.json").write_text(json.dumps(meta | {"feature_version": "0"}))
    elif damage == "never examined":
        with place.file.write("test") as connection:
            connection.execute("DELETE FROM features.ranking")
    before = place.rows("FROM ranking.promotions")
    with pytest.raises(CantPromote, match=told):
        by_hand({"unknown": "nobody", "champion": champion}.get(damage, other))
    assert place.champion == champion
    assert place.rows("FROM ranking.promotions") == before


def test_who_fails_the_exam_is_promoted_by_force_alone_and_rolled_back_to_by_force_alone(place, by_hand):
    poor, good = place.made(POOR), place.made(GOOD)
    assert by_hand(poor, "to see what happens", force=True) == poor
    assert by_hand(good) == good
    with pytest.raises(CantPromote, match="fails the acceptance test"):
        by_hand()
    assert place.champion == good
    assert by_hand(force=True) == poor
    told = place.rows("SELECT reason, own_spearman < 0, n_examined_races FROM ranking.promotions ORDER BY decided_at")
    assert told[0][0].startswith("to see what happens (forced: its own weights have Spearman -0.")
    assert told[2][0].startswith(f"rolled back from {good} (forced: ")
    assert [row[1:] for row in told] == [(True, 8), (False, 8), (True, 8)]


def test_storing_a_champion_again_leaves_it_champion(place, by_hand):
    champion, other = place.made(FAIR), place.made(GOOD)
    by_hand(champion)
    with place.file.write("test") as connection:
        rows = connection.execute("SELECT * FROM ranking.checkpoints").df()
        store_checkpoints(connection, pd.DataFrame(rows).assign(promoted=False))
    assert place.champion == champion
    assert by_hand(other) == other


@pytest.fixture
def f1(capsys, monkeypatch):
    """Runs `f1 promote`; what it prints."""
    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["f1", "promote", *arguments])
        main.main()
        return capsys.readouterr().out

    return run


def test_the_registrys_aliases_follow_though_it_was_away_when_they_were_trained(place, f1, migrated, tmp_path,
                                                                               monkeypatch):
    shutil.copy(migrated, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    first, second = place.made(FAIR), place.made(GOOD)
    champions = []
    for arguments in ([first], [second], ["--back"]):
        f1(*arguments)
        with TrackingStore(uri, tmp_path).open() as opened:
            champions.append(opened.client.get_model_version_by_alias(MODEL, "champion").tags["checkpoint"])
    assert champions == [first, second, first]


def test_a_registry_that_is_away_does_not_stop_it(place, f1, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    checkpoint = place.made(GOOD)
    monkeypatch.setattr("sys.argv", ["f1", "promote", checkpoint])
    main.main()
    told = capsys.readouterr()
    assert "is champion now" in told.out and "not tracked" in told.err
    assert place.champion == checkpoint


def test_the_command_promotes_and_rolls_back(place, f1, capsys):
    first, second = place.made(FAIR), place.made(GOOD)
    assert f"{first} is champion now" in f1(first)
    f1(second, "--reason", "won the benchmark")
    assert place.rows("SELECT reason FROM ranking.promotions ORDER BY decided_at")[1] == ("won the benchmark",)
    assert f"{first} is champion now; before: {second}" in f1("--back")
    assert place.champion == first
    poor = place.made(POOR)
    with pytest.raises(SystemExit, match="1"):
        f1(poor)
    assert "fails the acceptance test" in capsys.readouterr().err and place.champion == first
    assert f"{poor} is champion now" in f1(poor, "--force")
    with pytest.raises(SystemExit, match="1"):
        f1("nobody")
    assert '"nobody" is no checkpoint of this warehouse' in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        f1()
    with pytest.raises(SystemExit, match="2"):
        f1(first, "--back")
