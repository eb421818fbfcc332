"""Invalid calls, made from valid ones: hostile calls must be refused, wild ones must not crash."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from fuzz_call import Call
from torch import Tensor

BIG = 1 << 62

# Refused integers by argument; ``operator.argument`` has precedence over ``argument``.
SHARE = (-1, 65537, BIG, -BIG)
REFUSED: dict[str, tuple[float, ...]] = {
    "fanout": (0, -2, 1 << 31, BIG, -BIG),
    "hop": (-1, 1 << 16, BIG),
    "batch": (-1, 1 << 32, BIG, -BIG),
    "version": (0, -1, 65536, BIG),
    "fetch_size": (0, -1, 33, 1 << 32, BIG),
    "steps": (0, -5, (1 << 23) + 1, BIG),
    "passes": (0, -1, BIG),
    "generation": (-1, (1 << 31) - 1, 1 << 32, BIG),
    "union_ids.num_nodes": (-1, (1 << 40) + 1, BIG, (1 << 63) - 1, -BIG),
    "num_nodes": (0, -1, 1 << 31, 1 << 40, BIG, -BIG),
    "ones_of_set.first": (-1, -BIG),
    "first": (-1, 1 << 31, BIG, (1 << 63) - 1, -(1 << 63)),
    "num_src": (-1, 1 << 31, BIG, -BIG),
    "num_dst": (-1, 1 << 20, 1 << 31, BIG, -BIG),
    "group": (0, -1, 1 << 31, BIG),
    "num_rows": (-1, 1 << 31, BIG, -BIG),
    "dim_workers": (0, -1, 33, 1 << 32), "blocks": (-1, 1 << 16, BIG, -BIG),
    "scale": (0, -1, 31, 1 << 32, BIG),
    "num_edges": (-1, 1 << 50, BIG, -BIG),
    "num_classes": (0, -1, 1 << 31, BIG),
    "noise": SHARE, "locality": SHARE, "degree_bias": SHARE, "tied": SHARE, "signal": SHARE,
    "in_positive": (-1, 1 << 31, BIG), "out_positive": (-1, 1 << 31, BIG),
    "in_limit": (-1, 1 << 31, BIG), "out_limit": (-1, 1 << 31, BIG),
    "layer": (-1, 1 << 16, BIG, -BIG), "p": (-0.5, 1.0, 2.0, float("nan"), float("inf")),
    "boost": (-1, (1 << 20) + 1, BIG),
    "train": (-1, 1 << 31, BIG), "val": (-1, 1 << 31, BIG), "test": (-1, 1 << 31, BIG),
}  # fmt: skip
REFUSED_LISTS: dict[str, tuple[list[int], ...]] = {
    "fanouts": ([], [0], [3, -2], [1 << 31], [-BIG], [2] * 65536),
    "walk": ([1], [0, 1, 1], [1, 1 << 40, 1], [BIG, BIG, 0], [1, 1, 1 << 32]),
    "ends": ([1, 2], [0, 1, 2], [5, 4, 3], [1, 2, 70000], [-BIG, 1, 2]),
    "pgsampler.capacity": ([1], [-1, 5], [1 << 31, 1], [BIG, BIG]),
    "seeded_features.key": ([], [1], [1, 2, 3]),
}

# Tensors of any dtype, or of any number of dimensions.
ANY_DTYPE = {"gather.table", "gather_of_set.rows"}
ANY_SHAPE = ANY_DTYPE | {"ceiling_copy.source", "ceiling_copy.target", "ceiling_read.words"}
LOOSE = {"trace.like", "ceiling_fma.like"}  # only the device matters

# Tensors whose length another argument determines.
SIZED = {
    "aggregate.indptr", "aggregate.indices", "aggregate.weights", "aggregate_transposed.indptr",
    "aggregate_transposed.t_dst", "aggregate_transposed.t_edge", "aggregate_transposed.weights",
    "aggregate_groups.starts", "aggregate_groups.rows", "aggregate_groups.indices",
    "aggregate_heads.indptr", "aggregate_heads.indices", "aggregate_heads.weights",
    "aggregate_heads_transposed.t_dst", "aggregate_heads_transposed.t_edge",
    "aggregate_heads_transposed.weights", "edge_dots.indptr", "edge_dots.indices",
    "edge_dots.rows", "edge_add.indptr", "edge_add.indices", "edge_add.dst", "edge_sums.values",
    "edge_sums.edges", "edge_softmax.scores", "edge_softmax_backward.softmax",
    "edge_softmax_backward.grad", "transpose.indices", "symmetric_weights.indices",
    "bias_relu_.bias", "bias_relu_backward.y",
    "bias_relu_backward.grad", "dropout.nodes", "dropout.place", "gather_out.out",
    "gather_over_out.slots",
    "gather_over_out.generations", "gather_over_out.out", "weight_tables.weights",
    "gather_to.ids", "gather_to.places",
    "fastsample.dense_map", "fastsample_loops.dense_map", "rmat_graph.names", "sieve_insert.newer",
    "sieve_insert.visited", "sieve_insert.state",
}  # fmt: skip

# Tensors of ids, offsets or slots in which an entry far outside is refused.
BOUNDED = {
    "gather.ids", "gather_out.ids", "gather_to.ids", "gather_to.places", "gather_over_out.ids",
    "gather_of_set.ids", "union_ids.batches",
    "ceiling_rows.ids", "symmetric_weights.indices", "symmetric_weights.indptr",
    "transpose.indices", "transpose.indptr", "aggregate.indices",
    "aggregate.indptr", "aggregate_transposed.indptr", "aggregate_transposed.t_indptr",
    "aggregate_transposed.t_dst", "aggregate_transposed.t_edge", "aggregate_groups.starts",
    "aggregate_groups.rows", "aggregate_groups.indices", "aggregate_heads.indptr",
    "aggregate_heads.indices", "aggregate_heads_transposed.t_indptr",
    "aggregate_heads_transposed.t_dst", "aggregate_heads_transposed.t_edge", "edge_dots.indptr",
    "edge_dots.indices", "edge_add.indptr", "edge_add.indices", "edge_sums.indptr",
    "edge_sums.edges", "edge_softmax.indptr", "edge_softmax_backward.indptr",
    "neighbor_groups.indptr", "weight_tables.indptr", "sample_hop.dst", "hop_by_hop.seeds",
    "gnnlab.seeds", "fused_map.seeds", "fastsample.seeds", "fastsample_loops.seeds",
    "pgsampler.seeds", "sieve_insert.state",
    "twin_labels.community_ptr", "twin_splits.community_ptr", "twin_features.community_ptr",
    "twin_graph.community_ptr", "twin_graph.region_ptr", "twin_graph.level_edges",
    "weight_tables.weights", "philox.counters", "id_map.neighbors",
}  # fmt: skip
WHOLE_BATCH = ("hop_by_hop", "gnnlab", "fused_map", "fastsample", "fastsample_loops", "pgsampler")


def names_of(name: str) -> list[str]:
    """Names of the operator's arguments."""
    return [a.name for a in getattr(torch.ops.gnnbench, name).default._schema.arguments]


def _spoil(r: random.Random, name: str, t: Tensor) -> Tensor:
    """The tensor in a form that every operator refuses."""
    ways: list[Callable[[], Tensor]] = [lambda: t.to("meta"), lambda: t.to_sparse()]
    if name not in LOOSE:
        if name not in ANY_DTYPE:
            ways.append(lambda: t.to(torch.complex64))
        if name not in ANY_SHAPE:
            ways += [lambda: t.unsqueeze(0), lambda: t.unsqueeze(-1)]
        strided = torch.stack([t, t], -1)[..., 0]
        if not strided.is_contiguous():
            ways.append(lambda: strided)
    return r.choice(ways)()


def _outside(r: random.Random, t: Tensor) -> Tensor:
    """A copy of a nonempty tensor with one entry outside of every valid range."""
    broken = t.clone()
    worst: list[float]
    if t.dtype.is_floating_point:
        worst = [float("nan"), float("inf"), -1.0]
    elif t.dtype in (torch.int32, torch.int64):
        worst = [-2, torch.iinfo(t.dtype).min]
    else:
        worst = [1]
    broken.view(-1)[r.randrange(t.numel())] = r.choice(worst)
    return broken


def _changed(r: random.Random, name: str, t: Tensor) -> Tensor:
    """The tensor with an invalid form, length or entry."""
    ways: list[Callable[[], Tensor]] = [lambda: _spoil(r, name, t)]
    if name in SIZED and t.shape[0]:
        ways.append(lambda: torch.cat([t, t[-1:]]))
    if name in BOUNDED and t.numel():
        ways.append(lambda: _outside(r, t))
    return r.choice(ways)()


def _repeated_seeds(r: random.Random, call: Call) -> list[Any]:
    """One seed twice, or far more seeds than nodes."""
    args, n = list(call.args), call.args[0].numel() - 1
    count = r.choice([n + 1, n + 1, 3000, 5000])
    args[2] = torch.arange(max(count, n + 1)) % n
    if n > 1 and r.random() < 0.4:
        args[2] = torch.tensor([0, 1, 0])
    args[2] = args[2].to(r.choice([torch.int32, torch.int64]))
    return args


def _broken_graph(r: random.Random, call: Call) -> list[Any] | None:
    """Invalid offsets, or ids that are no nodes; all nodes are seeds, so that every row is read."""
    args, n = list(call.args), call.args[0].numel() - 1
    args[2] = torch.arange(n)
    edges = args[1].numel()
    if r.random() < 0.5:
        if edges == 0 or call.facts["pick"] not in ("floyd", "fisher_yates", "reservoir"):
            return None
        args[1] = torch.full_like(args[1], r.choice([n, n + 7, -1, 2**31 - 1, -(2**31)]))
        return args
    args[0] = args[0].clone()
    args[0][r.randrange(1, n + 1)] = r.choice([-1, edges + 1, BIG, -BIG])
    return args


def hostile(r: random.Random, name: str, call: Call) -> list[Any] | None:
    """Arguments of the call, one of them invalid; None if no invalid value is known for it."""
    args, names = list(call.args), names_of(name)
    if name == "gnnlab":  # a table that is too small is reported first, and the batch is repeated
        call.args[-2] = args[-2] = torch.zeros(1 << 12, dtype=torch.int64)
    if name in WHOLE_BATCH and r.random() < 0.4:
        return (_repeated_seeds if r.random() < 0.5 else _broken_graph)(r, call)
    at = r.randrange(len(args))
    own, value = f"{name}.{names[at]}", args[at]
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        which = r.randrange(len(value))
        args[at] = [*value[:which], _changed(r, own, value[which]), *value[which + 1 :]]
        return args
    if isinstance(value, Tensor):
        args[at] = _changed(r, own, value)
        return args
    if isinstance(value, str):
        args[at] = r.choice(["", "nonsense", value + " ", "é" * 100])
        return args
    if isinstance(value, bool):
        return None
    choices: Any = (
        REFUSED.get(own) or REFUSED_LISTS.get(own) or REFUSED.get(names[at])
        or (REFUSED_LISTS.get(names[at]) if isinstance(value, list) else None)
    )  # fmt: skip
    if not choices or (isinstance(value, list) and names[at] == "capacity" and name != "pgsampler"):
        return None
    args[at] = r.choice(choices)
    return args


EMPTY_SHAPES = ([0], [0, 0], [1 << 40, 0], [0, 1 << 40], [0, 1 << 61], [0, 1 << 31, 1 << 31])
WILD_INTS = (-(1 << 63), -1, 0, 1, 2, 7, 1 << 50, BIG, (1 << 63) - 1)


def _other(r: random.Random, value: Tensor, tensors: list[Tensor]) -> Tensor:
    """Another tensor of the same dtype, or another argument."""
    ways: list[Callable[[], Tensor]] = [
        lambda: torch.empty(r.choice(EMPTY_SHAPES), dtype=value.dtype),
        lambda: r.choice(tensors),
    ]
    if value.dim():
        ways += [
            lambda: value[: r.randint(0, value.shape[0])],
            lambda: value.flip(0).contiguous(),
            lambda: torch.cat([value, value]),
        ]
    if value.numel():
        ways.append(lambda: _outside(r, value))
    return r.choice(ways)()


def wild(r: random.Random, call: Call) -> list[Any]:
    """Arguments of the call, some replaced by other values of their type, valid or not."""
    args = list(call.args)
    for _ in range(r.randint(1, 3)):
        at = r.randrange(len(args))
        value = args[at]
        if isinstance(value, Tensor):
            args[at] = _other(r, value, [a for a in args if isinstance(a, Tensor)])
        elif isinstance(value, bool):
            args[at] = not value
        elif isinstance(value, int):
            args[at] = r.choice(WILD_INTS)
        elif isinstance(value, list) and value and isinstance(value[0], int):
            args[at] = r.choice([[], value[:1], value * 2, [r.choice(WILD_INTS) for _ in value]])
        elif isinstance(value, list):
            args[at] = r.choice([[], value[:1], value * 2])
    return args
