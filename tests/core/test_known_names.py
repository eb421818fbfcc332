"""The known name that is nearest to a misspelled one."""

import pytest

from gnnbench.core.names import nearest, slips, suggestion

MODELS = ("gat", "gcn", "gin", "graphsage", "pinsage")
SYSTEMS = ("baseline", "best", "dgl", "fastgl", "fastsample", "gnnadvisor", "gnnlab", "pagraph")


@pytest.mark.parametrize(
    "typed,known,meant",
    [
        ("gnc", MODELS, "gcn"),  # exchanged letters
        ("gni", MODELS, "gin"),
        ("gta", MODELS, "gat"),
        ("GCN", MODELS, "gcn"),
        ("grahpsage", MODELS, "graphsage"),
        ("basline", SYSTEMS, "baseline"),
        ("gnnadv", SYSTEMS, "gnnadvisor"),  # a prefix, although a shorter name has fewer slips
        ("gnnalb", SYSTEMS, "gnnlab"),
        ("dlg", SYSTEMS, "dgl"),
        ("xyz", SYSTEMS, ""),
        ("foo", ("floyd", "reservoir"), ""),
        ("pgs", ("pgsampler",), "pgsampler"),
        ("gcn", (), ""),
    ],
)
def test_nearest_name(typed, known, meant):
    assert nearest(typed, known) == meant


@pytest.mark.parametrize(
    "typed,meant,count",
    [("gnc", "gcn", 1), ("gnc", "gin", 2), ("", "abc", 3), ("abc", "abc", 0), ("abcd", "badc", 2)],
)
def test_exchanged_letters_are_one_slip(typed, meant, count):
    assert slips(typed, meant) == slips(meant, typed) == count


def test_suggestion_lists_at_most_forty_names():
    words = suggestion("none", [f"x{i:03d}" for i in range(43)])
    assert words.startswith("known are x000, ") and words.endswith(", x039 and 3 more")
