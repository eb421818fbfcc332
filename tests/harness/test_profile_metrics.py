"""Numbers of profiling processes become rows of metrics.csv."""

from types import SimpleNamespace

import pytest

from gnnbench.core.cell import Cell
from gnnbench.core.counters import KERNEL_OVERLAP
from gnnbench.harness.reduce.cell_metrics import profile_metrics
from gnnbench.schema.reports import Profile, ProfileFact

CELL = Cell("e", "baseline", "d", "gcn")


def test_fact_with_samples_has_an_interval():
    name = KERNEL_OVERLAP.name
    facts = [
        ProfileFact("schedule", name, 0.375, "", [0.5, 0.5, 0.5, 0.0]),
        ProfileFact("schedule", "kernel_time_s", 2e-7, "producer"),
    ]
    journal = SimpleNamespace(profiles={CELL.id: Profile(facts=facts)})
    share, time = profile_metrics(CELL, journal)
    assert (share.name, share.value, share.n) == (name, 0.375, 4)
    half = 3.182 * 0.25 / 2  # Student's t with 3 degrees of freedom
    assert (share.low, share.high) == pytest.approx((0.375 - half, 0.375 + half), abs=1e-3)
    assert (time.value, time.where, time.low, time.n) == (2e-7, "producer", None, None)
    assert profile_metrics(CELL, SimpleNamespace(profiles={})) == []
