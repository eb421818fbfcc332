"""Bound and interference from ledgers written by hand: every number expected is worked out here."""

import json
from dataclasses import replace

import pytest

from gnnbench.analysis import metrics as m
from gnnbench.analysis.metrics import Metrics
from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import Pair, Plan
from gnnbench.harness.reduce.cells import cell_rows
from gnnbench.harness.reduce.overlap_bounds import least

ALONE = {"sample": 0.2, "memory_io": 0.5, "compute": 0.4}
CELL = Cell(
    "e", "baseline", "d", "gcn", device="cuda", batch_size=100, threads=1,
    recipe={"sampler": {"name": "hop-by-hop", "topology": "gpu"}, "schedule": {"name": "prefetch"}},
)  # fmt: skip
LINK = (("features", "feature_bytes", "zero_copy", 4000),)
# Three batches of 100 seeds and one of 50: 3.5 whole ones.
EPOCH = {"wall_s": 2.31, "sample_time_s": 0.7, "memory_io_time_s": 2.1, "compute_time_s": 1.68}


def on(topology, **changes):
    return replace(CELL, recipe={"sampler": {"name": "s", "topology": topology}}, **changes)


def sample(cell, number=0, life=0, worker=7, counts=LINK, **times):
    return {
        "id": cell.id, "pair": cell.id, "life": life, "worker": worker, "round": number, "order": 0,
        "warmup": False, "epoch": number, "outer_s": 1.0, "overlap_s": 0.1, "idle_s": 0.0,
        "batches": 4, "seeds": 350, "sampled_edges": 8, "unique_nodes": 9, "loss": 1.0,
        "peak_alloc_bytes": 1, "peak_rss_bytes": 1, "ok": True, "counts": counts,
        "foreign_cpu_s": 0.0, "idle_cpu_s": 0.0, "block_s": 1.0, "system": cell.system,
        "dataset": cell.dataset, "model": cell.model, **EPOCH, **times,
    }  # fmt: skip


def probed(cell, worker=7, **changes):
    median = {**ALONE, **changes}
    halved = {phase: seconds / 2 for phase, seconds in median.items()}
    event = {"event": "probed", "cell": cell.id, "worker": worker, "cores": 4}
    return {**event, "alone": halved, "median": median}


def ended(cell, life=0, void=False):
    return {
        "event": "life", "pair": Pair(cell).id, "life": life, "doubt": "", "void": void,
        "seconds": 1.0, "start_s": 0.1,
    }  # fmt: skip


@pytest.fixture
def metrics_of(tmp_path):
    def made(cell, samples, events):
        pair = Pair(cell)
        for name, lines in (("samples", samples), ("events", events)):
            lines = [{**line, "pair": pair.id} if name == "samples" else line for line in lines]
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (tmp_path / f"{name}.jsonl").write_text(text)
        plan = Plan([cell], [pair], {cell.id: cell})
        plan.names = {cell.id: [cell.system]}
        return Metrics(cell_rows(plan, RunJournal(tmp_path), MeasureLimits())[1])

    return made


def told(known, cell=CELL):
    whole = {what: known.value(cell.id, m.EPOCH, what) for what in (m.BOUND, m.OF_BOUND)}
    phases = {p: known.value(cell.id, p, m.INTERFERENCE) for p in ALONE}
    return [*whole.values(), *phases.values()]


def test_an_epoch_over_its_bound_and_each_phase_over_itself_alone(metrics_of):
    known = metrics_of(CELL, [sample(CELL)], [probed(CELL), ended(CELL)])
    # What needs multiprocessors, 0.2 + 0.4, is more than the link's 0.5; 3.5 batches of it.
    assert told(known) == pytest.approx([2.1, 1.1, 1.0, 1.2, 1.2])
    assert [known.value(CELL.id, p, m.PROBED) for p in ALONE] == [0.2, 0.5, 0.4]


def test_a_life_counts_by_its_median_epoch_and_lives_by_their_mean(metrics_of):
    walls = ([2.1, 9.0, 2.0], [8.4] * 3)
    samples = [
        sample(CELL, number, life, wall_s=wall)
        for life, own in enumerate(walls)
        for number, wall in enumerate(own)
    ]
    known = metrics_of(CELL, samples, [probed(CELL), ended(CELL), ended(CELL, 1)])
    row = known.row(CELL.id, m.EPOCH, m.OF_BOUND)
    assert row["value"] == pytest.approx(2.0) and row["n"] == 2  # of 1 and 4, geometric
    assert row["low"] < 2.0 < row["high"]


def test_probes_are_of_the_lives_that_count(metrics_of):
    samples = [sample(CELL), sample(CELL, life=1, worker=8), sample(CELL, life=2, worker=9)]
    events = [
        probed(CELL, compute=0.3), ended(CELL),
        probed(CELL, worker=8, compute=70.0), ended(CELL, 1, void=True),
        probed(CELL, worker=9, compute=0.5), ended(CELL, 2),
    ]  # fmt: skip
    known = metrics_of(CELL, samples, events)
    assert known.value(CELL.id, "compute", m.PROBED) == pytest.approx(0.4)


@pytest.mark.parametrize(
    "events",
    [[], [{"event": "probed", "cell": CELL.id, "worker": 7, "alone": ALONE}]],
    ids=["never", "by an earlier gnnbench"],
)
def test_without_a_probe_there_is_no_bound(metrics_of, events):
    known = metrics_of(CELL, [sample(CELL)], [*events, ended(CELL)])
    assert told(known) == [None] * 5


def test_rows_that_cross_no_link_are_read_by_multiprocessors(metrics_of):
    here = (("features", "feature_bytes", "device", 4000), ("features", "calls", "zero_copy", 0))
    known = metrics_of(CELL, [sample(CELL, counts=here)], [probed(CELL), ended(CELL)])
    assert known.value(CELL.id, m.EPOCH, m.BOUND) == pytest.approx(3.5 * 1.1)


def test_a_floor_is_what_one_copy_of_the_rows_over_the_link_takes(metrics_of):
    """Rows of a cache, or kept, cross nothing; copies of lives that do not count say nothing."""
    counts = [
        *LINK, ("features", "feature_bytes", "host_copy", 1000),
        ("features", "feature_bytes", "cache", 9000), ("features", "feature_bytes", "reused", 900),
        ("features", "feature_bytes", "peer", 90), ("sampler", "topology_bytes", "zero_copy", 9),
    ]  # fmt: skip
    copies = [{"bytes": 4000, "seconds": s} for s in (2.0, 1.0)]
    events = [
        {**probed(CELL), "copied": copies[0]}, {**probed(CELL, worker=8), "copied": copies[1]},
        ended(CELL),
    ]  # fmt: skip
    known = metrics_of(CELL, [sample(CELL, counts=counts)], events)
    assert known.value(CELL.id, "features", m.LINK_RATE) == 2000
    assert known.value(CELL.id, m.EPOCH, m.FLOOR) == pytest.approx(5000 / 2000)
    none = metrics_of(CELL, [sample(CELL)], [{**probed(CELL), "copied": None}, ended(CELL)])
    assert none.value(CELL.id, m.EPOCH, m.FLOOR) is None
    assert none.value(CELL.id, m.EPOCH, m.BOUND) is not None


def test_a_floor_needs_no_bound(metrics_of):
    """A sampler that does not say where it draws has none."""
    foreign = replace(CELL, recipe={"sampler": {"name": "pyg"}})
    copied = {"bytes": 4000, "seconds": 1.0}
    events = [{**probed(foreign), "copied": copied}, ended(foreign)]
    known = metrics_of(foreign, [sample(foreign)], events)
    assert known.value(foreign.id, m.EPOCH, m.FLOOR) == 1.0
    assert known.value(foreign.id, m.EPOCH, m.BOUND) is None


def test_an_epoch_of_one_short_batch_is_one_batch(metrics_of):
    short = {**sample(CELL), "seeds": 40, "batches": 1}
    known = metrics_of(CELL, [short], [probed(CELL), ended(CELL)])
    assert known.value(CELL.id, m.EPOCH, m.BOUND) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("topology", "alone", "expected"),
    [
        ("gpu", {}, 0.6),
        ("gpu", {"memory_io": 0.9}, 0.9),  # bound by the link
        ("gpu", {"compute": 2.0}, 2.2),  # by what computes
        ("uva", {}, 0.7),  # the link serves the sampler as well
        ("cpu", {}, 0.5),
        ("cpu", {"sample": 3.0}, 3.0),  # by the host's cores
    ],
)
def test_what_holds_the_same_resource_takes_turns(topology, alone, expected):
    assert least(on(topology), {**ALONE, **alone}, crosses=True, cores=4) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("threads", "cores", "expected"),
    [(1, 1, 1.1), (1, 2, 0.55), (1, 4, 0.5), (2, 4, 0.55), (4, 4, 1.1), (8, 4, 1.1), (0, 4, 1.1)],
)
def test_phases_on_a_cpu_share_its_cores_by_threads(threads, cores, expected):
    cell = on("cpu", device="cpu", threads=threads)
    assert least(cell, ALONE, crosses=False, cores=cores) == pytest.approx(expected)


def test_there_is_no_bound_where_nothing_is_known_or_nothing_could_overlap():
    unknown = replace(CELL, recipe={"sampler": {"name": "pyg"}})
    assert least(unknown, ALONE, crosses=True, cores=4) is None
    assert least(CELL, {"memory_io": 0.5, "compute": 0.4}, crosses=True, cores=4) is None
    assert least(replace(CELL, until="sample"), {"sample": 0.2}, crosses=False, cores=4) is None
    assert least(replace(CELL, fanouts=(), until="memory_io"), ALONE, crosses=True, cores=4) is None
    for name in ("data-parallel", "factored"):
        several = replace(CELL, recipe={**CELL.recipe, "schedule": {"name": name}})
        assert least(several, ALONE, crosses=True, cores=4) is None


def test_an_epoch_that_only_fetches_has_a_bound():
    cell = replace(CELL, until="memory_io")
    two = {"sample": 0.2, "memory_io": 0.5}
    assert least(cell, two, crosses=True, cores=4) == 0.5
    assert least(cell, two, crosses=False, cores=4) == 0.7
