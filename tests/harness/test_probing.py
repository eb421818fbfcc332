"""Reported phase times compared with probed ones, with epochs written by hand."""

from dataclasses import replace

from gnnbench.core.cell import Cell
from gnnbench.harness.probing import probe_fault, shared_by_ranks
from gnnbench.schema.samples import EpochSample, read_counts

ALONE = {"sample": 0.02, "memory_io": 0.01, "compute": 0.01}


def epochs(sample=0.08, memory_io=0.04, compute=0.04, wall=0.16):
    one = EpochSample(
        batches=4, wall_s=wall, sample_time_s=sample, memory_io_time_s=memory_io,
        compute_time_s=compute, idle_s=wall - sum(filter(None, (sample, memory_io, compute))),
    )  # fmt: skip
    return [one] * 3


def test_phases_as_long_as_their_probes_are_no_fault():
    assert probe_fault(epochs(), ALONE) == ""
    assert probe_fault(epochs(sample=0.05), ALONE) == ""
    assert probe_fault(epochs(sample=0.5, wall=0.6), ALONE) == ""  # cold memory, a pipeline


def test_phase_below_half_of_its_probe_is_a_fault():
    assert probe_fault(epochs(sample=0.03, memory_io=0.09), ALONE) == (
        "its epochs report 0.0075 s of 'sample' a batch where that takes 0.02 s by itself: the"
        " phase is booked elsewhere, or not done"
    )
    only = {"sample": 0.02}
    assert "of 'sample'" in probe_fault(epochs(sample=0.03), only)
    assert "of 'sample'" in probe_fault(epochs(sample=None), only)


def test_slower_machine_is_no_fault():
    half = epochs(0.036, 0.018, 0.018, 0.072)
    assert probe_fault(half, ALONE) == ""
    assert "of 'compute'" in probe_fault(epochs(0.045, 0.018, 0.009, 0.072), ALONE)
    # A slowdown of more than half is not accepted.
    assert "of 'sample'" in probe_fault(epochs(0.016, 0.008, 0.008, 0.032), ALONE)


def test_overlapping_phases_do_not_estimate_the_machines_speed():
    """An epoch as long as its longest phase: each phase is compared with its own probe."""
    overlapped = replace(epochs()[0], wall_s=0.08, idle_s=0.0)
    assert probe_fault([overlapped] * 3, ALONE) == ""
    # By the wall time, the machine would be slower by half.
    shortened = replace(overlapped, memory_io_time_s=0.015)
    assert "of 'memory_io'" in probe_fault([shortened] * 3, ALONE)


def test_very_short_and_unprobed_phases_are_no_fault():
    short = epochs(0.0001, 0.0002, 0.0001, 0.0004)
    assert probe_fault(short, {p: s / 200 for p, s in ALONE.items()}) == ""
    assert probe_fault(epochs(sample=0.0), {}) == ""
    assert probe_fault([], ALONE) == ""


def test_phase_times_of_ranks_are_summed():
    """Eight concurrent ranks take an eighth of the time for the same work."""
    eighth = epochs(0.01, 0.005, 0.005, 0.02)[0]
    assert "booked elsewhere" in probe_fault([eighth] * 3, ALONE)
    busy = {"sample": 0.01, "memory_io": 0.005, "compute": 0.005}
    counts = [
        ["schedule", f"rank_{p}_s", str(rank), s] for p, s in busy.items() for rank in range(8)
    ]
    of_ranks = replace(eighth, counts=read_counts(counts))
    assert probe_fault([of_ranks] * 3, ALONE, ranks=True) == ""
    fewer = [row for row in counts if row[1] != "rank_compute_s" or row[2] == "0"]
    unequal = replace(of_ranks, counts=read_counts(fewer))
    assert "of 'compute'" in probe_fault([unequal] * 3, ALONE, ranks=True)


def test_phases_are_shared_by_ranks_of_multi_rank_schedules():
    cell = Cell("e", "s", "d", "gcn", recipe={"schedule": {"name": "factored"}})
    assert shared_by_ranks(cell)
    assert not shared_by_ranks(replace(cell, recipe={"schedule": {"name": "serial"}}))
    assert not shared_by_ranks(replace(cell, recipe={}))
