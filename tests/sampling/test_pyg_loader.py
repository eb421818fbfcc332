"""PyG's loader with each sampling extension: the requested one is used, and its law."""

import compose
import numpy as np
import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import MissingError
from gnnbench.core.job import Job
from gnnbench.kernels import pyg_import
from gnnbench.sampling.pyg import PygSampler

OPERATORS = {"pyg-lib": "pyg::neighbor_sample", "torch-sparse": "torch_sparse::neighbor_sample"}

LAWS = {"pyg-lib": "without-replacement", "torch-sparse": "without-replacement-uneven"}


def stage(graph, extension, fanouts=(9, 9), **fields):
    spec = PygSampler(extension=extension, **fields)
    if missing := spec.missing("cpu"):
        pytest.skip(missing.reason)
    cell = Cell("e", "s", graph.name, "", batch_size=64, fanouts=fanouts, seed=1)
    return spec.resolved("cpu").build(Job(cell, graph, Counts()))


@pytest.mark.parametrize("extension", OPERATORS)
def test_requested_extension_is_called(extension, small_graph):
    """Even if both are installed; PyG's own preference is restored."""
    from torch.profiler import ProfilerActivity, profile

    pyg_stage = stage(small_graph, extension)
    import torch_geometric.typing as flags

    before = flags.WITH_PYG_LIB
    with profile(activities=[ProfilerActivity.CPU]) as trace:
        pyg_stage.sample(small_graph.train_idx[:64], 0, 0)
    called = {event.name for event in trace.events()}
    assert called & set(OPERATORS.values()) == {OPERATORS[extension]}
    assert before == flags.WITH_PYG_LIB


def test_broken_extension_is_not_replaced(monkeypatch, small_graph):
    """A requested extension that does not load is an error."""
    pyg_stage = stage(small_graph, "torch-sparse")
    import torch_geometric.typing as flags

    monkeypatch.setattr(flags, "WITH_PYG_LIB", False)
    assert pyg_stage.sample(small_graph.train_idx[:4], 0, 0).sizes().num_edges > 0
    missing = pytest.raises(MissingError, match=r"cannot load .* pyg-lib.*data\.pyg\.org")
    with missing, pyg_import.sampling_by("pyg-lib"):
        pass


def shares(graph, extension, k, draws=3000):
    """Samples of each edge of a row over the expected number, and this number."""
    pyg_stage = stage(graph, extension, fanouts=(k,))
    degree = graph.indptr.diff()
    row = int(torch.nonzero((degree >= 8) & (degree <= 40))[0])
    counts = np.zeros(int(degree[row]))
    for number in range(draws):
        (hop,) = pyg_stage.sample(torch.tensor([row]), 0, number).hops()
        assert len(set(hop.positions.tolist())) == k
        counts[hop.positions - int(graph.indptr[row])] += 1
    return counts / (draws * k / counts.size), draws * k / counts.size


def test_pyg_lib_samples_edges_uniformly(small_graph):
    ratios, expected = shares(small_graph, "pyg-lib", 3)
    d = ratios.size
    # This sum of squares has d - 1 degrees of freedom.
    chi = ((ratios - 1) ** 2).sum() * expected * (d - 1) / (d - 3)
    assert chi < (d - 1) + 5 * np.sqrt(2 * (d - 1))


def test_torch_sparse_does_not_sample_uniformly(small_graph):
    """Therefore its law has another name. The test fails once torch-sparse is fixed."""
    ratios, _ = shares(small_graph, "torch-sparse", 1)
    assert ratios[-1] == 0 and ratios[:-1].min() > 0.5
    ratios, _ = shares(small_graph, "torch-sparse", 3)
    assert ratios[-3:].max() < 0.9 < ratios[:-3].min()


@pytest.mark.parametrize("extension", OPERATORS)
def test_extension_passes_gate_and_audit(extension, small_graph):
    system = compose.make(small_graph, "pyg", {"sampler.extension": extension})
    report = system.check()
    assert report.ok, report.reason
    assert (report.frontier, report.law) == ("new", LAWS[extension])
    for epoch in range(2):
        audit = compose.run(system, epoch)
        assert audit.ok, audit.reason
        assert (audit.batches, audit.seeds) == (4, 200)
    assert system.recheck(7) == ""


def test_seed_without_in_neighbours(small_graph):
    """The sizes of its batch are complete with every extension."""
    isolated = torch.nonzero(small_graph.indptr.diff() == 0)[0]
    for extension in pyg_import.extensions():
        batch = stage(small_graph, extension).sample(isolated, 0, 0)
        assert [(d.tolist(), e) for d, e in batch.sizes().hops] == [(isolated.tolist(), 0), ([], 0)]
