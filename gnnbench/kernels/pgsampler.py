"""PGSampler (Wei et al.): all hops of a batch in one launch, tasks from a queue in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.library import native_operators
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import mini_batch

# persistent: workers stay and take tasks from the queue until all are done (section III-C).
# fusion:     "DGL+Fusion" of section V-D, a block of one warp per possible task; CUDA only.
# non_persistent: the same by the blocks of persistent: a worker ends after its first fetch_size
#             tasks; CUDA only.
# as_printed: Algorithm 1 as it is printed. Unsound: it loses tasks.
VARIANTS = ("persistent", "fusion", "non_persistent", "as_printed")

# split: all workers of a GPU share the draws of a long reservoir row; not in the paper.
# whole: a row is one worker's, as in the paper.
HUBS = ("split", "whole")

# warp:  a warp of a GPU takes tasks and draws their rows.
# block: a block of 128 threads does, as in the paper, whose blocks are of a size it does not print.
WORKERS = ("warp", "block")


@dataclass(frozen=True)
class TaskStats:
    """Statistics of the task queue for one batch; a task is a vertex at a hop.

    ``capacity``   (tasks, edges) of the batch, from which a later batch is sized; as published
                   (tasks, then the edges of each hop)
    ``enqueued``   tasks, seeds included
    ``processed``  of those, tasks that were sampled
    ``lost``       enqueued - processed; 0 unless the variant is ``as_printed``
    ``stale``      slots that ``as_printed`` read before their task was written
    ``parts``      parts of long rows that were split among all workers, in addition to the tasks;
                   0 with ``hubs="whole"``
    ``attempts``   1, or more where memory was too small and the batch was restarted
    """

    capacity: tuple[int, ...]
    enqueued: int
    processed: int
    lost: int
    stale: int
    parts: int
    attempts: int


def pgsampler(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    key: int,
    batch: int,
    pick: str | PickSpec = "reservoir",
    with_positions: bool = False,
    variant: str = "persistent",
    fetch_size: int = 5,
    hubs: str = "split",
    worker: str = "warp",
    capacity: Sequence[int] = (),
    unsafe: bool = False,
) -> tuple[MiniBatch, TaskStats]:
    """Sample a mini-batch by PGSampler's kernel (Algorithms 1 and 2), frontier ``cumulative``.

    Args:
        graph_indptr: int64 ``[num_nodes + 1]``.
        graph_indices: int32 or int64 ``[num_edges]``, in-neighbours of each node.
        seeds: int32 or int64 ``[n]``, unique; may be empty. Their device samples: the CPU, or a
            GPU, where the graph and the pick's tables may also be in locked host memory.
        fanouts: as in :func:`gnnbench.kernels.sampler.hop_by_hop`; at most 31 hops.
        key: from :func:`gnnbench.kernels.rng.key`.
        batch: number of the batch in its epoch, below 2^32.
        pick: as in :func:`gnnbench.kernels.sampler.hop_by_hop`, but not ``"random_walk"``.
        with_positions: also return each edge's offset in ``graph_indices``.
        variant: one of ``VARIANTS``.
        fetch_size: tasks that a worker takes at once, 1 to 32; the paper's is 5. The first time a
            worker takes one, with ``non_persistent`` this many.
        hubs: one of ``HUBS``; the edges are the same. On the CPU, and with ``as_printed``, a worker
            draws every row alone, whatever is given.
        worker: one of ``WORKERS``; the edges are the same. ``block`` goes with ``persistent``,
            ``non_persistent`` and hubs ``whole`` only; on the CPU a worker is a thread, whatever is
            given.
        capacity: tasks and edges to allocate for on a GPU; empty: not known. A batch that does not
            fit is sampled again with more.
        unsafe: must be given for ``as_printed``.

    Returns:
        Blocks, input layer first, and what the queue did. Local ids: seeds first, then by the hop
        at which a node is first met, in any order within (on a GPU in that of ids, so that equal
        calls give equal blocks). With ``as_printed`` a destination whose
        task was lost has no edges.

    Raises:
        UnsupportedError: a random walk; ``fusion`` or ``non_persistent`` on the CPU.
        UsageError: an argument of the wrong dtype, shape, device or range, or a repeated seed.
        DataError: the graph's offsets or ids are out of range.
    """
    if variant == "as_printed" and not unsafe:
        raise UsageError(
            "variant 'as_printed' loses tasks, as Algorithm 1 does; pass unsafe=True to run it"
        )
    spec = PickSpec.of(pick)
    if spec.gives_weights:
        raise UnsupportedError(
            f"pick '{spec.name}' is not one of pgsampler's, whose tasks draw from one row each"
        )
    if variant in ("fusion", "non_persistent") and not seeds.is_cuda:
        raise UnsupportedError(
            f"variant '{variant}' leaves the scheduling of tasks to a GPU; take 'persistent' on the"
            " CPU"
        )
    with native_operators() as ops:
        flat = ops.pgsampler(
            graph_indptr,
            graph_indices,
            seeds,
            list(fanouts),
            *spec.arguments(),
            key,
            batch,
            with_positions,
            variant,
            fetch_size,
            hubs,
            worker,
            list(capacity),
        )
    tasks, edges, *counts = flat.pop().tolist()
    return (
        mini_batch(flat, seeds, spec, "cumulative", with_positions),
        TaskStats((tasks, edges), *counts),
    )


def pgsampler_as_published(
    graph_indptr: Tensor,
    graph_indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    key: int,
    batch: int,
    with_positions: bool = False,
    persistent: bool = True,
    fetch_size: int = 5,
    capacity: Sequence[int] = (),
) -> tuple[MiniBatch, TaskStats]:
    """Sample a mini-batch as PGSampler's paper describes it; CUDA only.

    A block of 128 threads draws task by task, each row whole, by reservoir into an array of edges
    in COO for each hop (Fig. 6). Each hop's block is built from its array as DGL builds it.

    Args:
        graph_indptr: as in :func:`pgsampler`, like all arguments that are not listed here.
        graph_indices: int32 or int64 ``[num_edges]``.
        seeds: int32 or int64 ``[n]``, unique, on a GPU.
        fanouts: at most 31 hops.
        key: from :func:`gnnbench.kernels.rng.key`.
        batch: number of the batch in its epoch.
        with_positions: also return each edge's offset in ``graph_indices``.
        persistent: whether blocks stay until all tasks are done (section III-C); else a block ends
            after its first ``fetch_size`` tasks (DGL+Fusion of section V-D has one).
        fetch_size: tasks that a block takes at once, 1 to 32.
        capacity: tasks, then edges of each hop, to allocate for; empty: not known.

    Returns:
        Blocks, input layer first, and what the queue did. Local ids and the edges of a row are in
        any order, destinations first.

    Raises:
        UnsupportedError: seeds on the CPU.
        UsageError: an argument of the wrong dtype, shape, device or range, or a repeated seed.
        DataError: the graph's offsets or ids are out of range.
    """
    if not seeds.is_cuda:
        raise UnsupportedError("PGSampler as published samples on a GPU; its seeds are on the CPU")
    with native_operators() as ops:
        flat = ops.pgsampler_as_published(
            graph_indptr,
            graph_indices,
            seeds,
            list(fanouts),
            key,
            batch,
            with_positions,
            persistent,
            fetch_size,
            list(capacity),
        )
    numbers = flat.pop().tolist()
    enqueued, processed, lost, attempts = numbers[-4:]
    stats = TaskStats(tuple(numbers[:-4]), enqueued, processed, lost, 0, 0, attempts)
    return mini_batch(flat, seeds, PickSpec.of("reservoir"), "cumulative", with_positions), stats
