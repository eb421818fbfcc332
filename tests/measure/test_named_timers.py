"""Seconds of work by name; on a GPU by events, which are read only at the end."""

import torch

from gnnbench.measure import named_timers as module
from gnnbench.measure.named_timers import Spent

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def test_host_time_is_summed_by_name(monkeypatch):
    readings = iter([1.0, 1.5, 2.0, 2.25, 3.0, 3.0])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(readings))
    spent = Spent()
    for name in ("a", "a", "b"):
        with spent.of(name, CPU):
            pass
    assert spent.take() == {"a": 0.75, "b": 0.0}
    assert spent.take() == {}


def test_gpu_time_is_between_events_read_at_the_end(monkeypatch):
    waits, clock = [], iter([10.0, 14.0, 20.0, 21.0])

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = next(clock)

        def synchronize(self):
            waits.append("waited")

        def elapsed_time(self, end):
            return end.at - self.at  # ms

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(module.time, "perf_counter", lambda: 1 / 0)
    spent = Spent()
    for _ in range(2):
        with spent.of("a", GPU):
            pass
    assert waits == []
    assert spent.take() == {"a": 0.005}
    assert waits == ["waited"] * 2 and spent.take() == {}
