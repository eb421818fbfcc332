"""Rows from hand-made ledgers."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from gnnbench.analysis.metrics import ALONE, DETERMINISTIC, HIT_RATIO, START, Metrics
from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell
from gnnbench.core.counters import CACHE_ROWS, CALLS, DEVICE_TIME, FEATURE_BYTES, FILL_TIME
from gnnbench.harness.doubt import pair_doubt
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import Pair, Plan
from gnnbench.harness.reduce.cells import cell_rows
from gnnbench.harness.reduce.profiles import sample_rows
from gnnbench.harness.reduce.ratios import ratio_rows
from gnnbench.harness.reduce.tables import write_tables
from gnnbench.measure import machine
from gnnbench.schema import CELLS, METRICS, RATIOS, SAMPLES, column_names, reader
from gnnbench.statistics.noise import Calibration, Spread

A = Cell("e", "a", "d", "m", recipe={"sampler": {"name": "hop-by-hop", "pick": "floyd"}})
B = replace(A, system="b", recipe={"sampler": {"name": "fused-map", "pick": "floyd"}})
CHECK = {
    "pick": "p", "frontier": "cumulative", "law": "l", "digest": "x", "edges_per_seed": 1.0,
    "nodes_per_seed": 1.0, "seconds": 0.1, "verified": True,
}  # fmt: skip
FACTS = {"nodes": 5, "edges": 7, "train_nodes": 2048, "feature_dim": 3, "features": "seeded"}


class Lives:
    """Cells, their pair and a journal written by hand."""

    def __init__(self, folder, a=A, b=B):
        self.folder, self.cells, self.pair = folder, [a, b], Pair(b, a)
        self.samples, self.events = [], []
        for cell in self.cells:
            report = {"facts": FACTS, "setup": {"seconds": 0.5}, "check": CHECK}
            self.events.append({"event": "report", "cell": cell.id, "report": report})

    def add(self, cell, number, wall, share=0.5, life=0, warmup=False, foreign=0.0, counts=()):
        sample = {
            "id": cell.id, "pair": self.pair.id, "life": life, "worker": 1, "round": number,
            "order": 0, "warmup": warmup, "block_s": wall, "idle_cpu_s": 0.0, "epoch": number,
            "foreign_cpu_s": foreign * wall, "wall_s": wall, "outer_s": wall, "overlap_s": 0.0,
            "sample_time_s": wall * share, "sample_alone_s": wall * share,
            "idle_s": wall * (1 - share), "memory_io_time_s": None, "compute_time_s": None,
            "batches": 2, "seeds": 4, "sampled_edges": 8, "unique_nodes": 9, "loss": 1.0,
            "peak_alloc_bytes": 1, "peak_rss_bytes": 1, "ok": True,
            "counts": [list(c) for c in counts], "system": cell.system,
            "dataset": cell.dataset, "model": cell.model,
        }  # fmt: skip
        self.samples.append(sample)

    def end(self, life=0, doubt="", void=False):
        """A pair of lives is finished."""
        event = {"event": "life", "pair": self.pair.id, "life": life, "doubt": doubt, "void": void}
        self.events.append({**event, "seconds": 1.0, "start_s": 0.5})

    def both(self, walls, life=0, **more):
        """A pair of lives, round by round."""
        for number, (a, b) in enumerate(walls):
            self.add(self.cells[0], number, a, life=life, **more)
            self.add(self.cells[1], number, b, life=life, **more)
        self.end(life)

    @property
    def journal(self):
        done = {"event": "done", "pair": self.pair.id, "why": "pairs"}
        for name, lines in (("events", [*self.events, done]), ("samples", self.samples)):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (self.folder / f"{name}.jsonl").write_text(text)
        return RunJournal(self.folder)

    def plan(self, **names):
        plan = Plan(self.cells, [self.pair], dict.fromkeys([c.id for c in self.cells], A))
        plan.references = {c.id: self.cells[0] for c in self.cells}
        plan.names = {c.id: names.get(c.system, [c.system]) for c in self.cells}
        return plan

    def rows(self, **measure):
        rows, metrics = cell_rows(self.plan(), self.journal, MeasureLimits(**measure))
        return {r["system"]: r for r in rows}, Metrics(metrics)


def couple(*labels, **measure):
    return SimpleNamespace(compare=[labels], accuracy={}, measure=MeasureLimits(**measure))


@pytest.fixture
def life(tmp_path):
    return Lives(tmp_path)


def five(life, ratio=2.0):
    """Five pairs of three rounds each, all of about one ratio."""
    for nth, wall in enumerate((1.0, 1.01, 0.99, 1.0, 1.02)):
        life.both([(wall * ratio, wall), (wall * ratio, wall * 1.01), (wall, wall * 9)], life=nth)


def test_parts_of_a_bar_are_averages_of_the_same_kind_as_its_time(life):
    """Of few lives a median of all epochs is another number than the mean of the lives' medians."""
    life.both([(4.0, 1.0), (4.0, 1.0), (4.0, 1.0)], life=0)
    life.both([(4.0, 4.0)], life=1)
    found, metrics = life.rows(unstable_half_width=0.0)
    assert found["b"]["epoch_wall_s"] == pytest.approx(2.0)  # geometric mean of 1 and 4
    assert metrics.value(B.id, "sample", ALONE) == pytest.approx(1.0)  # half of it; not of 1
    assert found["b"]["sample_time_s"] == pytest.approx(1.0)


def test_a_ratio_is_the_mean_over_pairs_of_the_median_of_their_rounds(life):
    five(life)
    life.add(A, 0, 1.5, warmup=True)
    life.add(A, 0, 50.0, life=5)  # its pair was lost to a kill
    life.add(B, 0, 9.0, life=5)
    life.both([(9.0, 1.0)], life=6)
    life.events[-1]["void"] = True
    found, metrics = life.rows(unstable_half_width=0.0)
    row = found["b"]
    assert row["ratio"] == pytest.approx(2 / 1.01)
    assert (row["pairs"], row["rounds"], row["verdict"]) == (5, 15, "faster")
    assert row["sd_pair"] == pytest.approx(0, abs=1e-9) and row["sd_round"] > 1
    # The pairs agree, but one wild round in three makes the prior expect noise between them.
    assert row["floor_from"] == "these pairs" and 0.1 < row["noise_floor"] < row["detectable"]
    assert row["reference_s"] == pytest.approx(row["judged_s"] * 2 / 1.01)
    assert (row["work_class"], found["a"]["n"], found["a"]["lives"]) == ("identical", 15, 5)
    assert row["compute_time_s"] is None
    assert found["b"]["compute_time_s"] is None
    assert found["a"]["epoch_batches"] == 2
    first = {"epoch": "first_epoch_s"}
    for stage, name in {**first, "setup": "setup_time_s", "check": "check_time_s"}.items():
        assert [r for r in metrics.of(A.id) if (r["stage"], r["name"]) == (stage, name)]


def test_a_caches_hits_are_the_median_of_epochs_and_no_cache_has_none(life):
    for nth, hit in enumerate((60, 10, 30)):
        rows = [("features", "feature_bytes", "cache", hit), ("features", "calls", "cache", 2)]
        rows += [("features", "feature_bytes", "host", 20), ("features", "calls", "host", 2)]
        life.add(B, nth, 1.0, counts=rows)
        life.add(A, nth, 1.0, counts=[("features", "feature_bytes", "host", 80)])
    life.end()
    _, metrics = life.rows()
    assert metrics.value(B.id, "features", HIT_RATIO) == 30 / 50
    assert metrics.value(A.id, "features", HIT_RATIO) is None
    assert metrics.value(B.id, "features", FEATURE_BYTES, "cache") == 30


def test_what_setup_took_is_told_by_stage(life):
    report = life.events[0]["report"]["setup"]
    report["counts"] = [["features", "fill_time_s", "", 0.25], ["features", "cache_rows", "", 40]]
    five(life)
    _, metrics = life.rows()
    assert metrics.value(A.id, "features", FILL_TIME) == 0.25
    assert metrics.row(A.id, "features", CACHE_ROWS)["description"]
    assert metrics.row(A.id, "features", FILL_TIME)["unit"] == "s"


def test_a_start_is_without_locking_and_without_a_framework_s_import(life):
    report = life.events[0]["report"]
    report |= {"open_s": 3.0, "import_s": 9.0}
    report["setup"] |= {"seconds": 2.0, "counts": [["features", "lock_time_s", "", 1.5]]}
    five(life)
    _, metrics = life.rows()
    assert metrics.value(A.id, "start", START) == 3.5
    assert metrics.value(B.id, "start", START) is None  # of an older run


def test_a_step_that_is_not_repeated_is_remarked(life):
    for event, same in zip(life.events, (True, False), strict=True):
        event["report"]["check"] = {**CHECK, "deterministic": same}
    five(life)
    found, metrics = life.rows()
    assert not found["a"].remark
    assert found["b"]["remark"].startswith("not deterministic: ")
    assert [metrics.value(c.id, "check", DETERMINISTIC) for c in (A, B)] == [1, 0]


def test_of_an_older_run_nobody_knows_whether_steps_repeat(life):
    five(life)
    found, metrics = life.rows()
    assert not found["b"].remark and metrics.value(B.id, "check", DETERMINISTIC) is None


def test_rows_hold_the_columns_of_the_schema_and_no_more(life):
    five(life)
    life.both([(2.0, 1.0), (4.0, 2.0)], life=5, counts=[("sampler", "calls", "", 3)])
    journal = life.journal
    rows, metrics = cell_rows(life.plan(), journal, MeasureLimits())
    for row in rows:
        assert set(row) <= set(column_names(CELLS))
    for row in metrics:
        assert set(row) == set(column_names(METRICS)) and row["description"]
    for row in sample_rows(journal):
        assert set(row) == set(column_names(SAMPLES))
    for row in ratio_rows(life.plan(), journal, couple("a", "b"), []):
        assert set(row) == set(column_names(RATIOS))


@pytest.mark.parametrize(
    "until,ratio,judged", [("sample", 2.0, "sample_time_s"), ("compute", 1.0, "epoch_wall_s")]
)
def test_verdict_interval_stability_and_couples_are_by_the_judged_time(
    tmp_path, until, ratio, judged
):
    a, b = (replace(c, until=until, model="m" * (until == "compute")) for c in (A, B))
    life = Lives(tmp_path, a, b)
    for nth, (wall, share) in enumerate([(1.0, 0.5), (1.01, 0.49), (0.99, 0.51)] * 2):
        life.add(a, 0, wall, share=share, life=nth)
        life.add(b, 0, wall, share=share / 2, life=nth)
        life.end(nth)
    found, _ = life.rows()
    row = found["b"]
    assert (row["judged"], row["judged_s"]) == (judged, row[judged])
    assert row["ci_low_s"] <= row["judged_s"] <= row["ci_high_s"]
    assert row["ratio"] == pytest.approx(ratio)
    assert row["verdict"] == {2.0: "faster", 1.0: "same"}[ratio]
    (turned,) = ratio_rows(life.plan(), life.journal, couple("b", "a"), [])
    assert (turned["judged"], turned["ratio"]) == (judged, pytest.approx(1 / ratio))
    assert turned["verdict"] == {2.0: "slower", 1.0: "same"}[ratio]
    assert turned["ratio_ci_low"] <= turned["ratio"] <= turned["ratio_ci_high"]
    for nth, share in enumerate([0.1, 0.9, 0.1, 0.9]):
        life.add(b, 0, 1.0, share=share, life=6 + nth)
        life.end(6 + nth)
    assert (life.rows(unstable_half_width=0.2)[0]["b"]["status"] == "unstable") == (ratio == 2.0)


def test_counts_are_medians_over_epochs_and_none_is_zero(life):
    for number, moved in enumerate([10, 20, 60]):
        counts = [("features", "feature_bytes", "host", moved)]
        counts += [("features", "calls", "zero_copy", 3)] * (number == 0)
        life.add(A, number, 1.0, counts=counts)
        life.add(B, number, 1.0)
    life.end()
    _, metrics = life.rows()
    assert metrics.value(A.id, "features", FEATURE_BYTES, "host") == 20
    assert metrics.value(A.id, "features", CALLS, "zero_copy") == 0
    assert metrics.row(A.id, "features", FEATURE_BYTES, "host")["unit"] == "B"
    assert metrics.value(B.id, "features", FEATURE_BYTES, "host") is None


def test_equal_work_stands_under_every_name_and_is_measured_once(life):
    life.both([(2.0, 1.0), (4.0, 2.0)])
    plan = life.plan(b=["b", "other"])
    rows, metrics = cell_rows(plan, life.journal, MeasureLimits())
    assert [(r["id"], r["system"]) for r in rows] == [(A.id, "a"), (B.id, "b"), (B.id, "other")]
    assert rows[1]["ratio"] == rows[2]["ratio"]
    assert len({(r["id"], r["stage"], r["name"], r["where"]) for r in metrics}) == len(metrics)
    named = couple("a", "other sampler=fused-map pick=floyd")
    (row,) = ratio_rows(plan, life.journal, named, [])
    assert row["ratio"] == pytest.approx(2.0)


def test_couples_have_the_ratio_of_device_times(life):
    for number in range(3):
        for cell, time in ((A, 0.6), (B, 0.2)):
            life.add(cell, number, 1.0, counts=[("sample", DEVICE_TIME.name, "", time)])
    life.end()
    (row,) = ratio_rows(life.plan(), life.journal, couple("a", "b"), [])
    assert row["device_ratio"] == pytest.approx(3.0)


def test_a_ratio_to_an_unstable_reference_is_marked_and_has_no_verdict(life):
    for nth, wall in enumerate((1.0, 9.0, 1.0, 9.0, 1.0)):
        life.both([(wall, wall / 2)], life=nth)
    assert life.rows(unstable_half_width=0.0)[0]["b"]["verdict"] == "faster"
    found, _ = life.rows(unstable_half_width=0.2)
    assert found["a"]["status"] == "unstable"
    assert (found["b"]["ratio"], found["b"]["verdict"]) == (pytest.approx(2.0), "")
    assert found["b"]["doubtful"] == "the time of its reference 'a' is not steady"
    (row,) = ratio_rows(life.plan(), life.journal, couple("a", "b", unstable_half_width=0.2), [])
    assert (row["ratio"], row["verdict"]) == (pytest.approx(2.0), "")
    assert row["doubtful"] == "a time is not steady"


def test_too_few_pairs_have_a_ratio_and_no_verdict(life):
    for nth in range(2):
        life.both([(2.0, 1.0)], life=nth)
    row = life.rows()[0]["b"]
    assert (row["ratio"], row["verdict"]) == (pytest.approx(2.0), "")


def test_a_pair_in_doubt_that_counts_leaves_no_verdict_and_fails_the_cell(life):
    five(life)
    life.events[-1]["doubt"] = "other programs used 0.9 cores meanwhile; close them"
    found, _ = life.rows(unstable_half_width=0.0)
    assert "other programs used 0.9 cores" in found["b"]["doubtful"]
    assert (found["b"]["status"], found["b"]["verdict"]) == ("unstable", "")
    assert found["b"]["ratio"] == pytest.approx(2.0, rel=0.01)
    assert found["b"]["ratio_ci_low"] is not None
    (row,) = ratio_rows(life.plan(), life.journal, couple("a", "b"), [])
    assert row["ratio"] == pytest.approx(2.0, rel=0.01)
    assert (row["verdict"], row["doubtful"]) == ("", life.events[-1]["doubt"])
    # The reference stands beside others as well, and is not to be blamed.
    assert (found["a"]["status"], found["a"]["doubtful"]) == ("ok", "")
    found, _ = life.rows(unstable_half_width=0.0, pairs=[2])  # where none is given anyway
    assert found["b"]["status"] == "ok" and found["b"]["verdict"] == ""


def test_a_void_pair_is_noted_in_a_row_without_doubt(life):
    five(life)
    life.end(9, "the worker of 'b' was stopped by a signal for 30 s", void=True)
    row = life.rows(unstable_half_width=0.0)[0]["b"]
    assert (row["status"], row["verdict"], row["doubtful"]) == ("ok", "faster", "")
    assert row["remark"] == (
        "1 pair void and measured again: the worker of 'b' was stopped by a signal for 30 s"
    )


def test_what_makes_a_pair_doubtful():
    quiet = {"id": "x", "system": "a", "block_s": 1.0, "idle_cpu_s": 0.0, "foreign_cpu_s": 0.0}
    beside = {**quiet, "id": "y", "system": "b"}
    assert pair_doubt([quiet, beside]) == ""
    assert "other programs used 0.9 cores" in pair_doubt([{**quiet, "foreign_cpu_s": 0.9}, beside])
    spins = pair_doubt([{**quiet, "idle_cpu_s": 0.5}, beside])
    assert spins == "the worker of 'b' used 50% of a core while 'a' was measured"
    assert "throttled (hot)" in pair_doubt([quiet, {**beside, "throttle": "hot"}])
    # Within three ticks of the clock nothing can be told.
    brief = {**quiet, "block_s": 0.02, "idle_cpu_s": 0.02, "foreign_cpu_s": 0.02}
    assert pair_doubt([brief, beside]) == ""
    # 16 threads in bursts: what all cores did is known to a tenth of what the worker did.
    many = {**quiet, "cpu_s": 8.0, "foreign_cpu_s": 0.5}
    assert pair_doubt([many, beside]) == ""
    assert "other programs used 1.5 cores" in pair_doubt([{**many, "foreign_cpu_s": 1.5}, beside])
    # Eight free cores take a little of other programs' work.
    little = {**quiet, "foreign_cpu_s": 0.5}
    assert pair_doubt([little, beside], free_cores=8) == ""
    assert "0.5 cores" in pair_doubt([little, beside], free_cores=2)
    # Rounding goes either way.
    assert pair_doubt([{**quiet, "foreign_cpu_s": f} for f in (0.5, -0.4, 0.1)]) == ""


def test_a_calibration_gives_the_floor_its_spread(life):
    for nth, ratio in enumerate((2.0, 2.1, 1.9, 2.0, 2.05)):
        life.both([(ratio, 1.0)] * 2, life=nth)
    threads = machine.resolve_threads(0)
    spreads = {"sample_time_s": Spread(0.0, 0.01), "wall_s": Spread(0.0, 0.01)}
    known = Calibration("m", "cpu", threads, "b", "d", "compute", "0", 9, 2, 1.0, 1.0, "", spreads)
    rows, _ = cell_rows(life.plan(), life.journal, MeasureLimits(), [known])
    row = next(r for r in rows if r["system"] == "b")
    # Two lives of 1 % each, five pairs, t at 95 % with 4 degrees of freedom
    assert row["noise_floor"] == pytest.approx(2.776 * 0.01 * 2**0.5 / 5**0.5, rel=0.02)
    assert row["floor_from"] == "b on d until compute, cpu"
    assert row["sd_pair"] > 0.03  # these pairs' own stays what it is


def test_what_is_written_is_read_again(life):
    life.both([(2.0, 1.0), (4.0, 2.0)], counts=[("features", "calls", "host", 3)])
    life.events.append(
        {"event": "profile", "cell": B.id, "profile": {"stages": [{"stage": "batch", "host_s": 1}]}}
    )
    rows = write_tables(life.folder, life.plan(b=["b", "c"]), life.journal, couple("a", "b"), [])
    run = reader.read(life.folder)
    assert [r["system"] for r in run.cells] == [r["system"] for r in rows] == ["a", "b", "c"]
    assert Metrics(run.metrics).value(A.id, "features", CALLS, "host") == 3.0
    assert run.ratios[0]["ratio"] == pytest.approx(2.0)
    assert (len(run.samples), len(run.stages)) == (4, 1)
    assert not (life.folder / "kernels.csv").exists()


def test_before_the_last_look_there_is_no_verdict(life):
    five(life)
    journal = life.journal
    journal.done.clear()  # the run was stopped between two looks
    rows, _ = cell_rows(life.plan(), journal, MeasureLimits(unstable_half_width=0.0))
    row = next(r for r in rows if r["system"] == "b")
    assert (row["pairs"], row["verdict"]) == (5, "") and row["ratio"] > 1.9


def test_a_worker_in_doubt_leaves_no_verdict_on_either_side(life):
    five(life)
    for s in life.samples:
        if s["id"] == A.id:
            s["outer_s"] = s["wall_s"] * 1.2  # work goes on after its epochs
    found, _ = life.rows(unstable_half_width=0.0)
    assert found["b"]["doubtful"].startswith("reference 'a': its epochs were idle")
    assert found["b"]["verdict"] == "" and found["b"]["ratio"] > 1.9
    (row,) = ratio_rows(life.plan(), life.journal, couple("a", "b"), [])
    assert row["verdict"] == ""


def test_a_row_tells_of_its_own_comparison_alone(life, tmp_path):
    """Its lives beside others say nothing of the ratio's rounds."""
    five(life)
    elsewhere = {"pair": f"other-{B.id}", "life": 0}
    life.samples += [{**s, **elsewhere, "wall_s": 99.0} for s in life.samples if s["id"] == B.id]
    life.events.append(
        {"event": "life", **elsewhere, "doubt": "", "void": False, "seconds": 1.0, "start_s": 0.1}
    )
    row = life.rows(unstable_half_width=0.0)[0]["b"]
    assert row["judged_s"] < 2 and row["lives"] == 5
