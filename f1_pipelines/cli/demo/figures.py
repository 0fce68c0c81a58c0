"""The key figure of each asset in the demo, from its materialization metadata."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Metadata keys with the number of written rows: of a range, of one weekend, of an unpartitioned asset.
_ROWS = ("rows_written_in_range", "dagster/partition_row_count", "dagster/row_count")
_MAX_LENGTH = 60  # characters of a text value

# Asset: parts of its figure, each a metadata key and a format; `key/inner` reads from a dictionary. Parts without a
# value are left out. An asset without an entry here, or with no value, shows its number of rows, if known.
FIGURES: dict[str, tuple[tuple[str, str], ...]] = {
    "race_calendar": (("rows_written_in_range", "{:,} weekends"),),
    "practice_results": (("rows_by_table/race.practice", "{:,} best laps in practice"),),
    "qualifying_results": (("rows_by_table/race.qualifying", "{:,} results in qualifying"),),
    "race_results": (("rows_by_table/race.results", "{:,} results in races"),),
    "race_laps": (("rows_by_table/race.laps", "{:,} laps"),),
    "circuit_fits": (("circuits_fitted", "{:,} circuits fitted"), ("races", "from {:,} races")),
    "listnet_temperature": (("temperature", "temperature {:.2f}"), ("spearman", "Spearman {:.3f}"),
                            ("trials", "{:,} trials")),
    "pretrained_ranker": (("races", "trained on {:,} races"), ("trained_through", "through {}")),
    "ewc_ranker": (("races_learnt", "{:,} more races learned"),
                   ("season_spearman_before", "Spearman {:.3f} before each"),
                   ("season_spearman_grid", "grid {:.3f}")),
    "promoted_ranker": (("promotion", "{}"), ("own_spearman", "Spearman {:.3f}"), ("own_grid_spearman", "grid {:.3f}")),
    "race_predictions": (("rows_written_in_range", "{:,} rows"), ("weekends", "{:,} weekends")),
    "ranking_evaluation": (("champion_spearman rolling_2019_2025", "Spearman of champion {:.3f}"),
                           ("champion_spearman prequential_2026", "in 2026 {:.3f}")),
    "simulator_validation": (("races", "{:,} races driven again"),),
    "sft_dataset": (("dagster/row_count", "{:,} turns of the expert"), ("races", "{:,} races")),
    "scripted_races": (("dagster/row_count", "{:,} races driven"),),
    "sft_engineer": (("n_turns", "{:,} turns learned"), ("last_loss", "loss {:.3f}")),
    "grpo_engineer": (("last_selection_score", "score {:.3f} on validation races"),),
    "strategy_evaluation": (("score_untrained", "score untrained {:.3f}"), ("score_sft", "SFT {:.3f}"),
                            ("score_grpo", "GRPO {:.3f}"), ("score_expert", "expert {:.3f}")),
    "promoted_engineers": (("promoted", "{:,} promoted"),),
    "race_story": (("family", "{}"), ("gain", "{:+.3f} from training")),
    "training_evidence": (("races_drawn", "{:,} races drawn"), ("dagster/row_count", "{:,} points of the curves")),
}


def figure(asset: str, metadata: Mapping[str, Any]) -> str:
    """Format the key figure of an asset from its metadata (plain values by key); empty if it has none."""
    parts = [part for key, form in FIGURES.get(asset, ()) if (part := _formatted(metadata, key, form))]
    if not parts:
        parts = [part for key in _ROWS if (part := _formatted(metadata, key, "{:,} rows"))][:1]
    return ", ".join(parts)


def _formatted(metadata: Mapping[str, Any], key: str, form: str) -> str:
    value = metadata.get(key)
    if value is None and "/" in key:
        outer, inner = key.split("/", 1)
        value = nested.get(inner) if isinstance(nested := metadata.get(outer), Mapping) else None
    if value is None:
        return ""
    if isinstance(value, str) and len(value) > _MAX_LENGTH:
        value = value[:_MAX_LENGTH - 3] + "..."
    try:
        return form.format(value)
    except (ValueError, TypeError):  # a value of an unexpected type must not stop the demo
        return ""
