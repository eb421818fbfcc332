"""Runs of the experiment ``bandwidth``: rates, ceilings and requests of real epochs."""

import pytest

from gnnbench.analysis import metrics as m
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots.bandwidth import figure
from gnnbench.analysis.table import main_tables
from gnnbench.config.overrides import Overrides
from gnnbench.core.counters import COPY_TIME, FEATURE_BYTES
from gnnbench.core.errors import UsageError
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.schema import reader


def request(folder, *options, profile="smoke", **more):
    over = Overrides(profile=profile, options=options, **more)
    return make_request("bandwidth", over, folder, False)


@pytest.mark.timeout(300)
def test_bandwidth_run_reports_row_and_copy_rates_of_every_cell(tmp_path, observer):
    """The gathers of gnnbench, torch and PyG (if installed) do identical work."""
    cells, planned = 6, request(tmp_path, "pairs=[1]", systems=("baseline", "pyg"))
    if any(f.status == "missing_dep" for f in planned.plan.failures.values()):
        cells, planned = 4, request(tmp_path, "pairs=[1]", systems=("baseline",))
    run = reader.read(campaign.run(planned, observer).folder)
    assert [r["status"] for r in run.cells] == ["ok"] * cells, [r["reason"] for r in run.cells]
    known = Metrics(run.metrics)
    for row in run.cells:
        rows = row["batch_size"] * 4
        assert (row["seeds"], row["unique_nodes"], row["sampled_edges"]) == (rows, rows, 0)
        assert (row["pick"], row["frontier"], row["law"]) == ("", "", "")
        size = known.value(row["id"], "features", FEATURE_BYTES, "host")
        assert size == rows * row["feature_dim"] * 4
        seconds = known.value(row["id"], "features", COPY_TIME, "host")
        rate, copied, share = (
            known.value(row["id"], "features", what, where)
            for what, where in ((m.ROW_RATE, ""), (m.COPY_RATE, "host"), (m.OF_COPY, ""))
        )
        assert min(seconds, rate, copied, share) > 0
        assert known.by_where(row["id"], "features", m.REQUESTS).keys() == {
            "naive", "aligned", "lines",
        }  # fmt: skip
        assert known.value(row["id"], "sample", m.SPEEDUP) is None
    assert {r["work_class"] for r in run.cells if r["verdict"] != "reference"} == {"identical"}
    (part,) = main_tables(run.cells, run.metrics)
    assert {"GB/s", "of copy"} <= set(part.heads) and "sample speed-up" not in part.heads
    assert all(line["of copy"].endswith("%") for line in part.lines)
    assert len(figure(run).axes) == 2


def test_bandwidth_profiles_can_be_planned(tmp_path):
    """Covers store settings, dataset names, and sizes of gathers and tables."""
    for profile in ("laptop", "alignment", "gather", "gpu", "gpu-alignment", "gpu-row-copies"):
        plan = request(tmp_path, profile=profile).plan
        assert plan.cells and all(c.gathers and c.until == "memory_io" for c in plan.cells)
        reasons = {f.reason for f in plan.failures.values() if f.status == "unsupported"}
        assert not reasons, (profile, reasons)


def test_gpu_profile_has_each_store_configuration_once(tmp_path):
    cells = request(tmp_path, profile="gpu").plan.cells
    stores = [
        (c.system, *(f.get(key, "") for key in ("name", "access", "memory", "table")))
        for c in cells
        for f in [c.recipe["features"]]
    ]
    assert len(stores) == len(set(stores))
    assert {s[1:] for s in stores if s[0] == "baseline"} == {
        ("host", "", "", ""), ("gpu", "", "", ""), ("uva", "naive", "registered", ""),
        ("uva", "aligned", "registered", ""), ("uva", "page-ordered", "registered", ""),
        ("uva", "page-ordered", "vmm", ""), ("dgl", "", "", "host"), ("dgl", "", "", "uva"),
        ("dgl", "", "", "gpu"), ("graphbolt", "", "", ""),
    }  # fmt: skip


def test_blocks_without_a_capped_access_is_unsupported(tmp_path):
    """The cell is reported, as with a share of multiprocessors on a CPU."""
    options = ("device=cuda", "baseline.features=uva", "baseline.features.access=naive")
    plan = request(tmp_path, *options, "baseline.features.blocks=4").plan
    assert {(f.status, f.reason) for f in plan.failures.values()} == {(
        "unsupported",
        "features 'uva': blocks=4 caps the grid of access=page-ordered alone, not of naive; give"
        " access=page-ordered, or blocks=0",
    )}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("baseline.features=uva", "baseline.features.blocks=65536"), "it is 0 to 65535"),
        (("baseline.features=host", "baseline.features.blocks=4"), "has no setting 'features.bl"),
        (("until=compute",), "fanouts=\\[\\] has nothing to do until compute"),
        (("until=sample",), "nothing to do until sample"),
        (("baseline.features.acess=naive",), "has no setting 'features.acess'"),
        (("baseline.features=uwa",), "unknown features 'uwa'"),
        (("batchsize=3",), "unknown option 'batchsize'"),
    ],
)
def test_mistyped_options_are_named(tmp_path, options, words):
    with pytest.raises(UsageError, match=words):
        request(tmp_path, *options)


def test_table_without_edges_cannot_be_sampled(tmp_path):
    with pytest.raises(UsageError, match="'rows@2kx8' has no edges to sample; give -o fanouts"):
        request(tmp_path, "fanouts=[5,3]", datasets=("rows@2kx8",))


def test_mistyped_table_is_named(tmp_path):
    with pytest.raises(UsageError, match="as in rows@2Mx128"):
        request(tmp_path, datasets=("rows@2Gx128",))
