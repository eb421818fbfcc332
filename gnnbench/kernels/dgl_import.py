"""Import of DGL, with workarounds that its last CPU release on PyPI needs on a recent Python."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path

from gnnbench.core.errors import MissingError
from gnnbench.core.missing import Missing
from gnnbench.kernels.missing import gpu_missing

# What the library of a DGL with CUDA needs, and that of one without never names.
CUDA_RUNTIME = b"libcudart"
WITH_CUDA = "install one built for this torch and CUDA (https://www.dgl.ai/pages/start.html)"
# What importing GraphBolt takes besides DGL, by module: what to install.
GRAPHBOLT_NEEDS = {"pydantic": "pydantic", "pandas": "pandas", "yaml": "pyyaml"}


def dgl_missing(device: str = "cpu") -> Missing | None:
    """Why DGL cannot be imported here or not run on ``device``, without importing it."""
    spec = importlib.util.find_spec("dgl")
    if spec is None:
        if sys.version_info >= (3, 12):
            version = ".".join(map(str, sys.version_info[:2]))
            return Missing(
                f"dgl is not installed: PyPI has no usable release for Python {version}",
                "make VENV=.venv311 PYTHON=python3.11 install",
            )
        return Missing("dgl is not installed", "pip install -c constraints.txt dgl==1.1.3")
    if device == "cpu":
        return None
    if (missing := gpu_missing()) is not None:
        return missing
    if not built_with_cuda(_folder() / "libdgl.so"):
        return Missing("the installed dgl is built without CUDA", WITH_CUDA)
    return None


def graphbolt_missing(device: str = "cuda") -> Missing | None:
    """Why GraphBolt cannot run on ``device`` here, without importing it.

    It is a part of DGL from 2.0 on, with a library for each release of torch.
    """
    if missing := dgl_missing(device):
        return missing
    import torch

    version = torch.__version__.partition("+")[0]
    library = _folder() / "graphbolt" / f"libgraphbolt_pytorch_{version}.so"
    if device == "cpu" and not library.is_file():
        return Missing(
            f"the installed dgl has no GraphBolt for torch {version}",
            "install a DGL of 2.0 or newer that is built for this torch"
            " (https://www.dgl.ai/pages/start.html)",
        )
    if device != "cpu" and not built_with_cuda(library):
        return Missing(
            f"the installed dgl has no GraphBolt with CUDA for torch {version}", WITH_CUDA
        )
    wanted = [p for m, p in GRAPHBOLT_NEEDS.items() if importlib.util.find_spec(m) is None]
    if wanted:
        names = " ".join(wanted)
        return Missing(f"GraphBolt needs {', '.join(wanted)}", f"pip install {names}")
    return None


def _folder() -> Path:
    """Folder of the installed DGL."""
    spec = importlib.util.find_spec("dgl")
    return Path((spec.origin if spec else None) or "").parent


@lru_cache(maxsize=8)
def built_with_cuda(library: Path) -> bool:
    """Whether DGL's library needs the CUDA runtime: versions do not say so reliably."""
    if not library.is_file():
        return False
    with library.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(CUDA_RUNTIME) >= 0


def require_dgl() -> types.ModuleType:
    """The ``dgl`` module. Raises ``MissingError`` where it is not there, with the way to get it."""
    missing = dgl_missing()
    if missing is not None:
        raise MissingError(f"{missing.reason}; {missing.fix}")
    return import_dgl()


def require_graphbolt(device: str = "cuda") -> types.ModuleType:
    """The ``dgl.graphbolt`` module for a device. Raises ``MissingError`` where it cannot be had,
    with the way to get it.

    Its import sets ``PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`` in this process where the
    variable does not set ``expandable_segments`` already.
    """
    missing = graphbolt_missing(device)
    if missing is not None:
        raise MissingError(f"{missing.reason}; {missing.fix}")
    import_dgl()
    try:
        return importlib.import_module("dgl.graphbolt")
    except (ImportError, OSError) as error:
        raise MissingError(f"GraphBolt cannot be imported ({error}); {WITH_CUDA}") from error


def import_dgl() -> types.ModuleType:
    """The ``dgl`` module.

    dgl 1.1.3 imports ``setuptools.extern.packaging``, which recent setuptools no longer ships:
    the ``packaging`` library replaces it.
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
