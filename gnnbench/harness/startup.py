"""What the start of a worker costs: its own seconds, and those of a framework's import."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

# Packages that a system brings with it. Torch is everybody's and counts as the worker's own.
FRAMEWORKS = ("dgl", "torch_geometric", "pyg_lib", "torch_sparse", "pylibwholegraph")


class FrameworkClock(MetaPathFinder):
    """Adds up the seconds in which frameworks are imported, by whomever; nested ones count once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A framework's module as it is found anyhow, but executed under the clock."""
        if name.partition(".")[0] not in FRAMEWORKS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def timed(module: ModuleType) -> None:
                begin, self._depth = time.perf_counter(), self._depth + 1
                try:
                    execute(module)
                finally:
                    self._depth -= 1
                    if self._depth == 0:
                        self.seconds += time.perf_counter() - begin

            spec.loader.exec_module = timed  # type: ignore[method-assign]
        return spec


def versions() -> dict[str, str]:
    """Versions of Python, of torch and of what else was imported here for a system, as each says.

    A package that registers stages or systems is told by its distribution.
    """
    from gnnbench.core import registry

    own = {name: getattr(sys.modules.get(name), "__version__", "") for name in FRAMEWORKS}
    own |= {name: version for module, name, version in registry.packages() if module in sys.modules}
    torch = str(getattr(sys.modules.get("torch"), "__version__", ""))
    found = {**own, "torch": torch, "python": platform.python_version()}
    return {name: version for name, version in found.items() if version}


def age_s() -> float:
    """Seconds since this process was started (10 ms steps)."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    began = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # field 22, starttime, of proc_pid_stat(5)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began


def memory_peaks() -> dict[str, int]:
    """The most memory that this process had resident (``peak_rss_bytes``) and, where it used a GPU,
    took of that (``peak_gpu_bytes``, as torch's allocator reserved it)."""
    status = Path("/proc/self/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    found = {"peak_rss_bytes": resident * 1024}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        found["peak_gpu_bytes"] = int(torch.cuda.max_memory_reserved())
    return found


def hold_garbage() -> None:
    """Collect nothing while much is imported: every collection would walk through all of it."""
    gc.disable()


def release_garbage() -> None:
    """Collect again, but what is there now is looked at no more: it lives as long as the process.

    So no epoch pays for walking through modules.
    """
    gc.freeze()
    gc.enable()
