"""When timing that looks wrong is a doubt and when it is a fault, on epochs written out."""

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

CELL = Cell("e", "a", "d", "m")
BENT = TimingAnomaly(CLOCK, "its clock is not right")


def epoch(wall=1.0, parent=1.0, outer=1.0, **more):
    return {
        "id": CELL.id, "system": "a", "warmup": False, "wall_s": wall, "parent_s": parent,
        "outer_s": outer, "block_s": parent, "idle_cpu_s": 0.0, "foreign_cpu_s": 0.0,
        "cpu_s": wall, "runner_wait_s": 0.0, "worker_wait_s": 0.0, "threads_wait_s": 0.0,
        "stopped_s": 0.0, "suspended_s": 0.0, "stolen_s": 0.0, **more,
    }  # fmt: skip


def life(kind, cell=CELL):
    return {"suspects": {cell.id: kind}}


def test_a_first_look_is_a_doubt_and_the_same_again_a_fault():
    samples = [epoch(parent=1.5)] * 3
    assert of_clocks(samples).kind == CLOCK
    assert confirmed(BENT, CELL, None, samples, 0) == ""
    assert confirmed(BENT, CELL, {"suspects": {}}, samples, 0) == ""
    assert confirmed(BENT, CELL, {}, samples, 0) == ""  # of an earlier version
    assert confirmed(BENT, CELL, life(CLOCK), samples, 0).startswith(BENT.text)
    assert "on a quiet machine" in confirmed(BENT, CELL, life(CLOCK), samples, 0)


def test_another_kind_or_the_other_side_is_no_repetition():
    samples = [epoch(parent=1.5)] * 3
    assert confirmed(BENT, CELL, life(QUIET), samples, 0) == ""
    assert confirmed(BENT, CELL, life(CLOCK, replace(CELL, recipe={"x": 1})), samples, 0) == ""
    assert confirmed(TimingAnomaly(PROBE, "x"), CELL, life(PROBE), samples, 0) != ""


@pytest.mark.parametrize("disturbance", [
    {"foreign_cpu_s": 0.5}, {"idle_cpu_s": 0.5}, {"stolen_s": 0.5}, {"stopped_s": 30.0},
    {"suspended_s": 60.0}, {"runner_wait_s": 0.1},
])  # fmt: skip
def test_nothing_is_confirmed_on_a_busy_machine(disturbance):
    samples = [epoch(parent=1.5, **disturbance)] * 3
    assert confirmed(BENT, CELL, life(CLOCK), samples, 0) == ""


def test_threads_that_delay_each_other_are_no_busy_machine():
    samples = [epoch(parent=1.5, worker_wait_s=0.5, threads_wait_s=4.0)] * 3
    assert of_clocks(samples).kind == CLOCK
    assert confirmed(BENT, CELL, life(CLOCK), samples, 0) != ""


def test_a_stop_in_a_warm_up_counts():
    samples = [epoch(warmup=True, stopped_s=30.0), *[epoch(parent=1.5)] * 3]
    assert confirmed(BENT, CELL, life(CLOCK), samples, 0) == ""


def test_a_phase_probed_on_a_busy_machine_confirms_nothing():
    found, samples = TimingAnomaly(PROBE, "x"), [epoch()] * 3
    probe = {"block_s": 1.0, "idle_cpu_s": 0.0, "cpu_s": 1.0, "foreign_cpu_s": 0.0}
    assert confirmed(found, CELL, life(PROBE), samples, 0, probe) != ""
    assert confirmed(found, CELL, life(PROBE), samples, 0, {**probe, "foreign_cpu_s": 0.9}) == ""


def test_waiting_for_a_core_is_no_excess():
    """An honest epoch of 0.1 s on a busy machine: two wake-ups took 60 ms."""
    busy = epoch(0.1, 0.16, 0.1, runner_wait_s=0.03, worker_wait_s=0.03, foreign_cpu_s=0.1)
    assert of_clocks([busy] * 4) is None
    assert of_clocks([{**busy, "runner_wait_s": 0.0, "worker_wait_s": 0.0}] * 4).kind == CLOCK
    # Delay that other programs did not cause is the worker's own affair.
    assert of_clocks([{**busy, "worker_wait_s": 0.06, "foreign_cpu_s": 0.0}] * 4).kind == CLOCK
    # Nor does it make a clock that shows more than has passed.
    assert of_clocks([epoch(1.0, 1.001, runner_wait_s=0.5)] * 4) is None
    rest = epoch(0.1, 0.1, 0.2, threads_wait_s=0.3, foreign_cpu_s=0.3)
    assert of_clocks([rest] * 4) is None
    assert of_clocks([{**rest, "foreign_cpu_s": 0.0}] * 4).kind == QUIET


@pytest.mark.parametrize(
    "looks,equals,most",
    [([1], False, 2), ([5, 10], False, 2), ([10, 20], False, 4), ([40], True, 40)],
)
def test_void_pairs_are_few(looks, equals, most):
    assert max_void_trials(looks, equals) == most


def test_a_stop_and_a_suspend_are_doubts_with_their_length():
    assert pair_doubt([epoch(), epoch()]) == ""
    stopped = "the worker of 'a' was stopped by a signal"
    assert pair_doubt([epoch(), epoch(stopped_s=30.2)]) == f"{stopped} for 30 s"
    assert pair_doubt([epoch(stopped_s=0.001)]) == stopped
    assert pair_doubt([epoch()], untimed=[epoch(stopped_s=2.0)]) == f"{stopped} for 2 s"
    assert pair_doubt([epoch(suspended_s=3600.0)]) == "the machine was suspended for 3600 s"
    stolen = pair_doubt([epoch(stolen_s=0.5)] * 2)
    assert stolen == "the hypervisor gave 0.5 cores to other machines meanwhile"
    assert pair_doubt([epoch(stolen_s=0.01)] * 2) == ""
