"""Runs with sweeps: points in the run's record, failures in the figure."""

import pytest

from gnnbench.analysis.plots.scalability import figure
from gnnbench.config.overrides import Overrides
from gnnbench.core.errors import EXIT_OK
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.schema import reader

SWEPT = """
schema_version = 2
extends = "scalability"
default_profile = ""
[axes]
system = ["baseline"]
dataset = ["products~twin@0.001"]
batch_size = [16]
fanouts = [[3, 2]]
hidden = [8]
[sweeps.batch_size]
batch_size = [4, 16]
[sweeps.gpus]
gpus = [1, 2]
[measure]
pairs = [1]
rounds = 2
max_batches = 2
unstable_half_width = 0.0
"""


@pytest.mark.timeout(300)
def test_sweep_measures_each_point_once_and_refuses_several_gpus(tmp_path, observer):
    (tmp_path / "mine.toml").write_text(SWEPT)
    request = make_request(str(tmp_path / "mine.toml"), Overrides(), tmp_path / "out")
    outcome = campaign.run(request, observer)
    run = reader.read(outcome.folder)
    assert outcome.exit_code == EXIT_OK
    centre, small, two = run.cells
    assert [(r["batch_size"], r["gpus"], r["status"]) for r in run.cells] == [
        (16, None, "ok"), (4, None, "ok"), (16, 2, "unsupported"),
    ]  # fmt: skip
    assert two["reason"] == (
        "gpus=2: several GPUs are ranks of a schedule; leave gpus=1, and give"
        " -o baseline.schedule=data-parallel -o baseline.schedule.ranks=2"
    )
    ids = {r["batch_size"]: r["id"] for r in (centre, small)}
    sweeps = reader.read_json_record(run.path)["sweeps"]
    assert sweeps == {
        "batch_size": [
            {"values": {"batch_size": n}, "cells": [ids[n]]} for n in (4, 16)
        ],
        "gpus": [
            {"values": {"gpus": 1}, "cells": [centre["id"]]},
            {"values": {"gpus": 2}, "cells": [two["id"]]},
        ],
    }  # fmt: skip
    batches, gpus = figure(run).axes
    assert [t.get_text() for t in batches.get_xticklabels()] == ["4", "16"]
    assert [t.get_text() for t in gpus.texts if t.get_text() != "(?)"] == ["unsupported"]


def test_weak_scaling_points_are_compared_with_one_process_of_their_batch_size(tmp_path):
    plan = make_request("scalability", Overrides(profile="ranks"), tmp_path).plan
    references = {
        (pair.system.recipe["schedule"]["ranks"], pair.system.batch_size): pair.reference
        for pair in plan.pairs
    }
    assert sorted(references) == [(1, 512), (2, 512), (2, 1024), (4, 512), (4, 2048)]
    for (_, batch), one in references.items():
        assert (one.system, one.batch_size, one.recipe["schedule"]["name"]) == (
            "baseline", batch, "serial",
        )  # fmt: skip
