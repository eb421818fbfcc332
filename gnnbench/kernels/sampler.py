"""Neighbour sampling and renaming of ids on the device of the tensors."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from gnnbench.core.minibatch import Block, MiniBatch
from gnnbench.kernels.library import native_operators
from gnnbench.kernels.picks import PickSpec

# three-pass:         DGL's passes, which remember where the first one stored a node.
# three-pass-probing: each pass probes the table again, as in DGL.
# fused:              FastGL's Fused-Map (ASPLOS'24, section 4.3).
ID_MAPS = ("three-pass", "three-pass-probing", "fused")

# warp:  the threads that suit the pick; for a reservoir a warp, and a block for long rows.
# block: a block for each row, as in DGL; CUDA and reservoirs only.
ROW_WORKERS = ("warp", "block")

# csr: picks are written row by row at known offsets.
# coo: both ends of each edge are written, and DGL's to_block makes a block of them.
EDGES = ("csr", "coo")


def hop_by_hop(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    pick: str | PickSpec,
    frontier: str,
    key: int,
    batch: int,
    with_positions: bool = False,
    id_map: str = ID_MAPS[0],
    worker: str = ROW_WORKERS[0],
    edges: str = EDGES[0],
) -> MiniBatch:
    """Sample a mini-batch, all hops in one dispatch (DGL's method: per hop, then an id map).

    Args:
        graph_indptr: int64 ``[num_nodes + 1]``.
        graph_indices: int32 or int64 ``[num_edges]``, in-neighbours of each node.
        seeds: int32 or int64 ``[n]``, unique; may be empty. Their device samples: the CPU, or a
            GPU, where the graph and the pick's tables may also be in locked host memory.
        fanouts: neighbours per destination and hop, from the seeds outwards, each at least 1, or
            -1 for all of them, which picks without replacement alone take.
        pick: a name of ``gnnbench.kernels.picks`` that needs nothing else, or a ``PickSpec``. Those
            without replacement take every in-neighbour, in stored order, where the degree is at
            most the fanout.
        frontier: ``"cumulative"`` or ``"new"``; see ``gnnbench.core.minibatch``.
        key: from :func:`gnnbench.kernels.rng.key`.
        batch: number of the batch in its epoch, below 2^32.
        with_positions: also return each edge's offset in ``graph_indices``; random walks have
            none and return each neighbour's visits as ``weights`` in any case.
        id_map: one of ``ID_MAPS``; ``"fused"`` numbers nodes as it inserts them, over a table of
            its own for each hop.
        worker: one of ``ROW_WORKERS``; the edges are the same.
        edges: one of ``EDGES``. ``"coo"`` goes with id_map ``"three-pass-probing"``, frontier
            ``"cumulative"`` and, on a GPU, worker ``"block"`` only; on a GPU edges are in any order
            within a row. Random walks have no ``"coo"``.

    Returns:
        Blocks, input layer first. Local ids are the order of first occurrence, destinations
        first, the same for any number of threads; with ``id_map="fused"`` new nodes are in any
        order.

    Raises:
        UsageError: an argument of the wrong dtype, shape, device or range, or a repeated seed.
        DataError: the graph's offsets or ids are out of range.
    """
    spec = PickSpec.of(pick)
    with native_operators() as ops:
        flat = ops.hop_by_hop(
            graph_indptr,
            graph_indices,
            seeds,
            list(fanouts),
            *spec.arguments(),
            frontier,
            key,
            batch,
            with_positions,
            id_map,
            worker,
            edges,
        )
    return mini_batch(flat, seeds, spec, frontier, with_positions)


def mini_batch(
    flat: Sequence[Tensor], seeds: Tensor, pick: PickSpec, frontier: str, with_positions: bool
) -> MiniBatch:
    """The result of a whole-batch operator (its form: ``native/bindings/cpu/catalogue.cpp``)."""
    walked = pick.gives_weights
    stride = 4 if with_positions or walked else 3
    blocks = []
    for at in range(0, len(flat), stride):
        indptr, indices, src_nodes = flat[at : at + 3]
        block = Block(indptr, indices, src_nodes, indptr.numel() - 1)
        if walked:
            block.weights = flat[at + 3]
        elif with_positions:
            block.positions = flat[at + 3]
        blocks.append(block)
    blocks.reverse()
    # With "new" the input block's rows hold every edge of the batch once.
    counted = blocks if frontier == "cumulative" else blocks[:1]
    return MiniBatch(seeds, blocks, sum([b.indices.numel() for b in counted]))


def sample_hop(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    dst: Tensor,
    fanout: int,
    *,
    pick: str | PickSpec,
    key: int,
    hop: int,
    batch: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sample one hop, ids not renamed.

    ``dst`` ``[n]`` in the dtype of ``graph_indices``; it may repeat a node, which then draws the
    same neighbours. Returns ``indptr`` int32 ``[n + 1]``, the neighbours' global ids ``[edges]``,
    their offsets in ``graph_indices``, int64 ``[edges]`` (empty for random walks), and the visits
    of random walks, float32 ``[edges]`` (else empty). Raises as :func:`hop_by_hop`.
    """
    with native_operators() as ops:
        return ops.sample_hop(
            graph_indptr,
            graph_indices,
            dst,
            fanout,
            *PickSpec.of(pick).arguments(),
            key,
            hop,
            batch,
        )


def id_map(dst: Tensor, neighbors: Tensor, variant: str = ID_MAPS[0]) -> tuple[Tensor, Tensor]:
    """Rename global ids to local ones, in order of first occurrence, destinations first.

    ``dst`` ``[n]`` (unique) and ``neighbors`` ``[edges]`` of one id dtype, ids at least 0. Returns
    ``src_nodes`` ``[num_src]`` in that dtype and the local ids of ``neighbors``, int32 ``[edges]``.
    The three passes of DGL's ``OrderedHashTable``; ``variant`` is one of ``ID_MAPS[:2]``. Raises
    ``UsageError``.
    """
    with native_operators() as ops:
        return ops.id_map(dst, neighbors, variant)


def philox(key: int, counters: Tensor) -> Tensor:
    """Philox4x32-10 blocks (Salmon et al., SC'11): words of int64 ``[n, 4]`` counters, below 2^32.

    Returns int64 ``[n, 4]``. Raises ``UsageError``.
    """
    with native_operators() as ops:
        return ops.philox(key, counters)
