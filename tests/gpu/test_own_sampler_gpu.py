"""The sampler template of ``gnnbench new`` on a GPU: sampling, tests and training."""

import importlib.util
from dataclasses import replace

import pytest

import gnnbench
from gnnbench.cli.package_template import write
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def sampler(tmp_path_factory):
    _, module, _ = write("sampler", "plain_torch", tmp_path_factory.mktemp("new") / "package")
    spec = importlib.util.spec_from_file_location("plain_torch", module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return type("OnGpu", (loaded.PlainTorch,), {"devices": ("cpu", "cuda")})


@pytest.mark.parametrize("frontier", ["cumulative", "new"])
@pytest.mark.parametrize("topology", ["gpu", "cpu"])
def test_template_sampler_passes_all_checks(sampler, topology, frontier, small_graph):
    recipe = replace(BASELINE, sampler=native(sampler, topology=topology, frontier=frontier))
    fault = gnnbench.check_system(recipe, small_graph, [4, 3], batch_size=64, device="cuda")
    assert fault == ""


def test_biased_sampler_is_detected(sampler, small_graph):
    class First(sampler):
        def pick(self, degree, fanout, random):
            counts, offsets = super().pick(degree, fanout, random)
            starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
            return counts, offsets.new_ones(offsets.numel()).cumsum(0) - 1 - starts

    fault = gnnbench.check_sampler(First, small_graph, [4, 3], batch_size=64, device="cuda")
    assert "neighbours are picked" in fault
