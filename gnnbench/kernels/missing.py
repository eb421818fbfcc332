"""Requirements of stages on native operators, and of stages on a GPU."""

from __future__ import annotations

from gnnbench.core import nvml
from gnnbench.core.missing import Missing

TORCH = (2, 11)  # the library uses its stable ABI


NO_GPU = Missing(
    "there is no GPU that CUDA can use",
    "give --device cpu, or run on a machine with an NVIDIA GPU and its driver",
)
CPU_TORCH = Missing(
    "this torch is built without CUDA",
    "install one built with CUDA: pip install --force-reinstall torch",
)
NOT_COMPILED = Missing(
    "the native CUDA library is not built",
    "install nvcc (of the CUDA toolkit), then 'make install CUDA=ON'",
)


def native_missing(device: str = "cpu") -> Missing | None:
    """Why native operators cannot run on ``device``: torch, the GPU, or the native library."""
    return library_missing() or (None if device == "cpu" else _no_gpu() or library_missing(device))


def library_missing(device: str = "cpu") -> Missing | None:
    """Why the native library of a device cannot be loaded, regardless of a GPU."""
    from gnnbench.kernels.library import has_cuda_library, native_info

    info = native_info()
    version = tuple(map(int, info["torch"].split(".")[:2]))
    if version < TORCH:
        needed = ".".join(map(str, TORCH))
        reason = f"the native library needs torch {needed}, this is {info['torch']}"
        return Missing(reason, "update torch")
    if not info["cpu_built"]:
        return Missing("the native library is not built", "make install")
    if device == "cpu":
        return None
    if not info["cuda_built"]:
        return NOT_COMPILED
    return None if has_cuda_library() else CPU_TORCH


def gpu_missing() -> Missing | None:
    """Why torch cannot use a GPU here."""
    import torch

    if (missing := _no_gpu()) is not None:
        return missing
    return CPU_TORCH if torch.version.cuda is None else None


def _no_gpu() -> Missing | None:
    """Checked first, because without a GPU no installation helps.

    A torch without CUDA sees no GPU, so NVML is queried as well.
    """
    import torch

    if torch.cuda.is_available() or (torch.version.cuda is None and nvml.gpu_count()):
        return None
    return NO_GPU
