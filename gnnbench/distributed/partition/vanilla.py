"""Samples a partitioned topology: each hop but the first sends requests to the nodes' owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gnnbench.core import names
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.fanouts import ALL
from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.datasets.graph import Graph
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.exchange import Exchange
from gnnbench.distributed.partition.route import Route
from gnnbench.kernels import rng
from gnnbench.kernels.picks import PICKS, WEIGHTED, PickSpec, all_fault
from gnnbench.kernels.sampler import id_map, sample_hop
from gnnbench.sampling.arguments import fanout_list, seed_tensor, weight_tensor, whole
from gnnbench.sampling.blocks import BlockBuilder
from gnnbench.sampling.setting import FRONTIERS

PURPOSE = "sample"


class VanillaSampler:
    """Samples where each rank has only its own nodes' in-edges (FastSample, section 3.3: vanilla).

    A rank owns its seeds, so it samples the first hop itself. Each further hop takes two rounds, a
    request to the owners and their answer: 2 (L - 1) rounds for L hops. Owners draw by the
    counter-based generator under original ids. So the batch equals that of ``hop-by-hop`` on the
    whole graph bit for bit, for every partition.

    A rank keeps its edges, with neighbours as places, and ``indptr`` of all nodes by original id
    (8 bytes a node), because draws are keyed by the row's number. ``pick`` is any but
    ``random_walk``, which would take two rounds a step. ``weights`` of the weighted picks: float
    ``[num_edges]`` of the whole graph, or ``"graph"``.
    """

    def __init__(
        self,
        graph: Graph,
        partition: Partition,
        fanouts: Sequence[int],
        exchange: Exchange,
        device: torch.device,
        *,
        pick: str = "floyd",
        frontier: str = "cumulative",
        seed: int = 0,
        weights: Tensor | str | None = None,
        with_positions: bool = False,
    ) -> None:
        names.check("pick", pick, PICKS)
        names.check("frontier", frontier, FRONTIERS)
        if pick == "random_walk":
            raise UnsupportedError(
                "pick 'random_walk' cannot run where topology is partitioned, each step would be"
                " two rounds; use hybrid partitioning"
            )
        self.fanouts = fanout_list(fanouts)
        if ALL in self.fanouts and (fault := all_fault(pick)):
            raise UnsupportedError(fault)
        self._exchange, self._frontier, self._seed = exchange, frontier, seed
        self._device, self._with_positions = device, with_positions
        self._offsets = partition.offsets.to(device)
        self._places, self._originals = partition.numberings(device, graph.indices.dtype)
        self._first, self._end = partition.offsets[exchange.rank : exchange.rank + 2].tolist()
        own = partition.nodes_of(exchange.rank)
        self._original = own.to(device, graph.indices.dtype)
        rows = _OwnRows(graph, own)
        self._indptr = rows.indptr.to(device)
        self._indices = partition.places[rows.take(graph.indices).long()].to(self._original)
        self._shift = rows.shift.to(device)
        self._pick = _pick(pick, rows, weights, graph).to(device)

    def sample(self, seeds: Tensor | Sequence[int], epoch: int = 0, batch: int = 0) -> MiniBatch:
        """Sample the blocks of ``seeds``, original ids of the rank's own nodes; in original ids.

        All ranks call it together, also those without seeds. Arguments and errors are those of
        ``gnnbench.Sampler.sample``; also raises ``UsageError`` for a seed of another rank.
        """
        ids = seed_tensor(seeds, self._device)
        key = rng.key(self._seed, whole("epoch", epoch, 0), "sample")
        number = whole("batch", batch, 0, 2**32 - 1)
        building = _Numbered(self._own_places(ids), self._frontier)
        for hop, fanout in enumerate(self.fanouts):
            draw = _Draw(fanout, key, hop, number)
            # This rank owns the seeds; any rank may own the nodes of later hops.
            sample = self._draw if hop == 0 else self._request
            building.add(*sample(building.destinations, draw))
        return self._in_original_ids(building, ids, number)

    def _own_places(self, seeds: Tensor) -> Tensor:
        """Return the places of the seeds, of the graph's id type."""
        nodes = self._places.numel()
        if bool(((seeds < 0) | (seeds >= nodes)).any()):
            raise UsageError(f"seeds must be node ids, 0 to {nodes - 1}")
        places = self._places[seeds.long()]
        if bool(((places < self._first) | (places >= self._end)).any()):
            rank = self._exchange.rank
            raise UsageError(f"seeds must be nodes of part {rank}, which this rank owns")
        return places.to(self._original)

    def _draw(self, places: Tensor, draw: _Draw) -> tuple[Tensor, ...]:
        """Sample own nodes: counts ``[n]``, neighbours, and positions if requested."""
        local = places.long() - self._first
        indptr, neighbours, positions, _ = sample_hop(
            self._indptr,
            self._indices,
            self._original[local],
            draw.fanout,
            pick=self._pick,
            key=draw.key,
            hop=draw.hop,
            batch=draw.batch,
        )
        counts = indptr.diff().long()
        if not self._with_positions:
            return counts, neighbours
        return counts, neighbours, positions + torch.repeat_interleave(self._shift[local], counts)

    def _request(self, places: Tensor, draw: _Draw) -> tuple[Tensor, ...]:
        """Sample nodes of any owner, by two rounds; results as of :meth:`_draw`."""
        exchange, route = self._exchange, Route(places, self._offsets)
        come = exchange.sizes(PURPOSE, route.counts)
        requests = exchange.round(PURPOSE, route.requested, route.to, come)
        packed, lengths = pack(come, *self._draw(requests, draw))
        back = exchange.sizes(PURPOSE, torch.tensor(lengths, device=self._device))
        got = exchange.round(PURPOSE, packed, lengths, back)
        return route.back_ragged(*unpack(got, back, route.to, self._with_positions))

    def _in_original_ids(self, building: _Numbered, seeds: Tensor, number: int) -> MiniBatch:
        drawn = building.batch()
        nodes = self._originals[drawn.input_nodes.long()].to(self._original)
        blocks = [
            # The nodes of a block are the first nodes of the next one.
            Block(b.indptr, b.indices, nodes[: b.num_src], b.num_dst, b.positions)
            for b in drawn.blocks
        ]
        return MiniBatch(seeds, blocks, drawn.sampled_edges, frontier=self._frontier, number=number)


class _Draw(NamedTuple):
    """Arguments of a hop, except its nodes."""

    fanout: int
    key: int
    hop: int
    batch: int


class _Numbered(BlockBuilder):
    """Assigns local ids in order of first occurrence, as the native samplers do."""

    def _local_ids(self, neighbours: Tensor) -> Tensor:
        self._nodes, local = id_map(self._nodes, neighbours)
        return local


class _OwnRows:
    """The rows of ``own`` (original ids ``[n]``, ascending) of a graph in CSC.

    ``indptr`` int64 ``[num_nodes + 1]``: of all nodes, others' rows empty; ``shift`` int64 ``[n]``:
    added to positions in own rows, gives positions in the graph.
    """

    def __init__(self, graph: Graph, own: Tensor) -> None:
        begins, degrees = graph.indptr[own], graph.indptr[own + 1] - graph.indptr[own]
        self.indptr = torch.zeros_like(graph.indptr)
        self.indptr[own + 1] = degrees
        self.indptr = self.indptr.cumsum(0)
        self.shift = begins - self.indptr[own]
        self._degrees = degrees

    def take(self, values: Tensor) -> Tensor:
        """Return the values of own rows' edges, from ``values`` ``[num_edges]``."""
        at = torch.repeat_interleave(self.shift, self._degrees)
        at += torch.arange(at.numel())
        return values[at]


def _pick(name: str, rows: _OwnRows, weights: Tensor | str | None, graph: Graph) -> PickSpec:
    if name not in WEIGHTED:
        if weights is not None:
            raise UsageError(
                f"weights is given, but pick '{name}' takes none; choose pick="
                + " or ".join(WEIGHTED)
            )
        return PickSpec.of(name)
    if weights is None:
        raise UsageError(
            f"weights is missing: pick '{name}' needs a tensor [num_edges], or 'graph'"
        )
    edge_weights = weight_tensor(weights, graph)
    if edge_weights.numel() != graph.num_edges:
        raise UsageError(
            f"weights has {edge_weights.numel()} entries for {graph.num_edges} edges; give one for"
            " each edge"
        )
    return PickSpec.weighted(name, rows.indptr, rows.take(edge_weights))


def pack(
    come: Sequence[int], counts: Tensor, neighbours: Tensor, positions: Tensor | None = None
) -> tuple[Tensor, list[int]]:
    """Concatenate the answers to ``come[q]`` nodes of each rank q; also returns their lengths.

    An answer is counts, neighbours and positions, all of the neighbours' dtype. A position takes
    two elements of int32.
    """
    ends = torch.tensor([0, *come]).cumsum(0).tolist()
    edges = torch.cat([counts.new_zeros(1), counts.cumsum(0)])[ends].tolist()
    answers, lengths = [], []
    for at in range(len(come)):
        nodes, of_edges = slice(ends[at], ends[at + 1]), slice(edges[at], edges[at + 1])
        answer = [counts[nodes].to(neighbours.dtype), neighbours[of_edges]]
        if positions is not None:
            answer.append(positions[of_edges].contiguous().view(neighbours.dtype))
        answers += answer
        lengths.append(sum(part.numel() for part in answer))
    return torch.cat(answers), lengths


def unpack(
    got: Tensor, lengths: Sequence[int], requested: Sequence[int], with_positions: bool
) -> list[Tensor]:
    """Return counts, neighbours and positions of the answers that each rank's :func:`pack` made.

    ``lengths[q]``: length of rank q's answer. ``requested[q]``: nodes requested from rank q.
    """
    words = 8 // got.element_size() if with_positions else 0  # of a position
    counts, neighbours, positions = [], [], []
    for answer, nodes in zip(got.split(list(lengths)), requested, strict=True):
        edges = (answer.numel() - nodes) // (1 + words)
        of_nodes, of_edges, rest = answer.split([nodes, edges, edges * words])
        counts.append(of_nodes.long())
        neighbours.append(of_edges)
        positions.append(rest.clone().view(torch.int64))  # a view of 8 bytes must be aligned
    columns = [torch.cat(counts), torch.cat(neighbours)]
    return [*columns, torch.cat(positions)] if with_positions else columns
