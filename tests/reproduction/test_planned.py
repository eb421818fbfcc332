"""The runs named by claims have the claimed cells, and pairs for ratios of times."""

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest

from gnnbench.analysis.labels import fits
from gnnbench.config import experiment
from gnnbench.config.overrides import Overrides
from gnnbench.harness import available, environment, launch
from gnnbench.harness.available import Availability
from gnnbench.reproduction.claim import papers
from gnnbench.reproduction.evidence import COMMON_FIELDS, comparable_pairs, graph_of
from gnnbench.reproduction.formulas import FORMULAS
from gnnbench.reproduction.multi_machine import MULTI_MACHINE_MEASURES
from gnnbench.reproduction.time_ratios import TIME_MEASURES

MEASURED = [
    c
    for p in papers().values()
    for c in p.claim
    if c.measure and c.measure not in {*FORMULAS, *MULTI_MACHINE_MEASURES}
]


@pytest.fixture(scope="module")
def plans():
    """Plans of runs on a machine that has a GPU, every package and every graph."""
    patch = pytest.MonkeyPatch()
    patch.setattr(available, "state", lambda cell: Availability())
    patch.setattr(environment, "dataset_state", lambda name: None)
    patch.setattr(experiment, "_auto_device", lambda: "cuda")

    @cache
    def plan(run):
        name, _, profile = run.partition(" ")
        plan = launch.make_request(name, Overrides(profile=profile), Path("nowhere")).plan
        return plan, [asdict(cell) | {"id": cell.id} for cell in plan.cells]

    yield plan
    patch.undo()


def cells_of(cells, claim, point, label, changed=None):
    """Ids of cells that a label of the claim names; ``rows`` as far as a plan knows them."""
    graphs = (point.rows | (changed or {})).get("dataset")
    graphs = [graphs] if isinstance(graphs, str) else graphs
    return [
        cell["id"]
        for cell in cells
        if claim.device in ("", cell["device"])
        and (graphs is None or graph_of(cell["dataset"]) in graphs)
        and fits(cell, label)
    ]


@pytest.mark.parametrize("claim", MEASURED, ids=lambda c: c.id)
def test_cells_of_every_claim_are_planned(plans, claim):
    for point in claim.claim_points():
        for label in filter(None, (point.of, point.versus)):
            assert any(cells_of(plans(run)[1], claim, point, label) for run in claim.runs), label


@pytest.mark.parametrize(
    "claim", [c for c in MEASURED if c.measure in TIME_MEASURES], ids=lambda c: c.id
)
def test_cells_of_time_ratios_are_planned_as_pairs(plans, claim):
    """Each number of either variant has a run, and each run has a number."""
    improved = claim.improved_variant()
    points = [*claim.claim_points(), *(improved.claim_points() if improved else ())]
    pairs = [
        (point, labels)
        for point in points
        for labels in ((point.of, point.versus), (point.than.get("of"), point.than.get("versus")))
        if all(labels)
    ]
    are_planned = {
        run: [is_pair(*plans(run), claim, *pair) for pair in pairs] for run in claim.runs
    }
    assert all(any(planned) for planned in are_planned.values()), are_planned
    for pair, planned in zip(pairs, zip(*are_planned.values(), strict=True), strict=True):
        assert any(planned), pair[1]


@pytest.mark.parametrize(
    "claim",
    [c for c in MEASURED if any(p.of and p.versus for p in c.claim_points())],
    ids=lambda c: c.id,
)
def test_planned_cells_of_two_labels_differ_only_in_what_the_claim_names(plans, claim):
    """Else no pair of rows is ever compared, and the claim is never judged."""
    for point in (p for p in claim.claim_points() if p.of and p.versus):
        axes = [word.partition(".")[2] or word for word in point.along.split()]
        free = [*point.versus_rows, *point.along_with, *axes, *filter(None, [point.over])]
        comparable = False
        for run in claim.runs:
            cells = plans(run)[1]
            rows = {c["id"]: c | {"recipe": json.dumps(c["recipe"])} for c in cells}
            first, second = (
                [rows[i] for i in cells_of(cells, claim, point, label, changed)]
                for label, changed in ((point.of, {}), (point.versus, point.versus_rows))
            )
            comparable |= bool(comparable_pairs(first, second, (point.of, point.versus), free))
        assert comparable, (point.of, point.versus)


def is_pair(plan, cells, claim, point, labels):
    """Whether a plan compares cells that two labels name."""
    first, second = (set(cells_of(cells, claim, point, label)) for label in labels)
    pairs = [{p.system.id, p.reference.id} for p in plan.pairs if p.reference]
    return any(pair & first and pair & second for pair in pairs)


def test_compared_cells_of_definitions_exist(plans):
    for run in {r for c in MEASURED for r in c.runs}:
        assert not [note for note in plans(run)[0].notes if "no such cells" in note], run


def test_common_fields_are_columns_of_results():
    from gnnbench.schema import CELLS

    assert set(COMMON_FIELDS) - {c.name for c in CELLS} == {"replica", "jitter"}
