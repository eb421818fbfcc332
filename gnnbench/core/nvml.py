"""Whether there is a GPU, whatever torch was built for."""

from __future__ import annotations


def gpu_count() -> int:
    """NVIDIA GPUs by their driver; 0 where it, or the package that asks it, is not there."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # the library or the driver is not there
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0
    finally:
        pynvml.nvmlShutdown()
