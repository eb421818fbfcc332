"""Epochs in turns are the serial ones: batches, rows, losses, counts and what is looked at."""

import pytest
from compose import assert_no_thread_is_left, lives, make

from gnnbench.measure.timeline import Timeline

SMALL = {"batch_size": 20, "fanouts": (3, 2)}  # ten batches
OWN = {"stored_bytes", "stored_most_bytes"}  # counts of the schedule
STAGES = {
    "host": {},
    "gnnlab": {"sampler": "gnnlab", "features": "cache", "features.ratio": 0.3},
    "optimal": {"features": "cache", "features.policy": "optimal"},
    "sieve": {"features": "cache", "features.policy": "sieve", "features.ratio": 0.3},
    "match": {"features": "match"},
    "window": {"features": "window", "features.window": 3},
    "greedy-carried-match": {
        "features": "match", "order": "greedy", "order.window": 3, "order.start": "carried",
    },
    "greedy-window": {
        "features": "window", "features.window": 2, "order": "greedy", "order.window": 3,
    },
}  # fmt: skip


def alternate(batches, settings, depth=0):
    turns = {"schedule": "alternate", "schedule.batches": batches, "schedule.depth": depth}
    return turns | settings


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("batches", [0, 1, 4])
@pytest.mark.parametrize("stages", STAGES)
def test_losses_and_counts_are_serials_bit_for_bit(stages, batches, depth, small_graph, one_thread):
    serial = make(small_graph, settings=STAGES[stages], **SMALL)
    turns = make(small_graph, settings=alternate(batches, STAGES[stages], depth), **SMALL)
    assert lives(serial, but=OWN) == lives(turns, but=OWN)
    assert_no_thread_is_left()


@pytest.mark.parametrize("model", ["gin", "gat", "pinsage"])
def test_so_they_are_of_other_models(model, small_graph, one_thread):
    pick = {"sampler.pick": "random_walk"} if model == "pinsage" else {}
    of = {"model": model, **SMALL}
    serial = make(small_graph, settings=pick, **of)
    turns = make(small_graph, settings=alternate(0, pick), **of)
    assert lives(serial, but=OWN) == lives(turns, but=OWN)


@pytest.mark.parametrize("sampler", ["fused-map", "fastsample", "pgsampler"])
def test_every_sampler_of_ours_may_draw_a_turn(sampler, small_graph, one_thread):
    """None of them writes again what waits."""
    settings = {"sampler": sampler}
    serial = make(small_graph, settings=settings, **SMALL)
    turns = make(small_graph, settings=alternate(0, settings), **SMALL)
    assert lives(serial, but=OWN) == lives(turns, but=OWN)


@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("until", ["memory_io", "compute"])
@pytest.mark.parametrize("stages", ["host", "gnnlab", "greedy-carried-match"])
def test_it_is_looked_at_as_any_other(stages, until, depth, small_graph, one_thread):
    settings = alternate(4, STAGES[stages], depth)
    system = make(small_graph, settings=settings, until=until, **SMALL)
    serial = make(small_graph, settings=STAGES[stages], until=until, **SMALL)
    gate, right = system.check(), serial.check()
    assert gate.ok, gate.reason
    assert gate.digest == right.digest and gate.details == right.details
    timeline = Timeline.on("cpu")
    report = system.verify(5, timeline)
    assert report.ok, report.reason
    assert report.digest == serial.verify(5, Timeline.on("cpu")).digest
    assert system.recheck(7) == ""
    alone, fault = system.probe([8, 9])
    assert fault == "" and set(alone) == {"sample", "memory_io", "compute"} - (
        {"compute"} if until == "memory_io" else set()
    )
    system.close()
