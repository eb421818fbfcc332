"""Feature stores and their compositions under stress, and what they must have counted."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.job import Job
from gnnbench.features import Cache, Host, Match, Window
from gnnbench.features.policies.policy import Policy, cached_rows, hotness, ranking
from gnnbench.kernels.reference.sieve import Sieve
from gnnbench.pipelines.greedy import Greedy
from gnnbench.pipelines.order import AsDrawn
from gnnbench.pipelines.schedule import Stages

NODES, BATCHES, RATIO, MAX_IN_FLIGHT = 97, 50, 0.3, 3
POLICIES = ("degree", "random", "presc#1", "optimal", "optimal#2", "sieve")
WIDTHS, DTYPES = (1, 3, 5, 100, 129), (torch.float32, torch.float16, torch.bfloat16)
ORDERS = (AsDrawn(), Greedy(window=3))
CACHES = {f"cache {policy}": Cache(policy=policy, ratio=RATIO) for policy in POLICIES}
STORES = {
    "host": Host(), **CACHES, "cache none": Cache(ratio=0), "cache all": Cache(ratio=1),
    "match": Match(), "window": Window(window=4),
    **{f"match over {name}": Match(table=spec) for name, spec in CACHES.items()},
    **{f"window over {name}": Window(table=spec, window=4) for name, spec in CACHES.items()},
}  # fmt: skip


def shapes(names):
    """Name, dtype and width: two widths of each store, and all types, in turn."""
    pairs = [
        (name, WIDTHS[(nth + step) % len(WIDTHS)])
        for nth, name in enumerate(names)
        for step in (0, 2)
    ]
    return [(name, DTYPES[nth % len(DTYPES)], width) for nth, (name, width) in enumerate(pairs)]


def table(dtype, width):
    """Rows of random bits, including infinities and NaNs."""
    bits = torch.Generator().manual_seed(1)
    raw = torch.randint(
        0, 256, (NODES * width * dtype.itemsize,), dtype=torch.uint8, generator=bits
    )
    return raw.view(dtype).view(NODES, width)


def batch(ids, dtype=torch.int32):
    """A batch that needs the rows of these nodes."""
    return SimpleNamespace(input_nodes=torch.as_tensor(ids, dtype=dtype))


class Locked:
    """``LockedTensor`` where there is no GPU."""

    mapping_share = None

    def __init__(self, table, device, what, memory):
        self.tensor = table

    def close(self):
        pass


def same(rows, right):
    """Whether rows are equal bit by bit."""
    return rows.dtype is right.dtype and torch.equal(
        rows.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8)
    )


def footprint(epoch):
    """Ids of an epoch's batches: of any size, also none or all nodes, in any order."""
    draw = torch.Generator().manual_seed(epoch + 17)
    batches = []
    for _ in range(BATCHES):
        n = int(torch.randint(0, NODES + 1, (), generator=draw))
        # Some nodes are visited more often than others, as in any graph.
        scores = torch.rand(NODES, generator=draw) * torch.arange(1, NODES + 1)
        batches.append(scores.argsort(descending=True)[: n if n % 7 else n // 3].int())
    return batches


class Model:
    """Expected rows by path of a store, computed with sets and lists."""

    def __init__(self, spec, job):
        self.spec, self.job = spec, job
        self.window = getattr(spec, "window", 1)
        own = spec if isinstance(spec, Cache) else getattr(spec, "table", None)
        self.cache = own if isinstance(own, Cache) else None
        self.sieve = Sieve(cached_rows(RATIO, NODES))
        self.cached, self.last = set(), set()
        self.rows = {"host": 0, "cache": 0, "reused": 0}

    def missing_ids(self, batches):
        """Ids requested from the fallback, by window or batch."""
        last = set()
        for first in range(0, len(batches), self.window):
            ids = set().union(*(b.tolist() for b in batches[first : first + self.window]))
            yield torch.tensor(sorted(ids - last), dtype=torch.int64)
            last = ids if isinstance(self.spec, Match) else set()

    def fill(self, below, epochs=()):
        """Choose the rows of a static cache by the requests in ``below``."""
        policy = Policy.named(self.cache.policy)
        if policy.name == "sieve" or (policy.name == "optimal" and not epochs):
            return
        counted = hotness(policy, self.job.graph, below, epochs)
        rows = cached_rows(self.cache.ratio, NODES)
        self.cached = set(ranking(counted, NODES, self.job.cell.seed)[:rows].tolist())

    def begin(self):
        self.last = set()

    def load(self, batches):
        """One batch, or a window's."""
        requested, union = (
            sum(b.numel() for b in batches),
            set().union(*(b.tolist() for b in batches)),
        )
        here = union - self.last
        self.last = union if isinstance(self.spec, Match) else set()
        hits = len(here & self.cached)
        if self.cache is not None and self.cache.policy == "sieve":
            hits = self.sieve.batch(sorted(here))
        self.rows["reused"] += requested - len(here)
        self.rows["cache"] += hits
        self.rows["host"] += len(here) - hits


def stress(spec, dtype, width, device="cpu", path="host"):
    """Run four epochs of a store in both batch orders.

    Checks the bits of every result, and of earlier results that must still be valid, and the rows
    by path after each group. ``path`` is the path of the fallback's counts.
    """
    features = table(dtype, width)
    graph = SimpleNamespace(
        name="t", features=features, num_nodes=NODES, train_idx=torch.arange(NODES),
        indices=torch.arange(200, dtype=torch.int32) % 53, num_edges=200,
    )  # fmt: skip
    job = Job(
        Cell("e", "s", "t", "", batch_size=8, seed=5, device=device), graph, Counts(), MAX_IN_FLIGHT
    )
    store = spec.resolved(device).build(job)
    model = Model(spec, job)

    def order_of(epoch):
        return ORDERS[epoch % 2].build(job)

    def arranged(epoch):
        stages = Stages(None, store, None, None, order_of(epoch))
        batches = [
            SimpleNamespace(input_nodes=ids.to(device), number=nth)
            for nth, ids in enumerate(footprint(epoch))
        ]
        last = None
        for first in range(0, BATCHES, stages.window):
            group = stages.reorder(batches[first : first + stages.window], last)
            last = group[-1]
            yield stages, group

    def requested_ids(epoch):
        return [b.input_nodes for _, group in arranged(epoch) for b in group]

    def below(epoch):
        return model.missing_ids([ids.cpu() for ids in requested_ids(epoch)])

    store.prepare(requested_ids)
    if model.cache is not None:
        model.fill(below)
    job.counts.clear()
    requested = 0
    for epoch in range(4):
        if (length := spec.foresees) and epoch % length == 0:
            store.foresee(requested_ids, range(epoch, epoch + length))
            model.fill(below, range(epoch, epoch + length))
        store.forget()
        model.begin()
        valid = deque(maxlen=MAX_IN_FLIGHT)
        for stages, group in arranged(epoch):
            for nth, batch in enumerate(group):
                ids = batch.input_nodes.cpu().long()
                valid.append((stages.load(group, nth), features[ids]))
                for rows, right in valid:
                    assert same(rows.cpu(), right), (epoch, batch.number)
                requested += ids.numel()
                if nth % model.window == 0:
                    model.load([b.input_nodes for b in group[nth : nth + model.window]])
            row = width * dtype.itemsize
            rows = {
                ("host" if w == path else w): n // row
                for _, name, w, n in job.counts.rows() if name == "feature_bytes"
            }  # fmt: skip
            assert rows == {w: n for w, n in model.rows.items() if n or w in rows}
            assert sum(rows.values()) == requested
    assert requested > 1000
    store.close()
