"""What stages on our native operators need, and any on a GPU."""

from __future__ import annotations

from gnnbench.missing import Missing


def native_missing(device: str = "cpu") -> Missing | None:
    """The CPU library must be built; for ``cuda`` the CUDA library too, and a GPU be there."""
    from gnnbench.ops.library import has_cuda_library, native_info

    info = native_info()
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
