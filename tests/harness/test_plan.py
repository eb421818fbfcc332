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


def pairs(plan):
    return [(p.reference and p.reference.system, p.system.system) for p in plan.pairs]


def test_every_system_is_paired_with_the_reference():
    assert pairs(plan(cells("b", "a", "c"))) == [("a", "b"), ("a", "c")]


def test_cells_are_paired_within_groups_of_equal_axes():
    made = plan([*cells("a", "b"), *cells("a", "b", batch_size=8), *cells("b", recipe={"x": 1})])
    assert pairs(made) == [("a", "b"), ("a", "b"), ("a", "b")]
    assert {p.reference.batch_size == p.system.batch_size for p in made.pairs} == {True}
    assert len({p.id for p in made.pairs}) == 3


def test_reference_may_be_named_with_settings():
    many = [*cells("a", recipe={"x": 1}), *cells("a", recipe={"x": 2}), *cells("b")]
    made = plan(many, reference="a x=2")
    assert {p.reference.recipe["x"] for p in made.pairs} == {2}
    assert {c.recipe.get("x") for c in made.references.values()} == {2}


def test_cells_of_other_picks_are_paired_with_the_reference():
    made = plan([*cells("a", pick="floyd"), *cells("b", pick="own"), *cells("a", pick="x")])
    assert pairs(made) == [("a", "b"), (None, "a")]
    assert pick(made.pairs[0].reference) == "floyd"


def test_compare_adds_direct_pairs_to_those_of_the_reference():
    made = plan(cells("a", "b", "c"), compare=[("b", "c"), ("a", "b"), ("b", "c")])
    assert pairs(made) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [p.direct for p in made.pairs] == [False, False, True]


def test_compared_cells_agree_in_axes_that_labels_do_not_name():
    many = [c for n in (1, 2) for c in cells("a", "b", threads=n)]
    made = plan(many, compare=[("b threads=1", "b threads=2"), ("b", "a")])
    assert [(p.reference.threads, p.system.threads) for p in made.pairs if p.direct] == [(1, 2)]
    mixed = [*cells("b", pick="own"), *cells("c", pick="p"), *cells("c", pick="q")]
    made = plan(mixed, reference="c", compare=[("b", "c")])
    assert [(pick(p.reference), pick(p.system)) for p in made.pairs if p.direct] == [("own", "q")]


def test_impossible_comparison_is_noted_or_left_out():
    assert "no such cells" in plan(cells("a", "b"), compare=[("b", "x")]).notes[0]
    assert pairs(plan(cells("a", "b", "c"), {"c": ""}, compare=[("b", "c")])) == [("a", "b")]


def test_single_system_runs_alone():
    assert pairs(plan(cells("a"))) == [(None, "a")]
    assert pairs(plan(cells("b"))) == [(None, "b")]


def test_first_runnable_system_replaces_an_unselected_reference():
    made = plan(cells("b", "c", "d"), missing={"b": ""})
    assert pairs(made) == [("c", "d")]
    assert "so 'c', the first that can run, is the reference" in made.notes[0]


def test_plan_without_pairs_has_a_note():
    apart = [*cells("b", pick="p"), *cells("c", pick="q")]
    made = plan(apart, reference="b x=3")
    assert pairs(made) == [(None, "b"), (None, "c")]
    assert made.notes == ["'b x=3' was not selected, so nothing is compared"]
    assert plan(apart).notes == plan(cells("b")).notes == []  # the user deselected 'a'


def test_named_systems_of_different_picks_are_compared():
    apart = [*cells("b", pick="p"), *cells("c", pick="q"), *cells("d", pick="r")]
    made = plan(apart, named=("b", "c", "d"))
    assert pairs(made) == [("b", "c"), ("b", "d")]
    assert made.notes == [
        "'a' was not selected, so 'b', the first that can run, is the reference; choose another"
        " with -o reference=NAME"
    ]
    made = plan(apart, named=("b", "c", "d"), missing={"b": ""})
    assert pairs(made) == [("c", "d")] and "so 'c', the first" in made.notes[0]


def test_named_systems_are_compared_within_each_pick_of_an_axis():
    both = [*cells("b", "c", pick="p"), *cells("b", "c", pick="q")]
    made = plan(both, named=("b", "c"))
    compared = [p for p in made.pairs if p.reference is not None]
    assert [pick(p.reference) for p in compared] == [pick(p.system) for p in compared] == ["p", "q"]


def test_systems_run_alone_if_the_reference_is_missing():
    made = plan(cells("a", "b", "c"), missing={"a": ""})
    assert pairs(made) == [(None, "b"), (None, "c")]
    assert "cannot run" in made.notes[0]
    assert list(made.failures.values()) == [GONE]


def test_stand_in_replaces_a_missing_system_unless_named():
    made = plan(cells("a", "b"), missing={"b": "s"})
    assert pairs(made) == [("a", "s")]
    assert list(made.stand_ins.values()) == ["b"]
    assert [c.system for c in made.cells] == ["a", "b", "s"]
    assert [c.system for c in plan(cells("a", "b"), {"b": "s"}, named=["b"]).cells] == ["a", "b"]
    twice = plan(cells("a", "b", "s"), missing={"b": "s"})
    assert [c.system for c in twice.cells] == ["a", "b", "s"]
    both = plan(cells("a", "b"), missing={"b": "s", "s": ""})
    assert pairs(both) == [(None, "a")]


def test_missing_dataset_fails_only_its_cells():
    other = [Cell("e", s, "gone", "m", composed=False) for s in ("a", "b")]
    made = plan([*cells("a", "b"), *other], absent=["gone"])
    assert pairs(made) == [("a", "b")]
    assert set(made.failures) == {c.id for c in other}
    assert made.absent == {"gone"}


def shown(plan):
    def name(cell):
        return cell and f"{cell.system}{cell.recipe.get('x', '')}"

    return [(name(p.reference), name(p.system), p.direct) for p in plan.pairs]


OWN_REFERENCE = {"b": "a x=2"}


def test_own_reference_is_added_to_the_groups_reference():
    """The system is paired with both references, which are paired with each other."""
    grid = [*cells("a", recipe={"x": 1}), *cells("b", "c")]
    made = plan(grid, own=OWN_REFERENCE)
    assert [(c.system, c.recipe.get("x")) for c in made.cells] == [
        ("a", 1), ("a", 2), ("b", None), ("c", None),
    ]  # fmt: skip
    assert shown(made) == [
        ("a1", "a2", False), ("a2", "b", False), ("a1", "c", False), ("a1", "b", True),
    ]  # fmt: skip
    assert made.couples == [("a x=1", "b"), ("a x=1", "a x=2")]
    assert [made.reference_label(c) for c in made.cells] == ["a", "a", "a x=2", "a"]


def test_own_reference_in_the_grid_is_not_measured_twice():
    """The order of cells in the grid does not matter."""
    grid = [*cells("b"), *cells("a", recipe={"x": 2}), *cells("a", recipe={"x": 1})]
    made = plan(grid, reference="a x=1", own=OWN_REFERENCE)
    assert len(made.cells) == 3
    assert sorted(shown(made)) == [
        ("a1", "a2", False), ("a1", "b", True), ("a2", "b", False),
    ]  # fmt: skip


def test_own_reference_equal_to_the_groups_adds_nothing():
    made = plan([*cells("a", recipe={"x": 2}), *cells("b")], own=OWN_REFERENCE)
    assert shown(made) == [("a2", "b", False)] and made.couples == []


def test_reference_none_runs_alone_what_is_in_no_couple():
    made = plan(cells("a", "b", "c"), reference="none", own=OWN_REFERENCE, compare=[("a", "b")])
    assert shown(made) == [(None, "c", False), ("a", "b", True)]
    assert {i: c.id for i, c in made.references.items()} == {c.id: c.id for c in made.cells}
    assert made.notes == []


def test_own_reference_is_added_to_each_group():
    grid = [
        c for size in (1, 2) for c in [*cells("a", recipe={"x": 1}, batch_size=size),
                                       *cells("b", batch_size=size)]
    ]  # fmt: skip
    made = plan(grid, own=OWN_REFERENCE)
    assert len(made.cells) == 6 and len(made.couples) == 2
    assert {p.reference.batch_size == p.system.batch_size for p in made.pairs} == {True}
    assert len({p.id for p in made.pairs}) == len(made.pairs) == 6


def test_own_reference_does_not_add_an_unselected_system():
    made = plan(cells("b", "c"), own=OWN_REFERENCE)
    assert len(made.cells) == 2 and made.couples == []
    assert made.notes == [
        "'a' was not selected, so 'b', the first that can run, is the reference; choose another"
        " with -o reference=NAME"
    ]


def test_own_reference_is_not_added_for_a_missing_system():
    made = plan([*cells("a", recipe={"x": 1}), *cells("b", "c")], {"b": ""}, own=OWN_REFERENCE)
    assert len(made.cells) == 3 and made.couples == []
    assert shown(made) == [("a1", "c", False)]


def test_own_reference_that_cannot_run_is_noted():
    own = ReferenceOverrides(
        OWN_REFERENCE, lambda cell, label: (replace(cell, recipe={"x": 2}), GONE)
    )
    grid = [*cells("a", recipe={"x": 1}), *cells("b")]
    made = make_plan(
        Grid(grid, {c.id: [c.system] for c in grid}, {}), "a", (), lambda cell: Availability(),
        lambda dataset: None, None, (), own,
    )  # fmt: skip
    assert sorted(shown(made), key=str) == [("a1", "b", True), (None, "b", False)]
    assert "the reference 'a x=2' cannot run, so the others have no ratio" in made.notes


@pytest.mark.parametrize(
    "label,partner", [("a", "a1"), ("a y=3", "a1"), ("a x=2", "a2"), ("a x=2 y=3", "a2")]
)
def test_compare_label_selects_an_added_reference_only_by_its_own_settings(label, partner):
    """A label that fits cells of the grid does not select the added reference."""
    own = ReferenceOverrides(
        {"b": "a x=2"}, lambda cell, label: (replace(cell, recipe={"x": 2, "y": 3}), None)
    )
    grid = [*cells("a", recipe={"x": 1, "y": 3}), *cells("b", "c")]
    made = make_plan(
        Grid(grid, {c.id: [c.system] for c in grid}, {}), "a x=1", (), lambda cell: Availability(),
        lambda dataset: None, None, [("c", label)], own,
    )  # fmt: skip
    assert {one for one, other, _ in shown(made) if other == "c"} | {
        other for one, other, _ in shown(made) if one == "c"
    } == {"a1", partner}
    assert [c.system for c in made.cells if made.fits(c, label)] == ["a"]
