"""Training on emulated machines: torchrun, killed ranks, and comparison with DistDGL."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from emulated import NAME, needs_root

from gnnbench.analysis import multi_machine
from gnnbench.contrib.emulated_network import network
from gnnbench.contrib.emulated_network.compare import Comparison, compare
from gnnbench.core.errors import UsageError
from gnnbench.kernels.dgl_import import dgl_missing
from gnnbench.schema.reader import read_machines

RUN = [sys.executable, "-P", "-m", "gnnbench.contrib.emulated_network", "run", "--name", NAME]
TRAIN = [
    "-m",
    "gnnbench.distributed.partition.example",
    "ogbn_arxiv~twin@0.01",
    "--methods",
    "random",
]
TRAIN += ["--modes", "vanilla,hybrid", "--fanouts", "3,2", "--batch-size", "64", "--hidden", "8"]


@pytest.fixture(autouse=True)
def store(tmp_path_factory, monkeypatch):
    """A dataset store for these tests."""
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path_factory.getbasetemp() / "machines"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("COLUMNS", "100")


@needs_root
def test_torchrun_trains_on_two_machines():
    start = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "{machines}"]
    start += ["--node-rank", "{rank}", "--master-addr", "{first}", "--master-port", "29500"]
    result = subprocess.run(
        [*RUN, "--", *start, *TRAIN], capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    vanilla, hybrid = (line for line in lines if line and line[0] == "random,")
    assert vanilla[1:3] == ["vanilla", "4"] and hybrid[1:3] == ["hybrid", "2"]
    assert vanilla[5:] == hybrid[5:] and float(vanilla[4]) == float(hybrid[4])
    assert network.namespaces(NAME) == []


@needs_root
def test_killed_rank_ends_all_and_leaves_no_namespace():
    words = [*RUN, "--", sys.executable, *TRAIN, "--epochs", "100000"]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    # Training has started once bytes are sent.
    while time.monotonic() < deadline:
        if len(network.namespaces(NAME)) == 3 and network.counters(f"{NAME}-2")[0] > 300_000:
            break
        time.sleep(0.2)
    (rank,) = network.processes(f"{NAME}-2")
    others = network.processes(f"{NAME}-1")
    os.kill(rank, signal.SIGKILL)
    _, error = run.communicate(timeout=60)
    assert run.returncode == 3
    assert "all others were ended" in error
    assert network.namespaces(NAME) == []
    assert others


@needs_root
@pytest.mark.skipif(bool(dgl_missing()), reason="DGL is not installed")
def test_comparison_of_all_systems_has_equal_losses_and_link_bytes(tmp_path):
    out = tmp_path / "run"
    comparison = Comparison(
        dataset="ogbn_arxiv~twin@0.01", machines=(2,), rates=(1.0,), lives=1, fanouts=(3, 2),
        batch_size=128, hidden=8, max_steps=2, warm_steps=1, hops=(), name=NAME,
    )  # fmt: skip
    compare(comparison, out, say=lambda text: None)
    assert network.namespaces(NAME) == []
    (setting,) = multi_machine.settings(read_machines(out).machines)
    assert {r["system"] for r in setting.rows} == set(multi_machine.SYSTEMS)
    assert setting.loss_gap() <= multi_machine.MOST_GAP
    rounds = {s: setting.per_step(s, "rounds", over_ranks=False) for s in multi_machine.SYSTEMS[:3]}
    assert rounds == {"vanilla": 4, "hybrid": 2, "hybrid-fused": 2}
    for row in setting.rows:
        assert row["steps"] == (1 if row["warmup"] else 2) and row["seeds"] == 128 * row["steps"]
        own = sum(row[name] or 0 for name in ("sample_bytes", "features_bytes", "size_bytes"))
        # The link also carries headers, gradients and barriers.
        assert own < row["link_sent_bytes"]
    record = json.loads((out / "run.json").read_text())
    assert record["finished"] and set(record["distdgl_partitions"]) == {"2"}
    edges = next(row for row in record["work"] if row["of"] == "edges")
    assert edges["gnnbench"]["value"] > 0 and edges["distdgl"]["value"] > 0
    with pytest.raises(UsageError, match="holds a run already"):
        compare(comparison, out, say=lambda text: None)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"machines": (1,)}, "two machines or more"),
        ({"lives": 0}, "lives and epochs must be 1 or more"),
        ({"peer": False}, "without it take another, metis"),
    ],
)
def test_invalid_comparisons_are_refused(wrong, message):
    with pytest.raises(UsageError, match=message):
        Comparison(**wrong)
