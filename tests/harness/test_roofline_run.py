"""The experiment roofline through the runner: ceilings and kernels of real epochs."""

import json
import os
import re
from pathlib import Path

import pytest

from gnnbench.analysis.plots.roofline import figure
from gnnbench.config import experiment as ex
from gnnbench.config.overrides import Overrides
from gnnbench.core import registry
from gnnbench.core.errors import EXIT_INCORRECT, UsageError
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.measure import machine
from gnnbench.schema import reader

SMALL = "products~twin@0.001"


def request(folder, *options, profile="smoke", resume=False, **more):
    over = Overrides(profile=profile, options=options, **more)
    return make_request("roofline", over, folder, resume)


@pytest.mark.timeout(300)
def test_every_cell_has_its_kernels_below_ceilings(tmp_path, observer, monkeypatch):
    """And the run goes on without measuring again what it has."""
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    asked = request(tmp_path, "pairs=[1]", datasets=(SMALL,), systems=("baseline",))
    run = reader.read(campaign.run(asked, observer).folder)
    assert [r["status"] for r in run.cells] == ["ok"], [r["reason"] for r in run.cells]
    (cell,) = run.cells
    ceilings = [r for r in run.roofline if r["kind"] == "ceiling"]
    kernels = [r for r in run.roofline if r["kind"] == "kernel"]
    known = {(r["name"], r["level"]) for r in ceilings}
    assert known >= {("fma", ""), ("copy", "memory"), ("read", "memory"), ("rows", "memory")}
    assert [(r["name"], r["direction"], r["layer"]) for r in kernels] == [
        ("sample", "", 0), ("gather", "", 0),
        *(("aggregate", d, layer) for layer in (1, 2, 3)
          for d in ("forward", "backward", "backward, kept")),
    ]  # fmt: skip
    for row in [*ceilings, *kernels]:
        assert (row["device"], row["threads"]) == ("cpu", cell["threads"])
        assert row["value"] > 0 and row["time_s"] > 0 and row["n"] == 1
    for row in kernels:
        assert row["id"] == cell["id"] and row["of_ceiling"] > 0 and row["bound"]
        assert row["counters"] == "perf" or row["counters"].startswith("none: ")
    forward, backward = (
        [r for r in kernels if r["direction"] == d] for d in ("forward", "backward")
    )
    assert [r["flops"] for r in forward] == [r["flops"] for r in backward]
    samples = [json.loads(x) for x in (run.path / "samples.jsonl").read_text().splitlines()]
    assert all(("roofline" in s) != s["warmup"] for s in samples)
    assert len(figure(run).axes) == 3
    again = request(tmp_path, "pairs=[1]", datasets=(SMALL,), systems=("baseline",), resume=True)
    outcome = campaign.run(again, observer)
    assert outcome.folder == run.path
    after = (run.path / "samples.jsonl").read_text().splitlines()
    assert len(after) == len(samples)
    assert reader.read(run.path).roofline == run.roofline


@pytest.fixture
def skimped(monkeypatch):
    """Makes an aggregation known, here and in workers, that does less by itself."""
    from gnnbench.harness import available

    monkeypatch.setenv(registry.extra_variable("aggregate"), "skimped=planted_aggregate:Skimped")
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(here.parents[1]), str(here)]))
    caches = (registry.entries, available.availability)
    for cache in caches:
        cache.cache_clear()
    yield "skimped"
    for cache in caches:
        cache.cache_clear()


@pytest.mark.timeout(300)
def test_a_kernel_that_does_less_makes_its_cell_incorrect(tmp_path, observer, skimped):
    """Though the model passed its gate."""
    options = ("pairs=[1]", f"baseline.aggregate={skimped}")
    asked = request(tmp_path, *options, datasets=(SMALL,), systems=("baseline",))
    outcome = campaign.run(asked, observer)
    run = reader.read(outcome.folder)
    (cell,) = run.cells
    assert cell["status"] == "incorrect" and outcome.exit_code == EXIT_INCORRECT
    assert re.fullmatch(
        r"run by itself, the aggregation of layer 1 \(gcn, 64 wide\) has other values than its"
        r" reference, first in row \d+",
        cell["reason"],
    )
    assert run.roofline == []


def test_every_profile_can_be_planned(tmp_path):
    cells = {}
    for profile in ("smoke", "laptop", "aggregations", "gpu", "gpu-rmat"):
        asked = request(tmp_path, profile=profile)
        assert asked.experiment.measure.roofline
        assert all(c.trains for c in asked.plan.cells)
        cells[profile] = len(asked.plan.cells)
        reasons = {f.reason for f in asked.plan.failures.values() if f.status == "unsupported"}
        assert not reasons, (profile, reasons)
    # Beside each PyG a baseline of its frontier: four cells of a dataset, model and width.
    assert cells == {"smoke": 2, "laptop": 12, "aggregations": 8, "gpu": 32, "gpu-rmat": 14}


def test_aggregations_are_varied_by_name(tmp_path):
    asked = request(tmp_path, 'baseline.aggregate=["csr", "pyg"]', systems=("baseline",))
    assert [c.recipe["aggregate"]["name"] for c in asked.plan.cells] == ["csr", "pyg"]
    with pytest.raises(UsageError, match="unknown aggregate 'crs'"):
        request(tmp_path, "baseline.aggregate=crs", systems=("baseline",))


def test_other_definitions_are_what_they_were():
    """Their hash does not know of rooflines, and no epoch of theirs is followed by kernels."""
    plain = ex.resolve(ex.load("breakdown"), "smoke")
    assert not plain.measure.roofline
    assert "roofline" not in plain.to_toml()
    looked = ex.resolve(ex.load("breakdown"), "smoke", {"measure": {"roofline": True}})
    assert looked.hash != plain.hash and "roofline = true" in looked.to_toml()
