"""The sharded store of several ranks: rows, counters by source, failures and options."""

import gc
import os
import signal
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from compose import make, run
from stores import DTYPES, WIDTHS, same, table
from two_processes import alive, signal_if_there

from gnnbench.core.cell import Cell, Until
from gnnbench.core.counters import Counts
from gnnbench.core.errors import GnnbenchError, UnsupportedError, UsageError
from gnnbench.core.job import Job
from gnnbench.core.rendezvous import Peers
from gnnbench.distributed.rank_failure import RankDiedError
from gnnbench.features.policies.policy import Policy, hotness, ranking
from gnnbench.features.shard_memory import Shards
from gnnbench.features.sharded_spec import Sharded
from gnnbench.kernels.sharded import check_peer_access, shard_rows
from gnnbench.systems.runtime.find import find

NODES = 97
SMALL = {"batch_size": 64, "fanouts": (3, 2)}


def footprint(epoch):
    """Two batches per epoch; nodes 3 and 5 are visited most."""
    return [torch.tensor([3, 5, 7 + epoch % 50], dtype=torch.int32), torch.tensor([5, 3, 90])]


def peers_of(ranks):
    """Rendezvous objects of all ranks, for threads of this process."""
    first = Peers.first(ranks, lambda: None)
    return [first, *(Peers.another(rank, ranks, first.port) for rank in range(1, ranks))]


def in_threads(calls):
    """Results of calls that run concurrently in threads."""
    results = [None] * len(calls)

    def run_one(nth, call):
        try:
            results[nth] = call()
        except GnnbenchError as error:
            results[nth] = error

    threads = [
        threading.Thread(target=run_one, args=pair, daemon=True) for pair in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def stores(ranks, dtype=torch.float32, width=5, spec=None, foot=None):
    """A prepared store for each rank, over one table."""
    graph = SimpleNamespace(
        name="t", features=table(dtype, width), num_nodes=NODES,
        indices=torch.arange(300, dtype=torch.int32) % 53,
    )  # fmt: skip
    resolved = (spec or Sharded()).resolved("cpu")
    feet = foot or [footprint] * ranks

    def build(peers, own):
        cell = Cell("e", "s", "t", "", batch_size=8, seed=5)
        made = resolved.build(Job(cell, graph, Counts(), max_in_flight=2, peers=peers))
        try:
            made.prepare(own)
        except GnnbenchError:
            made.close()
            raise
        return made

    pairs = zip(peers_of(ranks), feet, strict=True)
    return graph, in_threads([lambda p=p, f=f: build(p, f) for p, f in pairs])


def bytes_of(made):
    return {w: n for _, name, w, n in made.job.counts.rows() if name == "feature_bytes"}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_rank_reads_every_row_bit_for_bit(ranks, dtype, width):
    graph, made = stores(ranks, dtype, width)
    ids = torch.randperm(NODES, generator=torch.Generator().manual_seed(2))
    row = width * dtype.itemsize
    for rank, store in enumerate(made):
        batch = SimpleNamespace(input_nodes=ids.int() if rank % 2 else ids)
        assert same(store.load(batch), graph.features[ids])
        own = shard_rows(NODES, rank, ranks)
        expected = {"cache": own * row, "peer": (NODES - own) * row}
        assert bytes_of(store) == {w: n for w, n in expected.items() if n}
    for store in made:
        store.close()


@pytest.mark.parametrize("policy", ["degree", "random", "presc#2"])
@pytest.mark.parametrize("ratio", [1 / NODES, 0.2, 0.5, 0])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_sharded_cache_counts_rows_by_source(ranks, ratio, policy):
    graph, made = stores(ranks, spec=Sharded(policy=policy, ratio=ratio))
    counts = hotness(Policy.named(policy), graph, footprint)
    cached = ranking(counts, NODES, 5)[: round(ratio * NODES)].tolist()
    requests = [torch.tensor([0, 5, 3, 90, 5, 12, 96]), torch.tensor([], dtype=torch.int64),
             torch.arange(NODES)]  # fmt: skip
    for rank, store in enumerate(made):
        expected = Counter()
        for ids in requests:
            rows = store.fetch(ids)
            assert same(rows, graph.features[ids])
            for node in ids.tolist():
                place = cached.index(node) if node in cached else -1
                is_own = place % ranks == rank
                expected["host" if place < 0 else "cache" if is_own else "peer"] += 20
        assert {w: n for w, n in bytes_of(store).items() if n} == dict(expected)
    for store in made:
        store.close()


def test_rows_are_read_from_the_counted_source():
    """A changed shard changes rows of all ranks; a changed table changes only misses."""
    graph, made = stores(2, spec=Sharded(policy="presc#1", ratio=2 / NODES))  # nodes 3 and 5
    before = graph.features.clone()
    graph.features.zero_()
    made[1]._shards.own.fill_(7)  # place 1
    for store in made:
        rows = store.fetch(torch.tensor([3, 5, 8]))
        assert same(rows[0], before[3]) and rows[1].unique().tolist() == [7] and not rows[2].any()
    for store in made:
        store.close()


def test_results_stay_valid_for_max_in_flight():
    graph, (store,) = stores(1)
    first = store.fetch(torch.arange(10))
    store.fetch(torch.arange(50, 90))
    assert same(first, graph.features[:10])
    store.close()


def test_ranks_with_different_rows_are_refused():
    def another(epoch):
        return [torch.tensor([11, 13])]

    spec = Sharded(policy="presc#1", ratio=2 / NODES)
    _, made = stores(2, spec=spec, foot=[footprint, another])
    for error in made:
        assert type(error) is GnnbenchError and "rank the nodes differently" in str(error)


def test_policies_that_change_between_epochs_are_refused():
    for policy in ("optimal", "sieve"):
        with pytest.raises(UsageError, match="holds the same rows in every epoch"):
            Sharded(policy=policy)
    with pytest.raises(UsageError, match="there is no cache policy"):
        Sharded(policy="oldest")


def test_complete_table_needs_no_locked_fallback():
    assert Sharded().resolved("cuda").table.name == "host"
    assert Sharded(ratio=0.5).resolved("cuda").table.name == "uva"
    assert Sharded(table="uva").resolved("cuda").table.name == "uva"


def test_gpus_without_peer_access_are_refused(monkeypatch):
    monkeypatch.setattr(
        torch.cuda, "can_device_access_peer", lambda own, other: {own, other} != {0, 2}
    )
    check_peer_access(0, [0, 1])
    with pytest.raises(UnsupportedError, match=r"GPU 0 cannot read .* GPU 2 .*features=cache"):
        check_peer_access(0, [0, 1, 2])


def test_more_ranks_than_a_kernel_takes_are_refused():
    many = Peers(0, 65, None)
    with pytest.raises(UnsupportedError, match="at most 64 GPUs"):
        Shards(torch.zeros(4, 4), 4, torch.device("cuda", 0), many)


def shared_memory():
    """Number of anonymous shared-memory files that this process maps."""
    gc.collect()  # failed tests may leave references
    return Path("/proc/self/maps").read_text().count("memfd:gnnbench")


@pytest.mark.usefixtures("one_thread")
def test_a_killed_rank_leaves_no_shared_memory(small_graph):
    files, before = sorted(Path("/dev/shm").glob("gnnbench*")), shared_memory()
    settings = {"schedule": "data-parallel", "schedule.ranks": 3, "features": "sharded"}
    system = make(small_graph, settings=settings, **SMALL)
    assert run(system).ok and shared_memory() == before + 4  # three shards and the heartbeat
    first, *others = system.schedule.pids
    os.kill(first, signal.SIGKILL)
    with pytest.raises(RankDiedError, match="rank 1 died by SIGKILL"):
        run(system, 1)
    assert not any(map(alive, others))
    system.close()
    assert shared_memory() == before and sorted(Path("/dev/shm").glob("gnnbench*")) == files


@pytest.mark.usefixtures("one_thread")
def test_rank_that_dies_during_setup_ends_the_setup(small_graph, monkeypatch):
    """Rank 0 waits for the shards of others, and one of them is killed."""
    settings = {"schedule": "data-parallel", "schedule.ranks": 3, "features": "sharded"}
    system = make(small_graph, settings=settings, setup=False, **SMALL)
    real = Peers.exchange

    def killing(self, what, own):
        signal_if_there(system.schedule.pids[1], signal.SIGKILL)
        return real(self, what, own)

    monkeypatch.setattr(Peers, "exchange", killing)
    with pytest.raises(RankDiedError, match="rank 2 died by SIGKILL"):
        system.setup()
    assert not any(map(alive, system.schedule.pids))
    system.close()


def test_caches_that_ranks_do_not_support_are_refused():
    def refused(**changes):
        settings = {"schedule": "data-parallel", "features": "cache", **changes}
        return find("baseline").resolved(settings, "cpu", Until.COMPUTE).unsupported

    assert not refused()
    assert "no oracle" in refused(**{"features.policy": "optimal"})
    auto = {"features.ratio": "auto", "features.memory_gib": 1}
    assert "does not derive a cache's ratio" in refused(**auto)
