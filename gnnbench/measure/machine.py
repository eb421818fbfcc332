"""The record of the machine that goes with every run; no host name and no absolute path."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from gnnbench.core import registry
from gnnbench.core.cgroups import usable_cores as usable_cores
from gnnbench.core.errors import UsageError
from gnnbench.core.host_memory import free_memory_bytes as free_memory_bytes
from gnnbench.core.host_memory import memory_limit_bytes as memory_limit_bytes
from gnnbench.version import __version__

PACKAGES = (
    "torch", "dgl", "torch-geometric", "torch-sparse", "pyg-lib", "ogb", "numpy",
    "scipy",
)  # fmt: skip


def resolve_threads(threads: int) -> int:
    """``0`` means all usable cores."""
    return threads or usable_cores()


def versions() -> dict[str, str | None]:
    """Installed versions, read from package metadata without importing anything.

    Those of packages that bring stages or systems are among them.
    """
    found: dict[str, str | None] = {"python": platform.python_version(), "gnnbench": __version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found | {name: version for _, name, version in registry.packages()}


def gpus() -> list[dict[str, Any]] | None:
    """Name, memory, driver, clocks and temperature of each GPU by NVML; None where it is absent."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # the library or the driver is not there
        return None
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        found = []
        for i in range(pynvml.nvmlDeviceGetCount()):
            gpu = pynvml.nvmlDeviceGetHandleByIndex(i)
            found.append(
                {
                    "name": _text(pynvml.nvmlDeviceGetName(gpu)),
                    "memory_bytes": int(pynvml.nvmlDeviceGetMemoryInfo(gpu).total),
                    "driver": driver,
                    **_gpu_state(pynvml, gpu),
                }
            )
        return found
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _gpu_state(nvml: Any, gpu: Any) -> dict[str, Any]:
    """What moves between blocks; a field that the device does not offer is null."""
    queries = {
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
        "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
        "throttle_reasons": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),
    }
    state: dict[str, Any] = {}
    for name, query in queries.items():
        try:
            state[name] = int(query())
        except nvml.NVMLError:
            state[name] = None
    return state


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def cpu_model() -> str:
    """Model name as the kernel reports it, else the architecture."""
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def oom_kills() -> int:
    """Processes that the kernel killed for lack of memory so far, here or in the machine."""
    total = 0
    for path, key in (("/proc/vmstat", "oom_kill"), ("/sys/fs/cgroup/memory.events", "oom_kill")):
        try:
            lines = Path(path).read_text().splitlines()
        except OSError:
            continue
        total += sum(int(v) for k, _, v in (line.partition(" ") for line in lines) if k == key)
    return total


def load() -> dict[str, float]:
    """Load averages and available memory at this moment."""
    import psutil

    one, five, fifteen = os.getloadavg()
    return {
        "load_1min": one,
        "load_5min": five,
        "load_15min": fifteen,
        "available_bytes": int(psutil.virtual_memory().available),
    }


def busy_seconds() -> float:
    """CPU time spent so far by anybody on the cores that this process may use (10 ms steps)."""
    import psutil

    cores = os.sched_getaffinity(0)
    times = [t for i, t in enumerate(psutil.cpu_times(percpu=True)) if i in cores]
    return float(sum(t.user + t.nice + t.system + t.irq + t.softirq for t in times))


def record() -> dict[str, Any]:
    """Everything about the machine that does not change during a run."""
    import psutil

    frequency = psutil.cpu_freq()
    return {
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "kernel": platform.release().partition("-")[0],
        "cores_physical": psutil.cpu_count(logical=False),
        "cores_logical": psutil.cpu_count(),
        "cores_usable": usable_cores(),
        "affinity": sorted(os.sched_getaffinity(0)),
        "memory_bytes": memory_limit_bytes(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "frequency_mhz": round(frequency.current) if frequency else None,
        "gpus": gpus(),
    }


def fingerprint(machine: dict[str, Any]) -> str:
    """Identity of the hardware that timings depend on, 12 hex digits."""
    keys = ("cpu", "architecture", "cores_usable", "memory_bytes")
    parts: list[Any] = [machine.get(k) for k in keys]
    parts.append([g["name"] for g in machine.get("gpus") or []])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def revision() -> dict[str, Any]:
    """Git revision and dirty flag of the source tree, and the source digest.

    A copy without git, or with the git of an older revision, carries them in a file
    (``write_revision``), which counts as long as the Python sources, and beside a git the native
    libraries too, are those that it was written for; both are null where neither is there.
    """
    root, digest = Path(__file__).parents[2], source_digest()
    found: dict[str, Any] = {"git_revision": None, "git_dirty": None}
    if (root / ".git").exists():
        head = _git(root, "rev-parse", "HEAD")
        status = _git(root, "status", "--porcelain", "--untracked-files=no")
        if head is not None and status is not None:
            found = {"git_revision": head, "git_dirty": bool(status)}
    if found["git_dirty"] is not False:
        with suppress(OSError, ValueError, KeyError):
            carried = json.loads(_carried().read_text())
            same = carried["python_digest"] == source_digest(native=False)
            if same and (found["git_dirty"] is None or carried["source_digest"] == digest):
                found = {key: carried[key] for key in found}
    return {**found, "source_digest": digest}


def _carried() -> Path:
    return Path(__file__).parents[1] / "_revision.json"


def write_revision() -> Path:
    """Note the revision inside the package, for a copy that leaves ``.git`` behind.

    Raises ``UsageError`` outside a git checkout.
    """
    found = revision()
    if found["git_revision"] is None:
        raise UsageError("this is no git checkout; note the revision where there is one")
    path = _carried()
    path.write_text(json.dumps({**found, "python_digest": source_digest(native=False)}) + "\n")
    return path


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def native_folders(package: Path = Path(__file__).parents[1]) -> list[Path]:
    """Where gnnbench.kernels.library looks; found here without importing torch."""
    if named := os.environ.get("GNNBENCH_NATIVE_DIR"):
        return [Path(named)]
    folders = [package / "_native"]
    try:
        installed = metadata.distribution("gnnbench").locate_file("gnnbench/_native")
    except metadata.PackageNotFoundError:
        return folders
    return folders if Path(str(installed)) == folders[0] else [*folders, Path(str(installed))]


def source_digest(native: bool = True) -> str:
    """SHA-256 over the package's Python sources and native libraries, 16 hex digits."""
    package = Path(__file__).parents[1]
    files = sorted(package.rglob("*.py"))
    for folder in native_folders(package) if native else ():
        files += sorted(folder.glob("*.so")) if folder.is_dir() else []
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
