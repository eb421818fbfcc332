"""R-MAT graphs generated on the GPU are identical to those of the CPU."""

import pytest
import torch

from gnnbench.core.errors import UsageError
from gnnbench.datasets.generators import rmat
from gnnbench.datasets.prepare import load_dataset
from gnnbench.kernels import rmat as ops

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("scale", "seed"), [(4, 0), (10, 0), (15, 3), (18, 1)])
def test_graph_equals_the_cpu(scale, seed):
    for ours, right in zip(rmat.graph(scale, seed, "cuda"), rmat.graph(scale, seed), strict=True):
        assert ours.dtype == right.dtype and torch.equal(ours.cpu(), right)


def test_node_names_out_of_range_and_graphs_without_edges():
    names = torch.arange(32, device="cuda")
    with pytest.raises(UsageError, match="permutation"):
        ops.graph(0, 5, 999, [1, 2, 3], names + 1)
    indptr, indices = ops.graph(0, 5, 0, [1, 2, 3], names)
    assert indptr.tolist() == [0] * 33 and indices.numel() == 0


def test_dataset_prepared_on_the_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", "cpu")
    right = load_dataset("rmat@9", root=tmp_path / "cpu")
    monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", "cuda")
    ours = load_dataset("rmat@9", root=tmp_path / "cuda")
    digests = [{a: e["sha256"] for a, e in g.meta["arrays"].items()} for g in (ours, right)]
    assert digests[0] == digests[1]


def test_large_graph_is_prepared_on_the_gpu_by_default(tmp_path, monkeypatch):
    """In several pieces (70 MB of indices); torch keeps no GPU memory afterwards."""
    monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", "cpu")
    right = load_dataset("rmat@18x70x1", root=tmp_path / "cpu")
    monkeypatch.delenv("GNNBENCH_TWIN_DEVICE")
    made = []
    generate = rmat.graph
    monkeypatch.setattr(rmat, "graph", lambda *a: made.append(a[2]) or generate(*a))
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    ours = load_dataset("rmat@18x70x1", root=tmp_path / "unasked")
    assert made == ["cuda"] and torch.cuda.memory_reserved() <= before
    digests = [{a: e["sha256"] for a, e in g.meta["arrays"].items()} for g in (ours, right)]
    assert digests[0] == digests[1]
