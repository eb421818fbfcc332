"""Aggregations as stages: listed without imports, and reported if missing."""

import importlib.util
import subprocess
import sys

import pytest
import torch
from compose import counted, make, timed

from gnnbench.core.errors import MissingError, UnsupportedError, UsageError
from gnnbench.kernels import missing as native
from gnnbench.models.aggregation import (
    Csr,
    DglLayers,
    GnnAdvisor,
    MemoryAware,
    MemoryAwareWarp,
    PygLayers,
    Scatter,
    Spmm,
    Tuned,
)

SPECS = {
    "csr": Csr, "dgl": DglLayers, "gnnadvisor": GnnAdvisor, "memory-aware": MemoryAware,
    "memory-aware-warp": MemoryAwareWarp, "pyg": PygLayers, "scatter": Scatter, "spmm": Spmm,
    "tuned": Tuned,
}  # fmt: skip
GPU_ONLY = ("memory-aware", "memory-aware-warp", "tuned")
NATIVE = ("csr", "gnnadvisor", "scatter", "spmm", *GPU_ONLY)
SETTINGS = {
    "gnnadvisor": {"group": 32, "dim_workers": 32},
    "memory-aware": {"implementation": 2, "x": 8, "y": 32},
    "memory-aware-warp": {"x": 8, "y": 128},
}
PACKAGES = {"dgl": "dgl", "pyg": "torch_geometric"}


def test_listing_aggregations_imports_no_framework():
    code = (
        "import sys; from gnnbench.models.kinds import MODELS; import gnnbench.models.aggregation;"
        "print(*MODELS, [m for m in ('torch', 'numpy', 'dgl', 'torch_geometric')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "gcn graphsage gin gat pinsage gcn-symmetric []"


@pytest.mark.parametrize("name", sorted(SPECS))
def test_plain_form_has_the_settings(name):
    spec = SPECS[name]()
    assert spec.plain() == {"name": name, **SETTINGS.get(name, {})}
    assert spec.kind == "aggregate"
    assert spec.devices == (("cuda",) if name in GPU_ONLY else ("cpu", "cuda"))


@pytest.mark.parametrize("name", sorted(SPECS))
def test_available_aggregations_can_be_built(name):
    spec = SPECS[name]()
    if missing := spec.missing("cpu"):
        pytest.skip(f"{name}: {missing.reason}")
    assert spec.build().name == ("native" if name in NATIVE else name)


@pytest.mark.parametrize("name", GPU_ONLY)
def test_gpu_aggregations_do_not_run_on_a_cpu(name):
    with pytest.raises(UnsupportedError, match=f"'{name}' does not run on cpu; it does on: cuda"):
        SPECS[name]().resolved("cpu")


def test_scatter_of_memory_aware_is_nondeterministic_and_changes_the_recipe():
    gather, scatter = MemoryAware(), MemoryAware(backward="scatter")
    assert "backward" not in gather.plain() and scatter.plain()["backward"] == "scatter"
    assert not gather.adds_by_chance("cuda") and scatter.adds_by_chance("cuda")
    assert Scatter().adds_by_chance("cuda") and not Scatter().adds_by_chance("cpu")


@pytest.mark.parametrize("wrong", [{"y": 32}, {"y": 256}, {"x": 16}, {"x": 0}])
def test_invalid_settings_of_memory_aware_by_warps_are_refused(wrong):
    with pytest.raises(UsageError, match=f"'memory-aware-warp'.{next(iter(wrong))} cannot be"):
        MemoryAwareWarp(**wrong)


@pytest.mark.parametrize("wrong", [{"group": 0}, {"group": 1025}, {"dim_workers": 3}])
def test_invalid_settings_of_gnnadvisor_are_refused(wrong):
    assert GnnAdvisor(group=3, dim_workers=8).plain()["group"] == 3
    with pytest.raises(UsageError, match=f"'gnnadvisor'.{next(iter(wrong))} cannot be"):
        GnnAdvisor(**wrong)


def test_torch_without_mkl_is_missing(monkeypatch):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert "without MKL" in Spmm.missing("cpu").reason


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_missing_package_is_reported(name, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n == PACKAGES[name] else find(n, *a)
    )
    spec = SPECS[name]()
    missing = spec.missing("cpu")
    assert missing is not None and "not installed" in missing.reason
    with pytest.raises(MissingError, match="not installed"):
        spec.build()


def test_missing_native_library_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("GNNBENCH_NATIVE_DIR", str(tmp_path))
    missing = Csr.missing("cpu")
    assert missing == native.native_missing("cpu") and "not built" in missing.reason
    code = "from gnnbench.models.aggregation import Csr; Csr().build()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingError" in done.stderr and "not built" in done.stderr


def test_group_time_is_counted_per_epoch_within_compute(small_graph):
    """Forward and backward of both layers of every batch; checks between epochs are excluded."""
    system = make(small_graph, "gnnadvisor")
    key = ("aggregate", "groups_time_s", "")
    assert system.check().ok
    for epoch in (1, 2):
        swept = timed(system, epoch)
        counts = counted(system.audit(epoch))
        assert 0.0 < counts[key] < swept.busy["compute"]
    other = make(small_graph, "baseline")
    timed(other, 1)
    assert key not in counted(other.audit(1))
