"""Tables in as much room as there is."""

from gnnbench.analysis.table_layout import TextTable, in_units
from gnnbench.core.units import Time

NAME = "tsota features.policy=degree features.ratio=0.05"


def test_each_column_has_one_unit_and_columns_may_share_one():
    lines = [{"epoch": Time(1.5), "idle": Time(0.002), "reference": Time(0.25)}]
    assert TextTable(["epoch", "idle", "reference"], lines).lines == [
        {"epoch": "1.50 s", "idle": "2.00 ms", "reference": "250 ms"}
    ]
    assert in_units(lines, [("epoch", "reference")]) == [
        {"epoch": "1.50 s", "idle": "2.00 ms", "reference": "0.250 s"}
    ]


def test_times_are_right_aligned_in_any_column():
    words = TextTable(["pick"], [{"pick": "floyd"}])
    times = TextTable(["pick"], [{"pick": Time(0.5)}, {}])
    assert [part.markdown()[1] for part in (words, times)] == ["| --- |", "| ---: |"]


def test_gap_shrinks_only_if_the_table_does_not_fit():
    part = TextTable(["system", "a", "b"], [{"system": "x" * 10, "a": "1" * 5, "b": "2" * 5}])
    assert part.width() == 24 and part.fitted(24) == [part]
    (closer,) = part.fitted(22)
    assert closer.width() == 22 and closer.lines == part.lines


def test_long_names_are_wrapped():
    (table,) = TextTable(["system", "time"], [{"system": NAME, "time": "9.99 ms"}]).fitted(40)
    assert table.lines == [
        {"system": "tsota features.policy=degree\n  features.ratio=0.05", "time": "9.99 ms"}
    ]
    assert table.width() <= 40


def test_columns_that_do_not_fit_move_to_another_table_with_the_names():
    heads = ["system", *"abc"]
    lines = [{"system": n, **{h: h * 10 for h in "abc"}} for n in ("one", "two")]
    tables = TextTable(heads, lines, "title", "note").fitted(32)
    assert [part.heads for part in tables] == [["system", "a", "b"], ["system", "c"]]
    assert [part.title for part in tables] == ["title", ""]
    assert [part.note for part in tables] == ["", "note"]


def test_shared_values_move_into_the_title_if_the_table_does_not_fit():
    lines = [{"system": "a", "time": "1 ms"}, {"system": "b", "time": "2 ms", "work": "identical"}]
    (table,) = TextTable(["system", "time", "work"], lines).fitted(15)
    assert (table.title, table.heads) == ("work identical", ["system", "time"])


def test_a_cell_of_several_lines_has_a_table_of_its_own():
    lines = [{"cell": c * 20, "kernel": k, "time": "1 ms"} for c in "ab" for k in ("one", "two")]
    tables = TextTable(["cell", "kernel", "time"], lines, "Kernels").fitted(20)
    assert [part.title for part in tables] == ["Kernels: " + "a" * 20, "b" * 20]
    assert [[line["kernel"] for line in part.lines] for part in tables] == [["one", "two"]] * 2
