"""Rows reduced from journals written by hand."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from gnnbench.analysis.metrics import ALONE, DETERMINISTIC, HIT_RATIO, START, Metrics
from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell
from gnnbench.core.counters import CACHE_ROWS, CALLS, DEVICE_TIME, FEATURE_BYTES, FILL_TIME
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import CellPair, Plan
from gnnbench.harness.reduce.cell_metrics import SELF_REPORTED, epoch_metrics
from gnnbench.harness.reduce.cells import cell_rows
from gnnbench.harness.reduce.ratios import ratio_rows
from gnnbench.harness.reduce.tables import sample_rows, write_tables
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


class FakeTrials:
    """Cells, their pair and a journal written by hand."""

    def __init__(self, folder, a=A, b=B):
        self.folder, self.cells, self.pair = folder, [a, b], CellPair(b, a)
        self.samples, self.events = [], []
        for cell in self.cells:
            report = {"facts": FACTS, "setup": {"seconds": 0.5}, "check": CHECK}
            self.events.append({"event": "report", "cell": cell.id, "report": report})

    def add(self, cell, number, wall, share=0.5, trial=0, warmup=False, foreign=0.0, counts=()):
        sample = {
            "id": cell.id, "pair": self.pair.id, "life": trial, "worker": 1, "round": number,
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

    def end(self, trial=0, doubt="", void=False):
        """Record the end of a paired trial."""
        event = {"event": "life", "pair": self.pair.id, "life": trial, "doubt": doubt, "void": void}
        self.events.append({**event, "seconds": 1.0, "start_s": 0.5})

    def both(self, walls, trial=0, **more):
        """Add a paired trial, given as wall times of both cells by round."""
        for number, (a, b) in enumerate(walls):
            self.add(self.cells[0], number, a, trial=trial, **more)
            self.add(self.cells[1], number, b, trial=trial, **more)
        self.end(trial)

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


def compared(*labels, **measure):
    return SimpleNamespace(compare=[labels], accuracy={}, measure=MeasureLimits(**measure))


@pytest.fixture
def trials(tmp_path):
    return FakeTrials(tmp_path)


def five(trials, ratio=2.0):
    """Add five pairs of three rounds each with similar ratios."""
    for nth, wall in enumerate((1.0, 1.01, 0.99, 1.0, 1.02)):
        trials.both(
            [(wall * ratio, wall), (wall * ratio, wall * 1.01), (wall, wall * 9)], trial=nth
        )


def test_phase_times_are_averaged_like_the_epoch_time(trials):
    """With few trials, the median of all epochs differs from the mean of the trials' medians."""
    trials.both([(4.0, 1.0), (4.0, 1.0), (4.0, 1.0)], trial=0)
    trials.both([(4.0, 4.0)], trial=1)
    rows, metrics = trials.rows(unstable_half_width=0.0)
    assert rows["b"]["epoch_wall_s"] == pytest.approx(2.0)  # geometric mean of 1 and 4
    assert metrics.value(B.id, "sample", ALONE) == pytest.approx(1.0)  # half of 2.0
    assert rows["b"]["sample_time_s"] == pytest.approx(1.0)


def test_ratio_is_the_mean_over_pairs_of_median_rounds(trials):
    five(trials)
    trials.add(A, 0, 1.5, warmup=True)
    trials.add(A, 0, 50.0, trial=5)  # the pair was killed before its end
    trials.add(B, 0, 9.0, trial=5)
    trials.both([(9.0, 1.0)], trial=6)
    trials.events[-1]["void"] = True
    rows, metrics = trials.rows(unstable_half_width=0.0)
    row = rows["b"]
    assert row["ratio"] == pytest.approx(2 / 1.01)
    assert (row["pairs"], row["rounds"], row["verdict"]) == (5, 15, "faster")
    assert row["sd_pair"] == pytest.approx(0, abs=1e-9) and row["sd_round"] > 1
    # The pairs agree, but an outlier in each makes the prior expect noise between them.
    assert row["floor_from"] == "these pairs" and 0.1 < row["noise_floor"] < row["detectable"]
    assert row["reference_s"] == pytest.approx(row["judged_s"] * 2 / 1.01)
    assert (row["work_class"], rows["a"]["n"], rows["a"]["lives"]) == ("identical", 15, 5)
    assert row["compute_time_s"] is None
    assert rows["b"]["compute_time_s"] is None
    assert rows["a"]["epoch_batches"] == 2
    first = {"epoch": "first_epoch_s"}
    for stage, name in {**first, "setup": "setup_time_s", "check": "check_time_s"}.items():
        assert [r for r in metrics.of(A.id) if (r["stage"], r["name"]) == (stage, name)]


def test_hit_ratio_is_the_median_of_epochs_of_cached_stores(trials):
    for nth, hit in enumerate((60, 10, 30)):
        rows = [("features", "feature_bytes", "cache", hit), ("features", "calls", "cache", 2)]
        rows += [("features", "feature_bytes", "host", 20), ("features", "calls", "host", 2)]
        trials.add(B, nth, 1.0, counts=rows)
        trials.add(A, nth, 1.0, counts=[("features", "feature_bytes", "host", 80)])
    trials.end()
    _, metrics = trials.rows()
    assert metrics.value(B.id, "features", HIT_RATIO) == 30 / 50
    assert metrics.value(A.id, "features", HIT_RATIO) is None
    assert metrics.value(B.id, "features", FEATURE_BYTES, "cache") == 30


def test_setup_counters_are_metrics_of_their_stage(trials):
    report = trials.events[0]["report"]["setup"]
    report["counts"] = [["features", "fill_time_s", "", 0.25], ["features", "cache_rows", "", 40]]
    five(trials)
    _, metrics = trials.rows()
    assert metrics.value(A.id, "features", FILL_TIME) == 0.25
    assert metrics.row(A.id, "features", CACHE_ROWS)["description"]
    assert metrics.row(A.id, "features", FILL_TIME)["unit"] == "s"


def test_start_time_excludes_page_locking_and_framework_imports(trials):
    report = trials.events[0]["report"]
    report |= {"open_s": 3.0, "import_s": 9.0}
    report["setup"] |= {"seconds": 2.0, "counts": [["features", "lock_time_s", "", 1.5]]}
    five(trials)
    _, metrics = trials.rows()
    assert metrics.value(A.id, "start", START) == 3.5
    assert metrics.value(B.id, "start", START) is None  # recorded by an older version


def test_nondeterministic_step_has_a_remark(trials):
    for event, same in zip(trials.events, (True, False), strict=True):
        event["report"]["check"] = {**CHECK, "deterministic": same}
    five(trials)
    rows, metrics = trials.rows()
    assert not rows["a"].remark
    assert rows["b"]["remark"].startswith("not deterministic: ")
    assert [metrics.value(c.id, "check", DETERMINISTIC) for c in (A, B)] == [1, 0]


def test_determinism_is_unknown_for_older_runs(trials):
    five(trials)
    rows, metrics = trials.rows()
    assert not rows["b"].remark and metrics.value(B.id, "check", DETERMINISTIC) is None


def test_rows_have_the_columns_of_the_schema(trials):
    five(trials)
    trials.both([(2.0, 1.0), (4.0, 2.0)], trial=5, counts=[("sampler", "calls", "", 3)])
    journal = trials.journal
    rows, metrics = cell_rows(trials.plan(), journal, MeasureLimits())
    for row in rows:
        assert set(row) <= set(column_names(CELLS))
    for row in metrics:
        assert set(row) == set(column_names(METRICS)) and row["description"]
    for row in sample_rows(journal):
        assert set(row) == set(column_names(SAMPLES))
    for row in ratio_rows(trials.plan(), journal, compared("a", "b"), []):
        assert set(row) == set(column_names(RATIOS))


@pytest.mark.parametrize(
    "until,ratio,judged", [("sample", 2.0, "sample_time_s"), ("compute", 1.0, "epoch_wall_s")]
)
def test_verdict_interval_and_stability_use_the_primary_metric(tmp_path, until, ratio, judged):
    a, b = (replace(c, until=until, model="m" * (until == "compute")) for c in (A, B))
    trials = FakeTrials(tmp_path, a, b)
    for nth, (wall, share) in enumerate([(1.0, 0.5), (1.01, 0.49), (0.99, 0.51)] * 2):
        trials.add(a, 0, wall, share=share, trial=nth)
        trials.add(b, 0, wall, share=share / 2, trial=nth)
        trials.end(nth)
    rows, _ = trials.rows()
    row = rows["b"]
    assert (row["judged"], row["judged_s"]) == (judged, row[judged])
    assert row["ci_low_s"] <= row["judged_s"] <= row["ci_high_s"]
    assert row["ratio"] == pytest.approx(ratio)
    assert row["verdict"] == {2.0: "faster", 1.0: "same"}[ratio]
    (inverse,) = ratio_rows(trials.plan(), trials.journal, compared("b", "a"), [])
    assert (inverse["judged"], inverse["ratio"]) == (judged, pytest.approx(1 / ratio))
    assert inverse["verdict"] == {2.0: "slower", 1.0: "same"}[ratio]
    assert inverse["ratio_ci_low"] <= inverse["ratio"] <= inverse["ratio_ci_high"]
    for nth, share in enumerate([0.1, 0.9, 0.1, 0.9]):
        trials.add(b, 0, 1.0, share=share, trial=6 + nth)
        trials.end(6 + nth)
    assert (trials.rows(unstable_half_width=0.2)[0]["b"]["status"] == "unstable") == (ratio == 2.0)


def test_counters_are_medians_over_epochs_with_missing_as_zero(trials):
    for number, moved in enumerate([10, 20, 60]):
        counts = [("features", "feature_bytes", "host", moved)]
        counts += [("features", "calls", "zero_copy", 3)] * (number == 0)
        trials.add(A, number, 1.0, counts=counts)
        trials.add(B, number, 1.0)
    trials.end()
    _, metrics = trials.rows()
    assert metrics.value(A.id, "features", FEATURE_BYTES, "host") == 20
    assert metrics.value(A.id, "features", CALLS, "zero_copy") == 0
    assert metrics.row(A.id, "features", FEATURE_BYTES, "host")["unit"] == "B"
    assert metrics.value(B.id, "features", FEATURE_BYTES, "host") is None


def test_cell_with_several_names_has_a_row_for_each(trials):
    trials.both([(2.0, 1.0), (4.0, 2.0)])
    plan = trials.plan(b=["b", "other"])
    rows, metrics = cell_rows(plan, trials.journal, MeasureLimits())
    assert [(r["id"], r["system"]) for r in rows] == [(A.id, "a"), (B.id, "b"), (B.id, "other")]
    assert rows[1]["ratio"] == rows[2]["ratio"]
    assert len({(r["id"], r["stage"], r["name"], r["where"]) for r in metrics}) == len(metrics)
    named = compared("a", "other sampler=fused-map pick=floyd")
    (row,) = ratio_rows(plan, trials.journal, named, [])
    assert row["ratio"] == pytest.approx(2.0)


def test_ratio_rows_have_the_ratio_of_device_times(trials):
    for number in range(3):
        for cell, time in ((A, 0.6), (B, 0.2)):
            trials.add(cell, number, 1.0, counts=[("sample", DEVICE_TIME.name, "", time)])
    trials.end()
    (row,) = ratio_rows(trials.plan(), trials.journal, compared("a", "b"), [])
    assert row["device_ratio"] == pytest.approx(3.0)


def test_ratio_to_an_unstable_reference_is_doubtful_without_verdict(trials):
    for nth, wall in enumerate((1.0, 9.0, 1.0, 9.0, 1.0)):
        trials.both([(wall, wall / 2)], trial=nth)
    assert trials.rows(unstable_half_width=0.0)[0]["b"]["verdict"] == "faster"
    rows, _ = trials.rows(unstable_half_width=0.2)
    assert rows["a"]["status"] == "unstable"
    assert (rows["b"]["ratio"], rows["b"]["verdict"]) == (pytest.approx(2.0), "")
    assert rows["b"]["doubtful"] == "the time of its reference 'a' is not steady"
    (row,) = ratio_rows(
        trials.plan(), trials.journal, compared("a", "b", unstable_half_width=0.2), []
    )
    assert (row["ratio"], row["verdict"]) == (pytest.approx(2.0), "")
    assert row["doubtful"] == "a time is not steady"


def test_too_few_pairs_leave_a_ratio_without_verdict(trials):
    for nth in range(2):
        trials.both([(2.0, 1.0)], trial=nth)
    row = trials.rows()[0]["b"]
    assert (row["ratio"], row["verdict"]) == (pytest.approx(2.0), "")


def test_counted_doubtful_pair_makes_the_cell_unstable(trials):
    five(trials)
    trials.events[-1]["doubt"] = "other programs used 0.9 cores meanwhile; close them"
    rows, _ = trials.rows(unstable_half_width=0.0)
    assert "other programs used 0.9 cores" in rows["b"]["doubtful"]
    assert (rows["b"]["status"], rows["b"]["verdict"]) == ("unstable", "")
    assert rows["b"]["ratio"] == pytest.approx(2.0, rel=0.01)
    assert rows["b"]["ratio_ci_low"] is not None
    (row,) = ratio_rows(trials.plan(), trials.journal, compared("a", "b"), [])
    assert row["ratio"] == pytest.approx(2.0, rel=0.01)
    assert (row["verdict"], row["doubtful"]) == ("", trials.events[-1]["doubt"])
    # The reference is not affected: it is in other pairs as well.
    assert (rows["a"]["status"], rows["a"]["doubtful"]) == ("ok", "")
    rows, _ = trials.rows(unstable_half_width=0.0, pairs=[2])  # two pairs have no verdict anyway
    assert rows["b"]["status"] == "ok" and rows["b"]["verdict"] == ""


def test_void_pair_is_a_remark_without_doubt(trials):
    five(trials)
    trials.end(9, "the worker of 'b' was stopped by a signal for 30 s", void=True)
    row = trials.rows(unstable_half_width=0.0)[0]["b"]
    assert (row["status"], row["verdict"], row["doubtful"]) == ("ok", "faster", "")
    assert row["remark"] == (
        "1 pair void and measured again: the worker of 'b' was stopped by a signal for 30 s"
    )


def test_noise_floor_uses_the_spread_of_a_calibration(trials):
    for nth, ratio in enumerate((2.0, 2.1, 1.9, 2.0, 2.05)):
        trials.both([(ratio, 1.0)] * 2, trial=nth)
    threads = machine.resolve_threads(0)
    spreads = {"sample_time_s": Spread(0.0, 0.01), "wall_s": Spread(0.0, 0.01)}
    known = Calibration("m", "cpu", threads, "b", "d", "compute", "0", 9, 2, 1.0, 1.0, "", spreads)
    rows, _ = cell_rows(trials.plan(), trials.journal, MeasureLimits(), [known])
    row = next(r for r in rows if r["system"] == "b")
    # Two trials of 1 % each, five pairs, t at 95 % with 4 degrees of freedom
    assert row["noise_floor"] == pytest.approx(2.776 * 0.01 * 2**0.5 / 5**0.5, rel=0.02)
    assert row["floor_from"] == "b on d until compute, cpu"
    assert row["sd_pair"] > 0.03  # the spread of these pairs is unchanged


def test_written_tables_are_read_back(trials):
    trials.both([(2.0, 1.0), (4.0, 2.0)], counts=[("features", "calls", "host", 3)])
    trials.events.append(
        {"event": "profile", "cell": B.id, "profile": {"stages": [{"stage": "batch", "host_s": 1}]}}
    )
    rows = write_tables(
        trials.folder, trials.plan(b=["b", "c"]), trials.journal, compared("a", "b"), []
    )
    run = reader.read(trials.folder)
    assert [r["system"] for r in run.cells] == [r["system"] for r in rows] == ["a", "b", "c"]
    assert Metrics(run.metrics).value(A.id, "features", CALLS, "host") == 3.0
    assert run.ratios[0]["ratio"] == pytest.approx(2.0)
    assert (len(run.samples), len(run.stages)) == (4, 1)
    assert not (trials.folder / "kernels.csv").exists()


def test_unfinished_comparison_has_no_verdict(trials):
    five(trials)
    journal = trials.journal
    journal.done.clear()  # the run was stopped between two stopping checks
    rows, _ = cell_rows(trials.plan(), journal, MeasureLimits(unstable_half_width=0.0))
    row = next(r for r in rows if r["system"] == "b")
    assert (row["pairs"], row["verdict"]) == (5, "") and row["ratio"] > 1.9


def test_doubtful_reference_leaves_no_verdict(trials):
    five(trials)
    for s in trials.samples:
        if s["id"] == A.id:
            s["outer_s"] = s["wall_s"] * 1.2  # work continues after its epochs
    rows, _ = trials.rows(unstable_half_width=0.0)
    assert rows["b"]["doubtful"].startswith("reference 'a': its epochs were idle")
    assert rows["b"]["verdict"] == "" and rows["b"]["ratio"] > 1.9
    (row,) = ratio_rows(trials.plan(), trials.journal, compared("a", "b"), [])
    assert row["verdict"] == ""


def test_row_uses_trials_of_its_own_comparison_only(trials, tmp_path):
    """Trials of the cell in other pairs are ignored."""
    five(trials)
    other_pair = {"pair": f"other-{B.id}", "life": 0}
    trials.samples += [
        {**s, **other_pair, "wall_s": 99.0} for s in trials.samples if s["id"] == B.id
    ]
    trials.events.append(
        {"event": "life", **other_pair, "doubt": "", "void": False, "seconds": 1.0, "start_s": 0.1}
    )
    row = trials.rows(unstable_half_width=0.0)[0]["b"]
    assert row["judged_s"] < 2 and row["lives"] == 5


@pytest.mark.parametrize(
    ("store", "mark"), [("host", ""), ("mine", SELF_REPORTED)], ids=["built-in", "plug-in"]
)
def test_counts_of_a_plugin_are_marked(tmp_path, store, mark):
    cell = replace(B, recipe={**B.recipe, "features": {"name": store}}, until="memory_io")
    trials = FakeTrials(tmp_path, A, cell)
    trials.add(A, 0, 1.0)
    trials.add(cell, 0, 1.0, counts=[("features", FEATURE_BYTES.name, "host", 12)])
    trials.end()
    (row,) = [r for r in epoch_metrics(cell, trials.journal, trials.pair) if r.stage == "features"]
    assert row.description == FEATURE_BYTES.description + mark
