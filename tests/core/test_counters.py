import pytest

from gnnbench.core.counters import METRICS, Counts, Metric, declare


@pytest.fixture
def moved(monkeypatch):
    monkeypatch.setattr("gnnbench.core.counters.METRICS", {})
    return declare("moved", "B", "bytes moved")


def test_counts_are_summed_by_stage_name_and_place(moved):
    calls = declare("made", "", "calls made")
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


def test_metric_cannot_be_redefined(moved):
    assert declare("moved", "B", "bytes moved") is moved
    with pytest.raises(ValueError, match="'moved' is"):
        declare("moved", "s", "time moved")


def test_declared_metrics_have_descriptions():
    for name, known in METRICS.items():
        assert isinstance(known, Metric) and known.name == name and known.description
