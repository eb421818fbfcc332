"""Count GPUs through NVML, independently of torch."""

from __future__ import annotations


def gpu_count() -> int:
    """Number of NVIDIA GPUs; 0 without a driver or without the package ``pynvml``."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no library or no driver
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return 0
    finally:
        pynvml.nvmlShutdown()
