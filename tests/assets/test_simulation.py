"""The simulator's assets with and without laps."""
from f1_pipelines.resources.race_data import RaceData

LOADED = ("race_calendar", "qualifying_results", "race_results", "race_laps")


def test_without_laps_every_circuit_keeps_its_prior_and_nothing_is_validated(run, rows):
    """f1db without an archive: the run succeeds and stores priors."""
    assert run(*LOADED, "circuit_fits", "simulator_validation", partition="2024-monaco", until="2024-spain").success
    assert rows("SELECT circuit, provenance, n_laps, through FROM sim.circuits ORDER BY circuit") == [
        ("catalunya", "circuit_prior", 0, None), ("monaco", "circuit_prior", 0, None),
        ("montreal", "circuit_prior", 0, None)]
    assert rows("SELECT count(*) FROM sim.validation") == [(0,)]


def test_with_laps_circuits_are_fitted(run, rows, resources, shared):
    resources["race_data"] = RaceData(
        source="f1db", f1db_path=str(shared / "data" / "f1db-csv"), laps_archive=str(shared / "data" / "laps"),
        f1db_folder=str(shared), fastf1_cache=str(shared))
    assert run(*LOADED, "circuit_fits", partition="2024-bahrain", until="2024-miami").success
    assert rows("SELECT DISTINCT source FROM race.laps") == [("archive",)]
    fitted = rows("SELECT circuit FROM sim.circuits WHERE provenance = 'fitted' AND n_laps > 100 ORDER BY 1")
    assert ("bahrain",) in fitted
    [row] = rows("SELECT stop_loss_green_s, stop_loss_sc_s FROM sim.circuits WHERE circuit = 'bahrain'")
    assert row[1] < row[0]
    assert 20 < row[0] < 28
