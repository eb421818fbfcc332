"""Overlap bound and interference from journals written by hand."""

import json
from dataclasses import replace

import pytest

from gnnbench.analysis import metrics as m
from gnnbench.analysis.metrics import Metrics
from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import CellPair, Plan
from gnnbench.harness.reduce.cells import cell_rows
from gnnbench.harness.reduce.overlap_bounds import least

ALONE = {"sample": 0.2, "memory_io": 0.5, "compute": 0.4}
CELL = Cell(
    "e", "baseline", "d", "gcn", device="cuda", batch_size=100, threads=1,
    recipe={"sampler": {"name": "hop-by-hop", "topology": "gpu"}, "schedule": {"name": "prefetch"}},
)  # fmt: skip
LINK = (("features", "feature_bytes", "zero_copy", 4000),)
# Three batches of 100 seeds and one of 50: 3.5 full batches.
EPOCH = {"wall_s": 2.31, "sample_time_s": 0.7, "memory_io_time_s": 2.1, "compute_time_s": 1.68}


def with_topology(topology, **changes):
    return replace(CELL, recipe={"sampler": {"name": "s", "topology": topology}}, **changes)


def sample(cell, number=0, trial=0, worker=7, counts=LINK, **times):
    return {
        "id": cell.id, "pair": cell.id, "life": trial, "worker": worker, "round": number,
        "order": 0, "warmup": False, "epoch": number, "outer_s": 1.0, "overlap_s": 0.1,
        "idle_s": 0.0, "batches": 4, "seeds": 350, "sampled_edges": 8, "unique_nodes": 9,
        "loss": 1.0, "peak_alloc_bytes": 1, "peak_rss_bytes": 1, "ok": True, "counts": counts,
        "foreign_cpu_s": 0.0, "idle_cpu_s": 0.0, "block_s": 1.0, "system": cell.system,
        "dataset": cell.dataset, "model": cell.model, **EPOCH, **times,
    }  # fmt: skip


def probe_event(cell, worker=7, **changes):
    median = {**ALONE, **changes}
    halved = {phase: seconds / 2 for phase, seconds in median.items()}
    event = {"event": "probed", "cell": cell.id, "worker": worker, "cores": 4}
    return {**event, "alone": halved, "median": median}


def trial_event(cell, trial=0, void=False):
    return {
        "event": "life", "pair": CellPair(cell).id, "life": trial, "doubt": "", "void": void,
        "seconds": 1.0, "start_s": 0.1,
    }  # fmt: skip


@pytest.fixture
def metrics_of(tmp_path):
    def made(cell, samples, events):
        pair = CellPair(cell)
        for name, lines in (("samples", samples), ("events", events)):
            lines = [{**line, "pair": pair.id} if name == "samples" else line for line in lines]
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (tmp_path / f"{name}.jsonl").write_text(text)
        plan = Plan([cell], [pair], {cell.id: cell})
        plan.names = {cell.id: [cell.system]}
        return Metrics(cell_rows(plan, RunJournal(tmp_path), MeasureLimits())[1])

    return made


def bounds(known, cell=CELL):
    of_epoch = {what: known.value(cell.id, m.EPOCH, what) for what in (m.BOUND, m.OF_BOUND)}
    phases = {p: known.value(cell.id, p, m.INTERFERENCE) for p in ALONE}
    return [*of_epoch.values(), *phases.values()]


def test_epoch_is_compared_with_its_bound_and_each_phase_with_its_probe(metrics_of):
    known = metrics_of(CELL, [sample(CELL)], [probe_event(CELL), trial_event(CELL)])
    # Multiprocessors are busy for 0.2 + 0.4 s, the link for 0.5 s; times 3.5 batches.
    assert bounds(known) == pytest.approx([2.1, 1.1, 1.0, 1.2, 1.2])
    assert [known.value(CELL.id, p, m.PROBED) for p in ALONE] == [0.2, 0.5, 0.4]


def test_of_bound_is_the_mean_over_trials_of_median_epochs(metrics_of):
    walls = ([2.1, 9.0, 2.0], [8.4] * 3)
    samples = [
        sample(CELL, number, trial, wall_s=wall)
        for trial, own in enumerate(walls)
        for number, wall in enumerate(own)
    ]
    known = metrics_of(CELL, samples, [probe_event(CELL), trial_event(CELL), trial_event(CELL, 1)])
    row = known.row(CELL.id, m.EPOCH, m.OF_BOUND)
    assert row["value"] == pytest.approx(2.0) and row["n"] == 2  # of 1 and 4, geometric
    assert row["low"] < 2.0 < row["high"]


def test_probes_of_void_trials_are_ignored(metrics_of):
    samples = [sample(CELL), sample(CELL, trial=1, worker=8), sample(CELL, trial=2, worker=9)]
    events = [
        probe_event(CELL, compute=0.3), trial_event(CELL),
        probe_event(CELL, worker=8, compute=70.0), trial_event(CELL, 1, void=True),
        probe_event(CELL, worker=9, compute=0.5), trial_event(CELL, 2),
    ]  # fmt: skip
    known = metrics_of(CELL, samples, events)
    assert known.value(CELL.id, "compute", m.PROBED) == pytest.approx(0.4)


@pytest.mark.parametrize(
    "events",
    [[], [{"event": "probed", "cell": CELL.id, "worker": 7, "alone": ALONE}]],
    ids=["never probed", "earlier gnnbench version"],
)
def test_bound_needs_a_probe(metrics_of, events):
    known = metrics_of(CELL, [sample(CELL)], [*events, trial_event(CELL)])
    assert bounds(known) == [None] * 5


def test_rows_on_the_device_are_charged_to_multiprocessors(metrics_of):
    counts = (("features", "feature_bytes", "device", 4000), ("features", "calls", "zero_copy", 0))
    known = metrics_of(CELL, [sample(CELL, counts=counts)], [probe_event(CELL), trial_event(CELL)])
    assert known.value(CELL.id, m.EPOCH, m.BOUND) == pytest.approx(3.5 * 1.1)


def test_floor_is_the_time_of_one_copy_of_rows_over_the_link(metrics_of):
    """Cached and reused rows do not cross the link; copies of other trials are ignored."""
    counts = [
        ("features", "feature_bytes", "zero_copy", 3500),
        ("features", "feature_bytes", "disk", 500),
        ("features", "feature_bytes", "host_copy", 1000),
        ("features", "feature_bytes", "cache", 9000), ("features", "feature_bytes", "reused", 900),
        ("features", "feature_bytes", "peer", 90), ("sampler", "topology_bytes", "zero_copy", 9),
    ]  # fmt: skip
    copies = [{"bytes": 4000, "seconds": s} for s in (2.0, 1.0)]
    events = [
        {**probe_event(CELL), "copied": copies[0]},
        {**probe_event(CELL, worker=8), "copied": copies[1]}, trial_event(CELL),
    ]  # fmt: skip
    known = metrics_of(CELL, [sample(CELL, counts=counts)], events)
    assert known.value(CELL.id, "features", m.LINK_RATE) == 2000
    assert known.value(CELL.id, m.EPOCH, m.FLOOR) == pytest.approx(5000 / 2000)
    none = metrics_of(
        CELL, [sample(CELL)], [{**probe_event(CELL), "copied": None}, trial_event(CELL)]
    )
    assert none.value(CELL.id, m.EPOCH, m.FLOOR) is None
    assert none.value(CELL.id, m.EPOCH, m.BOUND) is not None


def test_floor_needs_no_bound(metrics_of):
    """A sampler that does not state its topology has no bound."""
    foreign = replace(CELL, recipe={"sampler": {"name": "pyg"}})
    copied = {"bytes": 4000, "seconds": 1.0}
    events = [{**probe_event(foreign), "copied": copied}, trial_event(foreign)]
    known = metrics_of(foreign, [sample(foreign)], events)
    assert known.value(foreign.id, m.EPOCH, m.FLOOR) == 1.0
    assert known.value(foreign.id, m.EPOCH, m.BOUND) is None


def test_one_short_batch_counts_as_one_batch(metrics_of):
    short = {**sample(CELL), "seeds": 40, "batches": 1}
    known = metrics_of(CELL, [short], [probe_event(CELL), trial_event(CELL)])
    assert known.value(CELL.id, m.EPOCH, m.BOUND) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("topology", "alone", "expected"),
    [
        ("gpu", {}, 0.6),
        ("gpu", {"memory_io": 0.9}, 0.9),  # the link is the bottleneck
        ("gpu", {"compute": 2.0}, 2.2),  # the multiprocessors are
        ("uva", {}, 0.7),  # the sampler uses the link as well
        ("cpu", {}, 0.5),
        ("cpu", {"sample": 3.0}, 3.0),  # the host's cores are the bottleneck
    ],
)
def test_phases_on_the_same_resource_are_added(topology, alone, expected):
    assert least(
        with_topology(topology), {**ALONE, **alone}, crosses=True, cores=4
    ) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("threads", "cores", "expected"),
    [(1, 1, 1.1), (1, 2, 0.55), (1, 4, 0.5), (2, 4, 0.55), (4, 4, 1.1), (8, 4, 1.1), (0, 4, 1.1)],
)
def test_cpu_phases_share_cores_by_threads(threads, cores, expected):
    cell = with_topology("cpu", device="cpu", threads=threads)
    assert least(cell, ALONE, crosses=False, cores=cores) == pytest.approx(expected)


def test_no_bound_without_a_topology_or_without_overlapping_phases():
    unknown = replace(CELL, recipe={"sampler": {"name": "pyg"}})
    assert least(unknown, ALONE, crosses=True, cores=4) is None
    assert least(CELL, {"memory_io": 0.5, "compute": 0.4}, crosses=True, cores=4) is None
    assert least(replace(CELL, until="sample"), {"sample": 0.2}, crosses=False, cores=4) is None
    assert least(replace(CELL, fanouts=(), until="memory_io"), ALONE, crosses=True, cores=4) is None
    for name in ("data-parallel", "factored"):
        several = replace(CELL, recipe={**CELL.recipe, "schedule": {"name": name}})
        assert least(several, ALONE, crosses=True, cores=4) is None


def test_epoch_without_a_model_has_a_bound():
    cell = replace(CELL, until="memory_io")
    two = {"sample": 0.2, "memory_io": 0.5}
    assert least(cell, two, crosses=True, cores=4) == 0.5
    assert least(cell, two, crosses=False, cores=4) == 0.7
