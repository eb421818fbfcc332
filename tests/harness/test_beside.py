"""Cells of other environments in a plan: who is measured beside whom."""

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


def told(cell):
    return cell and f"{cell.system} {cell.env}".strip()


def pairs(found):
    return [(told(p.reference), told(p.system)) for p in found.pairs]


def test_every_system_but_the_reference_runs_beside_itself():
    found = plan(grid("a", "b", "c"), old=grid("a", "b", "c", env="old"))
    assert [told(c) for c in found.cells] == ["a", "b", "b old", "c", "c old"]
    assert pairs(found) == [("a", "b"), ("a", "c"), ("b", "b old"), ("c", "c old")]
    assert found.couples == [("b env=old", "b"), ("c env=old", "c")]
    old = found.cells[2]
    assert told(found.references[old.id]) == "b" == found.reference_label(old)


def test_a_system_without_the_reference_is_measured_beside_itself_alone():
    found = plan(grid("b"), old=grid("b", env="old"), new=grid("b", env="new"))
    assert pairs(found) == [("b", "b old"), ("b", "b new")]


def test_a_reference_that_is_all_there_is_runs_too():
    assert pairs(plan(grid("a"), old=grid("a", env="old"))) == [("a", "a old")]


def test_what_is_missing_here_runs_there():
    missing = [("b", "")]
    found = plan(grid("a", "b"), missing, old=grid("a", "b", env="old"))
    assert ("b old" in [told(p.system) for p in found.pairs]) and (None, "b old") in pairs(found)
    both = plan(
        grid("a", "b"), missing, old=grid("a", "b", env="old"), new=grid("a", "b", env="new")
    )
    assert ("b old", "b new") in pairs(both)
    assert ("b env=new", "b env=old") in both.couples
    new = both.cells[-1]
    assert (told(new), both.reference_label(new)) == ("b new", "b env=old")


def test_what_is_missing_there_is_a_row_and_no_pair():
    found = plan(grid("a", "b"), [("b", "old")], old=grid("a", "b", env="old"))
    assert pairs(found) == [("a", "b")]
    old = found.cells[-1]
    assert found.failures == {old.id: GONE} and told(found.references[old.id]) == "b"


def test_a_dataset_that_is_not_there_is_nowhere():
    found = plan(grid("a", "b"), absent=["d"], old=grid("a", "b", env="old"))
    assert {f.status for f in found.failures.values()} == {"missing_data"}
    assert len(found.failures) == 3 and found.pairs == []


def test_settings_that_came_to_one_cell_there_are_measured_beside_each_of_here():
    one, two = grid("b", recipe={"x": 1}), grid("b", recipe={"x": 2})
    here = Grid([*one.cells, *two.cells], one.names | two.names, {}, [*one.asked, *two.asked])
    same = grid("b", env="old", recipe={"x": 3})
    there = Grid(same.cells, same.names, {}, same.asked * 2)
    found = plan(here, old=there)
    assert [told(c) for c in found.cells].count("b old") == 1
    beside = [(p.reference.recipe["x"], p.direct) for p in found.pairs if p.system.env]
    assert beside == [(1, False), (2, True)]  # the row is of the first, ratios.csv has both
    assert found.references[same.asked[0]].recipe["x"] == 1
    assert len(found.couples) == 2


def test_a_definition_may_compare_two_others():
    found = plan(
        grid("a", "b"), compare=[("b env=new", "b env=old"), ("b env=none", "b")],
        old=grid("a", "b", env="old"), new=grid("a", "b", env="new"),
    )  # fmt: skip
    (direct,) = [p for p in found.pairs if p.direct]
    assert (told(direct.reference), told(direct.system)) == ("b new", "b old")
    assert len(found.pairs) == 4
    assert found.notes == ["'b env=none' compared with 'b': no such cells were selected"]
