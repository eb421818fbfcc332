"""Find and load the native libraries; turn their errors into gnnbench's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import TypedDict

import torch

from gnnbench.core.errors import DataError, HostMemoryError, MissingError, UsageError

_CPU = "libgnnbench_cpu.so"
_CUDA = "libgnnbench_cuda.so"
_USAGE = "gnnbench: "
_DATA = "gnnbench data: "
_MEMORY = "gnnbench memory: "
# What torch says of an argument before an operator sees it.
_TYPE = re.compile(
    r"Expected a value of type '(.*?)' for argument '(.*?)' but instead found type '(.*?)'"
)
_BACKEND = re.compile(
    r"Could not run 'gnnbench::.*? backend|gnnbench::\w+: attempted to run .* with Meta tensors"
)


def _folders() -> list[Path]:
    named = os.environ.get("GNNBENCH_NATIVE_DIR")
    if named:  # takes precedence over all other folders
        return [Path(named)]
    folders = [Path(__file__).resolve().parent.parent / "_native"]
    with suppress(PackageNotFoundError):
        folders.append(Path(str(distribution("gnnbench").locate_file("gnnbench/_native"))))
    return folders


def _find(name: str) -> Path | None:
    return next((f / name for f in _folders() if (f / name).is_file()), None)


@lru_cache(maxsize=1)
def load_native() -> Path:
    """Load the CPU library and, under a torch built with CUDA, the CUDA one; idempotent.

    Returns the folder. Raises ``MissingError`` where the CPU library is missing or does not load.
    """
    path = _find(_CPU)
    if path is None:
        looked = ", ".join(str(f) for f in _folders())
        raise MissingError(
            f"the native library {_CPU} is not built (looked in {looked}); run 'make install'"
        )
    cuda = path.parent / _CUDA
    libraries = [path]
    # The CUDA library needs symbols that a CPU-only torch does not have.
    if torch.version.cuda is not None and cuda.is_file():
        libraries.append(cuda)
    for library in libraries:
        try:
            torch.ops.load_library(str(library))
        except OSError as error:
            raise MissingError(
                f"the native library {library} does not load under torch {torch.__version__} "
                f"({error}); run 'make install' to build it anew"
            ) from None
    return path.parent


def has_cuda_library() -> bool:
    """Whether the CUDA operators are built and this torch can load them."""
    path = _find(_CPU)
    return path is not None and torch.version.cuda is not None and (path.parent / _CUDA).is_file()


class NativeInfo(TypedDict):
    """The native libraries on disk, and the torch that loads them."""

    folder: str | None
    cpu_built: bool
    cuda_built: bool
    cuda_usable: bool
    torch: str
    torch_cuda: str | None
    threads: int


def native_info() -> NativeInfo:
    """Locate the libraries without loading them; for ``doctor`` and ``run.json``."""
    path = _find(_CPU)
    folder = None if path is None else path.parent
    return {
        "folder": None if folder is None else str(folder),
        "cpu_built": path is not None,
        "cuda_built": folder is not None and (folder / _CUDA).is_file(),
        "cuda_usable": has_cuda_library(),
        "torch": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
    }


@contextmanager
def native_operators() -> Iterator[ModuleType]:
    """Load the native libraries and return their operators, whose errors the block translates.

    A wrong argument becomes ``UsageError``, also where torch rejects its type or backend; a broken
    graph ``DataError``; a failed host allocation ``HostMemoryError``. Raises as ``load_native``.
    """
    load_native()
    try:
        yield torch.ops.gnnbench
    except RuntimeError as error:
        text = str(error)
        if fault := _refused_by_torch(text):
            raise UsageError(fault) from None
        if text.startswith(_USAGE):
            raise UsageError(text.removeprefix(_USAGE)) from None
        if text.startswith(_DATA):
            raise DataError(text.removeprefix(_DATA)) from None
        if text.startswith(_MEMORY):
            raise HostMemoryError(text.removeprefix(_MEMORY)) from None
        raise


def _refused_by_torch(text: str) -> str:
    """Message for an argument that torch rejected, or ""."""
    if match := _TYPE.search(text):
        wanted, name, given = match.groups()
        if wanted == given == "int":
            return f"{name} must be a whole number of 64 bits"
        if wanted == given or wanted.startswith("List"):
            return f"{name} must be of type {wanted}; one of its values is of another type"
        return f"{name} must be of type {wanted}, it is of type {given}"
    if _BACKEND.search(text):
        return "tensors must be dense, with values, and on a CPU or a GPU; one is not"
    return ""
