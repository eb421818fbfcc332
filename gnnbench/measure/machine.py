"""The record of a run's machine and source code, without host names and absolute paths."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TypedDict

from gnnbench.core import registry
from gnnbench.core.cgroups import usable_cores as usable_cores
from gnnbench.core.errors import UsageError
from gnnbench.core.host_memory import free_memory_bytes as free_memory_bytes
from gnnbench.core.host_memory import memory_limit_bytes as memory_limit_bytes
from gnnbench.core.nvml import opened, optional, visible_gpus
from gnnbench.version import __version__

PACKAGES = (
    "torch", "dgl", "torch-geometric", "torch-sparse", "pyg-lib", "ogb", "numpy",
    "scipy",
)  # fmt: skip


class GpuState(TypedDict):
    """State of a GPU that changes during a run; None where the device does not support it."""

    sm_clock_mhz: int | None
    temperature_c: int | None
    throttle_reasons: int | None


class GpuFacts(GpuState):
    """A GPU of the machine."""

    name: str
    memory_bytes: int
    driver: str


class MachineFacts(TypedDict):
    """The machine of a run; a value is None where it is unknown."""

    cpu: str
    architecture: str
    kernel: str
    cores_physical: int | None
    cores_logical: int | None
    cores_usable: int
    affinity: list[int]
    memory_bytes: int
    governor: str | None
    frequency_mhz: int | None
    gpus: list[GpuFacts] | None


class GitRevision(TypedDict):
    """Commit of the source tree, and whether tracked files differ from it; None if unknown."""

    git_revision: str | None
    git_dirty: bool | None


class Revision(GitRevision):
    """The source code of a run, see :func:`source_digest`."""

    source_digest: str


def resolve_threads(threads: int) -> int:
    """``0`` means all usable cores."""
    return threads or usable_cores()


def versions() -> dict[str, str | None]:
    """Return installed versions from package metadata, without importing the packages.

    Packages that register stages or systems are included.
    """
    known: dict[str, str | None] = {"python": platform.python_version(), "gnnbench": __version__}
    for name in PACKAGES:
        try:
            known[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            known[name] = None
    return known | {name: version for _, name, version in registry.packages()}


def gpus() -> list[GpuFacts] | None:
    """Return name, memory, driver and state of each GPU that this process may use.

    None without NVML.
    """
    with opened() as nvml:
        return None if nvml is None else optional(nvml, lambda: _gpu_facts(nvml))


def _gpu_facts(nvml: ModuleType) -> list[GpuFacts]:
    driver = _text(nvml.nvmlSystemGetDriverVersion())
    return [
        {
            "name": _text(nvml.nvmlDeviceGetName(gpu)),
            "memory_bytes": int(nvml.nvmlDeviceGetMemoryInfo(gpu).total),
            "driver": driver,
            **_gpu_state(nvml, gpu),
        }
        for gpu in visible_gpus(nvml)
    ]


def _gpu_state(nvml: ModuleType, gpu: object) -> GpuState:
    return {
        "sm_clock_mhz": optional(
            nvml, lambda: int(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM))
        ),
        "temperature_c": optional(
            nvml, lambda: int(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU))
        ),
        "throttle_reasons": optional(
            nvml, lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
        ),
    }


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def cpu_model() -> str:
    """Return the CPU's model name as the kernel reports it, else the architecture."""
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def oom_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory, by host and cgroup."""
    total = 0
    for path, key in (("/proc/vmstat", "oom_kill"), ("/sys/fs/cgroup/memory.events", "oom_kill")):
        try:
            lines = Path(path).read_text().splitlines()
        except OSError:
            continue
        total += sum(int(v) for k, _, v in (line.partition(" ") for line in lines) if k == key)
    return total


def load() -> dict[str, float]:
    """Return the present load averages and available memory."""
    import psutil

    one, five, fifteen = os.getloadavg()
    return {
        "load_1min": one,
        "load_5min": five,
        "load_15min": fifteen,
        "available_bytes": int(psutil.virtual_memory().available),
    }


def busy_seconds() -> float:
    """Return the CPU time of all processes on this process's cores so far (10 ms steps)."""
    import psutil

    cores = os.sched_getaffinity(0)
    times = [t for i, t in enumerate(psutil.cpu_times(percpu=True)) if i in cores]
    return float(sum(t.user + t.nice + t.system + t.irq + t.softirq for t in times))


def record() -> MachineFacts:
    """Return the facts about the machine that a run records."""
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


def fingerprint(machine: MachineFacts) -> str:
    """Return the identity of the hardware that timings depend on, 12 hex digits."""
    parts = [
        machine["cpu"],
        machine["architecture"],
        machine["cores_usable"],
        machine["memory_bytes"],
        [gpu["name"] for gpu in machine["gpus"] or []],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def revision() -> Revision:
    """Return the commit and dirty flag of the source tree, and the source digest.

    A copy without git, or with the git of an older revision, reads them from the file that
    ``write_revision`` wrote. The file is valid as long as the Python sources have not changed, and
    in a git checkout the native libraries neither. Both are None without git and a valid file.
    """
    root, digest = Path(__file__).parents[2], source_digest()
    git: GitRevision = {"git_revision": None, "git_dirty": None}
    if (root / ".git").exists():
        head = _git(root, "rev-parse", "HEAD")
        status = _git(root, "status", "--porcelain", "--untracked-files=no")
        if head is not None and status is not None:
            git = {"git_revision": head, "git_dirty": bool(status)}
    if git["git_dirty"] is not False:
        with suppress(OSError, ValueError, KeyError):
            carried = json.loads(_carried().read_text())
            same = carried["python_digest"] == source_digest(native=False)
            if same and (git["git_dirty"] is None or carried["source_digest"] == digest):
                git = {
                    "git_revision": carried["git_revision"],
                    "git_dirty": carried["git_dirty"],
                }
    return {**git, "source_digest": digest}


def _carried() -> Path:
    return Path(__file__).parents[1] / "_revision.json"


def write_revision() -> Path:
    """Write the revision to a file of the package, for copies without ``.git``.

    Raises ``UsageError`` outside a git checkout.
    """
    current = revision()
    if current["git_revision"] is None:
        raise UsageError("this is no git checkout; note the revision where there is one")
    path = _carried()
    path.write_text(json.dumps({**current, "python_digest": source_digest(native=False)}) + "\n")
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
    """Return the folders that gnnbench.kernels.library searches, without importing torch."""
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
