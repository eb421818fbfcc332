"""Valid calls of the aggregation operators, of the fused bias and ReLU, and of dropout."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch
from fuzz_call import FLOATS, IDS, TWO_32, VALUES, Call, close, equal, ids_below, whole
from torch import Tensor

from gnnbench.core.minibatch import Block
from gnnbench.kernels.reference import aggregate as ref_aggregate
from gnnbench.kernels.reference import rng as ref_rng


def block_of(r: random.Random) -> Block:
    src = r.randint(0, 20)
    dst = r.randint(0, src)
    degrees = [r.choice([0, 1, 2, 7, 40]) for _ in range(dst)]
    indptr = torch.tensor(np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32))
    return Block(indptr, ids_below(r, src, sum(degrees), torch.int32), torch.arange(src), dst)


def transposed(block: Block) -> list[Tensor]:
    return [torch.tensor(t, dtype=torch.int32) for t in ref_aggregate.transpose(block)]


def transpose(r: random.Random) -> Call:
    b = block_of(r)

    def check(got: Sequence[Tensor]) -> None:
        for one, other in zip(got, transposed(b), strict=True):
            equal(one, other, torch.int32)

    return Call([b.indptr, b.indices, b.num_src], check)


def symmetric_weights(r: random.Random) -> Call:
    b = block_of(r)
    source = torch.bincount(b.indices, minlength=b.num_src)[b.indices.long()]
    degrees = b.indptr.diff().long()
    expected = 1 / (source * degrees.repeat_interleave(degrees)).double().sqrt()
    return Call([b.indptr, b.indices, b.num_src], lambda got: close(got, expected))


def aggregate(r: random.Random, form: str) -> Call:
    b, mode = block_of(r), r.choice(["sum", "mean", "gcn"])
    dim, dtype = r.choice([0, 1, 3, 8, 17, 64]), r.choice(VALUES)
    sums = torch.float64 if dtype == torch.float64 else torch.float32
    count = b.indices.numel()
    w = torch.tensor([float(r.randint(1, 3)) for _ in range(count)]).to(sums)
    weights = w if r.random() < 0.5 else None
    a = ref_aggregate.matrix(b, mode, weights)
    if form == "aggregate_transposed":
        grad = whole(r, [b.num_dst, dim], dtype)
        args = [b.indptr, *transposed(b), grad, mode, weights]
        return Call(args, lambda got: close(got, a.T @ grad.double()))
    x = whole(r, [b.num_src, dim], dtype)
    args = [b.indptr, b.indices, x, b.num_dst, mode, weights]
    return Call(args, lambda got: close(got, a @ x.double()))


def neighbor_groups(r: random.Random) -> Call:
    b, group = block_of(r), r.choice([1, 2, 5, 2**31 - 1])

    def check(got: Sequence[Tensor]) -> None:
        expected = groups_of(b, group)
        equal(got[0], expected[0], torch.int32)
        equal(got[1], expected[1], torch.int32)

    return Call([b.indptr, group], check)


def groups_of(b: Block, group: int) -> tuple[Tensor, Tensor]:
    ends = b.indptr.tolist()
    cut = [(i, v) for v in range(b.num_dst) for i in range(ends[v], ends[v + 1], group)]
    starts = torch.tensor([i for i, _ in cut] + ends[-1:], dtype=torch.int32)
    return starts, torch.tensor([v for _, v in cut], dtype=torch.int32)


def aggregate_groups(r: random.Random) -> Call:
    b = block_of(r)
    x = whole(r, [b.num_src, r.choice([0, 1, 9, 64])], r.choice(FLOATS))
    starts, rows = groups_of(b, r.choice([1, 3, 100]))
    expected = ref_aggregate.matrix(b, "sum") @ x.double()
    args = [starts, rows, b.indices, x, b.num_dst, r.randint(1, 32)]
    return Call(args, lambda got: close(got, expected))


def heads(r: random.Random, form: str) -> Call:
    """``aggregate_heads``, its transpose and ``edge_dots``."""
    b, dtype = block_of(r), r.choice(VALUES)
    sums = torch.float64 if dtype == torch.float64 else torch.float32
    shape = [r.choice([0, 1, 2, 4]), r.choice([0, 1, 5, 8, 16])]
    x, weights = (
        whole(r, [b.num_src, *shape], dtype), whole(r, [b.indices.numel(), shape[0]], sums)
    )  # fmt: skip
    if form == "aggregate_heads":
        expected = ref_aggregate.aggregate_heads(b, x, weights)
        return Call([b.indptr, b.indices, x, weights, b.num_dst], lambda got: close(got, expected))
    dst = torch.repeat_interleave(torch.arange(b.num_dst), b.indptr.diff().long())
    rows = whole(r, [b.num_dst, *shape], dtype)
    if form == "edge_dots":
        expected = (rows[dst].double() * x[b.indices.long()].double()).sum(-1)
        return Call([b.indptr, b.indices, rows, x], lambda got: close(got, expected))
    expected = torch.zeros(b.num_src, *shape, dtype=torch.float64)
    expected.index_add_(0, b.indices.long(), weights.double()[..., None] * rows[dst].double())
    return Call([*transposed(b), rows, weights], lambda got: close(got, expected))


def edges(r: random.Random, form: str) -> Call:
    """``edge_add``, ``edge_sums``, ``edge_softmax`` and its backward."""
    b, dtype, width = block_of(r), r.choice(FLOATS), r.choice([0, 1, 4, 19])
    values = whole(r, [b.indices.numel(), width], dtype)
    if form == "edge_add":
        src, dst = (whole(r, [n, width], dtype) for n in (b.num_src, b.num_dst))
        expected = ref_aggregate.edge_add(b, src, dst)
        return Call([b.indptr, b.indices, src, dst], lambda got: equal(got, expected, dtype))
    of_row = torch.repeat_interleave(torch.arange(b.num_dst), b.indptr.diff().long())
    if form == "edge_sums":
        order = list(range(values.shape[0]))
        r.shuffle(order)
        places = torch.tensor(order, dtype=torch.int32) if r.random() < 0.5 else None
        moved = values if places is None else values[places.long()]
        expected = torch.zeros(b.num_dst, width, dtype=dtype).index_add_(0, of_row, moved)
        return Call([b.indptr, values, places], lambda got: equal(got, expected, dtype))
    soft = ref_aggregate.edge_softmax(b, values)
    if form == "edge_softmax":
        return Call([b.indptr, values], lambda got: close(got, soft))
    grad = whole(r, list(values.shape), dtype)
    each = soft * grad.double()
    sums = torch.zeros(b.num_dst, width, dtype=torch.float64).index_add_(0, of_row, each)
    expected = soft * (grad.double() - sums[of_row])
    return Call([b.indptr, soft.to(dtype), grad], lambda got: close(got, expected))


def dropout(r: random.Random) -> Call:
    rows, dim = r.choice([0, 1, 90]), r.choice([0, 1, 7, 64])
    x, nodes = whole(r, [rows, dim], r.choice(FLOATS)), ids_below(r, 1 << 31, rows, r.choice(IDS))
    key, batch, layer, p = (
        r.randrange(1 << 63),
        r.choice([0, TWO_32 - 1]),
        r.choice([0, 65535]),
        0.5,
    )
    place = torch.tensor([key, batch]) if r.random() < 0.5 else None
    draws = ref_rng.draws(key, nodes.long().numpy(), layer, batch, dim).astype(np.int64)
    expected = torch.where(torch.from_numpy(draws) >= 1 << 31, x * 2, 0)
    return Call([x, nodes, key, batch, layer, p, place], lambda got: equal(got, expected, x.dtype))


def bias_relu(r: random.Random, form: str) -> Call:
    dtype, shape = r.choice(FLOATS), [r.choice([0, 1, 300]), r.choice([0, 1, 7])]
    y = whole(r, shape, dtype)
    if form == "bias_relu_":
        bias = whole(r, shape[1:], dtype)
        expected = (y + bias).clamp(min=0)
        return Call([y, bias], lambda _: equal(y, expected))
    grad = whole(r, shape, dtype)
    expected = torch.where(y > 0, grad, 0)

    def check(got: Sequence[Tensor]) -> None:
        equal(got[0], expected, dtype)
        equal(got[1], expected.sum(0), dtype)

    return Call([grad, y], check)
