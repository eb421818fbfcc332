"""Peak GPU memory of the stages, with a fake allocator."""

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
    """Fakes torch's memory statistics of a GPU."""

    def __init__(self, monkeypatch):
        self.allocated = self.most = 0
        monkeypatch.setattr(torch.cuda, "init", lambda: None)
        monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", self.reset)
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: self.most)

    def reset(self, device):
        self.most = self.allocated

    def take(self, size):
        self.allocated += size
        self.most = max(self.most, self.allocated)

    def use(self, size):
        self.take(size)
        self.take(-size)


@pytest.fixture
def allocator(monkeypatch):
    return Allocator(monkeypatch)


def test_memory_of_excluded_work_is_no_peak(allocator):
    peak = Peak()
    allocator.use(99)  # before the measurement
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


def test_cpu_has_no_gpu_peak(allocator):
    peak = Peak()
    peak.begin(torch.device("cpu"))
    allocator.use(100)
    with peak.apart():
        assert peak.most == 0
    assert peak.most == 0


def test_process_bytes_exclude_checks_between_epochs(allocator):
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
def worker_rank(small_graph, monkeypatch):
    """A rank, and the nesting of excluded work in its epochs, audits and comparisons."""
    system = compose.make(small_graph, until="sample")
    depth, depths = [0], {}

    @contextmanager
    def apart():
        depth[0] += 1
        yield
        depth[0] -= 1

    def recorder(what, answer):
        def recorded(*_):
            depths.setdefault(what, []).append(depth[0])
            return answer

        return recorded

    monkeypatch.setattr(system.job.peak, "apart", apart)
    run = system.run_epoch
    monkeypatch.setattr(system, "run_epoch", lambda *a: (recorder("epoch", None)(), run(*a)))
    rank = WorkerRank.__new__(WorkerRank)
    rank._system, rank._fault, rank._seen = system, "", []
    rank._pulse = Pulse.alone()
    partition = SimpleNamespace(compare=recorder("compare", ""))
    rank._rank_schedule = SimpleNamespace(
        partition=partition, results=recorder("audited", "results"), rank=1, bytes_apart=0
    )
    return rank, depths


def test_checks_of_a_rank_are_excluded_from_the_peak(worker_rank):
    rank, depths = worker_rank
    rank.answer(RunEpoch(3, False, False))
    assert rank.answer(AuditEpoch(3)) == "results"
    rank.answer(RunEpoch(4, True, False))
    rank.answer(AuditEpoch(4))
    rank.answer(ComparePartition(0, []))
    assert depths["epoch"] == [0, 1] and depths["audited"] == [1, 1] and depths["compare"] == [1]
