"""A system's own reference: the cell that a label derives, and shipped definitions."""

import pytest

from gnnbench.config.overrides import Overrides
from gnnbench.core.cell import Until, flat
from gnnbench.core.errors import UsageError
from gnnbench.harness import available, environment
from gnnbench.harness.launch import make_request
from gnnbench.harness.reduce.ratios import apart

SMOKE = Overrides("smoke", systems=("baseline", "pyg", "pyg-native-sampler"))


def baseline(**settings):
    from gnnbench.core.cell import Cell

    resolved = available.resolve("baseline", settings, "cpu", Until.SAMPLE)
    return Cell("e", "baseline", "rmat@10", "", until="sample", recipe=resolved.recipe)


def test_variant_changes_only_the_settings_of_its_label():
    cell = baseline(**{"sampler": "fused-map", "sampler.pick": "reservoir"})
    made, failure = environment.variant(cell, "baseline sampler.frontier=new")
    assert failure is None
    changed = {k: v for k, v in flat(made.recipe).items() if flat(cell.recipe)[k] != v}
    assert changed == {"sampler.frontier": "new"}
    other, _ = environment.variant(cell, "baseline sampler=hop-by-hop")
    assert flat(other.recipe) == flat(baseline(sampler="hop-by-hop").recipe)
    same, _ = environment.variant(cell, "baseline sampler=fused-map sampler.frontier=new")
    assert same == made


def test_variant_with_an_impossible_label_fails():
    with pytest.raises(UsageError, match="sets 'threads'; a system's own reference"):
        environment.variant(baseline(), "baseline threads=1")
    _, failure = environment.variant(baseline(), "baseline sampler.frontier=old")
    assert failure.status == "unsupported" and "has no frontier 'old'" in failure.reason


@pytest.mark.parametrize("experiment", ["breakdown", "sampling"])
def test_pyg_systems_are_compared_at_their_own_frontier(experiment, tmp_path):
    plan = make_request(experiment, SMOKE, tmp_path).plan
    for name in ("pyg", "pyg-native-sampler"):
        (cell,) = [c for c in plan.cells if c.system == name]
        if cell.id in plan.failures:
            pytest.skip(plan.failures[cell.id].reason)
        own = plan.references[cell.id]
        assert own.system == "baseline" and flat(own.recipe)["sampler.frontier"] == "new"
        default = plan.references[own.id]
        assert flat(default.recipe) == {**flat(own.recipe), "sampler.frontier": "cumulative"}
        direct = {p.reference.id: p.direct for p in plan.pairs if p.system.id == cell.id}
        assert direct == {own.id: False, default.id: True}


def test_labels_of_compared_cells_name_the_settings_that_differ(tmp_path):
    over = Overrides("laptop", systems=("baseline", "pyg"))
    plan = make_request("sampling", over, tmp_path).plan
    cells = [c for c in plan.cells if c.system == "pyg"]
    if cells[0].id in plan.failures:
        pytest.skip(plan.failures[cells[0].id].reason)
    assert [apart(plan, c, "pyg") for c in cells] == [
        "pyg sampler.workers=0", "pyg sampler.workers=2",
    ]  # fmt: skip
    assert apart(plan, cells[0], "pyg sampler.workers=0") == "pyg sampler.workers=0"
    new = plan.references[cells[0].id]
    assert apart(plan, new, "baseline sampler.frontier=new") == "baseline sampler.frontier=new"
