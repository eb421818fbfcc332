"""What is claimed of every cell of a grid: a run that was stopped shows not all of them."""

import json

import pytest
from written_runs import CELL, claim, epochs, timed, verdict_of, write_run

from gnnbench.config import experiment
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.planned import whole_plan

HALF = [{"cache": n, "host": 100 - n} for n in (50, 51, 49)]
ORDER = {"kind": "order", "number": None, "tolerance": None, "least": 0.1}


@pytest.fixture(scope="module")
def resolved():
    """Caches of Twitter's twin by two policies and two sizes."""
    over = {
        "tsota.features.policy": ["degree", "presc#1"], "tsota.features.ratio": [0.1, 0.2],
    }  # fmt: skip
    return experiment.resolve(experiment.load("cache-ratio"), "laptop", {"axes": over})


@pytest.fixture
def stopped(tmp_path, resolved):
    """``stopped(keep, **record)``: a run that got to cells for which ``keep(recipe)`` is true."""
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


def of_degree(**more):
    return claim(of="tsota features.policy=degree", **{**ORDER, **more})


def test_a_cell_that_was_not_got_to_leaves_it_unclear(stopped):
    found = verdict_of(of_degree(), stopped(lambda f: f["ratio"] == 0.1))
    assert found.verdict == "unclear"
    assert found.reason.startswith("1 of 2 points measured: tsota features.policy=degree")
    assert "features.ratio=0.2" in found.reason and "interrupted before" in found.reason
    whole = stopped(lambda f: f["policy"] == "degree", name="whole")
    assert verdict_of(of_degree(), whole).verdict == "holds"


def test_another_run_may_have_measured_it(stopped):
    half, rest = stopped(lambda f: f["ratio"] == 0.1), lambda f: f["ratio"] == 0.2
    assert verdict_of(of_degree(), half, stopped(rest, name="rest")).verdict == "holds"


def test_one_cell_is_enough_to_refute_and_a_value_is_told_by_each(stopped):
    half = stopped(lambda f: f["ratio"] == 0.1)
    assert verdict_of(of_degree(least=0.9), half).verdict == "refuted"
    assert verdict_of(of_degree(kind="upto", least=0.9), half).verdict == "unclear"
    assert verdict_of(of_degree(kind="upto", least=0.1), half).verdict == "holds"
    assert verdict_of(of_degree(kind="bound"), half).verdict == "holds"


def test_a_run_of_older_code_knows_its_cells_by_what_the_definition_sets(stopped, resolved):
    older = {c.id: f"old{n}" for n, c in enumerate(whole_plan(resolved).cells)}
    found = verdict_of(of_degree(), stopped(lambda f: f["policy"] == "degree", cells=older))
    assert found.verdict == "holds" and len(found.findings) == 2


def test_couples_that_were_to_run_beside_one_another_are_missed(stopped, resolved):
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
    found = verdict_of(timed(), every)
    assert found.verdict == "unclear" and found.reason.startswith("1 of 2 points measured: ")
    one = {**definition, "compare": couples[:1]}
    alone = stopped(lambda f: True, name="alone", ratios=[ratio], experiment=one)
    assert verdict_of(timed(), alone).verdict == "holds"


def test_of_a_definition_of_another_version_nobody_knows_what_is_missing(stopped):
    old = stopped(lambda f: f["ratio"] == 0.1, experiment={"schema_version": 1})
    found = verdict_of(of_degree(), old)
    assert found.verdict == "unclear" and "its definition is of another version" in found.reason


def test_a_run_that_came_to_its_end_has_a_row_for_every_cell(stopped):
    ended = stopped(lambda f: f["ratio"] == 0.1, finished=True)
    assert open_runs([ended])[0].planned == open_runs([ended])[0].run.cells
    assert verdict_of(of_degree(), ended).verdict == "holds"


def test_how_many_cells_the_paper_has_is_told(stopped):
    ended = stopped(lambda f: f["ratio"] == 0.1, finished=True)
    found = verdict_of(of_degree(cells=12), ended)
    assert (found.verdict, found.reason) == ("holds", "at 1 of the paper's 12 cells")
