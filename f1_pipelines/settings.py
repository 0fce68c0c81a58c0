"""Settings from environment variables and `.env`. Every path may be anywhere; none depends on the working directory."""
from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PROJECT_ROOT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """What the environment says. Field names are the variables' names in lower case."""

    model_config = SettingsConfigDict(env_file=PROJECT_ROOT / ".env", extra="ignore", env_ignore_empty=True)

    f1_source: Literal["sample", "f1db", "fastf1"] = Field("sample", description="Where race weekends come from.")
    f1_f1db_path: Path | None = Field(None, description="Folder or zip of an f1db CSV release; downloaded when empty.")
    f1_f1db_url: str = Field("https://github.com/f1db/f1db/releases/latest/download/f1db-csv.zip",
                             description="Where a release is downloaded from when no path is given.")
    f1_fastf1_cache: Path = Field(PROJECT_ROOT / "warehouse" / "fastf1-cache", description="FastF1's cache folder.")
    f1_warehouse: Path = Field(PROJECT_ROOT / "warehouse" / "f1.duckdb", description="The DuckDB file.")
    f1_profile: str = Field("tiny", description="Language model of the race engineer: tiny, smollm2, qwen3-0.6b, "
                            "qwen3-4b.")
    f1_weights: Path | None = Field(None, description="Folder with the weights of a hub profile, instead of the hub.")
    f1_shared: Path | None = Field(None, description="Folder with real data for tests and benchmarks.")
    f1_calendar: Path | None = Field(None, description="Refreshed calendar; beside the warehouse when empty.")
    mlflow_tracking_uri: str | None = Field(None, description="MLflow store; beside the warehouse when empty, and off "
                                            "for none.")
    f1_simulated_races: int = Field(10_000, ge=0, description="Simulated races behind each forecast; 0 for none.")
    f1_generations: int = Field(3, ge=0, description="Earlier published copies of the warehouse that stay: so many of "
                                "the latest, and the last one of so many days before.")
    f1_write_wait_s: float = Field(300.0, ge=0, description="How long a writer waits for another one [s].")

    @field_validator("f1_f1db_path", "f1_fastf1_cache", "f1_warehouse", "f1_weights", "f1_shared",
                     "f1_calendar")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        return path.expanduser().absolute() if path else None

    @cached_property
    def calendar_path(self) -> Path:
        """Weekends learnt from a source since this release: `f1.calendar.csv` beside `f1.duckdb`."""
        return self.f1_calendar or self.f1_warehouse.with_suffix(".calendar.csv")

    @cached_property
    def laps_archive_path(self) -> Path | None:
        """Real laps under `F1_SHARED`, which the source f1db lacks; None where there are none."""
        folder = self.f1_shared / "data" / "laps" if self.f1_shared else None
        return folder if folder and folder.is_dir() else None

    @cached_property
    def checkpoints_path(self) -> Path:
        """Folder of trained models, beside the warehouse."""
        return self.f1_warehouse.with_name("checkpoints")

    @cached_property
    def pictures_path(self) -> Path:
        """Folder of pictures that pages show, beside the warehouse."""
        return self.f1_warehouse.with_name("pictures")

    @cached_property
    def tracking_uri(self) -> str | None:
        """Where runs are tracked: `mlflow.db` beside the warehouse by default; None turns tracking off."""
        uri = self.mlflow_tracking_uri or f"sqlite:///{self.f1_warehouse.with_name('mlflow.db')}"
        return None if uri == "off" else uri


class BadSetting(ValueError):
    """An environment variable has a value that can't be used. One sentence."""


def settings() -> Settings:
    """The settings as the environment stands now.

    Raises:
        BadSetting: Names the variable, what it says and what was wanted.
    """
    try:
        return Settings()
    except ValidationError as problem:
        first = problem.errors()[0]
        name = "_".join(map(str, first["loc"])).upper()
        wanted = first["msg"][0].lower() + first["msg"][1:]
        raise BadSetting(f"{name}={first['input']} can't be used: {wanted}") from None
