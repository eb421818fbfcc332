"""Checks of an epoch's report, with reports written by hand."""

from dataclasses import replace

import pytest

from gnnbench.core.cell import Cell
from gnnbench.harness import report_audit
from gnnbench.schema.samples import EpochSample

TIMES = {"wall_s": 1.0, "sample_time_s": 0.5, "memory_io_time_s": 0.2, "compute_time_s": 0.1}


def cell(until="compute", **changes):
    model = "gcn" if until == "compute" else ""
    return Cell("e", "s", "d", model, until=until, **{"composed": False, **changes})


def test_loss_is_required_with_a_model_and_refused_without():
    without = EpochSample(epoch=0, loss=None, **TIMES)
    with_one = replace(without, loss=0.5)
    assert report_audit.sample_fault(cell("sample"), {}, 0, without) == ""
    assert "epoch 0 has no loss" in report_audit.sample_fault(cell(), {}, 0, without)
    assert report_audit.sample_fault(cell(), {}, 0, with_one) == ""
    assert (
        report_audit.sample_fault(cell(composed=True), {}, 0, without) == ""
    )  # no seed has a label
    assert "no model" in report_audit.sample_fault(cell("memory_io"), {}, 0, with_one)
    same = [EpochSample(epoch=e, loss=None) for e in range(5)]
    assert report_audit.loss_fault(same) == ""


def test_sample_phase_of_gathers_may_take_no_time():
    report = EpochSample(epoch=3, loss=None, **{**TIMES, "sample_time_s": 0.0})
    gathers = replace(cell("memory_io"), fanouts=())
    assert report_audit.sample_fault(gathers, {}, 3, report) == ""
    assert "phase sample" in report_audit.sample_fault(cell("memory_io"), {}, 3, report)
    assert "phase memory_io" in report_audit.sample_fault(
        gathers, {}, 3, replace(report, memory_io_time_s=0.0)
    )


@pytest.mark.parametrize("missing", [None, 0.0])
def test_missing_phase_span_is_a_fault(missing):
    report = EpochSample(epoch=3, loss=0.5, **{**TIMES, "memory_io_time_s": missing})
    assert (
        report_audit.sample_fault(cell(), {}, 3, report)
        == "epoch 3 has no span of the phase memory_io"
    )
    report.loss = None
    assert report_audit.sample_fault(cell("sample"), {}, 3, report) == ""


def test_span_of_an_unexpected_phase_is_a_fault():
    assert report_audit.phase_fault(cell("memory_io"), 1, ["sample", "memory_io"]) == ""
    assert report_audit.phase_fault(cell("memory_io"), 1, ["sample", "compute"]) == (
        "epoch 1 has spans of 'compute' where its phases are: sample, memory_io"
    )
    assert "'copying'" in report_audit.phase_fault(cell(), 1, {"copying": 0.1})


def epochs(**values):
    times = {**TIMES, "outer_s": 1.0, "block_s": 1.02, "idle_s": 0.0, **values}
    return [EpochSample(**times)] * 4


def test_idle_time_is_a_doubt_if_a_system_opens_its_own_spans():
    idle = epochs(idle_s=0.5)
    assert "0.5 s of its epochs of 1 s are in no phase" in report_audit.idle_doubt(
        cell("sample"), idle
    )
    assert report_audit.idle_doubt(cell("sample"), epochs(idle_s=0.05)) == ""
    assert (
        report_audit.idle_doubt(cell(), idle) == ""
    )  # its primary metric, the wall time, includes idle time
    # Compared with a reference, which has the same loop, a millisecond and a tenth are too much.
    assert report_audit.idle_doubt(cell("sample"), epochs(idle_s=0.105), epochs(idle_s=0.01)) == ""
    assert "0.12 s of its epochs of 1 s" in report_audit.idle_doubt(
        cell("sample"), epochs(idle_s=0.12), epochs(idle_s=0.01)
    )
    # However short, half of a gain must not be idle time that the reference does not have.
    short, usual = {"wall_s": 2e-3, "idle_s": 6e-4}, {"wall_s": 2e-3, "idle_s": 1e-4}
    for own, doubtful in ((2e-4, True), (8e-4, True), (9.5e-4, False), (2e-3, False)):
        doubt = report_audit.idle_doubt(
            cell("sample"), epochs(**short, sample_time_s=own),
            epochs(**usual, sample_time_s=1e-3),
        )  # fmt: skip
        assert bool(doubt) == doubtful, own
    ours = {"order": {"name": "as-drawn"}, "schedule": {"name": "serial"}}
    assert report_audit.idle_doubt(cell("sample", composed=True, recipe=ours), idle) == ""
    for kind in ours:  # a plug-in may work before or between the spans
        recipe = {**ours, kind: {"name": "strange"}}
        doubt = report_audit.idle_doubt(cell("sample", composed=True, recipe=recipe), idle)
        assert "work may be left out of its sampling time" in doubt


@pytest.mark.parametrize(("device", "clock"), [("cpu", "work_cpu_s"), ("cuda", "wall_s")])
def test_longer_epochs_with_many_checked_batches_are_a_doubt(device, clock):
    counts = {"batches": 10, "sampled_edges": 1000, "unique_nodes": 1000}
    own, usual = cell("sample", device=device), epochs(**counts, **{clock: 0.1})

    def doubt(*seconds):
        checked = [epochs(**counts, checked=8.0, **{clock: s})[0] for s in seconds]
        return report_audit.checked_doubt(own, [*epochs(**counts, **{clock: 9.0}), *checked], usual)

    assert doubt(0.2, 0.2) == ""  # two could be long by chance
    assert doubt(0.2, 0.14, 0.2) == ""  # the shortest counts
    assert "epochs with many checked batches took 2.0 times as long" in doubt(0.21, 0.2, 0.21)


def test_long_audit_is_a_doubt():
    own = cell("sample")
    assert report_audit.after_doubt(own, epochs(audit_s=0.9)) == ""
    long = epochs(audit_s=1.5)
    assert "it worked for 1.52 s after each epoch of 1 s" in report_audit.after_doubt(own, long)
    short = epochs(wall_s=0.01, outer_s=0.01, block_s=0.03, audit_s=0.4)
    assert report_audit.after_doubt(own, short) == ""  # counting takes time


def test_built_in_stages_are_doubted_only_for_work_before_the_audit():
    ours = {"order": {"name": "as-drawn"}, "features": {"name": "host"}}
    known = cell("memory_io", composed=True, recipe=ours)
    assert report_audit.after_doubt(known, epochs(audit_s=9.0)) == ""
    assert "it worked for 2 s after each epoch" in report_audit.after_doubt(
        known, epochs(block_s=3.0)
    )
    custom = cell("memory_io", composed=True, recipe={**ours, "features": {"name": "strange"}})
    assert "it worked for" in report_audit.after_doubt(custom, epochs(audit_s=9.0))
