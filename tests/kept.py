"""Programs and libraries that tests compile once and keep between runs, in an ignored folder."""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "native"
KEPT = ROOT / ".pytest_cache" / "kept"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def _with_includes(sources: Iterable[Path]) -> dict[Path, str]:
    """The texts of ``sources`` and of all native files that they include, directly or not."""
    texts: dict[Path, str] = {}
    waiting = list(sources)
    while waiting:
        path = waiting.pop().resolve()
        if path in texts:
            continue
        texts[path] = path.read_text()
        for name in INCLUDE.findall(texts[path]):
            folders = (path.parent, NATIVE / "include", NATIVE)
            waiting += [folder / name for folder in folders if (folder / name).is_file()]
    return texts


def compiled(
    name: str,
    compiler: str,
    flags: Iterable[str | Path],
    sources: Iterable[Path],
    make: Callable[[Path], None],
) -> Path:
    """A program or library that ``make`` writes to a path.

    It is built again after a change of ``sources``, of a file they include, of the compiler or of
    ``flags``. Processes that need the same one build it once.
    """
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(version + " ".join(map(str, flags)).encode())
    for path, text in sorted(_with_includes(sources).items()):
        digest.update(f"{path.relative_to(NATIVE)}\0{text}\0".encode())
    path = KEPT / f"{name}-{digest.hexdigest()[:16]}"
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for old in KEPT.glob(f"{name}-*"):
                old.unlink()
            part = KEPT / f".{path.name}"
            make(part)
            part.replace(path)
    return path
