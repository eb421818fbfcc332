"""A GPU's peak of memory, by an allocator that is told what to hold: it is the stages' alone."""

from contextlib import contextmanager
from types import SimpleNamespace

import compose
import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.heartbeat import Pulse
from gnnbench.core.job import Job
from gnnbench.core.peak_memory import Peak
from gnnbench.distributed.rank_messages import AuditEpoch, ComparePartition, RunEpoch
from gnnbench.distributed.rank_schedule import process_bytes
from gnnbench.pipelines.schedule import Stages
from gnnbench.systems.runtime.worker_rank import WorkerRank


class Allocator:
    """As torch's statistics of a GPU are."""

    def __init__(self, monkeypatch):
        self.held = self.most = 0
        monkeypatch.setattr(torch.cuda, "init", lambda: None)
        monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", self.reset)
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: self.most)

    def reset(self, device):
        self.most = self.held

    def take(self, size):
        self.held += size
        self.most = max(self.most, self.held)

    def use(self, size):
        self.take(size)
        self.take(-size)


@pytest.fixture
def allocator(monkeypatch):
    return Allocator(monkeypatch)


def test_what_is_taken_apart_is_no_peak(allocator):
    peak = Peak()
    allocator.use(99)  # of others, before
    peak.begin(torch.device("cuda:0"))
    allocator.take(10)
    allocator.use(5)
    for _ in range(2):
        with peak.apart():
            allocator.use(1000)
            with peak.apart():
                allocator.use(2000)
            allocator.use(1000)
            assert peak.most == 15
    assert peak.most == 15
    allocator.use(20)
    assert peak.most == 30
    with pytest.raises(ValueError, match="within"), peak.apart():
        allocator.use(1000)
        raise ValueError("within")
    assert peak.most == 30


def test_a_cpu_has_no_such_peak(allocator):
    peak = Peak()
    peak.begin(torch.device("cpu"))
    allocator.use(100)
    with peak.apart():
        assert peak.most == 0
    assert peak.most == 0


def test_ranks_tell_the_peak_of_all_their_epochs_and_of_no_look(allocator):
    """Rank 0 and the others alike, whatever was looked at between the epochs."""
    job = Job(Cell("e", "s", "t", "", device="cuda:0"), None, Counts())
    job.peak.begin(job.device)
    stages = Stages(SimpleNamespace(job=job), SimpleNamespace(bytes_apart=7), None, print)
    allocator.use(100)
    assert process_bytes(job.device, stages) == 107
    with job.peak.apart():
        allocator.use(1000)
        assert process_bytes(job.device, stages) == 107
    allocator.use(50)
    assert process_bytes(job.device, stages) == 107


@pytest.fixture
def follower(small_graph, monkeypatch):
    """One of which the epochs, audits and comparisons tell how deep they are in work apart."""
    system = compose.make(small_graph, until="sample")
    depth, seen = [0], {}

    @contextmanager
    def apart():
        depth[0] += 1
        yield
        depth[0] -= 1

    def note(what, answer):
        def noted(*_):
            seen.setdefault(what, []).append(depth[0])
            return answer

        return noted

    monkeypatch.setattr(system.job.peak, "apart", apart)
    run = system.run_epoch
    monkeypatch.setattr(system, "run_epoch", lambda *a: (note("epoch", None)(), run(*a)))
    found = WorkerRank.__new__(WorkerRank)
    found._system, found._fault, found._seen = system, "", []
    found._pulse = Pulse.alone()
    held = SimpleNamespace(compare=note("compare", ""))
    found._rank_schedule = SimpleNamespace(partition=held, results=note("audited", "told"), rank=1)
    return found, seen


def test_what_a_rank_looks_at_is_apart(follower):
    rank, seen = follower
    rank.answer(RunEpoch(3, False, False))
    assert rank.answer(AuditEpoch(3)) == "told"
    rank.answer(RunEpoch(4, True, False))
    rank.answer(AuditEpoch(4))
    rank.answer(ComparePartition(0, []))
    assert seen["epoch"] == [0, 1] and seen["audited"] == [1, 1] and seen["compare"] == [1]
