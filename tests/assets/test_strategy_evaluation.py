"""Checks of an evaluation before it starts."""
from f1_pipelines.resources import compute


def test_too_little_memory_is_an_error_before_an_engineer_is_loaded(run, monkeypatch):
    def error() -> str:
        return str(run("strategy_evaluation").failure_data_for_node("strategy_evaluation").error)

    assert "no warehouse at" in error(), "with enough memory it reads its data"
    monkeypatch.setattr(compute, "free_memory_gib", lambda device: 0.5)
    assert "profile tiny needs 4 GiB free on cpu, and there are 0.5; stop what else runs there" in error()
