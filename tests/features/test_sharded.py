"""One table for all ranks: bits, what is counted by path, and what may be asked for."""

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
    """Two batches of an epoch's own; those of nodes 3 and 5 are met most."""
    return [torch.tensor([3, 5, 7 + epoch % 50], dtype=torch.int32), torch.tensor([5, 3, 90])]


def peers_of(ranks):
    """The ranks of a group, as threads of this process may have them."""
    first = Peers.first(ranks, lambda: None)
    return [first, *(Peers.another(rank, ranks, first.port) for rank in range(1, ranks))]


def in_threads(calls):
    """What the calls return, made side by side."""
    found = [None] * len(calls)

    def run_one(nth, call):
        try:
            found[nth] = call()
        except GnnbenchError as error:
            found[nth] = error

    threads = [
        threading.Thread(target=run_one, args=pair, daemon=True) for pair in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return found


def stores(ranks, dtype=torch.float32, width=5, spec=None, foot=None):
    """A store for each rank, full, over one table."""
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
def test_each_rank_reads_every_row_bit_for_bit(ranks, dtype, width):
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
def test_a_sharded_cache_counts_each_row_where_it_was(ranks, ratio, policy):
    graph, made = stores(ranks, spec=Sharded(policy=policy, ratio=ratio))
    counts = hotness(Policy.named(policy), graph, footprint)
    cached = ranking(counts, NODES, 5)[: round(ratio * NODES)].tolist()
    asked = [torch.tensor([0, 5, 3, 90, 5, 12, 96]), torch.tensor([], dtype=torch.int64),
             torch.arange(NODES)]  # fmt: skip
    for rank, store in enumerate(made):
        expected = Counter()
        for ids in asked:
            rows = store.fetch(ids)
            assert same(rows, graph.features[ids])
            for node in ids.tolist():
                place = cached.index(node) if node in cached else -1
                mine = place % ranks == rank
                expected["host" if place < 0 else "cache" if mine else "peer"] += 20
        assert {w: n for w, n in bytes_of(store).items() if n} == dict(expected)
    for store in made:
        store.close()


def test_rows_are_read_from_where_they_are_counted():
    """A changed shard shows in the rows of all ranks, a changed table in the misses alone."""
    graph, made = stores(2, spec=Sharded(policy="presc#1", ratio=2 / NODES))  # nodes 3 and 5
    before = graph.features.clone()
    graph.features.zero_()
    made[1]._shards.own.fill_(7)  # place 1
    for store in made:
        rows = store.fetch(torch.tensor([3, 5, 8]))
        assert same(rows[0], before[3]) and rows[1].unique().tolist() == [7] and not rows[2].any()
    for store in made:
        store.close()


def test_results_stay_valid_as_long_as_the_job_asks():
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


def test_what_changes_between_epochs_is_refused():
    for policy in ("optimal", "sieve"):
        with pytest.raises(UsageError, match="holds the same rows in every epoch"):
            Sharded(policy=policy)
    with pytest.raises(UsageError, match="there is no cache policy"):
        Sharded(policy="oldest")


def test_a_full_table_locks_nothing_below():
    assert Sharded().resolved("cuda").table.name == "host"
    assert Sharded(ratio=0.5).resolved("cuda").table.name == "uva"
    assert Sharded(table="uva").resolved("cuda").table.name == "uva"


def test_gpus_that_do_not_read_each_other_are_refused(monkeypatch):
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
    """How many pieces of shared memory this process maps; they have no name in a file system."""
    gc.collect()  # what failed in tests before may hold some
    return Path("/proc/self/maps").read_text().count("memfd:gnnbench")


@pytest.mark.usefixtures("one_thread")
def test_a_killed_rank_leaves_no_shared_memory(small_graph):
    files, before = sorted(Path("/dev/shm").glob("gnnbench*")), shared_memory()
    asked = {"schedule": "data-parallel", "schedule.ranks": 3, "features": "sharded"}
    system = make(small_graph, settings=asked, **SMALL)
    assert run(system).ok and shared_memory() == before + 4  # three shards, the ranks' board
    first, *others = system.schedule.pids
    os.kill(first, signal.SIGKILL)
    with pytest.raises(RankDiedError, match="rank 1 died by SIGKILL"):
        run(system, 1)
    assert not any(map(alive, others))
    system.close()
    assert shared_memory() == before and sorted(Path("/dev/shm").glob("gnnbench*")) == files


@pytest.mark.usefixtures("one_thread")
def test_a_rank_that_ends_while_it_is_built_is_not_waited_for(small_graph, monkeypatch):
    """Rank 0 waits for the shards of others: one of them cannot draw the footprint."""
    asked = {"schedule": "data-parallel", "schedule.ranks": 3, "features": "sharded"}
    system = make(small_graph, settings=asked, setup=False, **SMALL)
    real = Peers.exchange

    def killing(self, what, own):
        signal_if_there(system.schedule.pids[1], signal.SIGKILL)
        return real(self, what, own)

    monkeypatch.setattr(Peers, "exchange", killing)
    with pytest.raises(RankDiedError, match="rank 2 died by SIGKILL"):
        system.setup()
    assert not any(map(alive, system.schedule.pids))
    system.close()


def test_what_ranks_cannot_cache_is_refused():
    def refused(**settings):
        asked = {"schedule": "data-parallel", "features": "cache", **settings}
        return find("baseline").resolved(asked, "cpu", Until.COMPUTE).unsupported

    assert not refused()
    assert "no oracle" in refused(**{"features.policy": "optimal"})
    auto = {"features.ratio": "auto", "features.memory_gib": 1}
    assert "does not derive a cache's ratio" in refused(**auto)
