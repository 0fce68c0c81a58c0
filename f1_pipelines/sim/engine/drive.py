"""How a car can be driven for a lap, and what that costs.

A drive is one small integer per car. Mode, tyre temperature management and DRS permission last until changed; attack
and defend last one lap. The engine looks the effects up in one table. Their sizes are assumptions unless stated: no
timing data tells a driver's mode.
"""
from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

import numpy as np

PUSH, RACE, CONSERVE, FUEL_SAVE, TYRE_SAVE, DEFEND = range(6)
MODES = ("push", "race", "conserve", "fuel_save", "tyre_save", "defend")
TEMP_NORMAL, TEMP_WARM, TEMP_COOL = range(3)
TEMPS = ("normal", "warm", "cool")

TEMP_BIT, DRS_BIT, ATTACK_BIT, DEFEND_BIT = 8, 32, 64, 128
LASTING = ATTACK_BIT - 1  # the bits that last from lap to lap
DEFAULT_DRIVE = RACE


@dataclass(frozen=True)
class DriveEffect:
    """Effects of a drive on a lap, relative to mode race without extras."""

    pace_s: float = 0.0  # s/lap, + is slower
    wear: float = 1.0  # x the lap's wear
    fuel: float = 1.0  # x the lap's fuel
    temp_c: float = 0.0  # shift of the temperature that the tyres settle at, C
    needed_s: float = 0.0  # s/lap of extra advantage that this car needs to pass
    defence_s: float = 0.0  # s/lap of extra advantage that a car behind needs to pass this one
    accident: float = 1.0  # x the hazard of an accident

    def __add__(self, other: DriveEffect) -> DriveEffect:
        """Both at once: seconds and degrees add, factors multiply, and of two defences the stronger counts."""
        return DriveEffect(self.pace_s + other.pace_s, self.wear * other.wear, self.fuel * other.fuel,
                           self.temp_c + other.temp_c, self.needed_s + other.needed_s,
                           max(self.defence_s, other.defence_s), self.accident * other.accident)


MODE_EFFECTS = {
    PUSH: DriveEffect(pace_s=-0.35, wear=1.45, fuel=1.05, temp_c=7.0, accident=1.6),
    RACE: DriveEffect(),
    CONSERVE: DriveEffect(pace_s=0.40, wear=0.78, fuel=0.95, temp_c=-4.0, accident=0.8),
    FUEL_SAVE: DriveEffect(pace_s=0.45, wear=0.92, fuel=0.88, temp_c=-5.0, accident=0.9),
    TYRE_SAVE: DriveEffect(pace_s=0.50, wear=0.60, fuel=0.97, temp_c=-6.0, accident=0.8),
    DEFEND: DriveEffect(pace_s=0.19, wear=1.08, fuel=1.01, temp_c=2.0, defence_s=0.45, accident=1.2),
}  # the defender's .19 s is measured: docs/physics.md#overtaking
TEMP_EFFECTS = {
    TEMP_NORMAL: DriveEffect(),
    TEMP_WARM: DriveEffect(pace_s=0.06, wear=1.05, fuel=1.01, temp_c=10.0),
    TEMP_COOL: DriveEffect(pace_s=0.14, wear=0.97, temp_c=-10.0),
}
NO_DRS = DriveEffect(needed_s=0.45, accident=0.85)
ATTACK = DriveEffect(needed_s=-0.35, wear=1.15, fuel=1.03, temp_c=5.0, accident=2.0)
DEFEND_NOW = DriveEffect(pace_s=0.25, wear=1.10, temp_c=3.0, defence_s=0.60, accident=1.3)


def drive_code(mode: np.ndarray | int = RACE, temp: np.ndarray | int = TEMP_NORMAL, drs: np.ndarray | bool = True,
               attack: np.ndarray | bool = False, defend: np.ndarray | bool = False) -> np.ndarray:
    """Encode the drive of each car: arrays of one shape or scalars -> int64."""
    flags = np.asarray(attack, dtype=np.int64) * ATTACK_BIT + np.asarray(defend, dtype=np.int64) * DEFEND_BIT
    return np.asarray(mode) + np.asarray(temp) * TEMP_BIT + (1 - np.asarray(drs, dtype=np.int64)) * DRS_BIT + flags


def drive_effect(code: int) -> DriveEffect:
    """Decode a drive into its effect."""
    effect = MODE_EFFECTS.get(code % TEMP_BIT, DriveEffect()) + TEMP_EFFECTS.get(code // TEMP_BIT % 4, DriveEffect())
    for bit, extra in ((DRS_BIT, NO_DRS), (ATTACK_BIT, ATTACK), (DEFEND_BIT, DEFEND_NOW)):
        if code & bit:
            effect = effect + extra
    return effect


DRIVE = np.dtype([(f.name, "f8") for f in fields(DriveEffect)])  # `DriveEffect` as a record
DRIVES = np.array([astuple(drive_effect(code)) for code in range(256)], DRIVE)  # by drive code


class Calls(NamedTuple):
    """The calls of all pit walls for the coming lap: (E, N) arrays by car column; None stands for no call at all.

    `pit`: compound to change to at the end of the lap, -1 to stay out. `drive`: see `drive_code()`; None keeps every
    car's lasting drive. `hold_gap`: column of the car to be no quicker than, -1 for none; the pace in hand saves tyres
    and fuel. `let_by`: column of a car right behind to let by, -1 for none.
    """

    pit: np.ndarray | None = None
    drive: np.ndarray | None = None
    hold_gap: np.ndarray | None = None
    let_by: np.ndarray | None = None


NO_CALLS = Calls()
