"""Equal doubts share a line."""

from gnnbench.analysis.reliability import (
    NO_VERDICT,
    is_unreliable,
    reasons_for_doubt,
    summarize_doubts,
)
from gnnbench.analysis.row_remarks import reasons


def test_reasons_that_differ_in_numbers_alone_share_a_line():
    busy = "others used {} cores; close them; others used {} cores; close them"
    doubts = {"a": busy.format(0.3, 1.1), "b": "others used 12.5 cores; close them"}
    assert summarize_doubts(doubts) == ["(?): others used 0.3 to 12.5 cores; close them"]


def test_other_reasons_name_their_rows():
    doubts = {"a": "used 0.3 cores", "b": "throttled", "c": "used 0.3 cores"}
    assert summarize_doubts(doubts) == ["(?) a, c: used 0.3 cores", "(?) b: throttled"]


def test_one_row_is_named_and_none_is_silent():
    assert summarize_doubts({"a": "used 0.3 cores"}) == ["(?) a: used 0.3 cores"]
    assert summarize_doubts({}) == []


def test_rows_without_a_verdict_share_a_line_too():
    rows = [
        {
            "id": name, "system": name, "dataset": "d", "until": "compute", "recipe": "{}",
            "status": "unstable", "doubtful": f"used {cores} cores" if name != "r" else "",
            "reason": f"used {cores} cores; {NO_VERDICT}",
        }
        for name, cores in (("r", 0.5), ("a", 0.7), ("b", 1.5))
    ]  # fmt: skip
    assert all(map(is_unreliable, rows))
    assert reasons_for_doubt(rows[1]) == f"used 0.7 cores; {NO_VERDICT}"
    assert reasons(rows) == [f"(?): used 0.5 to 1.5 cores; {NO_VERDICT}"]
    steady = {"status": "ok", "doubtful": "", "reason": ""}
    assert not is_unreliable(steady) and reasons_for_doubt(steady) == ""
    wide = {"status": "unstable", "doubtful": "", "reason": "the interval is still +-60%"}
    assert is_unreliable(wide) and reasons_for_doubt(wide) == ""
