"""Batches sampled ahead of use: reordered, loaded in windows, audited, verified, probed."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from compose import counted, epoch_timeline, make, run, timed, verify_timed

from gnnbench.harness.training_check import find_excess, structural_fault
from gnnbench.measure.timeline import Timeline
from gnnbench.schema.samples import EpochSample
from gnnbench.systems.runtime.epoch_audit import check_batch_order

GREEDY = {"order": "greedy", "order.window": 3}
STORES = [
    {"features": "match"}, {"features": "window", "features.window": 3},
    {"features": "window", "features.window": 5}, {},
]  # fmt: skip
SAMPLERS = ["hop-by-hop", "fused-map", "fastsample", "pgsampler", "dgl"]
SMALL = {"batch_size": 20, "fanouts": (3, 2)}  # ten batches


def verify(system, epoch=2):
    return system.verify(epoch, Timeline.on("cpu"))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_reordered_batches_are_the_same_work(sampler, small_graph, one_thread):
    """Every batch is still correct when it runs, and digests are equal."""
    one = make(small_graph, settings={"sampler": sampler}, **SMALL)
    settings = {"sampler": sampler, "features": "match", **GREEDY}
    other = make(small_graph, settings=settings, **SMALL)
    assert one.check().digest == other.check().digest
    drawn, reordered = verify_timed(one)[0], verify_timed(other)[0]
    assert drawn.ok and reordered.ok, reordered.reason
    if sampler != "dgl":  # DGL has its own random numbers
        assert drawn.digest == reordered.digest
        assert counted(reordered)["order", "reordered", ""] > 0
    else:
        epochs = (verify_timed(other, epoch)[0] for epoch in range(3, 33))
        assert any(counted(report)["order", "reordered", ""] > 0 for report in epochs)
    assert drawn.batches == reordered.batches == 10
    other.order.window = 2
    assert "outside its window" in _with_a_wider_window(other).reason


def _with_a_wider_window(system):
    """Audit an epoch whose batches are moved by more than the window."""
    original = system.order.arrange
    system.order.arrange = lambda window, last: original(window, last)[::-1]
    system.order.window = 5
    timed(system, 4)
    system.order.window = 2
    return system.audit(4)


@pytest.mark.parametrize("order", [{}, GREEDY], ids=["as-drawn", "greedy"])
@pytest.mark.parametrize("store", STORES, ids=lambda s: "-".join(map(str, s.values())) or "host")
def test_rows_equal_the_table_with_reuse(store, order, small_graph, one_thread):
    system = make(small_graph, settings={**store, **order}, until="memory_io", **SMALL)
    assert system.check().ok
    plain = make(small_graph, until="memory_io", **SMALL)
    for epoch in range(3):
        report, timeline = verify_timed(system, epoch)
        assert report.ok, report.reason
        original = verify_timed(plain, epoch)[0]
        assert report.digest == original.digest and report.unique_nodes == original.unique_nodes
        counts = counted(report)
        row = small_graph.feature_dim * 4
        served = counts["features", "feature_bytes", "host"]
        served += counts.get(("features", "feature_bytes", "reused"), 0)
        assert served == report.unique_nodes * row
        assert {s.phase for s in timeline.spans()} == {"sample", "memory_io"}
        assert timeline.sweep().overlap == 0
    assert system.recheck(1) == ""
    alone, fault = system.probe([0, 1])
    assert (
        fault == "" and set(alone) == {"sample", "memory_io"} and min(map(min, alone.values())) > 0
    )


def test_epoch_starts_without_reusable_rows(small_graph, one_thread):
    """The rows that an epoch loads do not depend on earlier epochs."""
    system = make(small_graph, settings={"features": "match"}, until="memory_io", **SMALL)
    first = counted(run(system, 3))
    run(system, 5)
    system.recheck(1)
    assert counted(run(system, 3)) == first


def test_reordering_loads_fewer_rows(small_graph, one_thread):
    loaded = {}
    for name, settings in (("drawn", {}), ("greedy", {"order": "greedy", "order.window": 10})):
        system = make(
            small_graph, settings={"features": "match", **settings}, until="memory_io", **SMALL
        )
        bytes_loaded = [
            counted(run(system, e))["features", "feature_bytes", "host"] for e in range(5)
        ]
        loaded[name] = sum(bytes_loaded)
    assert loaded["greedy"] < loaded["drawn"]


def test_phase_spans_of_a_window(small_graph, one_thread):
    """A window is sampled, then ordered; ordering and loading are memory IO."""
    system = make(small_graph, settings={"features": "match", **GREEDY}, **SMALL)
    timeline = epoch_timeline(system)
    phases = [s.phase for s in timeline.spans()]
    window = ["sample"] * 3 + ["memory_io"] + ["memory_io", "compute"] * 3
    assert phases == window * 3 + ["sample", "memory_io", "memory_io", "compute"]


def test_training_in_another_order_is_within_tolerance(small_graph, one_thread):
    """A layer that does not move is detected."""
    trainings = []
    for settings in ({}, {"features": "match", **GREEDY}):
        system = make(small_graph, settings=settings, **SMALL)
        reports = [run(system, epoch) for epoch in range(4)]
        trainings.append(
            [
                EpochSample(
                    epoch=r.epoch, loss=r.loss, unique_nodes=r.unique_nodes,
                    param_moved=r.param_moved, param_norm=r.param_norm,
                )
                for r in reports
            ]
        )  # fmt: skip
    one, other = trainings
    assert find_excess([(one, other)], [], "identical", reordered=True) is None
    still = [replace(r, param_moved=[0.0, *r.param_moved[1:]]) for r in other]
    excess = find_excess([(one, still)], [], "identical", reordered=True)
    assert excess is not None and "moved layer 1 by 0" in excess.text
    fewer = [replace(r, unique_nodes=r.unique_nodes - 1) for r in other]
    assert "nodes where the reference" in structural_fault(one, fewer, "identical")


def test_batch_order_check():
    run = [(1, "b"), (0, "a"), (2, "c")]
    assert check_batch_order(run, 2) == (["a", "b", "c"], "")
    assert check_batch_order(run, 1) == (["b", "a", "c"], "")
    assert "ran some of them twice" in check_batch_order([(0, "a"), (0, "a")], 2)[1]
    assert (
        "batch 3 was run as the epoch's 1., outside its window of 2"
        in (check_batch_order([(2, "c"), (1, "b"), (0, "a")], 2)[1])
    )


def test_order_that_repeats_a_batch_is_detected(small_graph, one_thread):
    system = make(small_graph, settings=GREEDY, until="memory_io", **SMALL)
    system.order.arrange = lambda window, last: [0] * len(window)
    report = run(system)
    assert not report.ok and "ran some of them twice" in report.reason


def test_batch_with_a_wrong_number_is_detected(small_graph, one_thread):
    system = make(small_graph, settings=GREEDY, until="memory_io", **SMALL)
    original = system.stages.sampler

    def swapped(seeds, epoch, number):
        return replace(original.sample(seeds, epoch, number), number=number ^ 1)

    names = ("law", "expect", "frontier", "name")
    sampler = SimpleNamespace(sample=swapped, **{n: getattr(original, n) for n in names})
    system.stages = replace(system.stages, sampler=sampler)
    report = run(system)
    assert not report.ok and torch.is_tensor(system.graph.train_idx)
    assert "drawn for other seeds" in report.reason or "outside its window" in report.reason


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("store", [1, 2, 3, 4, 6])
def test_windows_of_order_and_store_may_differ(order, store, small_graph, one_thread):
    """The store always gets complete windows of its own size."""
    settings = {
        "order": "greedy", "order.window": order, "features": "window", "features.window": store,
    }  # fmt: skip
    system = make(small_graph, settings=settings, until="memory_io", **SMALL)
    system.order.arrange = lambda window, last: list(range(len(window)))[::-1]
    announced = []
    original = system.stages.store.announce
    system.stages.store.announce = lambda batches: (
        announced.append(len(batches)) or original(batches)
    )
    report = run(system, 3)
    assert report.ok, report.reason
    groups, rest = divmod(10, store)
    assert announced == [store] * groups + [rest] * (rest > 0)


def test_gate_checks_rows_of_all_batches_of_a_store(small_graph, one_thread):
    """The gate compares rows that ``match`` reuses and rows of a window."""
    for spoilt in ("match", "window"):
        system = make(small_graph, settings={"features": spoilt}, until="memory_io", **SMALL)
        assert system.check().ok
        original, calls = system.stages.store.load, []

        def load(batch, original=original, calls=calls):
            calls.append(batch)
            rows = original(batch)
            return rows if len(calls) < 2 else rows.roll(1, 0)

        system.stages.store.load = load
        assert "feature rows differ" in system.check().reason
