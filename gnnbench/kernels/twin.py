"""Native generators of synthetic twins; all integers, the same bits on every device and for any
number of threads.

On a GPU, generation needs 16 bytes per stored edge and about 70 per node in addition to the CSC.

Parameters are those of ``native/include/gnnbench/twin.h``; ``gnnbench.datasets.generators.twin``
derives them from a recipe. Shares are integers out of 65536.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.kernels.library import native_operators


@dataclass(frozen=True)
class TwinSpec:
    """A scaled recipe in the generator's own integers.

    ``community_ptr`` int64 ``[communities + 1]``: ranges of positions. ``region_ptr`` int64
    ``[regions + 1]``: ranges of communities. ``in_law`` and ``out_law`` int64 ``[34]``: weight at
    rank fraction ``2 ** -j``; ranks from ``in_positive`` (``out_positive``) on weigh nothing.
    Inside a community of s nodes a weight counts up to ``limit * s / 65536``, elsewhere with
    ``boost / 65536`` of the rest on top. ``level_edges`` int64 ``[3]``: edges wanted inside the
    community, inside the region, elsewhere; half of ``num_edges`` in all where the graph is
    symmetric.
    """

    key: int
    num_nodes: int
    num_edges: int
    symmetric: bool
    community_ptr: Tensor
    region_ptr: Tensor
    in_law: Tensor
    out_law: Tensor
    in_positive: int
    out_positive: int
    tied: int
    in_limit: int
    out_limit: int
    boost: int
    level_edges: Tensor
    wide_ids: bool
    num_classes: int
    label_noise: int
    home: int
    locality: int
    degree_bias: int
    splits: tuple[int, int, int]
    signal: int
    feature_dim: int


Device = torch.device | str


def graph(spec: TwinSpec, device: Device = "cpu") -> tuple[Tensor, Tensor]:
    """CSC of a twin: indptr int64 ``[num_nodes + 1]`` and indices int32 or int64 ``[num_edges]``.

    Rows ascend and have neither duplicates nor self-loops. Made on ``device`` and left there.
    Raises ``UsageError`` for a graph that cannot be.
    """
    with native_operators() as ops:
        return ops.twin_graph(
            spec.key,
            spec.num_nodes,
            spec.num_edges,
            spec.symmetric,
            spec.community_ptr.to(device),
            spec.region_ptr.to(device),
            spec.in_law.to(device),
            spec.out_law.to(device),
            spec.in_positive,
            spec.out_positive,
            spec.tied,
            spec.in_limit,
            spec.out_limit,
            spec.boost,
            spec.level_edges.to(device),
            spec.wide_ids,
        )


def labels(spec: TwinSpec, device: Device = "cpu") -> Tensor:
    """Labels int64 ``[num_nodes]`` in ``[0, num_classes)``."""
    with native_operators() as ops:
        return ops.twin_labels(
            spec.key,
            spec.num_nodes,
            spec.community_ptr.to(device),
            spec.num_classes,
            spec.label_noise,
        )


def splits(spec: TwinSpec, device: Device = "cpu") -> tuple[Tensor, Tensor, Tensor]:
    """Training, validation and test ids, int64, ascending, disjoint, of the sizes asked for."""
    with native_operators() as ops:
        return ops.twin_splits(
            spec.key,
            spec.num_nodes,
            spec.community_ptr.to(device),
            spec.home,
            spec.locality,
            spec.degree_bias,
            *spec.splits,
        )


def features(spec: TwinSpec, first: int, rows: int, device: Device = "cpu") -> Tensor:
    """Rows ``first`` to ``first + rows`` of the features, float32 ``[rows, feature_dim]``.

    Every value is a multiple of 1/256: noise, uniform over the odd ones in (-1, 1), plus or minus
    the signal by class and column.
    """
    out = torch.empty((rows, spec.feature_dim), dtype=torch.float32, device=device)
    fill_features(spec, first, out)
    return out


def fill_features(spec: TwinSpec, first: int, out: Tensor) -> None:
    """:func:`features` into ``out`` float32 ``[rows, feature_dim]``, contiguous."""
    with native_operators() as ops:
        ops.twin_features(
            spec.key,
            spec.num_nodes,
            spec.community_ptr.to(out.device),
            spec.num_classes,
            spec.signal,
            first,
            out,
        )
