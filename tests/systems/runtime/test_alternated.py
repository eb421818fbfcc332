"""Epochs of alternating phases equal serial ones: batches, rows, losses, counts and checks."""

import pytest
from compose import assert_no_thread_is_left, make, run_epochs

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
    schedule = {"schedule": "alternate", "schedule.batches": batches, "schedule.depth": depth}
    return schedule | settings


# Every stage with all batches and two depths, and every batches with every depth.
TURNS = [((0, 0), (1, 1), (4, 3)), ((0, 1), (1, 3), (4, 0)), ((0, 3), (1, 0), (4, 1))]


@pytest.mark.parametrize(
    "stages,turns", [(stages, TURNS[nth % 3]) for nth, stages in enumerate(STAGES)]
)
def test_losses_and_counts_equal_serial_ones(stages, turns, small_graph, one_thread):
    serial = run_epochs(make(small_graph, settings=STAGES[stages], **SMALL), but=OWN)
    for batches, depth in turns:
        settings = alternate(batches, STAGES[stages], depth)
        system = make(small_graph, settings=settings, **SMALL)
        assert run_epochs(system, but=OWN) == serial, (batches, depth)
        assert_no_thread_is_left()


@pytest.mark.parametrize("model", ["gin", "gat", "pinsage"])
def test_other_models_train_equally(model, small_graph, one_thread):
    pick = {"sampler.pick": "random_walk"} if model == "pinsage" else {}
    of = {"model": model, **SMALL}
    serial = make(small_graph, settings=pick, **of)
    turns = make(small_graph, settings=alternate(0, pick), **of)
    assert run_epochs(serial, but=OWN) == run_epochs(turns, but=OWN)


@pytest.mark.parametrize("sampler", ["fused-map", "fastsample", "pgsampler"])
def test_every_native_sampler_can_draw_a_turn(sampler, small_graph, one_thread):
    """None overwrites a batch that waits."""
    settings = {"sampler": sampler}
    serial = make(small_graph, settings=settings, **SMALL)
    turns = make(small_graph, settings=alternate(0, settings), **SMALL)
    assert run_epochs(serial, but=OWN) == run_epochs(turns, but=OWN)


@pytest.mark.parametrize(
    "stages,until,depth",
    [
        ("host", "memory_io", 0), ("gnnlab", "compute", 0), ("greedy-carried-match", "compute", 2),
        ("gnnlab", "memory_io", 2),
    ],
)  # fmt: skip
def test_all_checks_equal_those_of_a_serial_system(stages, until, depth, small_graph, one_thread):
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
