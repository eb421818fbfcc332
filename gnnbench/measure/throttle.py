"""A GPU's clocks, power and throttling, read between blocks through NVML and never inside one."""

from __future__ import annotations

import os
from typing import Any

# Bits of nvmlClocksEventReasons (nvml.h). The software power cap (0x4) is normal at full load.
REASONS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
THERMAL_POLICY = 1  # NVML_PERF_POLICY_THERMAL: its violation time only grows


class GpuWatch:
    """Reads the first GPU that this process may use; ``read`` gives None where NVML is absent."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._gpu: Any = None
        self._tried = False

    def read(self) -> dict[str, Any] | None:
        """``sm_clock_mhz``, ``power_w``, ``temperature_c``, ``reasons`` (bits), ``thermal_ns``."""
        if not self._tried:
            self._open()
        if self._gpu is None:
            return None
        nvml, gpu = self._nvml, self._gpu
        queries = {
            "sm_clock_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
            "temperature_c": lambda: int(
                nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)
            ),
            "reasons": lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)),
            "thermal_ns": lambda: int(
                nvml.nvmlDeviceGetViolationStatus(gpu, THERMAL_POLICY).violationTime
            ),
        }
        found: dict[str, Any] = {}
        for name, query in queries.items():
            try:
                found[name] = query()
            except nvml.NVMLError:  # this device does not offer it
                found[name] = None
        return found

    def _open(self) -> None:
        self._tried = True
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
            if visible and not visible.isdigit():
                self._gpu = pynvml.nvmlDeviceGetHandleByUUID(visible)
            else:
                self._gpu = pynvml.nvmlDeviceGetHandleByIndex(int(visible or 0))
        except Exception:  # the library, the driver or the device is not there
            self._gpu = None

    def close(self) -> None:
        """Give NVML back."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = self._gpu = None


def throttling(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """Why the GPU was slowed down at either end of a block, or while it ran; "" if it was not."""
    found: dict[str, None] = {}
    for state in (before, after):
        bits = (state or {}).get("reasons") or 0
        found |= dict.fromkeys(text for bit, text in REASONS.items() if bits & bit)
    first, last = ((state or {}).get("thermal_ns") for state in (before, after))
    if first is not None and last is not None and last > first:
        found.setdefault("thermal slowdown within the block")
    return ", ".join(found)
