"""Arguments that once crashed the process, or allocated memory without bounds, are rejected."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from int_tensors import ints
from ops_graphs import INDICES, INDPTR
from ops_threads import threads
from torch import Tensor

import gnnbench
from gnnbench.core.errors import HostMemoryError, UsageError
from gnnbench.core.minibatch import Block
from gnnbench.kernels.attention import aggregate_heads
from gnnbench.kernels.library import load_native, native_operators

SAMPLERS = ("hop-by-hop", "gnnlab", "fused-map", "fastsample", "pgsampler", "fused-map-by-hop")
RING = torch.arange(8), (torch.arange(7, dtype=torch.int32) + 1) % 7  # node v <- v + 1


@pytest.fixture(scope="module")
def ops() -> Any:
    load_native()
    return torch.ops.gnnbench


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("name", SAMPLERS)
def test_more_seeds_than_nodes_are_a_repeated_seed(
    name: str, dtype: torch.dtype, count: int
) -> None:
    sampler = gnnbench.build_sampler(name, (RING[0], RING[1].to(dtype)), fanouts=[5])
    with threads(count):
        for seeds in (torch.arange(5000) % 7, torch.arange(8) % 7, torch.zeros(3000).long()):
            with pytest.raises(UsageError, match="seeds holds an id twice"):
                sampler.sample(seeds)
        batch = sampler.sample(torch.arange(7))
    assert batch.blocks[0].num_dst == 7 and batch.sampled_edges == 7


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "name", ["hop_by_hop", "gnnlab", "fused_map", "fastsample", "fastsample_loops", "pgsampler"]
)
def test_operators_refuse_repeated_seeds(ops: Any, name: str, count: int) -> None:
    own: dict[str, list[Any]] = {
        "hop_by_hop": ["fused"],
        "gnnlab": [torch.zeros(24, dtype=torch.int64), 1],
        "fused_map": [[]],
        "fastsample": [torch.full((7,), -1, dtype=torch.int32), []],
        "fastsample_loops": [torch.full((7,), -1, dtype=torch.int32)],
        "pgsampler": ["persistent", 5, "split", "warp", []],
    }

    def sample(seeds: Tensor) -> None:
        frontier = [] if name == "pgsampler" else ["new"]
        args = [*RING, seeds, [5, 5], "floyd", [], [], *frontier, 1, 0, True, *own[name]]
        getattr(ops, name)(*args)

    with threads(count), native_operators():
        for seeds in (torch.arange(5000) % 7, torch.arange(8) % 7, torch.zeros(3000).long()):
            with pytest.raises(RuntimeError, match=f"seeds holds an id twice: it has {len(seeds)}"):
                sample(seeds)
        with pytest.raises(RuntimeError, match="seeds holds the id 7 at position 7"):
            sample(torch.arange(5000))
        sample(torch.arange(7))


def floats(*shape: int) -> Tensor:
    return torch.zeros(shape)


def halves(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.int16)


def longs(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


SHARED = torch.zeros(64, dtype=torch.int32)
BIG = 1 << 62
MOST = (1 << 63) - 1
REFUSED: list[tuple[str, Callable[[], tuple[Any, ...]], str]] = [
    ("union_ids", lambda: ([longs(1)], BIG, False), "num_nodes must be 0 to 1099511627776"),
    ("seeded_features", lambda: ([1, 2], longs(0, 0), halves(2, 4), MOST, floats(2, 4)),
     "from row 9223372036854775807 on; the graph has 2 nodes"),
    ("twin_features", lambda: (1, 5, longs(0, 5), 2, 1, MOST - 1, floats(3, 4)),
     "out has 3 rows, from row 9223372036854775806 on"),
    ("ceiling_read", lambda: (torch.zeros(16, dtype=torch.int32), BIG), "passes must be at most"),
    ("ceiling_copy", lambda: (SHARED[:32], SHARED[16:48]), "must not share memory with source"),
    ("aggregate_groups", lambda: (ints(0), ints(), ints(), floats(0, 0), BIG, 1),
     "num_rows must be 0 to 2147483647"),
    ("aggregate_groups", lambda: (ints(0), ints(), ints(), floats(2, 3), -1, 1),
     "num_rows must be 0 to 2147483647"),
    ("aggregate", lambda: (ints(0), ints(), floats(0, 3), MOST, "sum", None),
     "num_dst must be 0 to 2147483647"),
    ("twin_graph", lambda: (
        1, 5, 4, False, longs(0, 5), longs(0, 1), torch.ones(34).long(), torch.ones(34).long(), 5,
        5, 0, 9, 9, 0, longs(MOST, MOST, MOST), False), "level_edges must sum to 4"),
    ("gather_out", lambda: (SHARED[:6].view(3, 2), ints(0, 1), SHARED[4:8].view(2, 2)),
     "out must not share memory with table"),
    ("gather_to", lambda: (
        SHARED[:6].view(3, 2), ints(0, 1), ints(0, 1), SHARED[4:8].view(2, 2), 0),
     "out must not share memory with table"),
    ("gather_to", lambda: (floats(3, 2), ints(0, 1), ints(0), floats(2, 2), 0),
     "places must have one entry for each of the ids"),
    ("gather_to", lambda: (floats(3, 2), ints(0, 1), ints(0, 2), floats(2, 2), 0),
     "places holds 2 at position 1, out has the rows 0 to 1"),
    ("gather_to", lambda: (floats(3, 2), ints(0, 3), ints(0, 1), floats(2, 2), 0),
     "ids holds 3 at position 1, the table has the rows 0 to 2"),
    ("bias_relu_", lambda: (t := floats(4, 2), t[0]), "x must not share memory with bias"),
    ("pgsampler", lambda: (*RING, longs(0, 1), [2**31 - 1], "with_replacement", [], [], 1, 0, False,
                           "persistent", 1, "split", "warp", []),
     "draws more edges than the 2\\^31 - 1"),
    ("hop_by_hop", lambda: (*RING, longs(0, 1), [2**31 - 1], "with_replacement", [], [], "new", 1,
                            0, True), "int32 blocks hold 2\\^31 - 1"),
    ("fused_map", lambda: (*RING, longs(0, 1), [2**31 - 1], "with_replacement", [], [], "new", 1, 0,
                           True, []), "int32 blocks hold 2\\^31 - 1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "message"), REFUSED)
def test_arguments_that_once_crashed_are_refused(
    ops: Any, name: str, args: Callable[[], tuple[Any, ...]], message: str
) -> None:
    with pytest.raises(UsageError, match=message), native_operators():
        getattr(ops, name)(*args())


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("edge_sums", lambda: (ints(0, 0, 0, 0), torch.empty(0, 1 << 61), None)),
        ("union_ids", lambda: ([longs(1)], 1 << 40, True)),
        ("rmat_graph", lambda: (1, 3, BIG, [1, 2, 3], torch.arange(8))),
    ],
)
def test_excessive_memory_is_refused(ops: Any, name: str, args: Callable[[], Any]) -> None:
    with pytest.raises(HostMemoryError, match="not enough memory for"), native_operators():
        getattr(ops, name)(*args())


def test_rows_without_columns_need_no_work(ops: Any) -> None:
    x = torch.empty(1 << 40, 0)
    ops.bias_relu_(x, torch.empty(0))
    grad_x, grad_bias = ops.bias_relu_backward(x, x)
    assert grad_x.shape == x.shape and grad_bias.shape == (0,)
    assert ops.ceiling_read(torch.empty(0, dtype=torch.int32), 3).tolist() == [0]
    assert ops.edge_softmax(ints(0, 0, 0), torch.empty(0, 1 << 40)).shape == (0, 1 << 40)
    weights = torch.empty(0, 1 << 40)
    heads = ops.aggregate_heads(ints(0, 0), ints(), torch.empty(2, 1 << 40, 0), weights, 1)
    assert heads.shape == (1, 1 << 40, 0)


def test_fanout_above_all_degrees_needs_no_scratch_memory() -> None:
    """Fisher-Yates needs scratch memory only for rows longer than the fanout."""
    sampler = gnnbench.build_sampler(
        "fastsample", (INDPTR, INDICES), fanouts=[2**31 - 1], pick="fisher_yates"
    )
    assert sampler.sample(torch.tensor([4])).sampled_edges == 6


SEEDS = torch.tensor([0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda ops: ops.gather([[1.0]], SEEDS),
            "table must be of type Tensor, it is of",
        ),
        (lambda ops: ops.philox(1.5, RING[0]), "key must be of type int, it is of type float"),
        (lambda ops: ops.philox(1 << 64, RING[0]), "key must be a whole number of 64 bits"),
        (lambda ops: ops.union_ids([[1]], 3, False), "batches must be of type List"),
        (lambda ops: ops.gather(torch.eye(2).to_sparse(), SEEDS), "must be dense, with values"),
        (lambda ops: ops.gather(torch.eye(2).to("meta"), SEEDS), "must be dense, with values"),
    ],
)
def test_type_errors_of_torch_name_the_argument(
    ops: Any, call: Callable[[Any], Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words), native_operators():
        call(ops)


def test_other_errors_are_not_translated() -> None:
    with pytest.raises(RuntimeError, match="CUDA error"), native_operators():
        raise RuntimeError("CUDA error: an illegal memory access")


@pytest.mark.parametrize("name", ["aggregate", "aggregate_scatter", "aggregate_spmm"])
def test_complex_weights_are_refused(name: str) -> None:
    aggregate = getattr(importlib.import_module(f"gnnbench.kernels.{name}"), name)
    block = Block(torch.tensor([0, 1]).int(), torch.tensor([1]).int(), torch.arange(2), 1)
    with pytest.raises(UsageError, match="edge_weight must be real numbers, it is complex64"):
        aggregate(block, torch.ones(2, 3), "sum", torch.ones(1, dtype=torch.complex64))


def test_complex_weights_of_heads_are_refused() -> None:
    block = Block(torch.tensor([0, 1]).int(), torch.tensor([1]).int(), torch.arange(2), 1)
    with pytest.raises(UsageError, match="weights must be real numbers"):
        aggregate_heads(block, torch.ones(2, 1, 3), torch.ones(1, 1, dtype=torch.complex64))
