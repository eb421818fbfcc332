"""Pick specifications: the name of a pick function and its parameters.

The pick functions and their distributions are defined in ``native/include/gnnbench/pick.h`` and
``thinning.h``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.kernels.library import native_operators

# Without replacement min(fanout, degree) edges; with it fanout of them from any row that is not
# empty (weighted: not without weight); random_walk: the nodes visited most, at most fanout.
WITHOUT_REPLACEMENT = ("reservoir", "floyd", "fisher_yates", "reservoir_thinned")
WEIGHTED = ("weighted_alias", "weighted_prefix")
PICKS = (*WITHOUT_REPLACEMENT, "with_replacement", *WEIGHTED, "random_walk")


def all_fault(pick: str) -> str:
    """Why a pick cannot take all neighbours (fanout -1), or ""; others' picks are asked nothing."""
    if pick not in PICKS or pick in WITHOUT_REPLACEMENT:
        return ""
    return (
        f"pick '{pick}' cannot take all neighbours (fanout -1), each of them once; choose"
        f" {' or '.join(WITHOUT_REPLACEMENT)}, or a fanout of at least 1"
    )


@dataclass(frozen=True)
class PickSpec:
    """A pick function with its tables or its walk.

    ``name``    one of ``PICKS``
    ``tables``  of the weighted picks, one entry per edge: ``weighted_alias`` (threshold, alias),
                int32 with the bits of uint32; ``weighted_prefix`` (prefix,), int64
    ``walk``    of ``random_walk``: (walks, length, restart probability * 2^32)

    The tables belong on the device that samples, or in locked memory where the graph is there too.
    """

    name: str
    tables: tuple[Tensor, ...] = ()
    walk: tuple[int, ...] = ()

    @classmethod
    def of(cls, pick: str | PickSpec) -> PickSpec:
        """A pick that needs nothing else, by its name; a ``PickSpec`` is given back.

        Raises ``UsageError`` for another name, or one of a pick that needs weights or walks.
        """
        if isinstance(pick, PickSpec):
            return pick
        if pick not in PICKS:
            raise UsageError(f"pick must be one of {', '.join(PICKS)}, not '{pick}'")
        if pick in WEIGHTED:
            raise UsageError(f"pick '{pick}' needs weights; make it with PickSpec.weighted")
        if pick == "random_walk":
            raise UsageError(f"pick '{pick}' needs walks; make it with PickSpec.random_walk")
        return cls(pick)

    @classmethod
    def weighted(cls, name: str, graph_indptr: Tensor, weights: Tensor) -> PickSpec:
        """Draws with replacement, a neighbour's probability proportional to its edge's weight.

        ``name`` is ``"weighted_alias"`` (Walker 1977; tables after Vose 1991) or
        ``"weighted_prefix"`` (inversion of the row's cumulative sums). ``graph_indptr`` int64
        ``[num_nodes + 1]`` and ``weights`` float32 or float64 ``[num_edges]``, both on the CPU;
        the tables come out there. Within a row weights count as multiples of 2^-31 of its largest,
        at least one; a weight of zero is never drawn, a row without any other has no edges.

        Raises ``UsageError`` for another name, weights that are NaN, infinite or negative or do not
        match the graph; ``DataError`` where the offsets are broken.
        """
        if name not in WEIGHTED:
            raise UsageError(f"pick must be one of {', '.join(WEIGHTED)}, not '{name}'")
        for what, tensor in (("graph_indptr", graph_indptr), ("weights", weights)):
            if tensor.device.type != "cpu":
                raise UsageError(f"{what} must be on the CPU, where the tables are made")
        with native_operators() as ops:
            kind = name.removeprefix("weighted_")
            tables = ops.weight_tables(graph_indptr, weights, kind)
        return cls(name, tuple(tables))

    @classmethod
    def random_walk(cls, walks: int, length: int, restart_probability: float) -> PickSpec:
        """The nodes that short random walks visit most (PinSAGE, Ying et al., KDD'18, section 3.1).

        ``walks`` walks of ``length`` steps start at the destination; before each step but the first
        a walk goes back there with ``restart_probability``, in [0, 1). The fanout's most visited
        nodes become the neighbours, ties going to the smaller id, weighted by their visits.
        Raises ``UsageError``, where walks times length is more than 4096 as well.
        """
        if not 0 <= restart_probability < 1:
            raise UsageError(
                f"restart_probability must be at least 0 and below 1, it is {restart_probability}"
            )
        for what, value in (("walks", walks), ("walk_length", length)):
            if value < 1:
                raise UsageError(f"{what} must be at least 1, it is {value}")
        if walks * length > 4096:
            raise UsageError(
                f"walks times walk_length must be at most 4096, it is {walks} times {length}"
            )
        return cls("random_walk", walk=(walks, length, int(restart_probability * 2**32)))

    @property
    def gives_weights(self) -> bool:
        """Whether blocks carry weights (visits) and, in their place, no positions."""
        return self.name == "random_walk"

    def to(self, device: torch.device | str) -> PickSpec:
        """The same pick with its tables on a device."""
        return PickSpec(self.name, tuple(t.to(device) for t in self.tables), self.walk)

    def pin_memory(self) -> PickSpec:
        """The same pick with its tables in locked memory, which a GPU reads where they are."""
        return PickSpec(self.name, tuple(t.pin_memory() for t in self.tables), self.walk)

    def arguments(self) -> tuple[str, list[Tensor], list[int]]:
        """``pick, tables, walk`` of the native operators."""
        return self.name, list(self.tables), list(self.walk)
