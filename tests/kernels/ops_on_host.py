"""CUDA kernels compiled for the host (native/tests/cuda_on_host), for tests without a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kept import NATIVE, compiled
from torch import Tensor


def cuda_headers() -> Path | None:
    """The directory of the CUDA toolkit's headers."""
    nvcc = shutil.which("nvcc")
    folders = [Path(nvcc).resolve().parents[1]] if nvcc else []
    folders += sorted(Path("/usr/local").glob("cuda*"))
    return next((p / "include" for p in folders if (p / "include/cuda_fp16.h").is_file()), None)


def pointer(t: Tensor) -> ctypes.c_void_p:
    """The address of a tensor's data."""
    return ctypes.c_void_p(t.data_ptr())


def on_host(part: str, launchers: str, names: str = "*") -> ctypes.CDLL:
    """A library of the kernels in the files ``names`` of ``native/cuda/PART``, called through the C
    functions of ``LAUNCHERS.cpp``. Skips the test where they cannot be compiled."""
    headers = cuda_headers()
    if headers is None or shutil.which("g++") is None:
        pytest.skip("g++ or the CUDA toolkit's headers are missing; install them")
    host = NATIVE / "tests/cuda_on_host"
    # CUDA 13 has the headers of <cuda/atomic> in a folder of their own.
    flags = ["-std=c++20", "-Og", "-fPIC", "-w", "-isystem", headers, "-isystem", headers / "cccl",
             f"-I{NATIVE}/include", f"-I{NATIVE}"]  # fmt: skip

    def precompile(header: Path) -> None:
        build = ["g++", *flags, "-x", "c++-header", host / "device.h", "-o", header]
        subprocess.run(build, check=True)

    def make(library: Path) -> None:
        spec = importlib.util.spec_from_file_location("translate", host / "translate.py")
        assert spec is not None and spec.loader is not None
        translate = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(translate)
        header = compiled("device.h", "g++", flags, [host / "device.h"], precompile)
        with tempfile.TemporaryDirectory() as folder:
            sources = translate.translate_folder(NATIVE, Path(folder), part, names)
            # g++ prefers the precompiled header to the header in the same directory.
            next_to = Path(folder) / "tests/cuda_on_host"
            next_to.mkdir(parents=True)
            shutil.copy(host / "device.h", next_to)
            shutil.copy(header, next_to / "device.h.gch")
            units = [Path(source) for source in (*sources, host / f"{launchers}.cpp")]
            objects = [Path(folder) / f"{n}.o" for n in range(len(units))]

            def build(unit: Path, target: Path) -> None:
                command = ["g++", f"-I{folder}", *flags, "-c", unit, "-o", target]
                subprocess.run(command, check=True)

            with ThreadPoolExecutor(os.cpu_count()) as pool:  # other test processes wait for it
                list(pool.map(build, units, objects))
            subprocess.run(["g++", "-shared", *objects, "-o", library], check=True)

    name = f"{part}_{names.strip('*')}"
    inputs = [*(NATIVE / "cuda" / part).glob(f"{names}.cu*"), host / f"{launchers}.cpp"]
    inputs += [host / "device.h", host / "translate.py"]
    return ctypes.CDLL(str(compiled(name, "g++", [*flags, "-c"], inputs, make)))
