"""An f1db release as a zip, and a copy of it to damage."""
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

FILES = ("races", "grands-prix", "races-race-results", "races-fastest-laps", "races-pit-stops",
         "races-sprint-race-results", "races-qualifying-results", "races-sprint-qualifying-results",
         "races-starting-grid-positions", "races-sprint-starting-grid-positions",
         *(f"races-free-practice-{n}-results" for n in (1, 2, 3)))


@pytest.fixture(scope="session")
def zip_release() -> Callable[[Path, Path], Path]:
    """Pack the folder of a release like the download."""
    def pack(folder: Path, target: Path) -> Path:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in FILES:
                archive.write(folder / f"f1db-{name}.csv", f"f1db-csv/f1db-{name}.csv")
        return target

    return pack


@pytest.fixture
def copy(f1db_folder: Path, tmp_path: Path) -> Path:
    target = tmp_path / "release"
    target.mkdir()
    for name in FILES:
        shutil.copyfile(f1db_folder / f"f1db-{name}.csv", target / f"f1db-{name}.csv")
    return target
