"""When a timing anomaly is a doubt and when a fault, with epochs written by hand."""

from dataclasses import replace

import pytest

from gnnbench.core.cell import Cell
from gnnbench.harness.doubt import pair_doubt
from gnnbench.harness.timing_anomalies import (
    CLOCK,
    PROBE,
    QUIET,
    TimingAnomaly,
    confirmed,
    max_void_trials,
    of_clocks,
)
from gnnbench.schema.samples import EpochSample

CELL = Cell("e", "a", "d", "m")
ANOMALY = TimingAnomaly(CLOCK, "its clock is not right")


def epoch(wall=1.0, parent=1.0, outer=1.0, **more):
    known = {
        "id": CELL.id, "system": "a", "warmup": False, "wall_s": wall, "parent_s": parent,
        "outer_s": outer, "block_s": parent, "idle_cpu_s": 0.0, "foreign_cpu_s": 0.0,
        "cpu_s": wall,
    }  # fmt: skip
    return EpochSample(**{**known, **more})


def trial_event(kind, cell=CELL):
    return {"suspects": {cell.id: kind}}


def test_first_anomaly_is_a_doubt_and_its_repetition_a_fault():
    samples = [epoch(parent=1.5)] * 3
    assert of_clocks(samples).kind == CLOCK
    assert confirmed(ANOMALY, CELL, None, samples, 0) == ""
    assert confirmed(ANOMALY, CELL, {"suspects": {}}, samples, 0) == ""
    assert confirmed(ANOMALY, CELL, {}, samples, 0) == ""  # of an earlier version
    assert confirmed(ANOMALY, CELL, trial_event(CLOCK), samples, 0).startswith(ANOMALY.text)
    assert "on a quiet machine" in confirmed(ANOMALY, CELL, trial_event(CLOCK), samples, 0)


def test_anomaly_of_another_kind_or_cell_is_no_repetition():
    samples = [epoch(parent=1.5)] * 3
    assert confirmed(ANOMALY, CELL, trial_event(QUIET), samples, 0) == ""
    assert (
        confirmed(ANOMALY, CELL, trial_event(CLOCK, replace(CELL, recipe={"x": 1})), samples, 0)
        == ""
    )
    assert confirmed(TimingAnomaly(PROBE, "x"), CELL, trial_event(PROBE), samples, 0) != ""


@pytest.mark.parametrize("disturbance", [
    {"foreign_cpu_s": 0.5}, {"idle_cpu_s": 0.5}, {"stolen_s": 0.5}, {"stopped_s": 30.0},
    {"suspended_s": 60.0}, {"runner_wait_s": 0.1},
])  # fmt: skip
def test_busy_machine_confirms_no_anomaly(disturbance):
    samples = [epoch(parent=1.5, **disturbance)] * 3
    assert confirmed(ANOMALY, CELL, trial_event(CLOCK), samples, 0) == ""


def test_threads_that_delay_each_other_do_not_excuse_an_anomaly():
    samples = [epoch(parent=1.5, worker_wait_s=0.5, threads_wait_s=4.0)] * 3
    assert of_clocks(samples).kind == CLOCK
    assert confirmed(ANOMALY, CELL, trial_event(CLOCK), samples, 0) != ""


def test_stopped_warm_up_confirms_no_anomaly():
    samples = [epoch(warmup=True, stopped_s=30.0), *[epoch(parent=1.5)] * 3]
    assert confirmed(ANOMALY, CELL, trial_event(CLOCK), samples, 0) == ""


def test_probe_on_a_busy_machine_confirms_no_anomaly():
    anomaly, samples = TimingAnomaly(PROBE, "x"), [epoch()] * 3
    probe = EpochSample(block_s=1.0, idle_cpu_s=0.0, cpu_s=1.0, foreign_cpu_s=0.0)
    assert confirmed(anomaly, CELL, trial_event(PROBE), samples, 0, probe) != ""
    assert (
        confirmed(anomaly, CELL, trial_event(PROBE), samples, 0, replace(probe, foreign_cpu_s=0.9))
        == ""
    )


def test_waiting_for_a_core_is_no_anomaly():
    """A correct epoch of 0.1 s on a busy machine, where two wake-ups took 60 ms."""
    busy = epoch(0.1, 0.16, 0.1, runner_wait_s=0.03, worker_wait_s=0.03, foreign_cpu_s=0.1)
    assert of_clocks([busy] * 4) is None
    assert of_clocks([replace(busy, runner_wait_s=0.0, worker_wait_s=0.0)] * 4).kind == CLOCK
    # Delay that other programs did not cause is attributed to the worker.
    assert of_clocks([replace(busy, worker_wait_s=0.06, foreign_cpu_s=0.0)] * 4).kind == CLOCK
    # Waiting alone is no anomaly where the clocks agree.
    assert of_clocks([epoch(1.0, 1.001, runner_wait_s=0.5)] * 4) is None
    idle = epoch(0.1, 0.1, 0.2, threads_wait_s=0.3, foreign_cpu_s=0.3)
    assert of_clocks([idle] * 4) is None
    assert of_clocks([replace(idle, foreign_cpu_s=0.0)] * 4).kind == QUIET


@pytest.mark.parametrize(
    "pairs,equals,most",
    [([1], False, 2), ([5, 10], False, 2), ([10, 20], False, 4), ([40], True, 40)],
)
def test_void_pairs_are_limited(pairs, equals, most):
    assert max_void_trials(pairs, equals) == most


def test_stop_suspend_and_steal_are_doubts():
    assert pair_doubt([epoch(), epoch()]) == ""
    stopped = "the worker of 'a' was stopped by a signal"
    assert pair_doubt([epoch(), epoch(stopped_s=30.2)]) == f"{stopped} for 30 s"
    assert pair_doubt([epoch(stopped_s=0.001)]) == stopped
    assert pair_doubt([epoch()], untimed=[epoch(stopped_s=2.0)]) == f"{stopped} for 2 s"
    assert pair_doubt([epoch(suspended_s=3600.0)]) == "the machine was suspended for 3600 s"
    stolen = pair_doubt([epoch(stolen_s=0.5)] * 2)
    assert stolen == "the hypervisor gave 0.5 cores to other machines meanwhile"
    assert pair_doubt([epoch(stolen_s=0.01)] * 2) == ""
