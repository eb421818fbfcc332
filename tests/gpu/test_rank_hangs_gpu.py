"""Killed or stopped ranks on GPUs, slow GPU work, and network interfaces of NCCL."""

import signal
import time

import psutil
import pytest
import torch
from compose import make, run
from two_processes import alive, signal_if_there

from gnnbench.core import process_activity
from gnnbench.distributed.rank_failure import RankDiedError

pytestmark = pytest.mark.gpu(count=2)

SMALL = {"batch_size": 20, "fanouts": (3, 2), "device": "cuda"}  # ten batches


@pytest.fixture
def ranks(small_graph):
    """Builds systems of two ranks, and checks that nothing of them remains."""
    made = []

    def build(**settings):
        merged = {"schedule": "data-parallel", "features": "uva", **settings}
        made.append(make(small_graph, settings=merged, **SMALL))
        return made[-1]

    yield build
    for system in made:
        system.close()
        assert not any(map(alive, system.schedule.pids))


@pytest.mark.parametrize("schedule", ["data-parallel", "factored"])
@pytest.mark.parametrize(("sign", "match"), [("KILL", "died by SIGKILL"), ("STOP", "hangs")])
def test_missing_rank_ends_the_epoch(ranks, monkeypatch, sign, match, schedule):
    system = ranks(schedule=schedule)
    assert run(system).ok
    (pid,), step = system.schedule.pids, system.trainer.step

    def lose(batch, rows):
        signal_if_there(pid, getattr(signal, f"SIG{sign}"))
        monkeypatch.setattr(process_activity, "SILENCE_S", 3.0)
        step(batch, rows)

    system.trainer.step = system.stages.trainer.step = lose
    began = time.monotonic()
    with pytest.raises(RankDiedError, match=match):
        run(system, 1)
    assert time.monotonic() - began < 60 and not alive(pid)


def test_long_gpu_work_is_not_a_hang(ranks, monkeypatch):
    system = ranks()
    assert run(system).ok
    step = system.trainer.step

    def slow(batch, rows):
        step(batch, rows)
        torch.cuda._sleep(2_000_000_000)  # a second per span, started within milliseconds

    system.trainer.step = system.stages.trainer.step = slow
    monkeypatch.setattr(process_activity, "SILENCE_S", 3.0)
    assert run(system, 1).ok


def test_nccl_listens_only_on_the_loopback_interface(ranks):
    processes = [psutil.Process()]

    def addresses():
        ports = [c for p in processes for c in p.net_connections("inet") if c.status == "LISTEN"]
        return {c.laddr.ip for c in ports}

    before = addresses()
    system = ranks()
    processes += map(psutil.Process, system.schedule.pids)
    assert run(system).ok
    assert addresses() - before <= {"127.0.0.1"}
