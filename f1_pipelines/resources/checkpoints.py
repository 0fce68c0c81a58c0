"""The folder of trained models."""
from pathlib import Path

import dagster as dg
from pydantic import Field


class Checkpoints(dg.ConfigurableResource[None]):
    """A folder with one folder per checkpoint, each with `model.safetensors` and `meta.json`."""

    path: str = Field(description="The folder; created when the first model is saved.")

    @property
    def folder(self) -> Path:
        return Path(self.path)
