"""Equal doubts are told once."""

from gnnbench.analysis.doubts import NO_VERDICT, doubts_of, in_doubt, told_once
from gnnbench.analysis.table import reasons


def test_reasons_that_differ_in_numbers_alone_share_a_line():
    busy = "others used {} cores; close them; others used {} cores; close them"
    doubts = {"a": busy.format(0.3, 1.1), "b": "others used 12.5 cores; close them"}
    assert told_once(doubts) == ["(?): others used 0.3 to 12.5 cores; close them"]


def test_other_reasons_name_their_rows():
    doubts = {"a": "used 0.3 cores", "b": "throttled", "c": "used 0.3 cores"}
    assert told_once(doubts) == ["(?) a, c: used 0.3 cores", "(?) b: throttled"]


def test_one_row_is_named_and_none_is_silent():
    assert told_once({"a": "used 0.3 cores"}) == ["(?) a: used 0.3 cores"]
    assert told_once({}) == []


def test_rows_without_a_verdict_share_a_line_too():
    rows = [
        {
            "id": name, "system": name, "dataset": "d", "until": "compute", "recipe": "{}",
            "status": "unstable", "doubtful": f"used {cores} cores" if name != "r" else "",
            "reason": f"used {cores} cores; {NO_VERDICT}",
        }
        for name, cores in (("r", 0.5), ("a", 0.7), ("b", 1.5))
    ]  # fmt: skip
    assert all(map(in_doubt, rows))
    assert doubts_of(rows[1]) == f"used 0.7 cores; {NO_VERDICT}"
    assert reasons(rows) == [f"(?): used 0.5 to 1.5 cores; {NO_VERDICT}"]
    steady = {"status": "ok", "doubtful": "", "reason": ""}
    assert not in_doubt(steady) and doubts_of(steady) == ""
    wide = {"status": "unstable", "doubtful": "", "reason": "the interval is still +-60%"}
    assert in_doubt(wide) and doubts_of(wide) == ""
