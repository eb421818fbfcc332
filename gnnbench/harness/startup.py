"""Costs of a worker's start: its own time, and the time of importing frameworks."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

# Packages that a system brings with it. Torch is everybody's and counts as the worker's own.
FRAMEWORKS = (
    "dgl", "torch_geometric", "pyg_lib", "torch_sparse", "pylibwholegraph", "cugraph_pyg",
    "pylibcugraph", "cupy", "rmm",
)  # fmt: skip


@dataclass(frozen=True)
class Inherited:
    """Seconds that a worker's template took: ``start_s`` without ``import_s`` of frameworks."""

    start_s: float = 0.0
    import_s: float = 0.0


NOTHING_INHERITED = Inherited()


class FrameworkClock(MetaPathFinder):
    """Sums the time in which frameworks are imported, by any importer; nested imports count
    once.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a framework's module spec, whose execution is timed."""
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
    """Return versions of Python, of torch and of packages imported for a system.

    A package that registers stages or systems is listed under its distribution's name.
    """
    from gnnbench.core import registry

    own = {name: getattr(sys.modules.get(name), "__version__", "") for name in FRAMEWORKS}
    own |= {name: version for module, name, version in registry.packages() if module in sys.modules}
    torch = str(getattr(sys.modules.get("torch"), "__version__", ""))
    versions = {**own, "torch": torch, "python": platform.python_version()}
    return {name: version for name, version in versions.items() if version}


def age_s() -> float:
    """Seconds since this process was started (10 ms steps)."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    began = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # field 22, starttime, of proc_pid_stat(5)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began


def memory_peaks() -> dict[str, int]:
    """Return peaks of resident memory (``peak_rss_bytes``) and, on a GPU, of the memory that
    torch's allocator reserved (``peak_gpu_bytes``).
    """
    status = Path("/proc/self/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    peaks = {"peak_rss_bytes": resident * 1024}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        peaks["peak_gpu_bytes"] = int(torch.cuda.max_memory_reserved())
    return peaks


def hold_garbage() -> None:
    """Disable garbage collection during imports: each collection would visit all modules."""
    gc.disable()


def release_garbage() -> None:
    """Enable garbage collection again, without the present objects, which live as long as the
    process.

    Epochs then do not pay for visiting modules.
    """
    gc.freeze()
    gc.enable()
