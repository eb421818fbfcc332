import pytest

from gnnbench.core.counters import MEASURES, Counts, Measure, measure


@pytest.fixture
def moved(monkeypatch):
    monkeypatch.setattr("gnnbench.core.counters.MEASURES", {})
    return measure("moved", "B", "bytes moved")


def test_counts_are_summed_by_stage_name_and_place(moved):
    calls = measure("made", "", "calls made")
    counts = Counts()
    counts.add("features", moved, 2, "host")
    counts.add("features", calls, 1)
    counts.add("features", moved, 3, "host")
    counts.add("features", moved, 5, "device")
    counts.add("sampler", moved, 7, "host")
    assert counts.rows() == [
        ["features", "moved", "host", 5],
        ["features", "made", "", 1],
        ["features", "moved", "device", 5],
        ["sampler", "moved", "host", 7],
    ]
    assert all(type(row[3]) is int for row in counts.rows())
    counts.clear()
    assert counts.rows() == []


def test_a_name_has_one_meaning(moved):
    assert measure("moved", "B", "bytes moved") is moved
    with pytest.raises(ValueError, match="'moved' is"):
        measure("moved", "s", "time moved")


def test_what_is_declared_says_what_it_is():
    for name, known in MEASURES.items():
        assert isinstance(known, Measure) and known.name == name and known.description
