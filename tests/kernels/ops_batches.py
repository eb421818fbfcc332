"""Checks shared by the tests of all whole-batch samplers. The sampler is given as a function.

The function has the arguments of ``gnnbench.kernels.sampler.hop_by_hop`` and returns a
``MiniBatch``.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from ops_graphs import FRONTIERS, INDICES, INDPTR, csc, graphs, same
from ops_threads import threads
from torch import Tensor

from gnnbench.core.errors import DataError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels import rng, sampler
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.reference import sampler as reference
from gnnbench.validation.same_work import same_work

SampleFunction = Callable[..., MiniBatch]
KEY = rng.key(0, 0, "sample")


def pick_of(name: str, graph: tuple[Tensor, Tensor]) -> PickSpec:
    """The named pick; weighted picks get edge weights, some of them zero."""
    if name.startswith("weighted"):
        weights = torch.arange(graph[1].numel(), dtype=torch.float32) * 7 % 5
        return PickSpec.weighted(name, graph[0], weights)
    return PickSpec.random_walk(5, 3, 0.25) if name == "random_walk" else PickSpec.of(name)


def options(graph: tuple[Tensor, Tensor], pick: str = "floyd", **changed: Any) -> dict[str, Any]:
    """Keyword arguments of a sampling function."""
    return {
        "pick": pick_of(pick, graph),
        "frontier": "cumulative",
        "key": KEY,
        "batch": 0,
        "with_positions": pick != "random_walk",
        **changed,
    }


def check_same_work(batch: MiniBatch, expected: MiniBatch, frontier: str) -> None:
    """Both batches have the same edges, in tensors of the same dtypes."""
    assert same_work(expected, batch, frontier) is None
    for ours, theirs in zip(batch.blocks, expected.blocks, strict=True):
        for name in ("indptr", "indices", "src_nodes", "positions", "weights"):
            one, other = getattr(ours, name), getattr(theirs, name)
            assert (one is None) == (other is None), name
            assert one is None or one.dtype == other.dtype, name


def check_same(
    sample_batch: SampleFunction,
    graph: tuple[Tensor, Tensor],
    seeds: Tensor,
    fanouts: Sequence[int],
    oracle: SampleFunction = sampler.hop_by_hop,
    **how: Any,
) -> MiniBatch:
    """Compares one batch with that of the two-step sampler or of ``oracle``."""
    batch = sample_batch(*graph, seeds, fanouts, **how)
    check_same_work(batch, oracle(*graph, seeds, fanouts, **how), how["frontier"])
    return batch


def check_cumulative_by_hand(
    sample_batch: SampleFunction, pick: str, fanouts: Sequence[int] = (3, 6)
) -> None:
    """With one thread, neighbours keep stored order and local ids follow the first occurrence."""
    graph = INDPTR, INDICES
    with threads(1):
        batch = sample_batch(*graph, torch.tensor([2, 0]), fanouts, **options(graph, pick))
    inner, outer = batch.blocks
    # seeds 2 <- 2 4 4 and 0 <- 1 2 3
    assert outer.src_nodes.tolist() == [2, 0, 4, 1, 3]
    assert outer.indptr.tolist() == [0, 3, 6]
    assert outer.indices.tolist() == [0, 2, 2, 3, 0, 4]
    assert outer.positions is not None
    assert outer.positions.tolist() == [4, 5, 6, 0, 1, 2]
    # then also 4 <- 0 1 2 3 4 5, 1 <- 0, 3 isolated
    assert inner.num_dst == 5
    assert inner.src_nodes.tolist() == [2, 0, 4, 1, 3, 5]
    assert inner.indptr.tolist() == [0, 3, 6, 12, 13, 13]
    assert inner.indices.tolist() == [0, 2, 2, 3, 0, 4, 1, 3, 0, 4, 2, 5, 1]
    assert inner.positions is not None
    assert inner.positions.tolist() == [4, 5, 6, 0, 1, 2, 7, 8, 9, 10, 11, 12, 3]
    assert batch.sampled_edges == 19
    assert batch.input_nodes.tolist() == [2, 0, 4, 1, 3, 5]


def check_by_hand(
    sample_batch: SampleFunction,
    pick: str,
    few: Sequence[int] = (3, 6),
    many: Sequence[int] = (9, 9, 9),
) -> None:
    """As above, and with frontier ``new``, whose blocks are prefixes of one CSC."""
    check_cumulative_by_hand(sample_batch, pick, few)
    graph = INDPTR, INDICES
    with threads(1):
        batch = sample_batch(
            *graph, torch.tensor([5]), many, **options(graph, pick, frontier="new")
        )
    # 5 <- 0; then 0 <- 1 2 3; then 1 <- 0, 2 <- 2 4 4, 3 isolated
    third, second, first = batch.blocks
    assert third.src_nodes.tolist() == [5, 0, 1, 2, 3, 4]
    assert third.indptr.tolist() == [0, 1, 4, 5, 8, 8]
    assert third.indices.tolist() == [1, 2, 3, 4, 1, 3, 5, 5]
    assert third.positions is not None
    assert third.positions.tolist() == [13, 0, 1, 2, 3, 4, 5, 6]
    assert (first.num_dst, second.num_dst, third.num_dst) == (1, 2, 5)
    assert second.src_nodes.tolist() == [5, 0, 1, 2, 3]
    assert second.indptr.tolist() == [0, 1, 4]
    assert second.indices.tolist() == [1, 2, 3, 4]
    assert (first.src_nodes.tolist(), first.indptr.tolist()) == ([5, 0], [0, 1])
    assert batch.sampled_edges == 8


def check_random_graph(
    sample_batch: SampleFunction,
    pick: str,
    data: st.DataObject,
    frontiers: Sequence[str] = FRONTIERS,
) -> None:
    """A hypothesis example: any graph, seeds, fanouts, frontier, id dtype and number of threads."""
    graph = data.draw(graphs())
    n = len(graph[0]) - 1
    seeds = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n))
    dtype = data.draw(st.sampled_from([torch.int32, torch.int64]))
    fanouts = data.draw(
        st.lists(st.sampled_from([1, 2, 4, 5, 15, 100, 700]), min_size=1, max_size=4)
    )
    how = options(
        graph,
        pick,
        frontier=data.draw(st.sampled_from(frontiers)),
        key=data.draw(st.integers(0, 2**63 - 1)),
        batch=data.draw(st.integers(0, 2**32 - 1)),
    )
    with threads(data.draw(st.integers(1, 4))):
        ids = torch.tensor(seeds, dtype=dtype)
        check_same(sample_batch, graph, ids, fanouts, reference.sample, **how)


def check_threads(
    sample_batch: SampleFunction, pick: str, frontier: str, dtype: torch.dtype
) -> None:
    """Many chunks of rows and of insertions, one to four threads, and consecutive batches."""
    degrees = (torch.arange(6000) * 7919 % 41).tolist()
    graph = csc(degrees, dtype, 1)
    order = rng.permutation(6000, KEY)
    for batch in range(2):
        how = options(graph, pick, frontier=frontier, batch=batch)
        args = (*graph, order[batch * 400 : (batch + 1) * 400], [8, 4])
        expected = sampler.hop_by_hop(*args, **how)
        for n in (1, 2, 3, 4):
            with threads(n):
                check_same_work(sample_batch(*args, **how), expected, frontier)


def check_one_thread(sample_batch: SampleFunction) -> None:
    """With one thread, local ids follow the first occurrence, as in the two-step sampler."""
    degrees = (torch.arange(6000) * 7919 % 41).tolist()
    graph = csc(degrees, torch.int32, 1)
    seeds = rng.permutation(6000, KEY)[:900]
    with threads(1):
        for frontier in ("cumulative", "new"):
            how = options(graph, frontier=frontier)
            same(
                sample_batch(*graph, seeds, [8, 6, 4], **how),
                sampler.hop_by_hop(*graph, seeds, [8, 6, 4], **how),
            )


def check_contention(sample_batch: SampleFunction, dtype: torch.dtype = torch.int32) -> None:
    """Threads insert the same nodes at the same time: every row has the same neighbours."""
    rows, width = 1024, 700
    graph = (
        torch.arange(rows + 1) * width,
        torch.arange(width, dtype=dtype).repeat(rows),
    )
    seeds = torch.arange(rows - 1, -1, -1)
    for n in (2, 4):
        with threads(n):
            for batch in range(12):
                fanouts = [[width], [20, 3], [2, 600]][batch % 3]
                check_same(sample_batch, graph, seeds[: 1 << batch % 11], fanouts,
                           **options(graph, batch=batch))  # fmt: skip


def check_long_rows(sample_batch: SampleFunction, pick: str) -> None:
    """Mixes rows that need more random numbers than one window with shorter rows."""
    graph = csc([3, 9000, 0, 1500, 1300, 20, 5000], torch.int32, 2)
    for fanout in (10, 511, 512, 513, 1025, 4097):
        for n in (1, 2):
            with threads(n):
                check_same(
                    sample_batch, graph, torch.arange(7), [fanout, 3], **options(graph, pick)
                )


@cache
def real_graph(folder: Path) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """The directed ogbn_arxiv graph, and its training nodes in random order."""
    path = folder / "ogbn_arxiv.npz"
    if not path.is_file():
        pytest.skip(f"{path} does not exist")
    with np.load(path) as z:
        indptr, indices, train = (
            torch.from_numpy(z[k]) for k in ("indptr", "indices", "train_idx")
        )
    return (indptr, indices), train.long()[rng.permutation(len(train), rng.key(0, 0, "order"))]


def check_empty(sample_batch: SampleFunction, frontier: str) -> None:
    """Empty seeds give empty blocks, isolated seeds have no edges, a graph may have no nodes."""
    graph = INDPTR, INDICES
    how = options(graph, frontier=frontier)
    batch = sample_batch(*graph, torch.empty(0, dtype=torch.int64), [2, 2], **how)
    assert len(batch.blocks) == 2
    assert batch.sampled_edges == 0
    for block in batch.blocks:
        assert block.indptr.tolist() == [0]
        assert (block.num_src, block.num_dst, block.num_edges) == (0, 0, 0)
    alone = sample_batch(*graph, torch.tensor([3]), [2, 2], **how)
    assert [b.src_nodes.tolist() for b in alone.blocks] == [[3], [3]]
    assert alone.sampled_edges == 0
    nothing = torch.tensor([0]), torch.empty(0, dtype=torch.int64)
    assert sample_batch(*nothing, nothing[1], [3], **options(nothing)).blocks[0].num_src == 0


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"seeds": torch.tensor([6])}, UsageError, "seeds holds the id 6 at position 0"),
    ({"seeds": torch.tensor([0, -1])}, UsageError, "seeds holds the id -1 at position 1"),
    ({"seeds": torch.tensor([1, 0, 1])}, UsageError, "seeds holds an id twice"),
    ({"seeds": torch.tensor([1.0])}, UsageError, "seeds must be int32 or int64, it is float32"),
    ({"seeds": torch.tensor([[1]])}, UsageError, "seeds must have 1 dimension"),
    ({"fanouts": []}, UsageError, "fanouts is empty"),
    ({"fanouts": [3, 0]}, UsageError, "fanout must be at least 1, or -1 .*, it is 0"),
    ({"frontier": "old"}, UsageError, "frontier must be 'cumulative' or 'new', not 'old'"),
    ({"batch": 1 << 32}, UsageError, "batch must be at least 0 and below 4294967296"),
    ({"indptr": INDPTR.int()}, UsageError, "indptr must be int64, it is int32"),
    ({"indices": INDICES.short()}, UsageError, "indices must be int32 or int64, it is int16"),
    ({"indices": INDICES[:2]}, DataError, "indptr is broken at node 0"),
    ({"indices": INDICES + 4}, DataError, "indices holds an id that is not a node"),
    ({"indices": INDICES.long() - 9}, DataError, "indices holds an id that is not a node"),
    # Neighbours of node 4, which the second hop reaches.
    (
        {"indptr": torch.tensor([0, 3, 4, 7, 7, 15, 14]), "seeds": torch.tensor([2])},
        DataError,
        "indptr is broken at node 4",
    ),
    (
        {
            "indices": torch.tensor([1, 2, 3, 0, 2, 4, 4, 0, 1, 2, 9, 4, 5, 0], dtype=torch.int32),
            "seeds": torch.tensor([2, 0]),
            "fanouts": [3, 6],
        },
        DataError,
        "indices holds an id that is not a node",
    ),
]  # fmt: skip
# One bad neighbour of node 0: next to the valid ids, and at the limits of a type.
BAD += [
    (
        {"indices": torch.cat([torch.tensor([bad], dtype=dtype), INDICES[1:].to(dtype)])},
        DataError,
        "indices holds an id that is not a node",
    )
    for dtype, values in (
        (torch.int32, (6, -1, 2**31 - 1, -(2**31))),
        (torch.int64, (6, -1, 2**31, 2**32, -(2**32), 2**63 - 1, -(2**63))),
    )
    for bad in values
]


def check_bad(
    sample_batch: SampleFunction,
    changed: dict[str, Any],
    error: type[Exception],
    message: str,
    n: int = 1,
) -> None:
    """The error names the argument, and the next batch is correct."""
    arguments: dict[str, Any] = {"indptr": INDPTR, "indices": INDICES}
    arguments |= {"seeds": torch.tensor([0, 1]), "fanouts": [3, 2], **changed}
    graph = arguments.pop("indptr"), arguments.pop("indices")
    args = [*graph, arguments.pop("seeds"), arguments.pop("fanouts")]
    how = options((INDPTR, INDICES), **arguments)
    with threads(n):
        with pytest.raises(error, match=message) as caught:
            sample_batch(*args, **how)
        assert ".cpp" not in str(caught.value)
        assert "\n" not in str(caught.value)
        expected = INDPTR, INDICES
        check_same(sample_batch, expected, torch.arange(6), [2, 2], **options(expected))
