"""Numbers that follow from a paper's printed numbers or from its algorithm, without a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType


def requests(row: float, features: float, aligned: float) -> float:
    """Requests for one float32 row by the address model of PyTorch-Direct (its Fig. 5)."""
    from gnnbench.kernels.reference import zero_copy

    return float(zero_copy.requests([int(row)], int(features), bool(aligned)))


def access_ratio(neighbours: float, degree: float, shared: float, memory: float) -> float:
    """Access time of the naive kernel / that of the memory-aware one (FastGL, Eqs. 3 and 4).

    ``neighbours`` is the paper's N, ``degree`` its d; ``shared`` and ``memory`` are rates in B/s.
    """
    n, d = neighbours, degree
    naive = (4 * (n - 1) * d + 8 * n * d) / memory
    aware = (4 * (n - 1) * d + 4 * n * (d - 1)) / shared + (4 * n * d + 4 * n) / memory
    return naive / aware


def updates(epochs: float, batches: float, trainers: float) -> float:
    """Model updates of data-parallel training with ``trainers`` ranks."""
    return epochs * math.ceil(batches / trainers)


def passes(copies: float) -> float:
    """Passes over host memory for a byte of a row: one read, and write plus read for each copy."""
    return 1 + 2 * copies


def processors(outstanding: float, threads: float, warp: float) -> float:
    """Multiprocessors needed to keep ``outstanding`` reads in flight, one for each warp."""
    return outstanding / (threads / warp)


def table_mib(rows: float, features: float) -> float:
    """MiB of a table of float32 rows."""
    return rows * features * 4 / 2**20


def amdahl(part: float, speedup: float) -> float:
    """Amdahl's law: speed-up of the whole if ``part`` of its time has a ``speedup``."""
    return 1 / (1 - part + part / speedup)


def sampling_part(whole: float, sampling: float) -> float:
    """Share of sampling in the time, from its speed-up and that of the whole (Amdahl's law)."""
    return (1 - 1 / whole) / (1 - 1 / sampling)


def host_rate(link: float, copies: float) -> float:
    """Rate of host memory that saturates a link, in the unit of ``link``."""
    return link * passes(copies)


def product(*factors: float) -> float:
    """Product of speed-ups."""
    return math.prod(factors)


def topology_share(
    nodes: float, edges: float, features: float, feature_bytes: float, id_bytes: float
) -> float:
    """Share of the topology (CSR) in the bytes of a graph's topology and features."""
    topology = (nodes + 1 + edges) * id_bytes
    return topology / (topology + nodes * features * feature_bytes)


def sum_gap(total: float, *parts: float) -> float:
    """Difference between a printed total and the sum of its parts."""
    return abs(total - sum(parts))


def updates_ratio(
    epochs: float, trainers: float, other_epochs: float, other_trainers: float, batches: float
) -> float:
    """Ratio of the model updates of two trainings with the same number of batches."""
    return updates(epochs, batches, trainers) / updates(other_epochs, batches, other_trainers)


def samplers(gpus: float, sample_s: float, train_s: float) -> float:
    """Number of sampling GPUs by GNNLab's formula (its section 5.3), as implemented here."""
    from gnnbench.distributed.allocation import allocate

    return float(allocate(int(gpus), sample_s, train_s).samplers)


def standby_wakes(remaining: float, trainers: float, train_s: float) -> float:
    """1 if GNNLab's profit of a standby trainer (its section 5.3) is positive, else 0."""
    from gnnbench.distributed.allocation import profit

    return float(profit(int(remaining), int(trainers), train_s, train_s) > 0)


Formula = (
    Callable[[float], float]
    | Callable[[float, float], float]
    | Callable[[float, float, float], float]
    | Callable[[float, float, float, float], float]
    | Callable[[float, float, float, float, float], float]
)
_ALL: tuple[Formula, ...] = (
    requests, access_ratio, updates, updates_ratio, passes, host_rate, processors, table_mib,
    standby_wakes, samplers, amdahl, sampling_part, product, sum_gap,
    topology_share,
)  # fmt: skip
FORMULAS: Mapping[str, Formula] = MappingProxyType({f.__name__: f for f in _ALL})
