"""Rooflines on a GPU: each ceiling and kernel runs correctly; kernels are compared with peaks."""

import gc
import shutil

import pytest
import torch
from compose import make

from gnnbench.datasets.prepare import load_dataset
from gnnbench.harness.reduce.roofline import _bound, _kernel_key
from gnnbench.roofline.ceilings import Ceilings
from gnnbench.schema.samples import EpochSample

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return load_dataset("products~twin@0.02", root=tmp_path_factory.mktemp("data"))


def test_every_memory_level_has_a_ceiling():
    results = Ceilings(torch.device("cuda"), [400, 512])
    done = {(c.name, c.level, c.row_bytes): c.amount(c.run()) for c in results.all}
    assert done.keys() == {
        ("fma", "", 0), ("copy", "memory", 0), ("read", "memory", 0), ("read", "L2", 0),
        ("read", "shared", 0), ("rows", "memory", 4), ("rows", "memory", 400),
        ("rows", "memory", 512),
    }  # fmt: skip
    assert min(done.values()) > 0
    results.sweep()


@pytest.mark.parametrize("sampler", ["hop-by-hop", "fused-map"])
@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_kernels_are_correct_and_have_a_ceiling(graph, sampler, model):
    made = make(
        graph, settings={"sampler": sampler, "features": "gpu"}, device="cuda", model=model,
        batch_size=1000, fanouts=(15, 10, 5), hidden=64,
    )  # fmt: skip
    records, fault = made.diagnostics.roofline(5)
    assert fault == ""
    kernels = [r for r in records if r["kind"] == "kernel"]
    assert [r["name"] for r in kernels] == ["sample", "gather", *["aggregate"] * 9]
    for r in kernels:
        name, _ = _bound(EpochSample(roofline=records), _kernel_key(r))
        assert name == ("rows" if r["name"] == "sample" else "memory")


def test_memory_of_ceilings_does_not_count_for_the_peak(graph):
    gc.collect()
    others = torch.cuda.memory_allocated()
    made = make(graph, settings={"features": "gpu"}, device="cuda")
    made.diagnostics.roofline(5)
    assert torch.cuda.max_memory_allocated() < others + (1 << 29)


def test_host_reads_have_no_point_in_the_roofline(graph):
    made = make(graph, settings={"features": "uva"}, device="cuda")
    records, _ = made.diagnostics.roofline(5)
    assert not [r for r in records if r["name"] == "gather"]


def test_counters_are_read_or_give_a_reason(graph):
    from gnnbench.core.bootstrap import command

    made = make(graph, settings={"features": "gpu"}, device="cuda")
    program = [*command("python", "gnnbench.harness.profiled_process"), "{}"]  # it cannot run
    results = made.diagnostics.counters(5, program)
    assert len(results) == 11
    reason = "read nothing" if shutil.which("ncu") else "is not installed"
    assert all(reason in one["counters"] for one in results)


@pytest.mark.parametrize(
    "sampler",
    [
        {
            "sampler": "hop-by-hop", "sampler.row_worker": "block",
            "sampler.id_map": "three-pass-probing", "sampler.edges": "coo",
        },
        {"sampler": "pgsampler-as-published"},
    ],
)  # fmt: skip
def test_nsight_compute_reads_the_throughput_of_samplers(graph, sampler):
    results = _counted({**sampler, "features": "gpu"})
    (drawn,) = [one for one in results if one["name"] == "sample"]
    assert 0 < drawn["compute_throughput"] <= 1 and 0 < drawn["memory_throughput"] <= 1


def test_nsight_compute_sees_every_kernel(graph):
    results = _counted({"features": "gpu"})
    for one in results:
        assert 0 <= one["l2_hit"] <= 1 and one["memory_bytes"] >= 0
    (forward,) = [f for f in results if (f["direction"], f["layer"]) == ("forward", 1)]
    assert forward["flops_run"] > 0


def _counted(settings):
    """Counters of all kernels of a batch; skips without ncu."""
    import json
    import sys
    from dataclasses import asdict

    from gnnbench.core.bootstrap import command

    if shutil.which("ncu") is None:
        pytest.skip("there is no ncu")
    made = make(load_dataset("products~twin@0.005"), settings=settings, device="cuda")
    request = {"cell": asdict(made.cell), "epoch": 5, "graph": None}
    program = [*command(sys.executable, "gnnbench.harness.profiled_process"), json.dumps(request)]
    results = made.diagnostics.counters(5, program)
    if not all(one["counters"] == "ncu" for one in results):
        pytest.skip(results[0]["counters"])
    return results
