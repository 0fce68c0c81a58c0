"""The Dagster home that runs report to."""
from __future__ import annotations

import os
from pathlib import Path


def existing_home() -> str:
    """The folder DAGSTER_HOME.

    Raises:
        RuntimeError: It is not there, or no home.
    """
    home = os.environ["DAGSTER_HOME"]
    if not Path(home).is_absolute() or not Path(home).is_dir():
        raise RuntimeError(f"DAGSTER_HOME={home} must be an absolute path of an existing folder; mkdir it")
    if not (Path(home) / "dagster.yaml").exists():
        raise RuntimeError(f"{home} holds no dagster.yaml, so pools have no limit; run `make setup`")
    return home
