"""What a stage needs is told before it is built, whatever stages stand beside it."""

import importlib.util

import pytest

from gnnbench.ops import library
from gnnbench.stages.features.spec import DglGather, Gpu, Host, PygFilter, Uva
from gnnbench.stages.sampler.dgl import DglSampler
from gnnbench.stages.sampler.native import native
from gnnbench.stages.sampler.pyg import PygNativeSampler, PygSampler

NATIVE = [Host(), Uva(), Gpu(), native("hop-by-hop"), PygNativeSampler()]
FOREIGN = [DglGather(), DglSampler(), PygFilter(), PygSampler()]


def without(monkeypatch, *packages):
    right = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n in packages else right(n, *a)
    )


@pytest.mark.parametrize("spec", [*NATIVE, *FOREIGN], ids=lambda s: f"{s.kind} {s.name}")
def test_the_native_library(spec, monkeypatch):
    before = spec.missing("cpu")
    monkeypatch.setattr(library, "native_info", lambda: {"cpu_built": False, "cuda_built": False})
    missing = spec.missing("cpu")
    if spec in NATIVE:
        assert "native library is not built" in missing.reason and missing.fix
    else:
        assert missing == before


@pytest.mark.parametrize("spec", [PygFilter(), PygSampler(), PygNativeSampler()], ids=repr)
def test_pyg(spec, monkeypatch):
    without(monkeypatch, "torch_geometric")
    assert "torch_geometric is not installed" in spec.missing("cpu").reason


def test_pygs_extension(monkeypatch):
    """Left open it is what PyG would take; a name is kept, and nothing stands in for it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: n)
    assert PygSampler().resolved("cpu").extension == "pyg-lib"
    assert PygSampler().missing("cpu") is None
    without(monkeypatch, "pyg_lib")
    assert PygSampler().resolved("cpu").extension == "torch-sparse"
    assert PygSampler().missing("cpu") is None
    named = PygSampler(extension="pyg-lib")
    assert named.resolved("cpu").extension == "pyg-lib"
    missing = named.missing("cpu")
    assert missing.reason == "PyG's sampling extension pyg-lib is not installed"
    assert "https://data.pyg.org/whl/torch-" in missing.fix
    without(monkeypatch, "pyg_lib", "torch_sparse")
    assert PygSampler().missing("cpu") == missing
    assert (
        "torch-sparse is not installed"
        in PygSampler(extension="torch-sparse").missing("cpu").reason
    )


def test_dgl(monkeypatch):
    without(monkeypatch, "dgl")
    assert "dgl is not installed" in DglSampler().missing("cpu").reason
