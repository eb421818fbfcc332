"""What stages on our native operators need, and any on a GPU."""

from __future__ import annotations

from gnnbench.missing import Missing

TORCH = (2, 11)  # of whose stable ABI the library is built


def native_missing(device: str = "cpu") -> Missing | None:
    """Torch must be new enough and the CPU library be built; for ``cuda`` the CUDA library too, and
    a GPU be there."""
    from gnnbench.ops.library import has_cuda_library, native_info

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
        return Missing("the native CUDA library is not built", "make install CUDA=ON")
    if not has_cuda_library():
        return Missing("this torch is built without CUDA", "install a torch with CUDA")
    return _device_missing()


def gpu_missing() -> Missing | None:
    """Torch must be built with CUDA, and a GPU be there."""
    import torch

    if torch.version.cuda is None:
        return Missing("this torch is built without CUDA", "install a torch with CUDA")
    return _device_missing()


def _device_missing() -> Missing | None:
    import torch

    if not torch.cuda.is_available():
        return Missing("there is no CUDA device", "run on a machine with a GPU")
    return None
