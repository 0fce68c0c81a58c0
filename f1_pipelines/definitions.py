"""Dagster definitions: assets, checks, jobs, sensors and resources."""
import dagster as dg

from f1_pipelines.assets import (
    continual_learning,
    engineer,
    engineer_checks,
    engineer_promotion,
    features,
    jobs,
    predictions,
    race_data,
    ranker_promotion,
    ranking,
    ranking_evaluation,
    sensors,
    simulation,
    strategy_evaluation,
    training_report,
)
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.tracking import Tracking
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.runs.host import recorded_in_process_executor
from f1_pipelines.settings import settings

_settings = settings()

defs = dg.Definitions(
    assets=dg.load_assets_from_modules([
        race_data, features, ranking, continual_learning, ranker_promotion, predictions, ranking_evaluation,
        simulation, engineer, strategy_evaluation, engineer_promotion, training_report]),
    asset_checks=[
        *race_data.race_data_checks, *features.feature_checks, *ranking.ranking_checks,
        *continual_learning.learning_checks, *ranker_promotion.promotion_checks, *predictions.prediction_checks,
        *ranking_evaluation.evaluation_checks, *simulation.simulation_checks, *engineer_checks.engineer_checks,
        *engineer_promotion.engineer_promotion_checks],
    jobs=[jobs.pre_race, jobs.post_race, jobs.next_prediction],
    sensors=[sensors.weekend_sensor],
    resources={
        "warehouse": Warehouse(path=str(_settings.f1_warehouse), wait_s=_settings.f1_write_wait_s,
                               generations=_settings.f1_generations),
        "race_data": RaceData(
            source=_settings.f1_source, f1db_path=str(_settings.f1_f1db_path) if _settings.f1_f1db_path else None,
            calendar=str(_settings.calendar_path),
            laps_archive=str(_settings.laps_archive_path) if _settings.laps_archive_path else None,
            f1db_url=_settings.f1_f1db_url, f1db_folder=str(_settings.f1_warehouse.with_name("f1db")),
            fastf1_cache=str(_settings.f1_fastf1_cache)),
        "clock": Clock(),
        "compute": Compute(),
        "checkpoints": Checkpoints(path=str(_settings.checkpoints_path)),
        "engineers": Engineers(
            profile=_settings.f1_profile, path=str(_settings.checkpoints_path / "engineers"),
            pictures=str(_settings.pictures_path), weights=str(_settings.f1_weights) if _settings.f1_weights else ""),
        "tracking": Tracking(mlflow_tracking_uri=_settings.tracking_uri, folder=str(_settings.f1_warehouse.parent)),
    },
    # In one process: separate step processes would import Dagster again, 2-3 s per step.
    executor=recorded_in_process_executor,
)
