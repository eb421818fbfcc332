"""Runs of the experiment ``roofline``: ceilings and kernels of real epochs."""

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
def test_roofline_run_reports_ceilings_and_kernels(tmp_path, observer, monkeypatch):
    """Resuming the finished run measures nothing."""
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    run_request = request(tmp_path, "pairs=[1]", datasets=(SMALL,), systems=("baseline",))
    run = reader.read(campaign.run(run_request, observer).folder)
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
    """Registers an aggregation that does less work when run as a separate kernel."""
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
def test_incorrect_separate_kernel_makes_its_cell_incorrect(tmp_path, observer, skimped):
    """The model itself passes its gate."""
    options = ("pairs=[1]", f"baseline.aggregate={skimped}")
    run_request = request(tmp_path, *options, datasets=(SMALL,), systems=("baseline",))
    outcome = campaign.run(run_request, observer)
    run = reader.read(outcome.folder)
    (cell,) = run.cells
    assert cell["status"] == "incorrect" and outcome.exit_code == EXIT_INCORRECT
    assert re.fullmatch(
        r"run by itself, the aggregation of layer 1 \(gcn, 64 wide\) has other values than its"
        r" reference, first in row \d+",
        cell["reason"],
    )
    assert run.roofline == []


def test_roofline_profiles_can_be_planned(tmp_path):
    cells = {}
    for profile in ("smoke", "laptop", "aggregations", "gpu", "gpu-rmat"):
        run_request = request(tmp_path, profile=profile)
        assert run_request.experiment.measure.roofline
        assert all(c.trains for c in run_request.plan.cells)
        cells[profile] = len(run_request.plan.cells)
        reasons = {
            f.reason for f in run_request.plan.failures.values() if f.status == "unsupported"
        }
        assert not reasons, (profile, reasons)
    # Each PyG adds a baseline with its frontier: four cells per dataset, model and width.
    assert cells == {"smoke": 2, "laptop": 12, "aggregations": 8, "gpu": 32, "gpu-rmat": 16}


def test_aggregation_axis_takes_names(tmp_path):
    run_request = request(tmp_path, 'baseline.aggregate=["csr", "pyg"]', systems=("baseline",))
    assert [c.recipe["aggregate"]["name"] for c in run_request.plan.cells] == ["csr", "pyg"]
    with pytest.raises(UsageError, match="unknown aggregate 'crs'"):
        request(tmp_path, "baseline.aggregate=crs", systems=("baseline",))


def test_definitions_without_roofline_keep_their_hash():
    """The option ``roofline`` is in the definition only if it is set."""
    plain = ex.resolve(ex.load("breakdown"), "smoke")
    assert not plain.measure.roofline
    assert "roofline" not in plain.to_toml()
    with_roofline = ex.resolve(ex.load("breakdown"), "smoke", {"measure": {"roofline": True}})
    assert with_roofline.hash != plain.hash and "roofline = true" in with_roofline.to_toml()
