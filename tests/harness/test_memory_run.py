"""Runs of the experiment ``memory``: memory by component, next to measured epochs."""

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
def test_memory_run_reports_components_and_profile_metrics(tmp_path, observer):
    """Each profiling run has its own process; the results belong to one cell."""
    over = Overrides(
        profile="smoke", datasets=(SMALL,), systems=("baseline", "zero-copy"),
        options=("pairs=[1]", "until=memory_io", "batch_size=32", "max_batches=2"),
    )  # fmt: skip
    request = make_request("memory", over, tmp_path)
    run = reader.read(campaign.run(request, observer).folder)
    assert [r["status"] for r in run.cells] == ["ok"] * 3, [r["reason"] for r in run.cells]
    known = Metrics(run.metrics)
    for cell in run.cells:
        rows = [r for r in known.of(cell["id"]) if r["name"] == MEMORY_BYTES.name]
        components = {r["stage"]: r["value"] for r in rows}
        assert components["epoch"] == sum(n for c, n in components.items() if c != "epoch") > 0
        assert {"process", "features", "other"} <= set(components)
        # Zero-copy's topology is in its producer, a separate Python process.
        assert ("topology" in components) == (cell["system"] == "baseline")
        assert (components.get("processes", 0) > 1 << 25) == (cell["system"] == "zero-copy")
        assert "model" not in components
        assert known.value(cell["id"], "rows", MEMORY_MOST) > 0
        assert (known.value(cell["id"], "order", MATCH_DEGREE) is not None) == (
            "match" in cell["recipe"]
        )
    (ax,) = figure(run).axes
    texts = [t.get_text() for t in ax.texts if t.get_gid() == "column"]
    assert len(texts) == 3 and all("process" in text for text in texts)
