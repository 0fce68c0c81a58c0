"""What the prediction API is asked and replies. Missing values are unknown, never zero."""
from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Stage = Literal["entry", "practice", "qualifying", "grid"]
Key = Annotated[str, Field(min_length=1, max_length=60, examples=["2026-monaco"])]


class ErrorDetail(BaseModel):
    """Why there is no answer, in one sentence."""

    detail: str


class PredictionRequest(BaseModel):
    """Which weekend: its key or `next`, or season and round."""

    model_config = ConfigDict(extra="forbid")

    weekend: Key | None = None
    season: int | None = Field(None, ge=1950, le=2100)
    round: int | None = Field(None, ge=1, le=40)
    stage: Stage | None = Field(None, description="By what was known then; the last stage reached without.")
    model: Key | None = Field(None, description="A checkpoint or `promoted`; without, the forecast that stood.")

    @model_validator(mode="after")
    def _one_of_both(self) -> PredictionRequest:
        if (self.weekend is None) == (self.season is None or self.round is None):
            raise ValueError("wanted either weekend, like 2026-monaco, or season and round")
        return self


class RankedCar(BaseModel):
    """One car in a predicted order. Chances are missing for a model without them, outcomes until the result."""

    predicted_position: int
    driver: str
    name: str
    constructor: str | None
    score: float
    p_win: float | None
    p_podium: float | None
    p_points: float | None
    expected_position: float | None
    actual_position: int | None
    exact_match: bool | None


class Prediction(BaseModel):
    """A predicted order, who made it when from what, and what must be said beside it."""

    weekend: str
    event: str
    circuit: str
    race_start: datetime
    stage: Stage
    model: str = Field(description="Checkpoint id, its version")
    kind: str | None
    trained_through: str | None
    made_at: datetime
    stored: bool = Field(description="False: ranked for this question")
    spearman: float | None = Field(description="Rank correlation with the result")
    exact_matches: int | None
    notices: list[str]
    ranking: list[RankedCar]


class WeekendRow(BaseModel):
    """A weekend and what is stored of it."""

    weekend: str
    season: int
    round: int | None
    event: str
    circuit: str
    state: str
    race_start: datetime
    source: str | None = Field(description="Of its result or qualifying; `sample` is made up")
    result_status: str | None
    stages: list[str] = Field(description="At which a prediction is stored")


class ModelRow(BaseModel):
    """A trained ranker."""

    checkpoint: str
    kind: str
    model: str
    trained_through: str
    promoted: bool
    created_at: datetime


class ComparedOrder(BaseModel):
    """One of two orders that are compared."""

    name: str
    stage: str | None
    trained_through: str | None
    look_back: bool = Field(description="The model has learnt from this race")
    spearman: float | None = Field(description="Rank correlation with the result, once known")


class ComparedCar(BaseModel):
    """A car's place in either order, and in the result once known."""

    driver: str
    name: str
    constructor: str | None
    a: int | None
    b: int | None
    actual_position: int | None


class Comparison(BaseModel):
    """Two orders of a race, car by car."""

    weekend: str
    event: str
    a: ComparedOrder
    b: ComparedOrder
    spearman_between: float | None
    notices: list[str]
    cars: list[ComparedCar]
