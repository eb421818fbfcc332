"""Equal doubts are told once."""

from gnnbench.results.doubts import told_once


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
