"""The ranker learns from a new race, does nothing without one, and learns again from an amended one."""
import pytest

BEFORE = {"partition": "2025-australia", "until": "2025-japan"}
TRAINING = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}
LOADED = ("race_calendar", "practice_results", "qualifying_results", "race_results", "ranking_features")
CHAIN = """SELECT u.model, u.weekend, u.kind, u.checkpoint, u.parent, u.current FROM ranking.updates u
           JOIN race.calendar USING (weekend) ORDER BY model, race_start, kind, created_at"""


def test_it_learns_only_from_new_and_amended_races(run, rows, resources):
    """Pretrains on three races of 2025, then: two more, nothing new, other settings, an amended result."""
    def learn(weekend: str = "2025-saudi-arabia", **config) -> dict[str, object]:
        result = run("ewc_ranker", partition=weekend, raises=True,
                     run_config={"ops": {"ewc_ranker": {"config": config}}})
        [event] = result.asset_materializations_for_node("ewc_ranker")
        return {name: value.value for name, value in event.metadata.items()}

    assert run(*LOADED, "pretrained_ranker", **BEFORE, run_config=TRAINING, raises=True).success
    assert run(*LOADED, "ewc_ranker", partition="2025-bahrain", until="2025-saudi-arabia", raises=True).success
    learnt = rows(CHAIN)
    assert [link[:3] for link in learnt] == [
        (model, weekend, kind) for model in ("champion", "f1net_reference")
        for weekend, kind in (("2025-bahrain", "adapted"), ("2025-bahrain", "ewc"), ("2025-saudi-arabia", "ewc"))]

    updates = rows("SELECT * FROM ranking.updates ORDER BY checkpoint")
    metadata = learn()
    assert (metadata["links_made"], metadata["races_learnt"], metadata["learnt_through"]) == (
        0, 2, "2025-saudi-arabia")
    assert (metadata["checkpoint"], metadata["parent"]) == (learnt[2][3], learnt[1][3])
    assert -1 <= metadata["spearman_before"] <= 1 and metadata["season"].startswith("![champion")
    assert {metadata["champion forgot"], metadata["f1net_reference forgot"]} == {
        float(lost) for lost, in rows("""SELECT first.old_season_before - last.old_season_after
            FROM ranking.updates first JOIN ranking.updates last USING (model)
            WHERE first.kind = 'adapted' AND last.weekend = '2025-saudi-arabia'""")}
    assert learn("2025-china")["links_made"] == 0, "races of the pretraining are not learnt again"
    assert rows("SELECT * FROM ranking.updates ORDER BY checkpoint") == updates

    with pytest.raises(ValueError, match="ewc_lambda is -1.0"):
        learn(ewc_lambda=-1.0)
    learn(method="finetune", models=["champion"])
    assert rows("SELECT DISTINCT model, method FROM ranking.updates WHERE current ORDER BY ALL") == [
        ("champion", "finetune"), ("f1net_reference", "ewc")]
    assert learn()["links_made"] == 0
    assert [link for link in rows(CHAIN) if link[-1]] == learnt, "the old links are current again"

    with resources["warehouse"].write("swap the first two places") as connection:
        connection.execute("UPDATE race.results SET official_order = 3 - official_order "
                           "WHERE weekend = '2025-saudi-arabia' AND official_order < 3")
    assert learn()["links_made"] == 2
    after = [link for link in rows(CHAIN) if link[-1]]
    assert set(learnt) - set(after) == {link for link in learnt if link[1] == "2025-saudi-arabia"}
    assert {link[4] for link in after if link not in learnt} == {
        link[3] for link in learnt if link[1:3] == ("2025-bahrain", "ewc")}


@pytest.mark.parametrize(("check", "damage"), [
    ("every_link_has_its_parent", "DELETE FROM ranking.checkpoints WHERE kind = 'pretrained'"),
    ("one_current_link_per_race", "INSERT INTO ranking.updates BY NAME SELECT * REPLACE ('twin' AS checkpoint) "
                                  "FROM ranking.updates LIMIT 1"),
    ("little_is_forgotten", "UPDATE ranking.updates SET old_season_after = old_season_before - 0.03 WHERE "
                            "kind = 'ewc'"),
])
def test_a_check_finds_damage(ready, resources, check, damage):
    from f1_pipelines.definitions import defs

    checks = {next(iter(check.check_keys)).name: check for check in defs.asset_checks}
    assert checks[check](resources["warehouse"]).passed
    with resources["warehouse"].write("damage") as connection:
        connection.execute(damage)
    assert not checks[check](resources["warehouse"]).passed


def test_forgetting_of_the_reference_is_no_warning(ready, resources):
    from f1_pipelines.definitions import defs

    [check] = [check for check in defs.asset_checks if next(iter(check.check_keys)).name == "little_is_forgotten"]
    with resources["warehouse"].write("the reference forgets") as connection:
        connection.execute("UPDATE ranking.updates SET model = 'f1net_reference', "
                           "old_season_after = old_season_before - CASE kind WHEN 'ewc' THEN 0.05 ELSE 0 END")
    assert check(resources["warehouse"]).passed


@pytest.fixture
def ready(resources):
    """Rows of a pretrained checkpoint with two links, without files."""
    with resources["warehouse"].write("two links") as connection:
        for checkpoint, kind in (("root", "pretrained"), ("first", "adapted"), ("second", "ewc")):
            connection.execute("""
                INSERT INTO ranking.checkpoints BY NAME
                SELECT ? AS checkpoint, ? AS kind, 'champion' AS model, '2025-japan' AS trained_from,
                       '2025-bahrain' AS trained_through, 1 AS n_races, '1' AS feature_version, 'x' AS data_version,
                       0 AS seed, '{}' AS metrics, '' AS path, false AS promoted, now() AS created_at
                """, [checkpoint, kind])
        for checkpoint, kind, parent in (("first", "adapted", "root"), ("second", "ewc", "first")):
            connection.execute("""
                INSERT INTO ranking.updates BY NAME
                SELECT ? AS checkpoint, ? AS kind, ? AS parent, 'champion' AS model, 'root' AS pretrained,
                       '2025-bahrain' AS weekend, 'ewc' AS method, '{}' AS settings, 1 AS n_races,
                       0.7 AS old_season_before, 0.7 AS old_season_after, 0.1 AS seconds, 'x' AS data_version,
                       true AS current, now() AS created_at
                """, [checkpoint, kind, parent])
