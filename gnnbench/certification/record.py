"""A certificate as a record: its entries, its file, and the table of its verdicts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gnnbench.core.files import write_json

VERSION = 1
PASSES, FAILS, ABSENT = "passes", "fails", "not offered"
ALWAYS, WORKERS, RANKS, TIME = "always", "workers", "ranks", "time"


@dataclass(frozen=True)
class Entry:
    """The verdict on one property.

    ``scope``: which runs it concerns: ``always``, ``law:NAME``, ``workers``, ``ranks``, ``time``.
    ``reason``: what was found, or why the property is not offered. ``level``: probability of a
    false alarm, 0 where nothing is left to chance. ``draws``: rows or batches. ``tables``: tables
    that the test averages or compares. ``bias``: the smallest one that is detected with 90 % power,
    in the words of ``bias_of``; None where nothing is left to chance. ``snippet``: a program that
    shows the failure, or "".
    """

    name: str
    verdict: str
    scope: str = ALWAYS
    reason: str = ""
    level: float = 0.0
    draws: int = 0
    tables: int = 0
    bias: float | None = None
    bias_of: str = ""
    snippet: str = ""


@dataclass(frozen=True)
class Certificate:
    """Entries of one sampler, version, device and set of options.

    ``sampler``: name of the stage, ``settings``: its resolved options; by both, runs find their
    certificate. ``law``: the
    first law that it offers. ``packages``: versions by package, the sampler's own first. ``quick``:
    with fewer draws. ``threads``: of the process.
    """

    name: str
    version: str
    device: str
    options: dict[str, object]
    law: str
    packages: dict[str, str]
    quick: bool
    threads: int = 1
    sampler: str = ""
    settings: dict[str, object] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    schema: int = VERSION

    @property
    def failed(self) -> list[Entry]:
        """Entries that fail."""
        return [entry for entry in self.entries if entry.verdict == FAILS]

    @property
    def file_name(self) -> str:
        """``NAME-VERSION-DEVICE.json``, with the options that were chosen, and ``quick``."""
        parts = [self.name, self.version, self.device]
        parts += [f"{key}={value}" for key, value in sorted(self.options.items())]
        parts += ["quick"] * self.quick
        return re.sub(r"[^\w.=+-]", "_", "-".join(parts)) + ".json"

    def plain(self) -> dict[str, object]:
        """The certificate as JSON values; empty fields of entries are left out."""
        values = asdict(self)
        values["entries"] = [
            {key: value for key, value in asdict(entry).items() if value not in ("", None, 0)}
            for entry in self.entries
        ]
        return values

    def save(self, folder: Path) -> Path:
        """Write the file and return its path. Raises ``OSError``."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.file_name
        write_json(path, self.plain())
        return path


def load(path: Path) -> Certificate:
    """Read a certificate. Raises ``ValueError`` for a file of another kind."""
    values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, Mapping) or values.get("schema") != VERSION:
        raise ValueError(f"{path.name} is no certificate of schema {VERSION}")
    entries = [Entry(**entry) for entry in values["entries"]]
    return Certificate(**{**values, "entries": entries})


def load_all(folder: Path) -> list[Certificate]:
    """Read all certificates of a folder, in the order of their file names."""
    return [load(path) for path in sorted(folder.glob("*.json"))]
