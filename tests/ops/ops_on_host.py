"""CUDA kernels compiled for the host (native/tests/cuda_on_host), for tests without a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"


def cuda_headers() -> Path | None:
    """Where the toolkit's headers are."""
    nvcc = shutil.which("nvcc")
    places = [Path(nvcc).resolve().parents[1]] if nvcc else []
    places += sorted(Path("/usr/local").glob("cuda*"))
    return next((p / "include" for p in places if (p / "include/cuda_fp16.h").is_file()), None)


def compiled(folder: Path, part: str, launchers: str, names: str = "*") -> Any:
    """The kernels of ``native/cuda/PART`` in files called ``names``, under the names of
    ``LAUNCHERS.cpp``; built in ``folder``, skipped where that cannot be."""
    headers = cuda_headers()
    if headers is None or shutil.which("g++") is None:
        pytest.skip("g++ or the CUDA toolkit's headers are not here; install them")
    on_host = NATIVE / "tests/cuda_on_host"
    spec = importlib.util.spec_from_file_location("translate", on_host / "translate.py")
    assert spec is not None and spec.loader is not None
    translate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(translate)
    sources = translate.translate_folder(NATIVE, folder, part, names)
    library = folder / "kernels.so"
    subprocess.run(
        ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-w", "-isystem", headers,
         f"-I{folder}", f"-I{NATIVE}/include", f"-I{NATIVE}", *sources,
         on_host / f"{launchers}.cpp", "-o", library],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(library))
