"""Requests and replies of the prediction API. A missing value is null, never 0."""
from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Stage = Literal["entry", "practice", "qualifying", "grid"]
Key = Annotated[str, Field(min_length=1, max_length=60, examples=["2026-monaco"])]


class ErrorDetail(BaseModel):
    """The reason for an error, in one sentence."""

    detail: str


class PredictionRequest(BaseModel):
    """A weekend, by its key (or `next`) or by season and round."""

    model_config = ConfigDict(extra="forbid")

    weekend: Key | None = None
    season: int | None = Field(None, ge=1950, le=2100)
    round: int | None = Field(None, ge=1, le=40)
    stage: Stage | None = Field(None, description="Use only data known at this stage; default: the latest.")
    model: Key | None = Field(None, description="A checkpoint id or `promoted`; default: the last forecast before "
                                                "the race.")

    @model_validator(mode="after")
    def _weekend_or_round(self) -> PredictionRequest:
        if (self.weekend is None) == (self.season is None or self.round is None):
            raise ValueError("give either weekend, like 2026-monaco, or season and round")
        return self


class RankedCar(BaseModel):
    """A car in a forecast. Probabilities are null for a model without them; outcomes are null until the result."""

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
    """A forecast of the finishing order, the model and data it is based on, and warnings."""

    weekend: str
    event: str
    circuit: str
    race_start: datetime
    stage: Stage
    model: str = Field(description="Checkpoint id")
    kind: str | None
    trained_through: str | None
    made_at: datetime
    stored: bool = Field(description="False: computed for this request")
    spearman: float | None = Field(description="Rank correlation with the result")
    exact_matches: int | None
    notices: list[str]
    ranking: list[RankedCar]


class WeekendRow(BaseModel):
    """A weekend and its stored data."""

    weekend: str
    season: int
    round: int | None
    event: str
    circuit: str
    state: str
    race_start: datetime
    source: str | None = Field(description="Source of its result or qualifying; `sample` is simulated")
    result_status: str | None
    stages: list[str] = Field(description="Stages with a stored forecast")


class ModelRow(BaseModel):
    """A trained ranker."""

    checkpoint: str
    kind: str
    model: str
    trained_through: str
    promoted: bool
    created_at: datetime


class ComparedOrder(BaseModel):
    """One of the two compared orders."""

    name: str
    stage: str | None
    trained_through: str | None
    look_back: bool = Field(description="Whether the model was trained on this race")
    spearman: float | None = Field(description="Rank correlation with the result; null until the result")


class ComparedCar(BaseModel):
    """A car's position in both orders and in the result, if known."""

    driver: str
    name: str
    constructor: str | None
    a: int | None
    b: int | None
    actual_position: int | None


class Comparison(BaseModel):
    """Two finishing orders of a race, car by car."""

    weekend: str
    event: str
    a: ComparedOrder
    b: ComparedOrder
    spearman_between: float | None
    notices: list[str]
    cars: list[ComparedCar]
