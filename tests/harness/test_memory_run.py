"""Memory by what holds it, through the runner: rows beside measured epochs."""

import pytest

from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots.memory import figure
from gnnbench.config.overrides import Overrides
from gnnbench.core.counters import MATCH_DEGREE, MEMORY_BYTES, MEMORY_MOST
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.schema import reader

SMALL = "products~twin@0.001"


@pytest.mark.timeout(300)
def test_components_stand_beside_what_else_is_seen_inside(tmp_path, observer):
    """Each look has a process of its own; what they find is of one cell."""
    over = Overrides(
        profile="smoke", datasets=(SMALL,), systems=("baseline", "zero-copy"),
        options=("pairs=[1]", "until=memory_io", "batch_size=32", "max_batches=2"),
    )  # fmt: skip
    asked = make_request("memory", over, tmp_path)
    run = reader.read(campaign.run(asked, observer).folder)
    assert [r["status"] for r in run.cells] == ["ok"] * 3, [r["reason"] for r in run.cells]
    known = Metrics(run.metrics)
    for cell in run.cells:
        told = [r for r in known.of(cell["id"]) if r["name"] == MEMORY_BYTES.name]
        held = {r["stage"]: r["value"] for r in told}
        assert held["epoch"] == sum(n for c, n in held.items() if c != "epoch") > 0
        assert {"process", "features", "other"} <= set(held)
        # Zero-copy's topology is its producer's, which is a Python of its own.
        assert ("topology" in held) == (cell["system"] == "baseline")
        assert (held.get("processes", 0) > 1 << 25) == (cell["system"] == "zero-copy")
        assert "model" not in held
        assert known.value(cell["id"], "rows", MEMORY_MOST) > 0
        assert (known.value(cell["id"], "order", MATCH_DEGREE) is not None) == (
            "match" in cell["recipe"]
        )
    (ax,) = figure(run).axes
    assert len(ax.texts) == 3 and all("process" in t.get_text() for t in ax.texts)
