"""Pairs of a plan with cells of other environments."""

from dataclasses import replace

from gnnbench.config.grid import Grid
from gnnbench.core.cell import Cell
from gnnbench.harness.available import Availability
from gnnbench.harness.environment_pairs import add_environments
from gnnbench.harness.failures import Failure
from gnnbench.harness.plan import make_plan

GONE = Failure("missing_dep", "gone; get it")


def grid(*systems, env="", **changes):
    cells = [Cell("e", s, "d", "m", composed=False, env=env, **changes) for s in systems]
    return Grid(cells, {c.id: [c.system] for c in cells}, {}, [c.id for c in cells])


def plan(here, missing=(), absent=(), compare=(), **there):
    """A plan with environments by name; ``missing``: (system, env) that cannot run."""

    def state(cell):
        return Availability(GONE if (cell.system, cell.env) in missing else None)

    def datasets(name):
        return Failure("missing_data", "none") if name in absent else None

    return make_plan(
        here, "a", (), state, datasets, lambda cell, name: replace(cell, system=name), compare,
        elsewhere=lambda plan: add_environments(
            plan, here, {n: (g, state) for n, g in there.items()}, "a"
        ),
    )  # fmt: skip


def label(cell):
    return cell and f"{cell.system} {cell.env}".strip()


def pairs(plan):
    return [(label(p.reference), label(p.system)) for p in plan.pairs]


def test_systems_other_than_the_reference_are_paired_across_environments():
    made = plan(grid("a", "b", "c"), old=grid("a", "b", "c", env="old"))
    assert [label(c) for c in made.cells] == ["a", "b", "b old", "c", "c old"]
    assert pairs(made) == [("a", "b"), ("a", "c"), ("b", "b old"), ("c", "c old")]
    assert made.couples == [("b env=old", "b"), ("c env=old", "c")]
    old = made.cells[2]
    assert label(made.references[old.id]) == "b" == made.reference_label(old)


def test_system_without_a_reference_is_paired_with_itself():
    made = plan(grid("b"), old=grid("b", env="old"), new=grid("b", env="new"))
    assert pairs(made) == [("b", "b old"), ("b", "b new")]


def test_reference_without_other_systems_is_paired_with_itself():
    assert pairs(plan(grid("a"), old=grid("a", env="old"))) == [("a", "a old")]


def test_system_missing_in_this_environment_runs_in_the_others():
    missing = [("b", "")]
    made = plan(grid("a", "b"), missing, old=grid("a", "b", env="old"))
    assert ("b old" in [label(p.system) for p in made.pairs]) and (None, "b old") in pairs(made)
    both = plan(
        grid("a", "b"), missing, old=grid("a", "b", env="old"), new=grid("a", "b", env="new")
    )
    assert ("b old", "b new") in pairs(both)
    assert ("b env=new", "b env=old") in both.couples
    new = both.cells[-1]
    assert (label(new), both.reference_label(new)) == ("b new", "b env=old")


def test_system_missing_in_another_environment_is_a_row_without_a_pair():
    made = plan(grid("a", "b"), [("b", "old")], old=grid("a", "b", env="old"))
    assert pairs(made) == [("a", "b")]
    old = made.cells[-1]
    assert made.failures == {old.id: GONE} and label(made.references[old.id]) == "b"


def test_missing_dataset_fails_cells_of_all_environments():
    made = plan(grid("a", "b"), absent=["d"], old=grid("a", "b", env="old"))
    assert {f.status for f in made.failures.values()} == {"missing_data"}
    assert len(made.failures) == 3 and made.pairs == []


def test_one_cell_of_another_environment_is_paired_with_each_of_its_settings():
    one, two = grid("b", recipe={"x": 1}), grid("b", recipe={"x": 2})
    here = Grid([*one.cells, *two.cells], one.names | two.names, {}, [*one.asked, *two.asked])
    same = grid("b", env="old", recipe={"x": 3})
    there = Grid(same.cells, same.names, {}, same.asked * 2)
    made = plan(here, old=there)
    assert [label(c) for c in made.cells].count("b old") == 1
    recipes = [(p.reference.recipe["x"], p.direct) for p in made.pairs if p.system.env]
    assert recipes == [(1, False), (2, True)]  # cells.csv has the first, ratios.csv both
    assert made.references[same.asked[0]].recipe["x"] == 1
    assert len(made.couples) == 2


def test_definition_may_compare_cells_of_two_other_environments():
    made = plan(
        grid("a", "b"), compare=[("b env=new", "b env=old"), ("b env=none", "b")],
        old=grid("a", "b", env="old"), new=grid("a", "b", env="new"),
    )  # fmt: skip
    (direct,) = [p for p in made.pairs if p.direct]
    assert (label(direct.reference), label(direct.system)) == ("b new", "b old")
    assert len(made.pairs) == 4
    assert made.notes == ["'b env=none' compared with 'b': no such cells were selected"]
