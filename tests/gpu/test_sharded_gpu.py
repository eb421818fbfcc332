"""One table sharded over two GPUs: training, rows by path, a killed rank, and its benchmark."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from compose import counted, make, run
from two_processes import alive

from gnnbench.distributed.rank_failure import RankDiedError

pytestmark = pytest.mark.gpu(count=2)

SMALL = {"batch_size": 64, "fanouts": (3, 2), "device": "cuda"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def group(small_graph):
    """Builds a system of two ranks, which ends with the test."""
    made = []

    def build(settings):
        merged = {"schedule": "data-parallel", "schedule.ranks": 2, **settings}
        made.append(make(small_graph, settings=merged, **SMALL))
        return made[-1]

    yield build
    for system in made:
        system.close()
        assert not any(map(alive, system.schedule.pids))


SHARDED = {"features": "sharded"}
SETTINGS = {
    "whole": SHARDED,
    "over-uva": {**SHARDED, "features.ratio": 0.3},
    "over-naive": {
        **SHARDED, "features.ratio": 0.3, "features.policy": "degree", "features.table": "uva",
        "features.table.access": "naive",
    },
    "over-host": {**SHARDED, "features.ratio": 0.3, "features.table": "host"},
    "cache": {"features": "cache", "features.ratio": 0.3},
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_two_gpus_train_as_one_gpu(name, group, small_graph):
    plain, system = make(small_graph, settings={"features": "gpu"}, **SMALL), group(SETTINGS[name])
    assert system.check().digest == plain.check().digest
    for epoch in range(3):
        ours, theirs = run(system, epoch), run(plain, epoch)
        assert ours.ok and theirs.ok, ours.reason
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-4)
        counts = counted(ours)
        by_path = {w: n for (s, what, w), n in counts.items() if what == "feature_bytes"}
        rows = ours.unique_nodes + counts["schedule", "again_nodes", ""]
        assert sum(by_path.values()) == rows * 24 * 4
        if name == "whole":  # in addition to torch's memory
            assert system.stages.store.bytes_apart == system.stages.store._shards.own.nbytes > 0
            assert ours.peak_alloc_bytes > 2 * system.stages.store.bytes_apart
        assert by_path["cache"] > 0 and (by_path.get("peer", 0) > 0) == (name != "cache")
        rest = {"over-uva": "zero_copy", "over-naive": "zero_copy", "over-host": "host_copy"}
        assert (name == "whole") == (set(by_path) == {"cache", "peer"})
        assert name not in rest or by_path[rest[name]] > 0
    plain.close()


def test_killed_rank_ends_the_others(group):
    system = group(SHARDED)
    assert run(system).ok
    os.kill(system.schedule.pids[0], signal.SIGKILL)
    with pytest.raises(RankDiedError, match="rank 1 died by SIGKILL"):
        run(system, 1)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="times copies between GPUs")
def test_benchmark_checks_rows_and_reports_rates(tmp_path):
    small = ["--rows", str(1 << 20), "--ids", str(1 << 14), "--turns", "1", "--calls", "4"]
    out = tmp_path / "sharded.json"
    subprocess.run(
        [sys.executable, ROOT / "native/bench/sharded.py", "--gpus", "2", *small,
         "--without-wholegraph", "--out", out],
        check=True,
    )  # fmt: skip
    report = json.loads(out.read_text())
    assert report["gpus"] == 2 and report["copy_gb_s"] > 0
    assert {row["case"] for row in report["results"]} == {
        "all", "peers", "own", "gather", "mapped copy",
    }  # fmt: skip
