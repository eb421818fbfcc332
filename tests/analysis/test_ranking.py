"""The table of a comparison of systems: order, blocks, and systems of different work."""

from pathlib import Path

import pytest

from gnnbench.analysis.ranking import TWINS, is_ranking, ranking_tables
from gnnbench.schema.reader import Run
from gnnbench.schema.run_record import RunRecord

BASE = {
    "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "status": "ok",
    "recipe": "{}", "seed": 0, "batch_size": 8, "fanouts": "5/5", "threads": 2, "hidden": 16,
    "reference": "dgl", "reference_id": "dgl", "verified": True, "env": "", "sampled_edges": 100,
    "reference_s": 2.0,
}  # fmt: skip


def row(system, seconds, ratio=None, **values):
    ends = {}
    if ratio is not None:
        ends = {"ratio": ratio, "ratio_ci_low": ratio - 0.1, "ratio_ci_high": ratio + 0.1}
    one = {**BASE, "id": system, "system": system, "judged_s": seconds, **ends}
    return {**one, "pairs": 3, "verdict": "", "work_class": "equivalent", **values}


DGL = row("dgl", 2.0, verdict="reference", reference_s=None)
ROWS = [
    DGL,
    row("fastgl", 1.0, 2.0, verdict="faster"),
    row("pyg", 3.0, work_class="different", sampled_edges=78),
    row("best", 0.8, 2.5, verdict="faster"),
    row("slow", 4.0, 0.5, verdict="slower"),
    row("absent", None, status="missing_dep", reference_s=None),
]
PER_EDGE = {
    "id": "pyg", "stage": "epoch", "name": "speedup_per_edge", "where": "", "value": 0.52,
    "low": 0.5, "high": 0.54,
}  # fmt: skip


def run(rows, metrics=()):
    return Run(Path("x"), rows, [], RunRecord(), metrics=list(metrics))


def lines(rows, metrics=()):
    (table,) = ranking_tables(run(rows, metrics))
    return table.lines


def test_fastest_is_first_and_designs_for_a_gpu_follow():
    names = [line["system"] for line in lines(ROWS)]
    assert names == ["best", "dgl", "pyg", "slow", "absent", f"{TWINS}:", "fastgl"]


def test_on_a_gpu_there_is_one_block():
    names = [line["system"] for line in lines([{**r, "device": "cuda"} for r in ROWS])]
    assert names == ["best", "fastgl", "dgl", "pyg", "slow", "absent"]


def test_line_has_time_speed_up_verdict_and_work():
    best = lines(ROWS)[0]
    assert best["speed-up"] == "2.50x [2.40, 2.60]" and best["epoch"].endswith(" s")
    assert (best["verdict"], best["work"]) == ("faster", "equivalent")
    reference = next(line for line in lines(ROWS) if line["system"] == "dgl")
    assert reference["verdict"] == "reference" and not reference.get("speed-up")
    absent = next(line for line in lines(ROWS) if line["system"] == "absent")
    assert absent["verdict"] == "missing_dep" and not absent.get("epoch")


def test_a_missing_system_with_a_stand_in_has_no_line():
    own = row("own-pyg", 1.0, 1.5, stand_in_for="pyg")
    rows = [DGL, own, row("pyg", None, status="missing_dep"), *ROWS[3:]]
    names = [line["system"] for line in lines(rows)]
    assert "own-pyg" in names and "pyg" not in names


def test_different_work_has_its_ratio_per_edge_and_its_edges():
    pyg = next(line for line in lines(ROWS, [PER_EDGE]) if line["system"] == "pyg")
    assert pyg["speed-up"] == "0.52x/edge [0.50, 0.54]" and pyg["work"] == "0.78x edges"
    without = next(line for line in lines(ROWS) if line["system"] == "pyg")
    assert not without.get("speed-up")


def test_rows_of_several_references_are_ordered_by_time():
    other = {"reference_id": "base", "reference_s": 10.0}
    rows = [DGL, row("a", 3.0, 3.0, **other), row("b", 1.0, 2.0), row("base", 9.0, **other)]
    assert [line["system"] for line in lines(rows)] == ["b", "dgl", "a", "base"]


def test_unreliable_ratio_is_marked():
    rows = [DGL, row("a", 1.0, 2.0, doubtful="busy"), row("b", 1.5, 1.4), row("c", 3.0, 0.7)]
    first = lines(rows)[0]
    assert first["system"] == "a (?)" and first["speed-up"] == "2.00x [1.90, 2.10]"


@pytest.mark.parametrize(
    "systems,until,expected", [(3, "compute", False), (4, "compute", True), (4, "sample", False)]
)
def test_runs_that_are_ranked(systems, until, expected):
    rows = [{**r, "until": until} for r in ROWS[:systems]]
    assert is_ranking(run(rows)) is expected


def test_each_dataset_has_its_table():
    rows = [*ROWS, *({**r, "dataset": "e", "id": f"e{r['id']}"} for r in ROWS)]
    assert [t.title for t in ranking_tables(run(rows))] == ["d", "e"]
