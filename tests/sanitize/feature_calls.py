"""Valid calls of gathers, sets of ids, padding, ceilings and generators."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from fuzz_call import IDS, TWO_32, VALUES, Call, equal, ids_below, whole
from torch import Tensor

from gnnbench.kernels.reference import id_set as ref_id_set
from gnnbench.kernels.reference import twin as ref_twin
from gnnbench.kernels.reference.sieve import Sieve
from gnnbench.kernels.twin import TwinSpec


def table_of(r: random.Random) -> Tensor:
    shape = [r.randint(1, 30), *r.choice([[], [1], [3], [16], [0], [2, 8]])]
    return whole(r, shape, r.choice([*VALUES, torch.int8, torch.bool, torch.int64]))


def gather(r: random.Random, form: str) -> Call:
    table = table_of(r)
    ids = ids_below(r, table.shape[0], r.randint(0, 60), r.choice(IDS))
    expected = table[ids.long()]
    if form == "gather":
        return Call([table, ids], lambda got: equal(got, expected, table.dtype))
    out = torch.zeros_like(expected)
    if form == "gather_out":
        return Call([table, ids, out], lambda _: equal(out, expected))
    if form == "gather_to":
        out = torch.zeros_like(table.new_empty((ids.numel() + r.randint(0, 9), *table.shape[1:])))
        places = torch.randperm(out.shape[0])[: ids.numel()].int()
        whole_out = out.clone()
        whole_out[places.long()] = expected
        return Call([table, ids, places, out, 0], lambda _: equal(out, whole_out))
    # The cache has rows of some ids; their slots have the current generation.
    n, generation = table.shape[0], r.randrange(5)
    ids = torch.tensor(r.sample(range(n), r.randint(0, n)), dtype=r.choice(IDS))
    expected, out = table[ids.long()], torch.zeros_like(table[ids.long()])
    slots = torch.zeros(n, dtype=torch.int32)
    generations = torch.full((n,), generation - 1, dtype=torch.int32)
    known = r.sample(range(n), r.randint(0, n))
    cached = table[torch.tensor(known, dtype=torch.int64)].contiguous()
    for place, node in enumerate(known):
        slots[node], generations[node] = place, generation

    def check(hits: int) -> None:
        equal(out, expected)
        assert hits == len(set(ids.tolist()) & set(known))

    return Call([table, cached, slots, generations, generation, r.random() < 0.5, ids, out], check)


def batches_of(r: random.Random, n: int) -> list[Tensor]:
    dtype = r.choice(IDS)
    return [ids_below(r, n, r.randint(0, 30), dtype) for _ in range(r.randint(1, 4))]


def set_of(ids: Sequence[int], num_nodes: int) -> Tensor:
    """The set of ascending ids in the layout of ``gnnbench/id_set.h``."""
    words, before = [], 0
    for w in range((num_nodes + 31) // 32):
        bits = sum(1 << (i - 32 * w) for i in ids if i // 32 == w)
        words.append([bits - (bits >> 31 << 32), before])
        before += bits.bit_count()
    return torch.tensor(words, dtype=torch.int32).reshape(-1, 2)


def union_ids(r: random.Random) -> Call:
    n = r.randint(1, 200)
    batches, shared = batches_of(r, n), r.random() < 0.5
    seen = [i for b in batches for i in b.tolist()]
    expected = sorted({i for i in seen if not shared or seen.count(i) > 1})

    def check(got: Sequence[Tensor]) -> None:
        equal(got[0], torch.tensor(expected, dtype=batches[0].dtype), batches[0].dtype)
        equal(got[1], set_of(expected, n), torch.int32)

    return Call([batches, n, shared], check)


def gather_of_set(r: random.Random) -> Call:
    n = r.randint(1, 200)
    cached = sorted(r.sample(range(n), r.randint(1, n)))
    rows = whole(r, [len(cached), r.choice([1, 4])], r.choice(VALUES))
    ids = torch.tensor(r.choices(cached, k=r.randint(0, 40)), dtype=r.choice(IDS))
    expected = rows[torch.tensor([cached.index(i) for i in ids.tolist()], dtype=torch.int64)]
    return Call([rows, set_of(cached, n), ids], lambda got: equal(got, expected, rows.dtype))


def ones_of_set(r: random.Random) -> Call:
    n = r.randint(1, 120)
    batches, cached = batches_of(r, n), sorted(r.sample(range(n), r.randint(1, n)))
    first, shape = r.randint(0, 9), [r.randint(0, 3), len(batches), r.choice([0, 1, 16])]
    out = torch.zeros(shape, dtype=torch.float16)
    expected = ref_id_set.ones(cached, batches, first, shape)
    return Call([batches, set_of(cached, n), first, out], lambda _: equal(out, expected))


def sieve_insert(r: random.Random) -> Call:
    capacity = r.randint(1, 8)
    nodes, state = torch.zeros(capacity, dtype=torch.int64), torch.tensor([0, -1, -1, -1, -1])
    newer = torch.full((capacity,), -1, dtype=torch.int32)
    visited = torch.zeros(capacity, dtype=torch.uint8)
    ids = torch.tensor(r.sample(range(50), r.randint(0, 20)), dtype=torch.int64)
    expected = Sieve(capacity)
    expected.batch(ids.tolist())

    def check(got: Sequence[Tensor]) -> None:
        cached = {int(i): int(s) for i, s in zip(ids, got[0], strict=True) if s >= 0}
        assert sorted(cached) == sorted(expected.queue)
        assert all(int(nodes[slot]) == node for node, slot in cached.items())
        assert got[1].numel() == max(0, ids.numel() - capacity)

    return Call([nodes, newer, visited, state, ids], check)


def pad_blocks(r: random.Random) -> Call:
    layers, weighted = r.randint(0, 3), r.random() < 0.5
    batch: list[Any] = [[], [], []]
    target_parts: list[Any] = [[], [], []]
    for _ in range(layers):
        rows, edges, more = r.randint(0, 5), r.randint(0, 9), r.randint(1, 4)
        for part, count, extra, dtype in ((0, rows + 1, more, torch.int32),
                                          (1, edges, r.randint(0, 5), torch.int32)):  # fmt: skip
            batch[part].append(torch.arange(count, dtype=dtype))
            target_parts[part].append(torch.full((count + extra,), 77, dtype=dtype))
        if weighted:
            batch[2].append(torch.rand(edges))
            target_parts[2].append(torch.zeros(target_parts[1][-1].numel()))
    labels, to = torch.arange(r.randint(0, 4)), torch.zeros(6, dtype=torch.int64)

    def check(_: None) -> None:
        for part in range(3):
            for small, large in zip(batch[part], target_parts[part], strict=True):
                equal(large[: small.numel()], small)
        for small, large, edges in zip(batch[0], target_parts[0], target_parts[1], strict=True):
            assert large.numel() == small.numel() or int(large[-1]) == edges.numel()
        equal(to, torch.cat([labels, torch.full((6 - labels.numel(),), -1)]))

    return Call([*batch, labels, *target_parts, to], check)


def words_of(r: random.Random) -> Tensor:
    count = 16 * r.randint(0, 40)
    return torch.tensor([r.randrange(1 << 20) for _ in range(count + 16)], dtype=torch.int32)


def ceiling(r: random.Random, form: str) -> Call:
    storage = words_of(r)
    words = storage[(-storage.data_ptr() // 4) % 16 :]
    words = words[: words.numel() // 16 * 16]
    if form == "ceiling_copy":
        to = torch.zeros(words.numel() + 16, dtype=torch.int32)
        target = to[(-to.data_ptr() // 4) % 16 :][: words.numel()]
        return Call([words, target], lambda _: equal(target, words), {"storage": (storage, to)})
    if form == "ceiling_read":
        passes = r.randint(1, 4)
        expected = int(words.long().sum()) * passes % TWO_32
        return Call([words, passes], lambda got: equal(got, [expected]), {"storage": storage})
    if form == "ceiling_rows":
        table = storage.reshape(-1, r.choice([1, 4, 16]))
        ids = ids_below(r, table.shape[0], r.randint(0, 30), torch.int64)
        expected = int(table[ids].long().sum()) % TWO_32
        return Call([table, ids], lambda got: equal(got, [expected]))

    def check(got: Tensor) -> None:
        assert int(got) > 0 and int(got) % steps == 0

    steps = r.randint(1, 50)
    return Call([torch.zeros(1), steps], check)


def trace(r: random.Random) -> Call:
    def check(got: Tensor) -> None:
        equal(got, torch.zeros(0))
        assert torch.ops.gnnbench.trace(torch.zeros(1), False).shape == (0, 4)

    return Call([torch.zeros(1), True], check)


def rmat_graph(r: random.Random) -> Call:
    scale, count = r.randint(1, 6), r.randint(0, 300)
    ends = sorted(r.randint(1, 65536) for _ in range(3))
    names = torch.tensor(r.sample(range(1 << scale), 1 << scale))

    def check(got: Sequence[Tensor]) -> None:
        indptr, indices = got
        assert int(indptr[0]) == 0 and int(indptr[-1]) == indices.numel() == count
        assert bool((indptr.diff() >= 0).all())
        rows = [indices[a:b] for a, b in pairwise(indptr)]
        assert all(bool((row.diff() >= 0).all()) for row in rows)
        assert count == 0 or 0 <= int(indices.min()) <= int(indices.max()) < 1 << scale

    return Call([r.randrange(1 << 63), scale, count, ends, names], check)


def twin_spec(r: random.Random) -> TwinSpec:
    n = r.randint(8, 40)
    cuts = sorted(r.sample(range(1, n), 3))
    communities = torch.tensor([0, *cuts, n])
    law = torch.tensor(sorted(r.randint(0, 1000) for _ in range(34)))
    rows = r.randint(0, n // 2)
    level = sorted(r.randint(0, rows) for _ in range(2))
    return TwinSpec(
        key=r.randrange(1 << 62), num_nodes=n, num_edges=rows, symmetric=False,
        community_ptr=communities, region_ptr=torch.tensor([0, 2, 4]), in_law=law, out_law=law,
        in_positive=n, out_positive=n, tied=r.randint(0, 65536), in_limit=1 << 17,
        out_limit=1 << 17, boost=65536,
        level_edges=torch.tensor([level[0], level[1] - level[0], rows - level[1]]),
        wide_ids=r.random() < 0.5, num_classes=r.choice([1, 3, 2**31 - 1]),
        label_noise=r.randint(0, 65536), home=r.choice([-1, 0, 2, 1 << 40]),
        locality=r.randint(0, 65536), degree_bias=r.randint(0, 65536),
        splits=(r.randint(0, 3), r.randint(0, 3), r.randint(0, 2)), signal=r.randint(0, 65536),
        feature_dim=r.choice([1, 5, 33]),
    )  # fmt: skip


def twin(r: random.Random, form: str) -> Call:
    s = twin_spec(r)
    if form == "twin_graph":
        args = [
            s.key, s.num_nodes, s.num_edges, s.symmetric, s.community_ptr, s.region_ptr, s.in_law,
            s.out_law, s.in_positive, s.out_positive, s.tied, s.in_limit, s.out_limit, s.boost,
            s.level_edges, s.wide_ids,
        ]  # fmt: skip

        def check(got: Sequence[Tensor]) -> None:
            for one, other in zip(got, ref_twin.graph(s), strict=True):
                equal(one, other)

        return Call(args, check, {"may_fail": "the twin has"})
    if form == "twin_labels":
        args = [s.key, s.num_nodes, s.community_ptr, s.num_classes, s.label_noise]
        return Call(args, lambda got: equal(got, ref_twin.labels(s), torch.int64))
    if form == "twin_splits":

        def check_splits(got: Sequence[Tensor]) -> None:
            for one, other in zip(got, ref_twin.splits(s), strict=True):
                equal(one, other)

        args = [s.key, s.num_nodes, s.community_ptr, s.home, s.locality, s.degree_bias, *s.splits]
        return Call(args, check_splits)
    first = r.randint(0, s.num_nodes)
    out = torch.zeros(r.randint(0, s.num_nodes - first), s.feature_dim)
    args = [s.key, s.num_nodes, s.community_ptr, s.num_classes, s.signal, first, out]
    return Call(args, lambda _: equal(out, ref_twin.features(s)[first : first + len(out)]))


def seeded_features(r: random.Random) -> Call:
    n, classes, width = r.randint(1, 30), r.randint(0, 4), r.choice([1, 3, 8])
    labels = torch.tensor([r.randint(-1, classes - 1) for _ in range(n)])
    centres = whole(r, [classes + 1, width], torch.int16)
    first = r.randint(0, n)
    out = torch.zeros(r.randint(0, n - first), width)
    key = [r.randrange(1 << 63), r.randrange(1 << 63)]
    rows = labels[first : first + len(out)]

    def check(_: None) -> None:
        noise = 256 * out - centres[rows].float()  # the sum of two bytes, less 255
        assert bool((noise.abs() <= 255).all()) and bool((noise == noise.round()).all())

    return Call([key, labels, centres, first, out], check)
