"""The notebooks run from first to last cell, each in its own kernel, on a real warehouse."""
import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from f1_pipelines.settings import PROJECT_ROOT

pytestmark = [pytest.mark.xdist_group("season"), pytest.mark.timeout(280)]
NOTEBOOKS = sorted((PROJECT_ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def executed(season, tmp_path_factory):
    """Run a notebook and return it with its outputs; an error in a cell raises."""
    folder = tmp_path_factory.mktemp("notebooks")

    def execute(file: Path) -> nbformat.NotebookNode:
        notebook = nbformat.read(file, 4)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("F1_WAREHOUSE", season["warehouse"].path)
            patch.setenv("F1_NOTEBOOK_STEPS", "512")
            patch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
            NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
        return notebook

    return execute


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_with_outputs_like_its_stored_ones(file: Path, executed):
    """Each cell has the same kinds of outputs as in the repository."""
    stored, now = nbformat.read(file, 4), executed(file)
    for before, after in zip(stored.cells, now.cells, strict=True):
        if before.cell_type == "code":
            assert _kinds(before) == _kinds(after), before.source


def test_stored_outputs_of_the_three_notebooks_contain_no_local_paths():
    assert [file.stem for file in NOTEBOOKS] == ["environment", "forecast", "warehouse"]
    for file in NOTEBOOKS:
        outputs = json.dumps([cell.get("outputs", []) for cell in nbformat.read(file, 4).cells])
        assert "/home/" not in outputs and str(PROJECT_ROOT) not in outputs


def _kinds(cell: nbformat.NotebookNode) -> set[str]:
    """MIME types of a cell's outputs; standard output counts as text."""
    return {kind for output in cell.outputs for kind in output.get("data", {"text/plain": ""})}
