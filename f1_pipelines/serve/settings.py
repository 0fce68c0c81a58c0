"""Limits of the web server, from environment variables `F1_SERVE_*` and `.env`."""
from __future__ import annotations

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from f1_pipelines.settings import PROJECT_ROOT, BadSetting


class ServeSettings(BaseSettings):
    """What the server allows. `settings()` says where its data are, and who may write is `api_key`, `F1_API_KEY`."""

    model_config = SettingsConfigDict(env_prefix="F1_SERVE_", env_file=PROJECT_ROOT / ".env", extra="ignore",
                                      env_ignore_empty=True, populate_by_name=True)

    api_key: str | None = Field(None, validation_alias="F1_API_KEY", repr=False,
                                description="What X-API-KEY must say to start jobs; nobody may without one.")
    dagster_url: str = Field("http://127.0.0.1:3000", validation_alias="F1_DAGSTER_URL",
                             description="Dagster's webserver, which starts jobs and is linked to.")
    origins: list[str] = Field([], description="Other web pages that may ask, as https://host[:port]; none.")
    body_kib: int = Field(64, ge=1, description="Largest request or WebSocket message [KiB].")
    sockets: int = Field(128, ge=1, description="WebSocket sessions at once.")
    sessions: int = Field(256, ge=1, description="Sessions of plain HTTP at once.")
    idle_s: float = Field(300.0, gt=0, description="A session that asks nothing for so long ends [s].")
    session_s: float = Field(6 * 3600.0, gt=0, description="No session is longer than this [s].")
    requests_per_s: float = Field(100.0, gt=0, description="Requests of one address, on average [1/s].")
    burst: int = Field(500, ge=1, description="Requests of one address at once.")
    messages_per_s: float = Field(2000.0, gt=0, description="Messages of one WebSocket; quicker ones wait [1/s].")
    races: int = Field(4, ge=1, description="Races of /simulate at once.")
    race_s: float = Field(120.0, gt=0, description="A race of /simulate that takes longer is given up [s].")


def serve_settings() -> ServeSettings:
    """The limits as the environment stands now.

    Raises:
        BadSetting: Names the variable, what it says and what was wanted.
    """
    try:
        return ServeSettings()
    except ValidationError as problem:
        first = problem.errors()[0]
        raise BadSetting(f"F1_SERVE_{'_'.join(map(str, first['loc'])).upper()}={first['input']} can't be used: "
                         f"{first['msg'][0].lower() + first['msg'][1:]}") from None
