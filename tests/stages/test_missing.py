"""What a stage needs is told before it is built, whatever stages stand beside it."""

import importlib.util

import pytest
import torch

from gnnbench.foreign import dgl_import
from gnnbench.ops import library
from gnnbench.ops.missing import gpu_missing
from gnnbench.stages.aggregate import DglLayers, PygLayers
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
    unbuilt = {"cpu_built": False, "cuda_built": False, "torch": torch.__version__}
    monkeypatch.setattr(library, "native_info", lambda: unbuilt)
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


def test_a_dgl_without_cuda(monkeypatch, tmp_path):
    """Its library says; a GPU that is not there is told as such."""
    package = tmp_path / "dgl"
    package.mkdir()
    (package / "__init__.py").touch()
    library = package / "libdgl.so"
    library.write_bytes(b"\x00libc.so.6\x00")
    found = importlib.util.spec_from_file_location("dgl", package / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: found)
    specs = [DglSampler(), DglGather(), DglLayers()]
    dgl_import.built_with_cuda.cache_clear()
    for spec in specs:
        assert spec.missing("cpu") is None
        assert spec.missing("cuda").reason == "the installed dgl is built without CUDA"
    library.write_bytes(b"\x00libcudart.so.13\x00")
    dgl_import.built_with_cuda.cache_clear()
    for spec in specs:
        assert spec.missing("cuda") == gpu_missing()
    dgl_import.built_with_cuda.cache_clear()


@pytest.mark.parametrize("spec", [PygFilter(), PygSampler(), PygNativeSampler(), PygLayers()])
def test_pyg_on_a_gpu_that_is_not_there(spec, monkeypatch):
    if missing := spec.missing("cpu"):
        pytest.skip(missing.reason)
    monkeypatch.setattr(torch.version, "cuda", None)
    assert spec.missing("cuda").reason == "this torch is built without CUDA"
    assert DglGather(table="gpu").missing("cuda") == gpu_missing()
