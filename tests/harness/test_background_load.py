"""CPU time of other programs while a worker is measured."""

import time
from types import SimpleNamespace

import pytest

from gnnbench.harness.background_load import BackgroundLoad
from gnnbench.measure import contention, machine


@pytest.fixture
def clocks(monkeypatch):
    """CPU seconds of the machine, of a worker and of the runner, to be set."""
    now = SimpleNamespace(busy=100.0, worker=10.0, idle=1.0, runner=5.0)
    monkeypatch.setattr(machine, "busy_seconds", lambda: now.busy)
    monkeypatch.setattr(contention, "stolen_seconds", lambda: 0.0)
    monkeypatch.setattr(time, "process_time", lambda: now.runner)
    return now


def start(clocks):
    worker = SimpleNamespace(cpu_seconds=lambda: clocks.worker)
    return BackgroundLoad(worker, [SimpleNamespace(cpu_seconds=lambda: clocks.idle)])


def test_other_programs_are_all_but_the_workers_and_the_runner(clocks):
    load = start(clocks)
    clocks.busy, clocks.worker, clocks.idle, clocks.runner = 104.0, 12.0, 1.5, 5.25
    read = load.read()
    assert read["cpu_s"] == 2.0 and read["idle_cpu_s"] == 0.5
    assert read["foreign_cpu_s"] == pytest.approx(1.25)


def test_the_runners_own_reading_disturbs_nobody(clocks):
    load = start(clocks)
    clocks.busy, clocks.runner = 100.25, 5.25
    assert load.read()["foreign_cpu_s"] == 0.0
