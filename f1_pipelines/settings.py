"""Settings from environment variables and `.env`. Default paths don't depend on the working directory."""
from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PROJECT_ROOT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """Settings from the environment. Field names are the variables' names in lower case."""

    model_config = SettingsConfigDict(env_file=PROJECT_ROOT / ".env", extra="ignore", env_ignore_empty=True)

    f1_source: Literal["sample", "f1db", "fastf1"] = Field("sample", description="Source of race weekends.")
    f1_f1db_path: Path | None = Field(None, description="Folder or zip of an f1db CSV release; downloaded if empty.")
    f1_f1db_url: str = Field("https://github.com/f1db/f1db/releases/latest/download/f1db-csv.zip",
                             description="Download URL of the f1db release, if no path is set.")
    f1_fastf1_cache: Path = Field(PROJECT_ROOT / "warehouse" / "fastf1-cache", description="FastF1's cache folder.")
    f1_warehouse: Path = Field(PROJECT_ROOT / "warehouse" / "f1.duckdb", description="The DuckDB file.")
    f1_profile: str = Field("tiny", description="Language model of the race engineer: tiny, smollm2, qwen3-0.6b, "
                            "qwen3-4b.")
    f1_weights: Path | None = Field(None, description="Folder with the weights of a Hugging Face profile; downloaded "
                                    "if empty.")
    f1_shared: Path | None = Field(None, description="Folder with real data for tests and benchmarks.")
    f1_calendar: Path | None = Field(None, description="Refreshed calendar file; beside the warehouse if empty.")
    mlflow_tracking_uri: str | None = Field(None, description="MLflow store; beside the warehouse if empty; off "
                                            "disables tracking.")
    f1_simulated_races: int = Field(10_000, ge=0, description="Simulated races per forecast; 0 for none.")
    f1_generations: int = Field(3, ge=0, description="Earlier published copies of the warehouse to keep: this many of "
                                "the latest, and the last one of each of this many days before.")
    f1_write_wait_s: float = Field(300.0, ge=0, description="How long a writer waits for another one [s].")

    @field_validator("f1_f1db_path", "f1_fastf1_cache", "f1_warehouse", "f1_weights", "f1_shared",
                     "f1_calendar")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        return path.expanduser().absolute() if path else None

    @cached_property
    def calendar_path(self) -> Path:
        """File of weekends from a source since this release; by default `f1.calendar.csv` beside `f1.duckdb`."""
        return self.f1_calendar or self.f1_warehouse.with_suffix(".calendar.csv")

    @cached_property
    def laps_archive_path(self) -> Path | None:
        """Folder of real laps under `F1_SHARED`, which the source f1db lacks; None if it does not exist."""
        folder = self.f1_shared / "data" / "laps" if self.f1_shared else None
        return folder if folder and folder.is_dir() else None

    @cached_property
    def checkpoints_path(self) -> Path:
        """Folder of trained models, beside the warehouse."""
        return self.f1_warehouse.with_name("checkpoints")

    @cached_property
    def pictures_path(self) -> Path:
        """Folder of the pictures on web pages, beside the warehouse."""
        return self.f1_warehouse.with_name("pictures")

    @cached_property
    def tracking_uri(self) -> str | None:
        """URI of the MLflow store; by default `mlflow.db` beside the warehouse. None turns tracking off."""
        uri = self.mlflow_tracking_uri or f"sqlite:///{self.f1_warehouse.with_name('mlflow.db')}"
        return None if uri == "off" else uri


class BadSetting(ValueError):
    """An environment variable has an invalid value."""


def settings() -> Settings:
    """Read the settings from the current environment.

    Raises:
        BadSetting: A value is invalid; the message names the variable, its value and the wanted one.
    """
    try:
        return Settings()
    except ValidationError as problem:
        first = problem.errors()[0]
        name = "_".join(map(str, first["loc"])).upper()
        wanted = first["msg"][0].lower() + first["msg"][1:]
        raise BadSetting(f"{name}={first['input']} is invalid: {wanted}") from None
