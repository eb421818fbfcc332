from dataclasses import replace

import pytest

from gnnbench.config.experiment import MeasureLimits
from gnnbench.core.cell import Cell
from gnnbench.harness.estimate import (
    EVALUATED_BATCH,
    EVALUATED_NODES,
    FRESH_S,
    PROFILE_S,
    ROOFLINE_S,
    RUN_S,
    describe,
    estimate,
    usual_rounds,
)
from gnnbench.harness.failures import Failure
from gnnbench.harness.plan import CellPair, Plan

CELL = Cell("e", "s", "products~twin@0.02", "gcn", max_batches=4)
MEASURE = MeasureLimits(pairs=[5], rounds=2, time_budget_s=1.0)


def test_estimate_grows_with_work_and_graph_size():
    small = estimate(CellPair(CELL), MEASURE)
    assert small.seconds < estimate(CellPair(CELL, replace(CELL, system="r")), MEASURE).seconds
    big = estimate(CellPair(replace(CELL, dataset="products~twin")), MEASURE)
    assert small.bytes < big.bytes
    # The graph alone: 124 M edges of 4 bytes, 2.4 M rows of 100 floats.
    assert big.bytes > 123_718_152 * 4 + 2_449_029 * 400


def test_estimate_counts_the_graph_once_for_both_workers():
    alone = estimate(CellPair(replace(CELL, dataset="products~twin")), MEASURE).bytes
    both = CellPair(replace(CELL, dataset="products~twin"), replace(CELL, dataset="products~twin"))
    assert estimate(both, MEASURE).bytes < 1.9 * alone


def test_estimate_ignores_cells_that_cannot_run():
    gone = replace(CELL, system="gone", composed=False)
    plan = Plan([CELL, gone], [CellPair(CELL)], failures={gone.id: Failure("missing_dep", "why")})
    description = describe(plan, MEASURE).plain()
    assert [c["status"] for c in description["cells"]] == ["planned", "missing_dep"]
    assert description["cells"][1]["estimated_time_s"] is None
    (made,) = description["preparations"]
    alone = description["cells"][0]["estimated_time_s"]
    total = alone + made["estimated_time_s"] + RUN_S["cpu"]
    assert description["estimated_time_s"] == pytest.approx(total)


def test_plan_without_runnable_cells_has_no_estimate():
    gone = replace(CELL, system="gone", composed=False)
    plan = Plan([gone], [], failures={gone.id: Failure("missing_dep", "why")})
    description = describe(plan, MEASURE).plain()
    assert description["estimated_time_s"] is description["estimated_peak_bytes"] is None


@pytest.mark.parametrize("dataset", ["rmat@18", "ogbn_arxiv~twin+sym", "rmat@12x8x64+sym"])
def test_estimate_of_unprepared_graphs(dataset):
    cell = replace(CELL, dataset=dataset, system="baseline")
    description = describe(Plan([cell], [CellPair(cell)]), MEASURE).plain()
    assert description["pairs_of_unknown_size"] == 0
    (made,) = description["preparations"]
    assert made["dataset"] == dataset and made["estimated_disk_bytes"] > 1e5
    alone = description["cells"][0]["estimated_time_s"]
    total = alone + made["estimated_time_s"] + RUN_S["cpu"]
    assert alone > 0 and description["estimated_time_s"] == pytest.approx(total)


def test_estimate_above_free_memory_is_noted(monkeypatch):
    plan = Plan([CELL], [CellPair(CELL)])
    assert describe(plan, MEASURE).notes == []
    monkeypatch.setattr("gnnbench.measure.machine.memory_limit_bytes", lambda: 2**20)
    assert "may not fit" in describe(plan, MEASURE).notes[0]


def test_estimate_ignores_rounds_beyond_the_time_budget():
    """With rounds of 5 s, six rounds take 43 s; five pairs in 20 s have two rounds each."""
    one = replace(CELL, dataset="products~twin", max_batches=2)
    pair = CellPair(one, replace(one, system="r"))
    limits = [MeasureLimits(time_budget_s=20.0, rounds=rounds) for rounds in (0, 2, 6)]
    seconds = [estimate(pair, limit).seconds for limit in limits]
    assert seconds[0] == seconds[1] < seconds[2]


def test_estimate_grows_with_each_phase():
    """Samplers that run alone are profiled, too."""
    sample, memory_io, compute = (
        estimate(CellPair(replace(CELL, until=until)), MEASURE).seconds
        for until in ("sample", "memory_io", "compute")
    )
    assert sample - PROFILE_S["cpu"] < memory_io < compute


def test_estimate_knows_that_cores_sample_slower_than_a_gpu():
    on_gpu = replace(CELL, dataset="products~twin", device="cuda", batch_size=8000)
    by_cores = replace(on_gpu, recipe={"sampler": {"name": "fused-map", "topology": "cpu"}})
    seconds = [estimate(CellPair(c), MEASURE).seconds for c in (on_gpu, by_cores)]
    assert seconds[0] < seconds[1]


def test_estimate_has_as_many_rounds_as_a_run():
    """Of short epochs 12 on a CPU, where rounds are noisy, and fewer on a GPU."""
    limits = MeasureLimits(time_budget_s=1000.0)
    assert usual_rounds("cpu", limits, 1.0, 0.1) == 12
    assert usual_rounds("cuda", limits, 6.0, 1.0) < 12
    assert usual_rounds("cpu", MeasureLimits(time_budget_s=6.0), 1.0, 1.0) == 2


def test_estimate_of_a_table_without_edges():
    gather = replace(CELL, dataset="rows@1Mx128", model="", until="memory_io", fanouts=())
    assert estimate(CellPair(gather), MEASURE).bytes > 512_000_000
    assert estimate(CellPair(replace(gather, fanouts=(5,))), MEASURE).bytes is None


def test_estimate_includes_roofline_kernels():
    """Two rounds of two cells."""
    plain, with_roofline = (
        estimate(
            CellPair(CELL, replace(CELL, system="r")), MEASURE.model_copy(update={"roofline": on})
        )
        for on in (False, True)
    )
    assert with_roofline.seconds == pytest.approx(plain.seconds + 2 * 2 * ROOFLINE_S)


def test_estimate_includes_the_evaluation_of_each_epoch():
    from gnnbench.systems.runtime import evaluate

    assert (EVALUATED_NODES, EVALUATED_BATCH) == (evaluate.NODES, evaluate.BATCH)
    seconds = [
        estimate(CellPair(replace(CELL, evaluate=one)), MEASURE).seconds for one in ("", "sampled")
    ]
    assert seconds[0] < seconds[1]


def test_estimate_of_measured_memory_has_processes_that_are_not_forked():
    """Five trials of a cell."""
    budget = MEASURE.model_copy(update={"time_budget_s": 1000.0})
    forked, fresh = (
        estimate(CellPair(CELL), budget.model_copy(update={"memory": on})).seconds
        for on in (False, True)
    )
    assert fresh - forked == pytest.approx(5 * FRESH_S["cpu"])


def test_total_has_the_start_of_a_run_once():
    others = [replace(CELL, batch_size=size) for size in (256, 512)]
    plan = Plan(others, [CellPair(c) for c in others])
    alone = sum(estimate(p, MEASURE).seconds for p in plan.pairs)
    prepared = sum(c.seconds for c in describe(plan, MEASURE).preparations.values())
    assert describe(plan, MEASURE).time_s == pytest.approx(alone + prepared + RUN_S["cpu"])
