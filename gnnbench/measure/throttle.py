"""Read a GPU's clocks, power and throttling through NVML, between timed blocks only."""

from __future__ import annotations

from types import ModuleType
from typing import TypedDict

from gnnbench.core.nvml import optional, visible_gpus

# Bits of nvmlClocksEventReasons (nvml.h). The software power cap (0x4) is normal at full load.
REASONS = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
THERMAL_POLICY = 1  # NVML_PERF_POLICY_THERMAL: its violation time only grows


class GpuReading(TypedDict):
    """State of a GPU at one moment; None where the device does not support the query.

    ``reasons`` are bits (``REASONS``). ``thermal_ns`` is the total time of thermal slowdown.
    """

    sm_clock_mhz: int | None
    power_w: float | None
    temperature_c: int | None
    reasons: int | None
    thermal_ns: int | None


class GpuWatch:
    """Reads the first GPU that this process may use."""

    def __init__(self) -> None:
        self._nvml: ModuleType | None = None
        self._gpu: object = None
        self._tried = False

    def read(self) -> GpuReading | None:
        """Return the GPU's present state; None without NVML or a GPU."""
        if not self._tried:
            self._open()
        nvml, gpu = self._nvml, self._gpu
        if nvml is None or gpu is None:
            return None
        return {
            "sm_clock_mhz": optional(
                nvml, lambda: int(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM))
            ),
            "power_w": optional(nvml, lambda: float(nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3)),
            "temperature_c": optional(
                nvml, lambda: int(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU))
            ),
            "reasons": optional(
                nvml, lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
            ),
            "thermal_ns": optional(
                nvml,
                lambda: int(nvml.nvmlDeviceGetViolationStatus(gpu, THERMAL_POLICY).violationTime),
            ),
        }

    def _open(self) -> None:
        self._tried = True
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            self._gpu = next(iter(visible_gpus(pynvml)), None)
        except Exception:  # no library, driver or device
            self._gpu = None

    def close(self) -> None:
        """Shut NVML down."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = self._gpu = None


def throttling(before: GpuReading | None, after: GpuReading | None) -> str:
    """Return why the GPU was throttled at either end of a block or within it; "" if it was not."""
    readings = [reading for reading in (before, after) if reading is not None]
    bits = [reading["reasons"] or 0 for reading in readings]
    causes = dict.fromkeys(text for b in bits for bit, text in REASONS.items() if b & bit)
    if before is not None and after is not None:
        first, last = before["thermal_ns"], after["thermal_ns"]
        if first is not None and last is not None and last > first:
            causes.setdefault("thermal slowdown within the block")
    return ", ".join(causes)
