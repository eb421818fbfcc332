"""The inclusion law of a pick: how many edges a destination has, and which it cannot have."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gnnbench.core.fanouts import ALL
from gnnbench.kernels.picks import WEIGHTED

WITHOUT = "without-replacement"
UNEVEN = "without-replacement-uneven"
WITH = "with-replacement"
BY_WEIGHT = "weighted"
WALK = "random-walk"


def named(pick: str) -> str:
    """Name of a pick's law; a foreign sampler's pick, of whatever name, is without replacement."""
    if pick in WEIGHTED:
        return BY_WEIGHT
    return {"random_walk": WALK, "with_replacement": WITH}.get(pick, WITHOUT)


@dataclass(frozen=True)
class Law:
    """The law of one pick on one graph.

    ``name``      ``without-replacement``: min(fanout, degree) different edges, all as likely; of
                  fanout -1 every edge;
                  ``without-replacement-uneven``: as many, but some of a row's edges are likelier;
                  ``with-replacement``: fanout edges from every row that is not empty;
                  ``weighted``: the same from every row with weight, none of an edge without;
                  ``random-walk``: between 1 and fanout nodes where there is any neighbour
    ``degree``    int64 ``[num_nodes]``: in-degree; of ``weighted`` 0 where a row has no weight
    ``weighs``    of ``weighted``, bool ``[num_edges]``: whether an edge has weight
    ``visits``    of ``random-walk``: most nodes that the walks of a destination can meet
    """

    name: str
    degree: Tensor
    weighs: Tensor | None = None
    visits: int = 0

    @classmethod
    def of(
        cls, pick: str, graph_indptr: Tensor, weights: Tensor | None = None, visits: int = 0
    ) -> Law:
        """Law of a pick by its name (:func:`named`); ``weights`` ``[num_edges]`` of the weighted
        ones."""
        degree, name = graph_indptr.diff(), named(pick)
        if name == BY_WEIGHT:
            assert weights is not None
            weighs = weights > 0
            before = torch.cat([weighs.new_zeros(1, dtype=torch.int64), weighs.long().cumsum(0)])
            none = before[graph_indptr].diff() == 0
            return cls(BY_WEIGHT, degree.masked_fill(none, 0), weighs)
        return cls(name, degree, visits=visits if name == WALK else 0)

    @property
    def repeats(self) -> bool:
        """Whether a destination may have an edge several times."""
        return self.name in (WITH, BY_WEIGHT)

    def on(self, device: torch.device) -> Law:
        """The law with what counting needs on a device."""
        return Law(self.name, self.degree.to(device), None, self.visits)

    def bounds(self, dst: Tensor, fanout: int) -> tuple[Tensor, Tensor]:
        """Least and most edges of each destination, int64 ``[n]``; ``dst`` int64 ``[n]``."""
        degree = self.degree[dst]
        if self.name in (WITHOUT, UNEVEN):
            right = degree if fanout == ALL else degree.clamp(max=fanout)
            return right, right
        any_edge = (degree > 0).long()
        if self.name == WALK:
            return any_edge, any_edge * min(fanout, self.visits)
        return any_edge * fanout, any_edge * fanout

    def count_fault(self, dst: Tensor, drawn: int, fanout: int) -> str | None:
        """What is wrong with a hop of ``drawn`` edges, as a sentence, or None."""
        least, most = (int(bound.sum()) for bound in self.bounds(dst, fanout))
        if least <= drawn <= most:
            return None
        right = f"{most} are" if least == most else f"{least} to {most} are"
        return f"{drawn} edges were drawn where {right} right"

    def example(self, dst: Tensor, counts: Tensor, fanout: int) -> str:
        """How many of ``dst`` have a wrong number of edges, int64 ``[n]`` each, and one of them."""
        least, most = self.bounds(dst, fanout)
        wrong = ((counts < least) | (counts > most)).nonzero().flatten()
        if not wrong.numel():
            return ""
        at = wrong[0]
        node, low, high = int(dst[at]), int(least[at]), int(most[at])
        right = str(high) if low == high else f"{low} to {high}"
        return (
            f"; {wrong.numel()} of {dst.numel()} destinations are wrong: node {node}, of degree"
            f" {int(self.degree[node])}, has {int(counts[at])} edges, not {right}"
        )

    def edge_count_text(self, fanout: int) -> str:
        """Describe the number of a destination's edges for a message."""
        if fanout == ALL:
            return "all"
        return {
            WITHOUT: f"min({fanout}, degree)",
            UNEVEN: f"min({fanout}, degree)",
            WITH: f"{fanout} unless it has no neighbour",
            BY_WEIGHT: f"{fanout} unless its edges have no weight",
            WALK: f"1 to {min(fanout, self.visits)} unless it has no neighbour",
        }[self.name]
