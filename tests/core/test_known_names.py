"""Which known name a typed one is taken for."""

import pytest

from gnnbench.core.names import nearest, slips, suggestion

MODELS = ("gat", "gcn", "gin", "graphsage", "pinsage")
SYSTEMS = ("baseline", "best", "dgl", "fastgl", "fastsample", "gnnadvisor", "gnnlab", "pagraph")


@pytest.mark.parametrize(
    "typed,known,meant",
    [
        ("gnc", MODELS, "gcn"),  # two letters exchanged
        ("gni", MODELS, "gin"),
        ("gta", MODELS, "gat"),
        ("GCN", MODELS, "gcn"),
        ("grahpsage", MODELS, "graphsage"),
        ("basline", SYSTEMS, "baseline"),
        ("gnnadv", SYSTEMS, "gnnadvisor"),  # a name begun is not the short one with fewer slips
        ("gnnalb", SYSTEMS, "gnnlab"),
        ("dlg", SYSTEMS, "dgl"),
        ("xyz", SYSTEMS, ""),
        ("foo", ("floyd", "reservoir"), ""),
        ("pgs", ("pgsampler",), "pgsampler"),
        ("gcn", (), ""),
    ],
)
def test_the_nearest_name_is_meant(typed, known, meant):
    assert nearest(typed, known) == meant


@pytest.mark.parametrize(
    "typed,meant,count",
    [("gnc", "gcn", 1), ("gnc", "gin", 2), ("", "abc", 3), ("abc", "abc", 0), ("abcd", "badc", 2)],
)
def test_an_exchange_is_one_slip(typed, meant, count):
    assert slips(typed, meant) == slips(meant, typed) == count


def test_of_many_names_forty_are_told():
    words = suggestion("none", [f"x{i:03d}" for i in range(43)])
    assert words.startswith("known are x000, ") and words.endswith(", x039 and 3 more")
