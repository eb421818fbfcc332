"""What a GPU's profiler would see: each kernel of a cell once, behind a mark, and nothing else."""

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
def seen(monkeypatch):
    """What happens between the profiler's start and stop, in order."""
    found, on = [], []
    profiler = SimpleNamespace(
        cudaProfilerStart=lambda: on.append(1), cudaProfilerStop=lambda: on.clear()
    )
    monkeypatch.setattr(torch.cuda, "cudart", lambda: profiler)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(counters, "mark", lambda like: found.append("mark" if on else "outside"))
    plain = kernels.Kernel.__init__

    def init(self, name, direction, layer, *rest, **more):
        *before, ready = rest[:5]

        def watched():
            run = ready()
            return lambda: (found.append((name, direction, layer)) if on else None, run())

        plain(self, name, direction, layer, *before, watched, *rest[5:], **more)

    monkeypatch.setattr(kernels.Kernel, "__init__", init)
    return found


def test_each_kernel_is_run_once_behind_a_mark(seen, monkeypatch):
    system = make(load_dataset(NAME))
    told = {"cell": asdict(system.cell), "epoch": 3, "graph": None}
    monkeypatch.setattr(sys, "argv", ["-c", json.dumps(told)])
    profiled_process.main()
    assert seen[::2] == ["mark"] * 11
    assert seen[1::2] == [("sample", "", 0), ("gather", "", 0)] + [
        ("aggregate", direction, layer)
        for layer in (1, 2, 3)
        for direction in ("forward", "backward", "backward, kept")
    ]


def test_counters_of_a_gpu_belong_to_kernels_in_order_or_to_none(monkeypatch):
    def kernel(layer):
        return kernels.Kernel("aggregate", "forward", layer, "sum", 8, 0, None, None)

    one = dict.fromkeys(counters.ncu.METRICS, 0.0) | {"l1_sectors": 4.0, "l1_hits": 1.0}
    monkeypatch.setattr(counters.ncu, "counted", lambda command: [one, one])
    first, second = counters.on_gpu([kernel(1), kernel(2)], ["x"])
    assert (first["layer"], first["counters"], first["l1_hit"]) == (1, "ncu", 0.25)
    assert second["layer"] == 2
    (short,) = counters.on_gpu([kernel(1)], ["x"])
    assert short["counters"] == "none: 'ncu' saw 2 kernels of 1" and "l1_hit" not in short

    def refused(command):
        raise perf.NoCounters("no permission")

    monkeypatch.setattr(counters.ncu, "counted", refused)
    assert counters.on_gpu([kernel(1)], ["x"])[0]["counters"] == "none: no permission"


def test_counters_of_a_cpu_are_read_after_the_caches_are_swept(monkeypatch):
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
    (found,) = counters.on_cpu([kernel], lambda: order.append("sweep"))
    assert order == ["ready", "sweep", "run"]
    assert (found["counters"], found["l1_hit"], found["l2_hit"]) == ("perf", 0.5, 0.8)
    assert found["memory_bytes"] == 64
