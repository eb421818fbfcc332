"""Rows from hand-made ledgers."""

import pytest

from gnnbench.cell import Cell
from gnnbench.experiment import Measure
from gnnbench.runner.ledger import Ledger
from gnnbench.runner.plan import Pair, Plan
from gnnbench.runner.rows import cell_rows

A, B = Cell("e", "a", "d", "m"), Cell("e", "b", "d", "m")
PAIR = Pair(B, A)
CHECK = {
    "pick": "p", "frontier": "cumulative", "law": "l", "digest": "x", "edges_per_seed": 1.0,
    "nodes_per_seed": 1.0, "seconds": 0.1,
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    found = Ledger(tmp_path)
    for cell in (A, B):
        found.record("report", cell=cell.id, report={"check": CHECK})
    yield found
    found.close()


def add(ledger, cell, number, wall, attempt=1, warmup=False, foreign=0.0, pair=PAIR, share=0.5):
    answer = {
        "epoch": number, "wall_s": wall, "batches": 2, "seeds": 4, "sampled_edges": 8,
        "unique_nodes": 9, "h2d_bytes": 0, "loss": 1.0, "peak_alloc_bytes": 1,
        "peak_rss_bytes": 1, "ok": True, "phases_s": {"sample": wall * share},
        "feature_bytes": {"host_copy": 5},
    }  # fmt: skip
    where = {
        "attempt": attempt, "worker": 1, "round": number, "order": 0, "warmup": warmup,
        "block_s": wall, "idle_cpu_s": 0.0, "foreign_cpu_s": foreign * wall,
    }  # fmt: skip
    ledger.add_sample(pair, cell, where, answer)


def rows(ledger, **measure):
    plan = Plan([A, B], [PAIR], references={A.id: A, B.id: A})
    return {r["system"]: r for r in cell_rows(plan, ledger, Measure(**measure))}


def test_ratios_pair_rounds_of_one_attempt_and_leave_warm_ups_out(ledger):
    for number, (a, b) in enumerate([(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)]):
        add(ledger, A, number, a)
        add(ledger, B, number, b)
    add(ledger, A, 0, 100.0, warmup=True)
    add(ledger, A, 3, 50.0)  # its other half was lost to a kill
    add(ledger, B, 3, 9.0, attempt=2)
    found = rows(ledger, unstable_half_width=0.0)
    assert found["b"]["speedup"] == 2.0
    assert (found["b"]["rounds"], found["b"]["verdict"]) == (3, "faster")
    assert (found["b"]["work_class"], found["a"]["n"]) == ("identical", 4)
    assert found["b"]["residual_s"] == pytest.approx(1.25)
    assert found["b"]["compute_time_s"] is None


def test_the_verdict_of_sampling_alone_is_by_its_own_time(tmp_path):
    cells = [Cell("e", name, "d", "none") for name in "ab"]
    pair, sampling = Pair(cells[1], cells[0]), Ledger(tmp_path)
    for cell, share in zip(cells, (0.5, 0.25), strict=True):
        sampling.record("report", cell=cell.id, report={"check": CHECK})
        for number in range(3):
            add(sampling, cell, number, 1.0, pair=pair, share=share)
    plan = Plan(cells, [pair], references=dict.fromkeys([c.id for c in cells], cells[0]))
    found = {r["system"]: r for r in cell_rows(plan, sampling, Measure())}
    sampling.close()
    assert (found["b"]["speedup"], found["b"]["sample_speedup"]) == (1.0, 2.0)
    assert found["b"]["verdict"] == "faster"


def test_no_verdict_beside_an_unstable_reference(ledger):
    for number, wall in enumerate([1.0, 9.0, 1.0, 9.0]):
        add(ledger, A, number, wall)
        add(ledger, B, number, wall / 2)
    assert rows(ledger, unstable_half_width=0.0)["b"]["verdict"] == "faster"
    found = rows(ledger, unstable_half_width=0.2)
    assert found["a"]["status"] == "unstable"
    assert found["b"]["speedup"] == 2.0
    assert "verdict" not in found["b"]


def test_other_programs_make_a_row_doubtful(ledger):
    for number in range(3):
        add(ledger, A, number, 1.0, foreign=0.9)
        add(ledger, B, number, 1.0, foreign=0.01)
    found = rows(ledger)
    assert "other programs used 0.9 cores" in found["a"]["doubtful"]
    assert found["b"]["doubtful"] == ""
