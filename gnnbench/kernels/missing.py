"""What stages on our native operators need, and any on a GPU."""

from __future__ import annotations

from gnnbench.core import nvml
from gnnbench.core.missing import Missing

TORCH = (2, 11)  # of whose stable ABI the library is built


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
    """Torch must be new enough and the CPU library be built; for ``cuda`` a GPU be there, and the
    CUDA library be built."""
    return library_missing() or (None if device == "cpu" else _no_gpu() or library_missing(device))


def library_missing(device: str = "cpu") -> Missing | None:
    """What keeps our library for a device from being loaded, whether there is a GPU or not."""
    from gnnbench.kernels.library import has_cuda_library, native_info

    info = native_info()
    version = tuple(map(int, info["torch"].split(".")[:2]))
    if version < TORCH:
        needed, found = ".".join(map(str, TORCH)), info["torch"]
        return Missing(f"the native library needs torch {needed}, this is {found}", "update torch")
    if not info["cpu_built"]:
        return Missing("the native library is not built", "make install")
    if device == "cpu":
        return None
    if not info["cuda_built"]:
        return NOT_COMPILED
    return None if has_cuda_library() else CPU_TORCH


def gpu_missing() -> Missing | None:
    """A GPU must be there, and torch be built with CUDA."""
    import torch

    if (missing := _no_gpu()) is not None:
        return missing
    return CPU_TORCH if torch.version.cuda is None else None


def _no_gpu() -> Missing | None:
    """Asked first: where there is none nothing that could be installed would help.

    A torch without CUDA sees none, so that the driver is asked as well.
    """
    import torch

    if torch.cuda.is_available() or (torch.version.cuda is None and nvml.gpu_count()):
        return None
    return NO_GPU
