"""Sampling over a partitioned topology: each hop but the first asks the nodes' owners."""

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
    """Each rank has the in-edges of its own nodes alone (FastSample, section 3.3: vanilla).

    The seeds of a rank are its own, so the first hop is drawn there; each further hop takes two
    rounds, one that asks the owners and one that answers: 2 (L - 1) for L hops. Owners draw by the
    counter-based generator under original ids, so the batch is that of ``hop-by-hop`` on the whole
    graph, bit for bit, whatever the partition.

    A rank keeps its edges, neighbours as places, and ``indptr`` of all nodes by original id (8
    bytes a node): the draws are keyed by the row's number there. ``pick`` is any but
    ``random_walk``, whose walks would take a round a step. ``weights`` of the weighted picks:
    float ``[num_edges]`` of the whole graph, or ``"graph"``.
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
        """Draw the blocks for ``seeds``, original ids of the rank's own nodes; in original ids.

        All ranks call it together, one without seeds with none. Arguments and errors as of
        ``gnnbench.Sampler.sample``; ``UsageError`` for a seed that another rank owns, too.
        """
        ids = seed_tensor(seeds, self._device)
        key = rng.key(self._seed, whole("epoch", epoch, 0), "sample")
        number = whole("batch", batch, 0, 2**32 - 1)
        building = _Numbered(self._own_places(ids), self._frontier)
        for hop, fanout in enumerate(self.fanouts):
            draw = _Draw(fanout, key, hop, number)
            # Seeds are at home; what the first hop found may be anywhere.
            picked = self._draw if hop == 0 else self._ask
            building.add(*picked(building.destinations, draw))
        return self._in_original_ids(building, ids, number)

    def _own_places(self, seeds: Tensor) -> Tensor:
        """Places of the seeds, of the graph's id type."""
        nodes = self._places.numel()
        if bool(((seeds < 0) | (seeds >= nodes)).any()):
            raise UsageError(f"seeds must be node ids, 0 to {nodes - 1}")
        places = self._places[seeds.long()]
        if bool(((places < self._first) | (places >= self._end)).any()):
            rank = self._exchange.rank
            raise UsageError(f"seeds must be nodes of part {rank}, which this rank owns")
        return places.to(self._original)

    def _draw(self, places: Tensor, draw: _Draw) -> tuple[Tensor, ...]:
        """Counts ``[n]`` and neighbours of own nodes, and positions where they are wanted."""
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

    def _ask(self, places: Tensor, draw: _Draw) -> tuple[Tensor, ...]:
        """The same of nodes of any owner: two rounds."""
        exchange, route = self._exchange, Route(places, self._offsets)
        come = exchange.sizes(PURPOSE, route.counts)
        asked = exchange.round(PURPOSE, route.asked, route.to, come)
        packed, lengths = pack(come, *self._draw(asked, draw))
        back = exchange.sizes(PURPOSE, torch.tensor(lengths, device=self._device))
        got = exchange.round(PURPOSE, packed, lengths, back)
        return route.back_ragged(*unpack(got, back, route.to, self._with_positions))

    def _in_original_ids(self, building: _Numbered, seeds: Tensor, number: int) -> MiniBatch:
        drawn = building.batch()
        nodes = self._originals[drawn.input_nodes.long()].to(self._original)
        blocks = [
            # What a block knows comes first in what the next one knows.
            Block(b.indptr, b.indices, nodes[: b.num_src], b.num_dst, b.positions)
            for b in drawn.blocks
        ]
        return MiniBatch(seeds, blocks, drawn.sampled_edges, frontier=self._frontier, number=number)


class _Draw(NamedTuple):
    """What a hop draws by, besides its nodes."""

    fanout: int
    key: int
    hop: int
    batch: int


class _Numbered(BlockBuilder):
    """Local ids in order of first occurrence, as the native samplers give them."""

    def _local_ids(self, neighbours: Tensor) -> Tensor:
        self._nodes, local = id_map(self._nodes, neighbours)
        return local


class _OwnRows:
    """The rows of ``own`` (original ids ``[n]``, ascending) of a graph in CSC.

    ``indptr`` int64 ``[num_nodes + 1]``: of all nodes, others' rows empty; ``shift`` int64 ``[n]``:
    what an own row's positions lack to be the graph's.
    """

    def __init__(self, graph: Graph, own: Tensor) -> None:
        begins, degrees = graph.indptr[own], graph.indptr[own + 1] - graph.indptr[own]
        self.indptr = torch.zeros_like(graph.indptr)
        self.indptr[own + 1] = degrees
        self.indptr = self.indptr.cumsum(0)
        self.shift = begins - self.indptr[own]
        self._degrees = degrees

    def take(self, values: Tensor) -> Tensor:
        """Values of the edges of own rows, of ``values`` ``[num_edges]``."""
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
    given = weight_tensor(weights, graph)
    if given.numel() != graph.num_edges:
        raise UsageError(
            f"weights has {given.numel()} entries for {graph.num_edges} edges; give one for each"
        )
    return PickSpec.weighted(name, rows.indptr, rows.take(given))


def pack(
    come: Sequence[int], counts: Tensor, neighbours: Tensor, positions: Tensor | None = None
) -> tuple[Tensor, list[int]]:
    """Answers to ``come[q]`` nodes of each rank q in one tensor, and how long each rank's is.

    A rank's piece is counts, neighbours, positions, all as the neighbours' ids; a position is two
    of them where they are int32.
    """
    ends = torch.tensor([0, *come]).cumsum(0).tolist()
    edges = torch.cat([counts.new_zeros(1), counts.cumsum(0)])[ends].tolist()
    pieces, lengths = [], []
    for at in range(len(come)):
        nodes, of_edges = slice(ends[at], ends[at + 1]), slice(edges[at], edges[at + 1])
        piece = [counts[nodes].to(neighbours.dtype), neighbours[of_edges]]
        if positions is not None:
            piece.append(positions[of_edges].contiguous().view(neighbours.dtype))
        pieces += piece
        lengths.append(sum(part.numel() for part in piece))
    return torch.cat(pieces), lengths


def unpack(
    got: Tensor, lengths: Sequence[int], asked: Sequence[int], with_positions: bool
) -> list[Tensor]:
    """Counts, neighbours and positions of what :func:`pack` made on each rank, one after another.

    ``lengths[q]`` is the piece of rank q, ``asked[q]`` how many nodes it was asked for.
    """
    words = 8 // got.element_size() if with_positions else 0  # of a position
    counts, neighbours, positions = [], [], []
    for piece, nodes in zip(got.split(list(lengths)), asked, strict=True):
        edges = (piece.numel() - nodes) // (1 + words)
        of_nodes, of_edges, rest = piece.split([nodes, edges, edges * words])
        counts.append(of_nodes.long())
        neighbours.append(of_edges)
        positions.append(rest.clone().view(torch.int64))  # a view of 8 bytes begins at a multiple
    found = [torch.cat(counts), torch.cat(neighbours)]
    return [*found, torch.cat(positions)] if with_positions else found
