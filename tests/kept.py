"""What tests compile once and keep from run to run, in a folder that git does not see."""

from __future__ import annotations

import functools
import hashlib
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "native"
KEPT = ROOT / ".pytest_cache" / "kept"


@functools.cache
def _sources() -> bytes:
    """A digest of all native sources."""
    found = hashlib.sha256()
    for path in sorted(p for p in NATIVE.rglob("*") if p.is_file()):
        found.update(f"{path.relative_to(NATIVE)}\0".encode() + path.read_bytes())
    return found.digest()


def compiled(
    name: str, compiler: str, flags: Iterable[str | Path], make: Callable[[Path], None]
) -> Path:
    """A program or library that ``make`` writes to the path that it is given; made anew where the
    native sources, the compiler or ``flags`` are others."""
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    told = hashlib.sha256(_sources() + version + " ".join(map(str, flags)).encode()).hexdigest()
    path = KEPT / f"{name}-{told[:16]}"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        for old in KEPT.glob(f"{name}-*"):
            old.unlink()
        part = KEPT / f".{path.name}"
        make(part)
        part.replace(path)
    return path
