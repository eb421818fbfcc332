"""Learning curves and times to accuracy, from journals written by hand and from real runs."""

import csv
import json
import math
from collections import Counter
from dataclasses import replace

import pytest

from gnnbench.analysis import metrics as m
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import convergence as figures
from gnnbench.analysis.table import main_tables
from gnnbench.config import experiment as ex
from gnnbench.config.grid import expand
from gnnbench.config.overrides import Overrides
from gnnbench.core.cell import Cell
from gnnbench.core.errors import UsageError
from gnnbench.harness import campaign
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.launch import make_request
from gnnbench.harness.plan import CellPair, Plan
from gnnbench.harness.reduce.convergence import (
    EvaluatedEpoch,
    convergence_rows,
    curve,
    learning_rows,
    reached,
)
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.schema import reader
from gnnbench.schema.samples import EpochSample
from gnnbench.systems.runtime.find import find

A = Cell("e", "a", "d", "m", evaluate="sampled", recipe={"sampler": {"name": "hop-by-hop"}})
B = replace(A, system="b", recipe={"sampler": {"name": "fused-map"}})
PLAN = Plan(
    [A, B], [CellPair(B, A)], references={A.id: A, B.id: A}, names={A.id: ["a"], B.id: ["b"]}
)


class FakeJournal:
    """A journal of trials given as epochs: (seconds, validation accuracy)."""

    def __init__(self, folder):
        self.folder, self.pair = folder, CellPair(B, A)
        self.samples, self.events = [], []

    def add_trial(self, number, a, b, void=False):
        for cell, epochs in ((A, a), (B, b)):
            for nth, (seconds, accuracy) in enumerate(epochs):
                self.samples.append(
                    {
                        "id": cell.id, "pair": self.pair.id, "life": number,
                        "round": max(nth - 1, 0), "warmup": nth == 0, "wall_s": seconds,
                        "epoch": 100 * number + nth,
                        "loss": 1 / (nth + 1), "val_nodes": 50, "test_nodes": 40,
                        "val_accuracy": accuracy, "test_accuracy": accuracy - 0.1,
                    }
                )  # fmt: skip
        event = {"event": "life", "pair": self.pair.id, "life": number, "doubt": "", "void": void}
        self.events.append({**event, "seconds": 1.0, "start_s": 0.5})
        return self

    @property
    def journal(self):
        for name, lines in (("events", self.events), ("samples", self.samples)):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (self.folder / f"{name}.jsonl").write_text(text)
        return RunJournal(self.folder)


SLOW = [(4.0, 0.2), (1.0, 0.6), (1.0, 0.5), (1.0, 0.9)]
FAST = [(2.0, 0.3), (0.5, 0.4), (0.5, 0.7), (0.5, 0.8)]


def test_curve_has_every_evaluated_epoch(tmp_path):
    journal = FakeJournal(tmp_path).add_trial(0, SLOW, FAST).journal
    points = curve(journal.trial_samples(CellPair(B, A), A, 0))
    assert points == [
        EvaluatedEpoch(1, 4.0, 1.0, 0.2, pytest.approx(0.1)),
        EvaluatedEpoch(2, 5.0, 0.5, 0.6, 0.5),
        EvaluatedEpoch(3, 6.0, pytest.approx(1 / 3), 0.5, 0.4),
        EvaluatedEpoch(4, 7.0, 0.25, 0.9, 0.8),
    ]
    assert reached(points, 0.6) == points[1]  # a later drop does not matter
    assert reached(points, 0.61) == points[3] and reached(points, 0.91) is None
    assert curve([EpochSample(wall_s=1.0, loss=1.0, val_accuracy=None)]) == []


def test_time_to_accuracy_and_its_ratio_over_pairs(tmp_path):
    twice = [(2 * s, accuracy) for s, accuracy in FAST]
    trials = FakeJournal(tmp_path).add_trial(0, SLOW, FAST).add_trial(1, SLOW, twice)
    known = Metrics(
        learning_rows(PLAN, trials.add_trial(2, FAST, SLOW, void=True).journal, {"d": 0.55})
    )

    def row(cell, what, where="0.55"):
        return known.row(cell.id, m.LEARNING, what, where)

    assert row(A, m.TIME_TO)["value"] == pytest.approx(5.0)
    # 2 + 0.5 + 0.5 s, and twice that.
    assert row(B, m.TIME_TO)["value"] == pytest.approx(math.sqrt(3.0 * 6.0))
    assert [row(c, m.EPOCHS_TO)["value"] for c in (A, B)] == pytest.approx([2, 3])
    assert row(A, m.REACHED)["value"] == 1.0 and row(A, m.TO_SPEEDUP) is None
    speedup = row(B, m.TO_SPEEDUP)
    assert (speedup["value"], speedup["n"]) == (pytest.approx(5 / math.sqrt(18)), 2)
    # d = log 5/3 and log 5/6; Student's t for one degree of freedom at 95 %.
    half = 12.7062047 * math.log(2) / 2
    assert math.log(speedup["high"] / speedup["value"]) == pytest.approx(half)
    last = known.row(B.id, m.LEARNING, m.VAL_ACCURACY)
    assert (last["value"], last["low"], last["n"]) == (pytest.approx(0.8), pytest.approx(0.8), 2)
    assert known.value(A.id, m.LEARNING, m.TEST_ACCURACY) == pytest.approx(0.8)
    assert known.value(A.id, m.LEARNING, m.VAL_NODES) == 50


def test_reference_of_two_systems_counts_as_one_training(tmp_path):
    """Trials over the same epochs, as older runs have them, are one training."""
    other = replace(B, system="c", recipe={"sampler": {"name": "gnnlab"}})
    cells = [A, B, other]
    plan = Plan(
        cells,
        [CellPair(B, A), CellPair(other, A)],
        references={c.id: A for c in cells},
        names={c.id: [c.system] for c in cells},
    )
    trials = FakeJournal(tmp_path).add_trial(0, SLOW, FAST).add_trial(1, FAST, FAST)
    for sample in list(trials.samples):
        trials.samples.append({**sample, "pair": f"{A.id}-{other.id}"})
        if sample["id"] == B.id:
            trials.samples[-1]["id"] = other.id
    trials.events += [{**e, "pair": f"{A.id}-{other.id}"} for e in list(trials.events)]
    known = Metrics(learning_rows(plan, trials.journal, {}))
    accuracy = known.row(A.id, m.LEARNING, m.VAL_ACCURACY)
    assert (accuracy["value"], accuracy["n"]) == (pytest.approx((0.9 + 0.8) / 2), 2)


def test_trial_below_the_accuracy_leaves_no_time_and_no_ratio(tmp_path):
    never = [(1.0, 0.1)] * 4
    journal = FakeJournal(tmp_path).add_trial(0, SLOW, FAST).add_trial(1, SLOW, never).journal
    known = Metrics(learning_rows(PLAN, journal, {"d": 0.55}))
    assert known.value(A.id, m.LEARNING, m.TIME_TO, "0.55") == pytest.approx(5.0)
    assert known.value(B.id, m.LEARNING, m.REACHED, "0.55") == 0.5
    for what in (m.TIME_TO, m.EPOCHS_TO, m.TO_SPEEDUP):
        assert known.row(B.id, m.LEARNING, what, "0.55") is None
    one_sided = FakeJournal(tmp_path).add_trial(0, never, FAST).journal
    known = Metrics(learning_rows(PLAN, one_sided, {"d": 0.55}))
    assert known.row(B.id, m.LEARNING, m.TIME_TO, "0.55") is not None
    assert known.row(B.id, m.LEARNING, m.TO_SPEEDUP, "0.55") is None


def test_no_time_to_accuracy_without_a_stated_accuracy(tmp_path):
    journal = FakeJournal(tmp_path).add_trial(0, SLOW, FAST).journal
    names = {r["name"] for r in learning_rows(PLAN, journal, {"other": 0.5})}
    assert names == {"val_accuracy", "test_accuracy", "val_nodes", "test_nodes"}


def test_convergence_rows_have_every_epoch_of_counted_trials(tmp_path):
    journal = (
        FakeJournal(tmp_path).add_trial(0, SLOW, FAST).add_trial(1, SLOW, SLOW, void=True).journal
    )
    rows = convergence_rows(PLAN, journal)
    assert [(r["id"], r["life"], r["epoch"]) for r in rows] == [
        (cell.id, 0, epoch) for cell in (A, B) for epoch in (1, 2, 3, 4)
    ]
    assert [r["elapsed_s"] for r in rows[4:]] == [2.0, 2.5, 3.0, 3.5]
    assert {r["cell"] for r in rows} == {"a", "b"}


def grid(tmp_path, text, over):
    path = tmp_path / "mine.toml"
    head = "schema_version = 2\n[axes]\nsystem = ['baseline']\ndataset = ['d']\n"
    path.write_text(head + text)
    return expand(
        ex.resolve(ex.load(str(path)), "", over),
        lambda system, settings, device, until: find(system).resolved(settings, device, until),
    )


def test_evaluate_needs_rounds_a_model_and_all_neighbours(tmp_path):
    text = "model = ['gcn']\nevaluate = ['sampled', 'all']\n"
    rounds = {"measure": {"rounds": 4}}
    cells = grid(tmp_path, text, rounds).cells
    assert [c.evaluate for c in cells] == ["sampled", "all"] and cells[0].id != cells[1].id
    with pytest.raises(UsageError, match="say for how many epochs, -o rounds=10"):
        grid(tmp_path, text, None)
    (cell,) = grid(tmp_path, text + "until = ['memory_io']\n", rounds).cells
    assert cell.evaluate == ""
    random_walk = "'baseline.sampler.pick' = ['random_walk']\n"
    expanded = grid(tmp_path, text + random_walk, rounds)
    assert [(c.evaluate, c.id in expanded.unsupported) for c in expanded.cells] == [
        ("sampled", False),
        ("all", True),
    ]
    assert "cannot take all neighbours" in expanded.unsupported[expanded.cells[1].id]


def test_system_with_a_custom_epoch_loop_is_not_evaluated(fakes, tmp_path):
    text = "model = ['gcn']\nevaluate = ['all']\n"
    expanded = grid(tmp_path, text, {"axes": {"system": ["fake"]}, "measure": {"rounds": 4}})
    assert (
        "which does not give its model out; leave evaluate out"
        in expanded.unsupported[expanded.cells[0].id]
    )


def test_system_with_a_custom_epoch_loop_has_no_dropout(fakes, tmp_path):
    text = "model = ['gcn']\ndropout = [0, 0.5]\n"
    expanded = grid(tmp_path, text, {"axes": {"system": ["fake"]}})
    plain, dropping = expanded.cells
    assert plain.id not in expanded.unsupported
    assert expanded.unsupported[dropping.id].startswith(
        "system 'fake' has an epoch loop of its own, which does not draw the masks of dropout"
    )


def test_system_with_a_custom_epoch_loop_has_one_precision(fakes, tmp_path):
    text = "model = ['gcn']\nprecision = ['float32', 'bfloat16']\n"
    expanded = grid(tmp_path, text, {"axes": {"system": ["fake"]}})
    plain, narrow = expanded.cells
    assert plain.id not in expanded.unsupported
    assert expanded.unsupported[narrow.id].startswith(
        "system 'fake' has an epoch loop of its own, which does not know the axis precision"
    )


def request(folder, *options, profile="smoke", systems=()):
    over = Overrides(profile=profile, options=options, systems=systems)
    return make_request("convergence", over, folder, False)


@pytest.mark.timeout(300)
def test_convergence_run(tmp_path, observer):
    """For both samplers, accuracies, times, table and figure agree with the samples."""
    varied = 'baseline.sampler=["hop-by-hop","fused-map"]'
    run_request = request(tmp_path, "pairs=[1]", varied, systems=("baseline",))
    run = reader.read(campaign.run(run_request, observer).folder)
    assert [r["status"] for r in run.cells] == ["ok"] * 2, [r["reason"] for r in run.cells]
    assert {r["evaluate"] for r in run.cells} == {"sampled"}
    known = Metrics(run.metrics)
    curves = []
    for row in run.cells:
        points = [p for p in run.convergence if p["id"] == row["id"]]
        own = [s for s in run.samples if s["id"] == row["id"]]
        assert [p["epoch"] for p in points] == [1, 2, 3]  # a warm-up and two rounds
        assert [p["val_accuracy"] for p in points] == [s["val_accuracy"] for s in own]
        assert points[-1]["elapsed_s"] == pytest.approx(sum(s["wall_s"] for s in own))
        assert all(s["evaluate_s"] > 0 for s in own)
        last = known.value(row["id"], m.LEARNING, m.TEST_ACCURACY)
        assert last == pytest.approx(points[-1]["test_accuracy"])
        curves.append([(p["loss"], p["val_accuracy"], p["test_accuracy"]) for p in points])
    # The samples of each epoch are equal, so results are equal except for rounding.
    assert curves[0] == [pytest.approx(point, abs=2e-3) for point in curves[1]]
    (part,) = main_tables(run.cells, run.metrics)
    assert {"validation", "test", "to accuracy"} <= set(part.heads)
    assert len(figures.figure(run).axes) == 2
    with (run.path / "convergence.csv").open() as file:
        assert next(csv.reader(file))[-4:] == ["elapsed_s", "loss", "val_accuracy", "test_accuracy"]


@pytest.mark.parametrize("schedule", ["serial", "producer-consumer"])
def test_graph_without_validation_nodes_is_split_in_every_process(schedule, tmp_path):
    """The producer's process also trains on the remaining nodes."""
    options = ("batch_size=64", "fanouts=[3,2]", f"baseline.schedule={schedule}")
    over = Overrides(
        profile="smoke", systems=("baseline",), datasets=("rmat@9",), options=options
    )  # fmt: skip
    (cell,) = make_request("convergence", over, tmp_path).plan.cells
    cache = SharedMemoryCache(tmp_path, 60.0)
    assert cache.prepare(cell) is None
    with cache.worker(cell, 0.0) as worker:
        facts = worker.open(cache.graph(cell))["facts"]
        assert facts["train_nodes"] == facts["nodes"] * 3 // 5 == 307
        worker.call("setup")
        assert worker.call("check")["ok"]
        worker.timed("epoch", epoch=5)
        report = worker.call("audit", epoch=5)
        assert report["ok"], report["reason"]
        evaluation = worker.call("evaluate")
        assert (evaluation["val_nodes"], evaluation["test_nodes"]) == (102, 103)
        assert 0 < evaluation["val_accuracy"] < 1 and evaluation["evaluate_s"] > 0
    cache.close()


def test_convergence_profiles_can_be_planned(tmp_path):
    cells = {}
    for profile in ("smoke", "laptop", "real", "gpu"):
        plan = request(tmp_path, profile=profile).plan
        cells[profile] = Counter(c.system for c in plan.cells)
        reasons = {f.reason for f in plan.failures.values() if f.status == "unsupported"}
        assert not reasons, (profile, reasons)
    # Graphs x evaluations x models; where PyG runs, the baseline also has PyG's frontier.
    assert {p: count["dgl"] for p, count in cells.items()} == {
        "smoke": 1, "laptop": 2, "real": 2, "gpu": 6,
    }  # fmt: skip
    assert all(count["baseline"] >= count["dgl"] for count in cells.values())
    # PyG, or its stand-in where an extension is missing.
    assert all(count["pyg"] or count["pyg-native-sampler"] for count in cells.values())
