"""Valid calls of the samplers and of their parts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fuzz_call import FLOATS, IDS, TWO_32, Call, equal, ids_below
from torch import Tensor

from gnnbench.kernels.gnnlab import VersionedTable
from gnnbench.kernels.picks import PICKS, PickSpec
from gnnbench.kernels.reference import rng as ref_rng
from gnnbench.kernels.reference import sampler as ref_sampler
from gnnbench.kernels.sampler import mini_batch
from gnnbench.validation.same_work import same_work


def graph_of(r: random.Random) -> tuple[Tensor, Tensor]:
    """Up to 40 nodes, some isolated, with parallel edges and self-loops."""
    degrees = [r.choice([0, 1, 2, 5, 9, 30]) for _ in range(r.randint(1, 40))]
    indptr = torch.tensor(np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64))
    return indptr, ids_below(r, len(degrees), sum(degrees), r.choice(IDS))


def pick_of(r: random.Random, graph: tuple[Tensor, Tensor], name: str) -> PickSpec:
    """The named pick; weighted picks get some zero weights."""
    if name.startswith("weighted"):
        weights = torch.tensor([float(r.randint(0, 4)) for _ in range(graph[1].numel())])
        return PickSpec.weighted(name, graph[0], weights)
    if name == "random_walk":
        return PickSpec.random_walk(r.randint(1, 5), r.randint(1, 4), r.choice([0.0, 0.25, 0.9]))
    return PickSpec.of(name)


def batch_of(r: random.Random, form: str) -> Call:
    """A whole batch of the sampler ``form``; the work must equal the reference's."""
    graph = graph_of(r)
    n = graph[0].numel() - 1
    picks = [p for p in PICKS if form != "pgsampler" or p != "random_walk"]
    pick = pick_of(r, graph, r.choice(picks))
    seeds = torch.tensor(r.sample(range(n), r.randint(0, n)), dtype=r.choice(IDS))
    few = [1, 2, 5, 15, 600] + ([-1, 2**31 - 1] if pick.name in PICKS[:4] else [])
    fanouts = [r.choice(few) for _ in range(r.randint(1, 3))]
    frontier = "cumulative" if form == "pgsampler" else r.choice(["cumulative", "new"])
    key, batch = r.randrange(1 << 63), r.randrange(TWO_32)
    positions = r.random() < 0.5
    args: list[Any] = [*graph, seeds, fanouts, *pick.arguments()]
    args += [] if form == "pgsampler" else [frontier]
    args += [key, batch, positions]
    if form == "hop_by_hop":
        args.append(r.choice(["three-pass", "three-pass-probing", "fused"]))
        literal = args[-1] == "three-pass-probing" and pick.name != "random_walk"
        if literal and frontier == "cumulative":
            args += ["warp", r.choice(["csr", "coo"])]
    elif form == "gnnlab":
        table = VersionedTable()
        table.grow(r.choice([24, 96, 1536, 6144]))
        args += [table.words, r.randint(1, 65535)]
    elif form == "fused_map":
        args.append([])
    elif form == "fastsample":
        args += [torch.full((n,), -1, dtype=torch.int32), []]
    elif form == "fastsample_loops":
        args += [torch.full((n,), -1, dtype=torch.int32)]
    elif form == "pgsampler":
        worker = r.choice(["warp", "block"])
        hubs = "whole" if worker == "block" else r.choice(["split", "whole"])
        args += ["persistent", r.randint(1, 32), hubs, worker, r.choice([[], [5, 9]])]

    def check(flat: list[Tensor]) -> None:
        flat = list(flat)
        if form in ("gnnlab", "pgsampler"):
            last = flat.pop()
            if form == "gnnlab" and not flat:  # the table was too small
                assert int(last) > args[-2].numel()
                return
        if form.startswith("fastsample"):
            dense_map = args[-2] if form == "fastsample" else args[-1]
            assert bool((dense_map == -1).all()), "the dense map was not cleared"
        got = mini_batch(flat, seeds, pick, frontier, positions)
        expected = ref_sampler.sample(
            *graph, seeds, [n + 700 if f < 0 else min(f, 5000) for f in fanouts], pick=pick,
            frontier=frontier, key=key, batch=batch, with_positions=positions,
        )  # fmt: skip
        assert same_work(expected, got, frontier) is None

    return Call(args, check, {"pick": pick.name})


def sample_hop(r: random.Random) -> Call:
    graph = graph_of(r)
    n = graph[0].numel() - 1
    pick = pick_of(r, graph, r.choice(PICKS))
    dst = ids_below(r, n, r.randint(0, 30), graph[1].dtype)
    fanout = r.choice([1, 3, 20])
    key, hop, batch = r.randrange(1 << 63), r.randrange(1 << 16), r.randrange(TWO_32)

    def check(got: Sequence[Tensor]) -> None:
        expected = ref_sampler.sample_hop(
            *graph, dst, fanout, pick=pick, key=key, hop=hop, batch=batch
        )
        for one, other in zip(got, expected, strict=True):
            equal(one, other, other.dtype)

    return Call([*graph, dst, fanout, *pick.arguments(), key, hop, batch], check,
                {"pick": pick.name})  # fmt: skip


def id_map(r: random.Random) -> Call:
    dtype = r.choice(IDS)
    bound = r.choice([5, 100, 2**31 - 1, 2**31 - 1 if dtype == torch.int32 else 2**63 - 1])
    dst = list({r.randrange(bound) for _ in range(r.randint(0, 20))})
    known = dst + [r.randrange(bound) for _ in range(20)]
    neighbors = torch.tensor(r.choices(known, k=r.randint(0, 60)), dtype=dtype)
    args = [torch.tensor(dst, dtype=dtype), neighbors]

    def check(got: Sequence[Tensor]) -> None:
        for one, other in zip(got, ref_sampler.id_map(*args), strict=True):
            assert one.dtype == other.dtype and one.tolist() == other.tolist()

    return Call(args, check)


def weight_tables(r: random.Random) -> Call:
    indptr, indices = graph_of(r)
    choices = [0.0, 1.0, 3.0, 1e-30, 1e30]
    weights = torch.tensor([r.choice(choices) for _ in range(indices.numel())])
    args = [indptr, weights.to(r.choice(FLOATS)), r.choice(["alias", "prefix"])]

    def check(got: Sequence[Tensor]) -> None:
        for one, other in zip(got, ref_sampler.weight_tables(*args), strict=True):
            equal(one, other, other.dtype)

    return Call(args, check)


def philox(r: random.Random) -> Call:
    counters = np.array([[r.randrange(TWO_32) for _ in range(4)] for _ in range(r.randint(1, 9))])
    key = r.randrange(1 << 63)

    def check(got: Tensor) -> None:
        words = ref_rng.philox_many(key, counters.astype(np.uint64))
        equal(got, words.astype(np.int64), torch.int64)

    return Call([key, torch.tensor(counters)], check)
