"""Native samplers in the baseline: one changed setting, and the gate of its pick."""

from dataclasses import replace

import pytest
import torch
from compose import make, run

import gnnbench
from gnnbench.core.missing import Missing
from gnnbench.kernels import library
from gnnbench.kernels import missing as native_ops
from gnnbench.sampling.native import native

pytestmark = pytest.mark.usefixtures("one_thread")
SAMPLERS = [
    s for s in gnnbench.samplers() if "cpu" in s.devices and s.name != "pgsampler-as-printed"
]
CASES = [(s.name, pick) for s in SAMPLERS for pick in s.picks["cpu"]]
LAWS = {
    "with_replacement": "with-replacement",
    "weighted_alias": "weighted",
    "weighted_prefix": "weighted",
    "random_walk": "random-walk",
}


@pytest.fixture
def weighted_graph(small_graph):
    weights = torch.rand(small_graph.num_edges, generator=torch.Generator().manual_seed(5))
    weights[::3] = 0
    return replace(small_graph, weights=weights)


def sampling(graph, sampler, pick="default", **settings):
    options = {"sampler": sampler, "sampler.pick": pick, **settings}
    return make(graph, settings=options, until="sample", fanouts=(4, 3))


@pytest.mark.parametrize(("sampler", "pick"), CASES)
def test_every_pick_passes_the_gate_of_its_law(sampler, pick, weighted_graph):
    system = sampling(weighted_graph, sampler, pick)
    report = system.check()
    assert report.ok, report.reason
    assert (report.pick, report.law) == (pick, LAWS.get(pick, "without-replacement"))
    assert report.digest and report.edges_per_seed > 0
    audit = run(system, 1)
    assert audit.ok, audit.reason
    assert system.recheck(2) == ""


def test_native_samplers_have_equal_digests(weighted_graph):
    for pick in ("floyd", "weighted_alias", "random_walk"):
        names = [s.name for s in SAMPLERS if pick in s.picks["cpu"]]
        digests = {sampling(weighted_graph, name, pick).check().digest for name in names}
        assert len(names) >= 4 and len(digests) == 1


def test_default_picks_of_samplers(small_graph):
    picks = {s.name: sampling(small_graph, s.name).check().pick for s in SAMPLERS}
    assert picks == {
        "hop-by-hop": "floyd",
        "gnnlab": "fisher_yates",
        "fused-map-by-hop": "floyd",
        "fused-map": "floyd",
        "fastsample": "floyd",
        "pgsampler": "reservoir",
    }


def test_pgsampler_as_printed_runs_with_unsafe_and_counts_lost_tasks(small_graph):
    options = {"sampler.unsafe": True, "sampler.fetch_size": 7}
    system = sampling(small_graph, "pgsampler-as-printed", **options)
    report = system.check()
    # Losing the task of a node without neighbours loses no edge.
    assert report.ok or system.stages.sampler.sampler.lost_tasks > 0


@pytest.mark.parametrize(
    ("pick", "words"),
    [
        ("floyd", "min"),
        ("with_replacement", "unless it has no neighbour"),
        ("weighted_prefix", "unless its edges have no weight"),
        ("random_walk", "compared with the reference"),
    ],
)
def test_sampler_with_smaller_fanouts_is_caught(pick, words, weighted_graph):
    """With half the fanouts, there are too few edges, or walks differ from the reference."""
    system = sampling(weighted_graph, "fused-map", pick)
    sampler = system.stages.sampler.sampler
    sampler.setting = replace(sampler.setting, fanouts=(2, 1))
    report = system.check()
    assert not report.ok and words in report.reason


def test_properties_of_a_native_stage(small_graph):
    stage = sampling(small_graph, "hop-by-hop").stages.sampler
    assert stage.native and stage.sampled_on == torch.device("cpu") and stage.graph_bytes() == 0
    stage.close()


@pytest.mark.parametrize(
    ("info", "usable", "gpu", "words"),
    [
        ({"cpu_built": False, "cuda_built": False}, False, False, "native library is not built"),
        ({"cpu_built": True, "cuda_built": False}, False, True, "CUDA library is not built"),
        ({"cpu_built": True, "cuda_built": True}, False, True, "without CUDA"),
        ({"cpu_built": True, "cuda_built": True}, True, False, "no GPU that CUDA can use"),
        ({"cpu_built": True, "cuda_built": True}, True, True, ""),
        ({"torch": "2.10.1"}, True, True, "the native library needs torch 2.11, this is 2.10.1"),
    ],
)
def test_missing_requirements_of_a_gpu(monkeypatch, info, usable, gpu, words):
    monkeypatch.setattr(library, "native_info", lambda: {"torch": "2.11.0+cu130", **info})
    monkeypatch.setattr(library, "has_cuda_library", lambda: usable)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    missing = native("hop-by-hop").missing("cuda")
    assert missing == native_ops.native_missing("cuda")
    if not words:
        assert missing is None
    else:
        assert isinstance(missing, Missing) and words in missing.reason and missing.fix
