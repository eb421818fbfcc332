"""Runs of the experiment ``schedules``: overlap bounds of real epochs from probes."""

import json
import statistics

import pytest

from gnnbench.analysis import metrics as m
from gnnbench.analysis.metric_tables import OVERLAP
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.plots import schedules
from gnnbench.config.overrides import Overrides
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.measure.machine import usable_cores
from gnnbench.schema import reader


def request(folder, *options, profile="smoke"):
    over = Overrides(profile=profile, options=options)
    return make_request("schedules", over, folder, False)


@pytest.mark.timeout(300)
def test_schedules_run_reports_bounds_and_overlap(tmp_path, observer):
    run_request = request(tmp_path, "pairs=[1]")
    run = reader.read(campaign.run(run_request, observer).folder)
    assert [r["status"] for r in run.cells] == ["ok"] * 2, [r["reason"] for r in run.cells]
    events = [json.loads(x) for x in (run.path / "events.jsonl").read_text().splitlines()]
    known = Metrics(run.metrics)
    for row in run.cells:
        (probed,) = [e for e in events if e["event"] == "probed" and e["cell"] == row["id"]]
        median = probed["median"]
        assert all(0 < probed["alone"][phase] <= median[phase] for phase in median)
        threads = min(row["threads"], usable_cores())
        bound = max(*median.values(), sum(median.values()) * threads / usable_cores())
        batches = row["seeds"] / row["batch_size"]
        assert known.value(row["id"], m.EPOCH, m.BOUND) == pytest.approx(batches * bound)
        own = [s for s in run.samples if s["id"] == row["id"] and not s["warmup"]]
        for what, stage, key, alone in (
            (m.OF_BOUND, m.EPOCH, "wall_s", bound),
            *((m.INTERFERENCE, p, f"{p}_time_s", s) for p, s in median.items()),
        ):
            expected = statistics.median(s[key] for s in own) / (batches * alone)
            assert known.value(row["id"], stage, what) == pytest.approx(expected)
    (line,) = OVERLAP.table(run.cells, run.metrics).lines
    assert line["system"].endswith("schedule=prefetch")
    assert len(schedules.figure(run).axes) == 1


def test_schedules_profiles_can_be_planned(tmp_path):
    cells = {}
    for profile in ("smoke", "laptop", "gpu", "gpu-graph"):
        plan = request(tmp_path, profile=profile).plan
        cells[profile] = len(plan.cells)
        reasons = {f.reason for f in plan.failures.values() if f.status == "unsupported"}
        assert not reasons, (profile, reasons)
    # gpu: two widths, two stores or accesses; gpu-graph: two widths, two batch sizes, three kinds
    # of steps.
    assert cells == {"smoke": 2, "laptop": 4, "gpu": 8, "gpu-graph": 12}
