"""Settings of the web server, from environment variables `F1_SERVE_*` and `.env`."""
from __future__ import annotations

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from f1_pipelines.settings import PROJECT_ROOT, BadSetting


class ServeSettings(BaseSettings):
    """Limits, API key and Dagster address of the web server. Paths of its data are in `settings()`."""

    model_config = SettingsConfigDict(env_prefix="F1_SERVE_", env_file=PROJECT_ROOT / ".env", extra="ignore",
                                      env_ignore_empty=True, populate_by_name=True)

    api_key: str | None = Field(None, validation_alias="F1_API_KEY", repr=False,
                                description="Key that X-API-KEY must contain to start runs; if unset, nobody can.")
    dagster_url: str = Field("http://127.0.0.1:3000", validation_alias="F1_DAGSTER_URL",
                             description="Address of Dagster's webserver, which starts the runs.")
    origins: list[str] = Field([], description="Other origins whose pages may send requests, as https://host[:port].")
    body_kib: int = Field(64, ge=1, description="Largest request or WebSocket message [KiB].")
    sockets: int = Field(128, ge=1, description="Maximum number of WebSocket sessions at once.")
    sessions: int = Field(256, ge=1, description="Maximum number of plain HTTP sessions at once.")
    idle_s: float = Field(300.0, gt=0, description="A session without requests ends after this time [s].")
    session_s: float = Field(6 * 3600.0, gt=0, description="Maximum duration of a session [s].")
    requests_per_s: float = Field(100.0, gt=0, description="Average request rate allowed per address [1/s].")
    burst: int = Field(500, ge=1, description="Requests that an address may send at once.")
    messages_per_s: float = Field(2000.0, gt=0, description="Message rate per WebSocket; faster messages wait [1/s].")
    races: int = Field(4, ge=1, description="Maximum number of /simulate races at once.")
    race_s: float = Field(120.0, gt=0, description="A /simulate race that takes longer is stopped [s].")


def serve_settings() -> ServeSettings:
    """Read the settings from the environment.

    Raises:
        BadSetting: A variable has an invalid value; the message names the variable, its value and what is valid.
    """
    try:
        return ServeSettings()
    except ValidationError as problem:
        first = problem.errors()[0]
        raise BadSetting(f"F1_SERVE_{'_'.join(map(str, first['loc'])).upper()}={first['input']} is invalid: "
                         f"{first['msg'][0].lower() + first['msg'][1:]}") from None
