"""The Dagster home."""
from __future__ import annotations

import os
from pathlib import Path


def existing_home() -> str:
    """The folder in DAGSTER_HOME.

    Raises:
        RuntimeError: The folder is missing, or not a Dagster home.
    """
    home = os.environ["DAGSTER_HOME"]
    if not Path(home).is_absolute() or not Path(home).is_dir():
        raise RuntimeError(f"DAGSTER_HOME={home} must be the absolute path of an existing folder; create it")
    if not (Path(home) / "dagster.yaml").exists():
        raise RuntimeError(f"{home} holds no dagster.yaml, so pools have no limit; run `make setup`")
    return home
