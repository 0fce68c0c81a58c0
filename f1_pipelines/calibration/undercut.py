"""Gain from stopping first, in pairs of cars that stop under green within three laps (docs/physics.md#undercut)."""
from __future__ import annotations

import pandas as pd

MOST_GAP_S = 4.0  # before the first stop
MOST_LAPS = 3  # between the two stops


def undercuts(staged: pd.DataFrame, losses: pd.DataFrame) -> pd.DataFrame:
    """One row per pair whose follower stopped first: `weekend`, `laps` until the other stop, `net_s` gained.

    The gain runs from the line before the first stop to the end of the second out-lap. The difference of the two stop
    losses is subtracted, because a slow wheel nut is not tactics.

    Args:
        staged: Staged laps.
        losses: Rows of `stops.stop_losses`.
    """
    green = losses[losses["kind"] == "green"][["weekend", "driver", "lap", "loss_s"]]
    both = green.merge(green, on="weekend", suffixes=("", "_other"))
    both["laps"] = both["lap_other"] - both["lap"]
    both = both[(both["driver"] != both["driver_other"]) & both["laps"].between(1, MOST_LAPS)]
    clock = staged.set_index(["weekend", "driver", "lap"])["session_time_s"]

    def gap_s(lap: pd.Series) -> pd.Series:
        times = [clock.reindex(pd.MultiIndex.from_arrays([both["weekend"], both[name], lap])).to_numpy()
                 for name in ("driver", "driver_other")]
        return times[0] - times[1]

    before, after = gap_s(both["lap"] - 1), gap_s(both["lap_other"] + 1)
    net = before - after - (both["loss_s_other"] - both["loss_s"])
    return both.assign(net_s=net)[(before > 0) & (before < MOST_GAP_S) & net.notna()][["weekend", "laps", "net_s"]]
