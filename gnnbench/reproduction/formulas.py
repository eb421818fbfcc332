"""Numbers that follow from what a paper prints or from its algorithm, without any run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType


def requests(row: float, features: float, aligned: float) -> float:
    """Requests of one float32 row by PyTorch-Direct's address model (its Fig. 5)."""
    from gnnbench.kernels.reference import zero_copy

    return float(zero_copy.requests([int(row)], int(features), bool(aligned)))


def access_ratio(neighbours: float, degree: float, shared: float, memory: float) -> float:
    """FastGL's Eqs. 3 and 4: access time of the naive kernel over the memory-aware one's.

    ``neighbours`` N and ``degree`` d as the paper has them, ``shared`` and ``memory`` bytes/s.
    """
    n, d = neighbours, degree
    naive = (4 * (n - 1) * d + 8 * n * d) / memory
    aware = (4 * (n - 1) * d + 4 * n * (d - 1)) / shared + (4 * n * d + 4 * n) / memory
    return naive / aware


def updates(epochs: float, batches: float, trainers: float) -> float:
    """Updates of a model that ``trainers`` train together: batches are dealt out."""
    return epochs * math.ceil(batches / trainers)


def passes(copies: float) -> float:
    """Passes over host memory for each byte of a row: read, then written and read for a copy."""
    return 1 + 2 * copies


def processors(outstanding: float, threads: float, warp: float) -> float:
    """Multiprocessors whose warps can keep ``outstanding`` reads on their way."""
    return outstanding / (threads / warp)


def table_mib(rows: float, features: float) -> float:
    """MiB of a table of float32 rows."""
    return rows * features * 4 / 2**20


def amdahl(part: float, faster: float) -> float:
    """How many times as fast the whole is, of which ``part`` is ``faster`` times as fast."""
    return 1 / (1 - part + part / faster)


def sampling_part(whole: float, sampling: float) -> float:
    """The part that is ``sampling`` times as fast where the whole is ``whole`` times as fast."""
    return (1 - 1 / whole) / (1 - 1 / sampling)


def host_rate(link: float, copies: float) -> float:
    """What the host's memory must give, in the unit of ``link``, to keep a link busy."""
    return link * passes(copies)


def product(*factors: float) -> float:
    """Of speed-ups that multiply."""
    return math.prod(factors)


def sum_gap(total: float, *parts: float) -> float:
    """How far parts are from adding up to what is printed as their sum."""
    return abs(total - sum(parts))


def updates_ratio(
    epochs: float, trainers: float, other_epochs: float, other_trainers: float, batches: float
) -> float:
    """Updates of a training over those of another, each by its epochs and its trainers."""
    return updates(epochs, batches, trainers) / updates(other_epochs, batches, other_trainers)


def samplers(gpus: float, sample_s: float, train_s: float) -> float:
    """GPUs that sample by GNNLab's formula (its section 5.3), as the suite has it."""
    from gnnbench.distributed.allocation import allocate

    return float(allocate(int(gpus), sample_s, train_s).samplers)


def standby_wakes(remaining: float, trainers: float, train_s: float) -> float:
    """1 where GNNLab's profit of a standby Trainer (its section 5.3) is above 0, else 0."""
    from gnnbench.distributed.allocation import profit

    return float(profit(int(remaining), int(trainers), train_s, train_s) > 0)


FORMULAS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        f.__name__: f
        for f in (
            requests, access_ratio, updates, updates_ratio, passes, host_rate, processors,
            table_mib, standby_wakes, samplers, amdahl, sampling_part, product, sum_gap,
        )
    }
)  # fmt: skip
