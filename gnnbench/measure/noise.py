"""What this machine calls a difference between equals: A/A pairs, their floor, where it is kept.

Two workers of one system are measured as a comparison measures two systems. Every ratio should be
1; how far from 1 the medians lie, and how often an interval leaves 1 out, is the machine's noise.
It depends on the number of rounds: the percentile interval of three rounds is their range, and all
three lie on one side of the truth in a quarter of the cases.

A run's own reference could be split into halves instead, but both halves share one life of a
worker, and with it one layout of memory: they see less noise than two workers do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gnnbench.data.paths import data_root
from gnnbench.errors import DataError
from gnnbench.measure.stats import median_interval, verdict

ROUNDS = (3, 5, 10, 20, 40)
FLOOR_QUANTILE = 0.95
POWER = 0.8


@dataclass(frozen=True)
class Level:
    """Noise of comparisons with ``rounds`` rounds, from ``windows`` stretches of A/A rounds.

    ``false_call_rate``: share whose interval alone excludes 1. ``floor``: 95 % of the medians
    differ from 1 by at most this (relative, the same seen from either side). ``false_call_rate_
    beyond_floor``: share still called when the interval must leave the floor behind as well.
    ``detectable``: smallest relative difference that would then be called in 80 % of the windows.
    ``spread``: standard deviation of the medians.
    """

    rounds: int
    windows: int
    false_call_rate: float
    floor: float
    false_call_rate_beyond_floor: float
    detectable: float
    spread: float


def assess(pairs: Sequence[Sequence[float]]) -> list[Level]:
    """Noise by number of rounds; ``pairs`` holds each A/A pair's ratios in order of time.

    A pair is cut into consecutive windows, so that one pair serves several short comparisons.
    """
    longest = min((len(p) for p in pairs), default=0)
    counts = sorted({r for r in ROUNDS if r <= longest} | {longest} - {0, 1, 2})
    return [_level(pairs, count) for count in counts]


def _level(pairs: Sequence[Sequence[float]], rounds: int) -> Level:
    windows = [p[i : i + rounds] for p in pairs for i in range(0, len(p) - rounds + 1, rounds)]
    found = [median_interval(w, seed) for seed, w in enumerate(windows)]
    medians = np.array([e.median for e in found])
    floor = float(_quantile(1 - np.minimum(medians, 1 / medians), FLOOR_QUANTILE))
    needed = [1 - (1 - floor) / max(e.high, 1e-9) for e in found]
    needed += [1 - e.low * (1 - floor) for e in found]

    def called(margin: float) -> float:
        return sum(verdict(e, margin) != "tie" for e in found) / len(found)

    return Level(
        rounds, len(windows), called(0.0), floor, called(floor), float(_quantile(needed, POWER)),
        float(medians.std()),
    )  # fmt: skip


def _quantile(values: Any, share: float) -> Any:
    return np.quantile(np.asarray(values), share, method="higher")


@dataclass(frozen=True)
class Calibration:
    """What was measured on one machine for one device; ``levels`` by ascending rounds."""

    machine_id: str
    device: str
    system: str
    dataset: str
    threads: int
    pairs: int
    epoch_wall_s: float
    at: str
    levels: tuple[Level, ...]

    def floor(self, rounds: int) -> float:
        """Noise floor of a comparison of ``rounds`` rounds: of the next smaller level."""
        below = [level for level in self.levels if level.rounds <= rounds]
        return (below[-1] if below else self.levels[0]).floor

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Calibration:
        """Inverse of ``to_json``."""
        return cls(**{**values, "levels": tuple(Level(**v) for v in values["levels"])})


def store_path() -> Path:
    """The file beside the prepared graphs."""
    return data_root() / "calibration.json"


def load(machine_id: str) -> dict[str, Calibration]:
    """Calibrations of a machine by device. Raises ``DataError`` for a damaged file."""
    path = store_path()
    try:
        text = path.read_text()
    except OSError:  # a store that cannot be read is told of where it is needed
        return {}
    try:
        stored = json.loads(text).get(machine_id, {})
        return {device: Calibration.from_json(v) for device, v in stored.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"'{path}' is damaged ({error}); remove it and calibrate again") from None


def store(found: Calibration) -> Path:
    """Keep a calibration, in place of the one of the same machine and device."""
    from gnnbench.files import ensure_folder, write_json

    path = store_path()
    ensure_folder(path.parent)
    everything = json.loads(path.read_text()) if path.exists() else {}
    everything.setdefault(found.machine_id, {})[found.device] = found.to_json()
    write_json(path, everything)
    return path
