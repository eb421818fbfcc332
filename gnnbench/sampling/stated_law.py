"""Stage of library samplers with random numbers of their own, gated by their stated law."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from gnnbench.core.fault import Fault
from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.kernels.picks import WEIGHTED
from gnnbench.sampling.library_stage import LibraryStage
from gnnbench.validation.edges import Edges
from gnnbench.validation.law import BY_WEIGHT, WITH, Law
from gnnbench.validation.same_work import malformed


class StatedLawStage(LibraryStage):
    """A sampler with a stated law; its picks are tested statistically
    (``gnnbench.systems.runtime.stochastic``).

    Checked batches are drawn as timed ones. This stage looks up the positions of their edges, even
    if the blocks carry positions.
    """

    @cached_property
    def law(self) -> Law:
        """The law that the sampler class states."""
        graph, stated = self.job.graph, type(self.sampler).law
        pick = {WITH: "with_replacement", BY_WEIGHT: WEIGHTED[0]}.get(stated, self.pick)
        return Law.of(pick, graph.indptr, graph.weights)

    def checked(self, seeds: Tensor, number: int) -> MiniBatch:
        """Draw a batch of epoch 0 as timed and add edge positions. Raises ``Fault``."""
        return self.positioned(self.sample(seeds, 0, number))

    def positioned(self, batch: MiniBatch) -> MiniBatch:
        """Return a batch with the positions of its edges. Raises ``Fault``."""
        for nth, block in enumerate(reversed(batch.blocks), start=1):
            for name, tensor, dtype in (
                ("indptr", block.indptr, torch.int32),
                ("indices", block.indices, torch.int32),
                ("src_nodes", block.src_nodes, self.job.graph.indices.dtype),
            ):
                if tensor.dtype != dtype:
                    raise Fault(f"hop {nth}: {name} must be {dtype}, it is {tensor.dtype}")
        if fault := malformed(batch, self.frontier):
            raise Fault(fault)
        blocks = [replace(block, positions=self._positions(block)) for block in batch.blocks]
        return replace(batch, blocks=blocks)

    @cached_property
    def _edges(self) -> Edges:
        return Edges(self.job.graph, places=True)

    def _positions(self, block: Block) -> Tensor:
        """Positions of a block's edges in the graph's ``indices``; parallel edges in turn.

        Raises ``Fault`` for an edge that the graph does not have, or has fewer times.
        """
        nodes = block.src_nodes.cpu().long()
        counts = block.indptr.cpu().long().diff()
        dst, src = nodes[: block.num_dst].repeat_interleave(counts), nodes[block.indices.cpu()]
        if bool(((nodes < 0) | (nodes >= self.job.graph.num_nodes)).any()):
            raise Fault(f"a node lies outside the graph's {self.job.graph.num_nodes}")
        nth = torch.zeros_like(src)
        if not self.law.repeats:  # earlier draws of the same edge in its row
            pairs, order = (dst * self.job.graph.num_nodes + src).sort(stable=True)
            nth[order] = torch.arange(src.numel()) - torch.searchsorted(pairs, pairs)
        positions = self._edges.at(dst, src, nth)
        if bool((positions < 0).any()):
            if bool((self._edges.at(dst, src, torch.zeros_like(nth)) < 0).any()):
                raise Fault("an edge is none of the graph's")
            raise Fault("an edge was drawn twice for one destination")
        return positions.to(block.indptr.device)

    def gate_is_over(self) -> None:
        """Free the sorted edges."""
        self.__dict__.pop("_edges", None)
