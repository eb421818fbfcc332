"""Import of the real DGL, with what its last CPU release on PyPI needs on a recent Python."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from gnnbench.errors import MissingError
from gnnbench.missing import Missing
from gnnbench.ops.missing import gpu_missing

# What the library of a DGL with CUDA needs, and that of one without never names.
CUDA_RUNTIME = b"libcudart"


def dgl_missing(device: str = "cpu") -> Missing | None:
    """Why DGL cannot be imported here or not run on ``device``, without importing it."""
    found = importlib.util.find_spec("dgl")
    if found is None:
        if sys.version_info >= (3, 12):
            version = ".".join(map(str, sys.version_info[:2]))
            return Missing(
                f"dgl is not installed: PyPI has no usable release for Python {version}",
                "make VENV=.venv311 PYTHON=python3.11 install",
            )
        return Missing("dgl is not installed", "pip install -c constraints.txt dgl==1.1.3")
    if device == "cpu":
        return None
    if not built_with_cuda(Path(found.origin or "").parent / "libdgl.so"):
        return Missing(
            "the installed dgl is built without CUDA",
            "install one built for this torch and CUDA (https://www.dgl.ai/pages/start.html)",
        )
    return gpu_missing()


@lru_cache(maxsize=8)
def built_with_cuda(library: Path) -> bool:
    """Whether DGL's library needs the CUDA runtime: versions do not say so reliably."""
    if not library.is_file():
        return False
    with library.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(CUDA_RUNTIME) >= 0


def require_dgl() -> Any:
    """The ``dgl`` module. Raises ``MissingError`` where it is not there, with the way to get it."""
    missing = dgl_missing()
    if missing is not None:
        raise MissingError(f"{missing.reason}; {missing.fix}")
    return import_dgl()


def import_dgl() -> Any:
    """The ``dgl`` module.

    dgl 1.1.3 imports ``setuptools.extern.packaging``, which recent setuptools no longer ships:
    the ``packaging`` library stands in for it.
    """
    os.environ.setdefault("DGLBACKEND", "pytorch")
    if importlib.util.find_spec("setuptools") is None:
        sys.modules["setuptools"] = types.ModuleType("setuptools")
    try:
        import setuptools.extern  # noqa: F401
    except ImportError:
        import packaging
        import packaging.version

        extern = types.ModuleType("setuptools.extern")
        extern.packaging = packaging  # type: ignore[attr-defined]
        sys.modules["setuptools.extern"] = extern
        sys.modules["setuptools.extern.packaging"] = packaging
    import dgl

    return dgl
