"""The profiled process runs each kernel of a cell once, each after a marker kernel."""

import json
import sys
from dataclasses import asdict
from types import SimpleNamespace

import pytest
import torch
from compose import make

from gnnbench.datasets.prepare import load_dataset
from gnnbench.harness import profiled_process
from gnnbench.roofline import counters, kernels, perf

NAME = "products~twin@0.0005"


@pytest.fixture
def profiled(monkeypatch):
    """Calls between the profiler's start and stop, in order."""
    calls, on = [], []
    profiler = SimpleNamespace(
        cudaProfilerStart=lambda: on.append(1), cudaProfilerStop=lambda: on.clear()
    )
    monkeypatch.setattr(torch.cuda, "cudart", lambda: profiler)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(counters, "mark", lambda like: calls.append("mark" if on else "outside"))
    plain = kernels.Kernel.__init__

    def init(self, name, direction, layer, *rest, **more):
        *before, prepare = rest[:5]

        def watched():
            run = prepare()
            return lambda: (calls.append((name, direction, layer)) if on else None, run())

        plain(self, name, direction, layer, *before, watched, *rest[5:], **more)

    monkeypatch.setattr(kernels.Kernel, "__init__", init)
    return calls


def test_profiled_process_runs_each_kernel_once_after_a_marker(profiled, monkeypatch):
    system = make(load_dataset(NAME))
    command = {"cell": asdict(system.cell), "epoch": 3, "graph": None}
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps(command)])
    profiled_process.main()
    assert profiled[::2] == ["mark"] * 11
    assert profiled[1::2] == [("sample", "", 0), ("gather", "", 0)] + [
        ("aggregate", direction, layer)
        for layer in (1, 2, 3)
        for direction in ("forward", "backward", "backward, kept")
    ]


def test_gpu_counters_are_assigned_in_order_or_not_at_all(monkeypatch):
    def kernel(layer):
        return kernels.Kernel("aggregate", "forward", layer, "sum", 8, 0, None, None)

    values = dict.fromkeys(counters.ncu.METRICS, 0.0) | {"l1_sectors": 4.0, "l1_hits": 1.0}
    one = [counters.ncu.Launch("k", values)]
    monkeypatch.setattr(counters.ncu, "launched", lambda command: [one, one])
    first, second = counters.on_gpu([kernel(1), kernel(2)], ["x"])
    assert (first["layer"], first["counters"], first["l1_hit"]) == (1, "ncu", 0.25)
    assert second["layer"] == 2
    (short,) = counters.on_gpu([kernel(1)], ["x"])
    assert short["counters"] == "none: 'ncu' saw 2 kernels of 1" and "l1_hit" not in short

    def refused(command):
        raise perf.NoCounters("no permission")

    monkeypatch.setattr(counters.ncu, "launched", refused)
    assert counters.on_gpu([kernel(1)], ["x"])[0]["counters"] == "none: no permission"


def test_cpu_counters_are_read_after_flushing_caches(monkeypatch):
    order = []
    kernel = kernels.Kernel(
        "gather",
        "",
        0,
        "",
        8,
        0,
        None,
        lambda: order.append("ready") or (lambda: order.append("run")),
    )

    def counted(run):
        run()
        return {"l1_reads": 10, "l1_misses": 5, "last_reads": 1, "last_misses": 1}

    monkeypatch.setattr(counters.perf, "counted", counted)
    (row,) = counters.on_cpu([kernel], lambda: order.append("sweep"))
    assert order == ["ready", "sweep", "run"]
    assert (row["counters"], row["l1_hit"], row["l2_hit"]) == ("perf", 0.5, 0.8)
    assert row["memory_bytes"] == 64
