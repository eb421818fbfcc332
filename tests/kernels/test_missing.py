"""Missing requirements of stages are reported before the stages are built."""

import importlib.util

import pytest
import torch

from gnnbench.core.errors import MissingError
from gnnbench.features.foreign_spec import BoltGather, DglGather, PygFilter
from gnnbench.features.spec import Gpu, Host, Uva
from gnnbench.kernels import dgl_import, library
from gnnbench.kernels.missing import gpu_missing, native_missing
from gnnbench.models.aggregation import DglLayers, PygLayers
from gnnbench.sampling.dgl import DglSampler
from gnnbench.sampling.graphbolt import BoltSampler
from gnnbench.sampling.native import native
from gnnbench.sampling.pyg import PygNativeSampler, PygSampler

NATIVE = [Host(), Uva(), Gpu(), native("hop-by-hop"), PygNativeSampler()]
FOREIGN = [DglGather(), DglSampler(), PygFilter(), PygSampler()]


def without(monkeypatch, *packages):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n in packages else find_spec(n, *a)
    )


@pytest.mark.parametrize("spec", [*NATIVE, *FOREIGN], ids=lambda s: f"{s.kind} {s.name}")
def test_missing_native_library_is_reported(spec, monkeypatch):
    before = spec.missing("cpu")
    unbuilt = {"cpu_built": False, "cuda_built": False, "torch": torch.__version__}
    monkeypatch.setattr(library, "native_info", lambda: unbuilt)
    missing = spec.missing("cpu")
    if spec in NATIVE:
        assert "native library is not built" in missing.reason and missing.fix
    else:
        assert missing == before


@pytest.mark.parametrize(
    ("version", "fits"),
    [("2.0.1+cu117", False), ("2.10.0", False), ("2.11.0+cu130", True), ("3.0.0a0+git1", True)],
)
def test_torch_must_have_the_abi_of_the_native_library(version, fits, monkeypatch):
    monkeypatch.setattr(torch, "__version__", version)
    missing = native_missing()
    if fits:
        assert missing is None or "torch" not in missing.reason
    else:
        assert missing.reason == f"the native library needs torch 2.11, this is {version}"


@pytest.mark.parametrize("spec", [PygFilter(), PygSampler(), PygNativeSampler()], ids=repr)
def test_missing_pyg_is_reported(spec, monkeypatch):
    without(monkeypatch, "torch_geometric")
    assert "torch_geometric is not installed" in spec.missing("cpu").reason


def test_missing_pyg_extension_has_a_replacement_unless_selected(monkeypatch):
    """The default is the extension that PyG would use."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: n)
    assert PygSampler().resolved("cpu").extension == "pyg-lib"
    assert PygSampler().missing("cpu") is None
    without(monkeypatch, "pyg_lib")
    assert PygSampler().resolved("cpu").extension == "torch-sparse"
    assert PygSampler().missing("cpu") is None
    selected = PygSampler(extension="pyg-lib")
    assert selected.resolved("cpu").extension == "pyg-lib"
    missing = selected.missing("cpu")
    assert missing.reason == "PyG's sampling extension pyg-lib is not installed"
    assert "https://data.pyg.org/whl/torch-" in missing.fix
    without(monkeypatch, "pyg_lib", "torch_sparse")
    assert PygSampler().missing("cpu") == missing
    assert (
        "torch-sparse is not installed"
        in PygSampler(extension="torch-sparse").missing("cpu").reason
    )


def test_missing_dgl_is_reported(monkeypatch):
    without(monkeypatch, "dgl")
    assert "dgl is not installed" in DglSampler().missing("cpu").reason


WITH, WITHOUT = b"\x00libcudart.so.13\x00", b"\x00libc.so.6\x00"


@pytest.fixture
def dgl_package(monkeypatch, tmp_path):
    """The directory of an installed DGL that has only the libraries written by a test."""
    folder = tmp_path / "dgl"
    (folder / "graphbolt").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "graphbolt" / "__init__.py").touch()
    module_spec = importlib.util.spec_from_file_location("dgl", folder / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: module_spec)

    def write(name, content):
        (folder / name).write_bytes(content)
        dgl_import.built_with_cuda.cache_clear()

    yield write
    dgl_import.built_with_cuda.cache_clear()


def test_dgl_without_cuda_is_reported_where_there_is_a_gpu(dgl_package, monkeypatch):
    specs = [DglSampler(), DglGather(), DglLayers()]
    dgl_package("libdgl.so", WITHOUT)
    if missing := gpu_missing():  # no installation of DGL would help
        assert all(spec.missing("cuda") == missing for spec in specs)
    monkeypatch.setattr(dgl_import, "gpu_missing", lambda: None)
    dgl_package("libdgl.so", WITHOUT)
    for spec in specs:
        assert spec.missing("cpu") is None
    for spec in [*specs, BoltGather()]:
        assert spec.missing("cuda").reason == "the installed dgl is built without CUDA"
    dgl_package("libdgl.so", WITH)
    for spec in specs:
        assert spec.missing("cuda") is None


def test_graphbolt_needs_a_library_for_this_torch(dgl_package, monkeypatch):
    """Missing packages have the names that pip installs."""
    dgl_package("libdgl.so", WITH)
    assert BoltGather().missing("cuda") == gpu_missing()
    monkeypatch.setattr(dgl_import, "gpu_missing", lambda: None)
    monkeypatch.setattr(torch, "__version__", "2.11.0+cu130")
    absent = "the installed dgl has no GraphBolt with CUDA for torch 2.11.0"
    assert BoltGather().missing("cuda").reason == absent
    dgl_package("graphbolt/libgraphbolt_pytorch_2.10.0.so", WITH)
    assert BoltGather().missing("cuda").reason == absent
    dgl_package("graphbolt/libgraphbolt_pytorch_2.11.0.so", WITHOUT)
    assert BoltGather().missing("cuda").reason == absent
    dgl_package("graphbolt/libgraphbolt_pytorch_2.11.0.so", WITH)
    assert BoltGather().missing("cuda") is None
    without(monkeypatch, "pydantic", "yaml")
    missing = BoltGather().missing("cuda")
    assert missing.reason == "GraphBolt needs pydantic, pyyaml"
    assert missing.fix == "pip install pydantic pyyaml"
    with pytest.raises(MissingError, match=r"needs pydantic, pyyaml; pip install pydantic pyyaml"):
        dgl_import.require_graphbolt()


@pytest.mark.parametrize("error", [ImportError("Cannot load"), FileNotFoundError("no library")])
def test_graphbolt_that_cannot_be_imported_is_reported(monkeypatch, error):
    def importing(name):
        assert name == "dgl.graphbolt"
        raise error

    monkeypatch.setattr(dgl_import, "graphbolt_missing", lambda device: None)
    monkeypatch.setattr(dgl_import, "import_dgl", lambda: None)
    monkeypatch.setattr(dgl_import.importlib, "import_module", importing)
    with pytest.raises(MissingError, match=rf"cannot be imported \({error}\); install one built"):
        dgl_import.require_graphbolt()


def test_graphbolt_without_dgl_is_reported(monkeypatch):
    without(monkeypatch, "dgl")
    for spec in (BoltGather(), BoltSampler()):
        assert "dgl is not installed" in spec.missing("cpu").reason
        assert "dgl is not installed" in spec.missing("cuda").reason


def test_graphbolt_with_or_without_cuda_runs_on_a_cpu(dgl_package, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.11.0+cpu")
    monkeypatch.setattr(dgl_import, "gpu_missing", lambda: None)
    dgl_package("libdgl.so", WITHOUT)
    for spec in (BoltGather(), BoltSampler()):
        missing = spec.missing("cpu")
        assert missing.reason == "the installed dgl has no GraphBolt for torch 2.11.0"
        assert missing.fix.startswith("install a DGL of 2.0 or newer")
    dgl_package("graphbolt/libgraphbolt_pytorch_2.11.0.so", WITHOUT)
    for spec in (BoltGather(), BoltSampler()):
        assert spec.missing("cpu") is None
        assert spec.missing("cuda").reason == "the installed dgl is built without CUDA"


@pytest.mark.parametrize("spec", [PygFilter(), PygSampler(), PygNativeSampler(), PygLayers()])
def test_pyg_on_a_missing_gpu_is_reported(spec, monkeypatch):
    if missing := spec.missing("cpu"):
        pytest.skip(missing.reason)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("gnnbench.core.nvml.gpu_count", lambda: 1)
    assert spec.missing("cuda").reason == "this torch is built without CUDA"
    assert DglGather(table="gpu").missing("cuda") == gpu_missing()
