from dataclasses import replace

import pytest

from gnnbench.config.grid import Grid
from gnnbench.core.cell import Cell
from gnnbench.harness.failures import Failure
from gnnbench.harness.plan import Availability, ReferenceOverrides, make_plan

GONE = Failure("missing_dep", "gone; get it")


def cells(*systems, pick="", **changes):
    if pick:
        changes["recipe"] = {"sampler": {"name": "s", "pick": pick}}
    return [Cell("e", s, "d", "m", composed=False, **changes) for s in systems]


def plan(cells, missing=None, named=(), reference="a", absent=(), compare=(), own=None):
    missing = missing or {}
    return make_plan(
        Grid(cells, {c.id: [c.system] for c in cells}, {}),
        reference,
        named,
        lambda cell: (
            Availability(GONE, missing[cell.system]) if cell.system in missing else Availability()
        ),
        lambda dataset: GONE if dataset in absent else None,
        lambda cell, name: replace(cell, system=name, recipe={}),
        compare,
        ReferenceOverrides(own or {}, lambda cell, label: (replace(cell, recipe={"x": 2}), None)),
    )


def pick(cell):
    return cell.recipe.get("sampler", {}).get("pick", "")


def pairs(found):
    return [(p.reference and p.reference.system, p.system.system) for p in found.pairs]


def test_every_system_is_beside_the_reference():
    assert pairs(plan(cells("b", "a", "c"))) == [("a", "b"), ("a", "c")]


def test_groups_differ_in_anything_but_system_and_recipe():
    found = plan([*cells("a", "b"), *cells("a", "b", batch_size=8), *cells("b", recipe={"x": 1})])
    assert pairs(found) == [("a", "b"), ("a", "b"), ("a", "b")]
    assert {p.reference.batch_size == p.system.batch_size for p in found.pairs} == {True}
    assert len({p.id for p in found.pairs}) == 3


def test_a_reference_may_be_named_with_its_settings():
    many = [*cells("a", recipe={"x": 1}), *cells("a", recipe={"x": 2}), *cells("b")]
    found = plan(many, reference="a x=2")
    assert {p.reference.recipe["x"] for p in found.pairs} == {2}
    assert {c.recipe.get("x") for c in found.references.values()} == {2}


def test_a_cell_without_the_reference_s_pick_is_compared_all_the_same():
    found = plan([*cells("a", pick="floyd"), *cells("b", pick="own"), *cells("a", pick="x")])
    assert pairs(found) == [("a", "b"), (None, "a")]
    assert pick(found.pairs[0].reference) == "floyd"


def test_couples_are_measured_beside_the_reference():
    found = plan(cells("a", "b", "c"), compare=[("b", "c"), ("a", "b"), ("b", "c")])
    assert pairs(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [p.direct for p in found.pairs] == [False, False, True]


def test_couples_agree_in_what_their_labels_do_not_name():
    many = [c for n in (1, 2) for c in cells("a", "b", threads=n)]
    found = plan(many, compare=[("b threads=1", "b threads=2"), ("b", "a")])
    assert [(p.reference.threads, p.system.threads) for p in found.pairs if p.direct] == [(1, 2)]
    mixed = [*cells("b", pick="own"), *cells("c", pick="p"), *cells("c", pick="q")]
    found = plan(mixed, reference="c", compare=[("b", "c")])
    assert [(pick(p.reference), pick(p.system)) for p in found.pairs if p.direct] == [("own", "q")]


def test_a_couple_that_cannot_be_is_noted_or_left_out():
    assert "no such cells" in plan(cells("a", "b"), compare=[("b", "x")]).notes[0]
    assert pairs(plan(cells("a", "b", "c"), {"c": ""}, compare=[("b", "c")])) == [("a", "b")]


def test_alone():
    assert pairs(plan(cells("a"))) == [(None, "a")]
    assert pairs(plan(cells("b"))) == [(None, "b")]


def test_without_the_reference_the_first_that_can_run_takes_its_place():
    found = plan(cells("b", "c", "d"), missing={"b": ""})
    assert pairs(found) == [("c", "d")]
    assert "so 'c', the first that can run, is the reference" in found.notes[0]


def test_it_is_told_where_no_cell_has_another_beside_it():
    apart = [*cells("b", pick="p"), *cells("c", pick="q")]
    found = plan(apart, reference="b x=3")
    assert pairs(found) == [(None, "b"), (None, "c")]
    assert found.notes == ["'b x=3' was not selected, so nothing is compared"]
    assert plan(apart).notes == plan(cells("b")).notes == []  # who left 'a' out knows


def test_systems_of_two_picks_that_the_user_named_are_compared():
    apart = [*cells("b", pick="p"), *cells("c", pick="q"), *cells("d", pick="r")]
    found = plan(apart, named=("b", "c", "d"))
    assert pairs(found) == [("b", "c"), ("b", "d")]
    assert found.notes == [
        "'a' was not selected, so 'b', the first that can run, is the reference; choose another"
        " with -o reference=NAME"
    ]
    found = plan(apart, named=("b", "c", "d"), missing={"b": ""})
    assert pairs(found) == [("c", "d")] and "so 'c', the first" in found.notes[0]


def test_an_axis_of_picks_keeps_the_named_systems_apart_by_pick():
    both = [*cells("b", "c", pick="p"), *cells("b", "c", pick="q")]
    found = plan(both, named=("b", "c"))
    compared = [p for p in found.pairs if p.reference is not None]
    assert [pick(p.reference) for p in compared] == [pick(p.system) for p in compared] == ["p", "q"]


def test_a_missing_reference_leaves_the_others_alone():
    found = plan(cells("a", "b", "c"), missing={"a": ""})
    assert pairs(found) == [(None, "b"), (None, "c")]
    assert "cannot run" in found.notes[0]
    assert list(found.failures.values()) == [GONE]


def test_stand_ins():
    found = plan(cells("a", "b"), missing={"b": "s"})
    assert pairs(found) == [("a", "s")]
    assert list(found.stand_ins.values()) == ["b"]
    assert [c.system for c in found.cells] == ["a", "b", "s"]
    assert [c.system for c in plan(cells("a", "b"), {"b": "s"}, named=["b"]).cells] == ["a", "b"]
    twice = plan(cells("a", "b", "s"), missing={"b": "s"})
    assert [c.system for c in twice.cells] == ["a", "b", "s"]
    both = plan(cells("a", "b"), missing={"b": "s", "s": ""})
    assert pairs(both) == [(None, "a")]


def test_an_absent_dataset_stops_its_cells_only():
    other = [Cell("e", s, "gone", "m", composed=False) for s in ("a", "b")]
    found = plan([*cells("a", "b"), *other], absent=["gone"])
    assert pairs(found) == [("a", "b")]
    assert set(found.failures) == {c.id for c in other}
    assert found.absent == {"gone"}


def shown(found):
    def name(cell):
        return cell and f"{cell.system}{cell.recipe.get('x', '')}"

    return [(name(p.reference), name(p.system), p.direct) for p in found.pairs]


OWN = {"b": "a x=2"}


def test_a_reference_of_a_systems_own_is_added_beside_the_groups():
    """The system beside its own, and beside the group's; both references beside one another."""
    grid = [*cells("a", recipe={"x": 1}), *cells("b", "c")]
    found = plan(grid, own=OWN)
    assert [(c.system, c.recipe.get("x")) for c in found.cells] == [
        ("a", 1), ("a", 2), ("b", None), ("c", None),
    ]  # fmt: skip
    assert shown(found) == [
        ("a1", "a2", False), ("a2", "b", False), ("a1", "c", False), ("a1", "b", True),
    ]  # fmt: skip
    assert found.couples == [("a x=1", "b"), ("a x=1", "a x=2")]
    assert [found.reference_label(c) for c in found.cells] == ["a", "a", "a x=2", "a"]


def test_a_reference_of_a_systems_own_that_the_grid_has():
    """It is not measured twice, whatever comes first."""
    grid = [*cells("b"), *cells("a", recipe={"x": 2}), *cells("a", recipe={"x": 1})]
    found = plan(grid, reference="a x=1", own=OWN)
    assert len(found.cells) == 3
    assert sorted(shown(found)) == [
        ("a1", "a2", False), ("a1", "b", True), ("a2", "b", False),
    ]  # fmt: skip


def test_a_reference_of_a_systems_own_that_is_the_groups():
    found = plan([*cells("a", recipe={"x": 2}), *cells("b")], own=OWN)
    assert shown(found) == [("a2", "b", False)] and found.couples == []


def test_without_a_reference_each_cell_runs_alone():
    found = plan(cells("a", "b"), reference="none", own=OWN, compare=[("a", "b")])
    assert shown(found) == [(None, "a", False), (None, "b", False), ("a", "b", True)]
    assert {i: c.id for i, c in found.references.items()} == {c.id: c.id for c in found.cells}
    assert found.notes == []


def test_each_group_has_its_own():
    grid = [
        c for size in (1, 2) for c in [*cells("a", recipe={"x": 1}, batch_size=size),
                                       *cells("b", batch_size=size)]
    ]  # fmt: skip
    found = plan(grid, own=OWN)
    assert len(found.cells) == 6 and len(found.couples) == 2
    assert {p.reference.batch_size == p.system.batch_size for p in found.pairs} == {True}
    assert len({p.id for p in found.pairs}) == len(found.pairs) == 6


def test_a_reference_that_was_left_out_is_not_brought_back():
    found = plan(cells("b", "c"), own=OWN)
    assert len(found.cells) == 2 and found.couples == []
    assert found.notes == [
        "'a' was not selected, so 'b', the first that can run, is the reference; choose another"
        " with -o reference=NAME"
    ]


def test_none_is_added_for_a_system_that_cannot_run():
    found = plan([*cells("a", recipe={"x": 1}), *cells("b", "c")], {"b": ""}, own=OWN)
    assert len(found.cells) == 3 and found.couples == []
    assert shown(found) == [("a1", "c", False)]


def test_a_reference_of_a_systems_own_that_cannot_run():
    own = ReferenceOverrides(OWN, lambda cell, label: (replace(cell, recipe={"x": 2}), GONE))
    grid = [*cells("a", recipe={"x": 1}), *cells("b")]
    found = make_plan(
        Grid(grid, {c.id: [c.system] for c in grid}, {}), "a", (), lambda cell: Availability(),
        lambda dataset: None, None, (), own,
    )  # fmt: skip
    assert sorted(shown(found), key=str) == [("a1", "b", True), (None, "b", False)]
    assert "the reference 'a x=2' cannot run, so the others have no ratio" in found.notes


@pytest.mark.parametrize(
    "label,beside", [("a", "a1"), ("a y=3", "a1"), ("a x=2", "a2"), ("a x=2 y=3", "a2")]
)
def test_a_couple_names_no_reference_that_was_added_but_by_what_sets_it_apart(label, beside):
    """Nobody selected it: a label that the grid's cells fit means these alone."""
    own = ReferenceOverrides(
        {"b": "a x=2"}, lambda cell, label: (replace(cell, recipe={"x": 2, "y": 3}), None)
    )
    grid = [*cells("a", recipe={"x": 1, "y": 3}), *cells("b", "c")]
    found = make_plan(
        Grid(grid, {c.id: [c.system] for c in grid}, {}), "a x=1", (), lambda cell: Availability(),
        lambda dataset: None, None, [("c", label)], own,
    )  # fmt: skip
    assert {one for one, other, _ in shown(found) if other == "c"} | {
        other for one, other, _ in shown(found) if one == "c"
    } == {"a1", beside}
    assert [c.system for c in found.cells if found.fits(c, label)] == ["a"]
