"""What an examination asks for before it begins."""
from f1_pipelines.resources import compute


def test_what_does_not_fit_is_refused_before_an_engineer_is_loaded(run, monkeypatch):
    def told() -> str:
        return str(run("strategy_evaluation").failure_data_for_node("strategy_evaluation").error)

    assert "no warehouse at" in told(), "with memory enough it comes to its data"
    monkeypatch.setattr(compute, "free_memory_gib", lambda device: 0.5)
    assert "profile tiny needs 4 GiB free on cpu, and there are 0.5; stop what else runs there" in told()
