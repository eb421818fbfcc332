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


def test_times_stand_to_the_right_whatever_their_column_is_called():
    words = TextTable(["pick"], [{"pick": "floyd"}])
    times = TextTable(["pick"], [{"pick": Time(0.5)}, {}])
    assert [part.markdown()[1] for part in (words, times)] == ["| --- |", "| ---: |"]


def test_what_fits_is_left_as_it_is_and_else_columns_move_together_first():
    part = TextTable(["system", "a", "b"], [{"system": "x" * 10, "a": "1" * 5, "b": "2" * 5}])
    assert part.width() == 24 and part.fitted(24) == [part]
    (closer,) = part.fitted(22)
    assert closer.width() == 22 and closer.lines == part.lines


def test_long_names_go_over_lines():
    (found,) = TextTable(["system", "time"], [{"system": NAME, "time": "9.99 ms"}]).fitted(40)
    assert found.lines == [
        {"system": "tsota features.policy=degree\n  features.ratio=0.05", "time": "9.99 ms"}
    ]
    assert found.width() <= 40


def test_columns_without_room_go_to_a_table_of_their_own_with_the_names():
    heads = ["system", *"abc"]
    lines = [{"system": n, **{h: h * 10 for h in "abc"}} for n in ("one", "two")]
    found = TextTable(heads, lines, "title", "note").fitted(32)
    assert [part.heads for part in found] == [["system", "a", "b"], ["system", "c"]]
    assert [part.title for part in found] == ["title", ""]
    assert [part.note for part in found] == ["", "note"]


def test_what_all_lines_share_is_told_once_where_there_is_no_room():
    lines = [{"system": "a", "time": "1 ms"}, {"system": "b", "time": "2 ms", "work": "identical"}]
    (found,) = TextTable(["system", "time", "work"], lines).fitted(15)
    assert (found.title, found.heads) == ("work identical", ["system", "time"])


def test_a_cell_of_several_lines_has_a_table_of_its_own():
    lines = [{"cell": c * 20, "kernel": k, "time": "1 ms"} for c in "ab" for k in ("one", "two")]
    found = TextTable(["cell", "kernel", "time"], lines, "Kernels").fitted(20)
    assert [part.title for part in found] == ["Kernels: " + "a" * 20, "b" * 20]
    assert [[line["kernel"] for line in part.lines] for part in found] == [["one", "two"]] * 2
