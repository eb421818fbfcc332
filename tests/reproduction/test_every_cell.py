"""Claims about every cell of a grid, with interrupted runs that have only some cells."""

import json

import pytest
from written_runs import CELL, claim, epochs, timed, verdict_of, write_run

from gnnbench.config import experiment
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.planned import unmeasured_rows, whole_plan

HALF = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]
ORDER = {"kind": "order", "number": None, "tolerance": None, "least": 0.1}


@pytest.fixture(scope="module")
def resolved():
    """Caches with two policies and two sizes."""
    over = {
        "tsota.features.policy": ["degree", "presc#1"], "tsota.features.ratio": [0.1, 0.2],
    }  # fmt: skip
    return experiment.resolve(experiment.load("cache-ratio"), "laptop", {"axes": over})


@pytest.fixture
def stopped(tmp_path, resolved):
    """``stopped(keep, **record)``: an interrupted run of the cells with ``keep(features)``."""
    plan = whole_plan(resolved)
    record = {"experiment": resolved.model_dump(mode="json"), "finished": False}

    def write(keep, name="run", cells=None, ratios=(), **more):
        kept = [c for c in plan.cells if keep(c.recipe["features"])]
        rows = [
            {
                **CELL, "id": (cells or {}).get(c.id, c.id), "system": c.system, "env": "",
                "dataset": c.dataset, "batch_size": c.batch_size, "max_batches": c.max_batches,
                "recipe": json.dumps(c.recipe), "reference_id": c.id, "reason": "",
            }
            for c in kept
        ]  # fmt: skip
        samples = [s for row in rows for s in epochs(row["id"], *HALF)]
        return write_run(tmp_path / name, rows, samples, ratios=ratios, record={**record, **more})

    return write


def claim_on_degree(**more):
    return claim(of="tsota features.policy=degree", **{**ORDER, **more})


def test_unmeasured_cell_leaves_the_claim_unclear(stopped):
    judged = verdict_of(claim_on_degree(), stopped(lambda f: f["ratio"] == 0.1))
    assert judged.verdict == "unclear"
    assert judged.reason.startswith("1 of 2 points measured: `tsota features.policy=degree")
    assert "features.ratio=0.2" in judged.reason and "interrupted before" in judged.reason
    complete = stopped(lambda f: f["policy"] == "degree", name="complete")
    assert verdict_of(claim_on_degree(), complete).verdict == "holds"


def test_unmeasured_cells_have_the_size_of_their_graph(stopped):
    """Without it a claim about one width would miss the cells of all other widths."""
    (evidence,) = open_runs([stopped(lambda f: f["ratio"] == 0.1)])
    rows = unmeasured_rows(evidence.run)
    assert {(r["dataset"], r["nodes"], r["feature_dim"]) for r in rows} == {
        ("twitter~twin@0.005", 208261, 256)
    }


def test_another_run_may_have_the_missing_cells(stopped):
    half, rest = stopped(lambda f: f["ratio"] == 0.1), lambda f: f["ratio"] == 0.2
    assert verdict_of(claim_on_degree(), half, stopped(rest, name="rest")).verdict == "holds"


def test_one_cell_refutes_an_order_and_decides_other_kinds(stopped):
    half = stopped(lambda f: f["ratio"] == 0.1)
    assert verdict_of(claim_on_degree(least=0.9), half).verdict == "refuted"
    assert verdict_of(claim_on_degree(kind="upto", least=0.9), half).verdict == "unclear"
    assert verdict_of(claim_on_degree(kind="upto", least=0.1), half).verdict == "holds"
    assert verdict_of(claim_on_degree(kind="bound"), half).verdict == "unclear"
    assert verdict_of(claim_on_degree(kind="value"), half).verdict == "holds"


def test_cells_of_older_code_are_matched_by_settings(stopped, resolved):
    older = {c.id: f"old{n}" for n, c in enumerate(whole_plan(resolved).cells)}
    judged = verdict_of(claim_on_degree(), stopped(lambda f: f["policy"] == "degree", cells=older))
    assert judged.verdict == "holds" and len(judged.findings) == 2


def test_planned_comparison_without_a_ratio_is_missing(stopped, resolved):
    by = {(c.recipe["features"]["policy"], c.recipe["features"]["ratio"]): c.id
          for c in whole_plan(resolved).cells}  # fmt: skip
    first, second = by["degree", 0.1], by["presc#1", 0.1]
    ratio = {
        "pair": f"{first}-{second}", "first": "x", "second": "y", "work_class": "identical",
        "pairs": 5, "judged": "memory_io_time_s", "ratio": 2.5, "ratio_ci_low": 2.2,
        "ratio_ci_high": 2.8,
    }  # fmt: skip
    policies = ("tsota features.policy=degree", "tsota features.policy=presc#1")
    couples = [[f"{one} features.ratio={at}" for one in policies] for at in (0.1, 0.2)]
    definition = {**resolved.model_dump(mode="json"), "compare": couples}
    every = stopped(lambda f: True, ratios=[ratio], experiment=definition)
    judged = verdict_of(timed(), every)
    assert judged.verdict == "unclear" and judged.reason.startswith("1 of 2 points measured: ")
    one = {**definition, "compare": couples[:1]}
    alone = stopped(lambda f: True, name="alone", ratios=[ratio], experiment=one)
    assert verdict_of(timed(), alone).verdict == "holds"


def test_definition_of_another_version_is_unclear(stopped):
    old = stopped(lambda f: f["ratio"] == 0.1, experiment={"schema_version": 1})
    judged = verdict_of(claim_on_degree(), old)
    assert judged.verdict == "unclear" and "its definition is of another version" in judged.reason


def test_finished_run_has_every_planned_cell(stopped):
    ended = stopped(lambda f: f["ratio"] == 0.1, finished=True)
    assert open_runs([ended])[0].planned == open_runs([ended])[0].run.cells
    assert verdict_of(claim_on_degree(), ended).verdict == "holds"


def test_reason_states_the_number_of_the_papers_cells(stopped):
    ended = stopped(lambda f: f["ratio"] == 0.1, finished=True)
    judged = verdict_of(claim_on_degree(cells=12), ended)
    assert (judged.verdict, judged.reason) == ("holds", "at 1 of the paper's 12 cells")
