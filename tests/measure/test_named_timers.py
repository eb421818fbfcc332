"""Seconds of work by name; a GPU's by events, which nobody waits for before they are asked for."""

import torch

from gnnbench.measure import named_timers as module
from gnnbench.measure.named_timers import Spent

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def test_the_hosts_time_adds_up_by_name(monkeypatch):
    readings = iter([1.0, 1.5, 2.0, 2.25, 3.0, 3.0])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(readings))
    spent = Spent()
    for name in ("a", "a", "b"):
        with spent.of(name, CPU):
            pass
    assert spent.take() == {"a": 0.75, "b": 0.0}
    assert spent.take() == {}


def test_a_gpus_time_is_between_events_that_are_read_at_the_end(monkeypatch):
    told, clock = [], iter([10.0, 14.0, 20.0, 21.0])

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = next(clock)

        def synchronize(self):
            told.append("waited")

        def elapsed_time(self, end):
            return end.at - self.at  # ms

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(module.time, "perf_counter", lambda: 1 / 0)
    spent = Spent()
    for _ in range(2):
        with spent.of("a", GPU):
            pass
    assert told == []
    assert spent.take() == {"a": 0.005}
    assert told == ["waited"] * 2 and spent.take() == {}
