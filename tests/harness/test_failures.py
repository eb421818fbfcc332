import signal

import pytest
import torch

from gnnbench.core.errors import (
    DataError,
    GpuMemoryError,
    HostMemoryError,
    MissingError,
    NoGraphError,
    UnsupportedError,
)
from gnnbench.harness import failures
from gnnbench.schema import STATUSES


@pytest.mark.parametrize(
    "error,status",
    [
        (MemoryError(), "oom_host"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "oom_host"),
        (RuntimeError("std::bad_alloc"), "oom_host"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "oom_gpu"),
        (MissingError("gone; get it"), "missing_dep"),
        (DataError("broken; get it again"), "missing_data"),
        (NoGraphError("nothing here; prepare it"), "missing_data"),
        (UnsupportedError("cannot"), "unsupported"),
        (ZeroDivisionError("by zero"), "crash"),
        (ValueError(), "crash"),
        (ImportError("libx.so: cannot open shared object file"), "missing_dep"),
        (ImportError("libx.so: failed to map segment from shared object"), "oom_host"),
        (MissingError("the library does not load (cannot allocate memory); mend it"), "oom_host"),
        (HostMemoryError("too large; take less"), "oom_host"),
        (GpuMemoryError("cudaHostAlloc: not enough memory"), "oom_gpu"),
    ],
)
def test_exceptions(error, status):
    found = failures.from_exception(error)
    assert found.status == status
    assert status in STATUSES
    assert found.reason
    assert "\n" not in found.reason


def test_shared_memory_that_is_too_small_is_the_hosts():
    with pytest.raises(RuntimeError) as told:
        torch.UntypedStorage._new_shared(1 << 46)
    assert failures.from_exception(told.value).status == "oom_host"


@pytest.mark.parametrize(
    "code,kills,log,status,words",
    [
        (-signal.SIGKILL, 1, "", "oom_host", "memory"),
        (-signal.SIGKILL, 0, "", "crash", "SIGKILL"),
        (-signal.SIGABRT, 0, "terminate called ... std::bad_alloc", "oom_host", "memory"),
        (-signal.SIGABRT, 0, "assertion failed", "crash", "SIGABRT"),
        (-signal.SIGSEGV, 3, "", "crash", "SIGSEGV"),
        (3, 0, "", "crash", "code 3"),
    ],
)
def test_deaths(tmp_path, code, kills, log, status, words):
    path = tmp_path / "w.log"
    path.write_text(log)
    found = failures.from_death(code, kills, path)
    assert found.status == status
    assert words in found.reason
    assert str(tmp_path) not in found.reason


def test_a_death_without_a_log(tmp_path):
    assert failures.from_death(-9, 0, tmp_path / "none").status == "crash"


def test_every_failure_that_counts_is_a_documented_status():
    assert set(failures.FAILED) < set(STATUSES)


def test_what_torch_raises_where_the_gpu_is_full():
    torch = pytest.importorskip("torch")
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
    assert failures.from_exception(error).status == "oom_gpu"
    assert failures.from_exception(RuntimeError("CUDA error: out of memory")).status == "oom_gpu"


def test_a_sentence_about_memory_is_told_as_it_is():
    for error, status in ((GpuMemoryError, "oom_gpu"), (HostMemoryError, "oom_host")):
        found = failures.from_exception(error("it does not fit; take less"))
        assert (found.status, found.reason) == (status, "it does not fit; take less")
