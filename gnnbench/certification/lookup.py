"""Finds the certificate of a cell's sampler and says what it means for the cell's work."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from gnnbench.certification.record import ALWAYS, RANKS, WORKERS, Certificate, load_all
from gnnbench.core.cell import Cell

FOLDER = Path("results", "certificates")  # where ``gnnbench certify`` writes
# Options that do not change which certificate applies: the law decides about picks.
IGNORED = ("pick", "frontier", "workers", "topology")
ON_HOST = ("pyg", "pyg-native")  # samplers without a GPU version
SEVERAL_RANKS = ("data-parallel", "factored")


class Standing(NamedTuple):
    """The file of a cell's certificate, why its work is ``different`` or "", and the failed
    properties that the run does not use."""

    file: str
    reason: str
    unused: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The file, and what it fails without a consequence."""
        names = ", ".join(self.unused)
        return (
            f"{self.file}, which fails in what this run does not use ({names})"
            if names
            else self.file
        )


def folders() -> list[Path]:
    """Folders with certificates: that of the working folder, and the shipped one."""
    root = Path(__file__).resolve().parents[2]
    shipped = [root / "gnnbench_share" / "certificates", root / FOLDER]
    return [folder for folder in (FOLDER, *shipped) if folder.is_dir()]


@lru_cache(maxsize=8)
def _known(folder: Path) -> tuple[Certificate, ...]:
    try:
        return tuple(sorted(load_all(folder), key=lambda c: c.quick))
    except (OSError, ValueError, KeyError, TypeError):  # a damaged file certifies nothing
        return ()


def standing_of(
    cell: Cell, law: str, versions: Mapping[str, str], search: Sequence[Path] | None = None
) -> Standing | None:
    """Return the standing of a cell's sampler by its certificate; None if there is none.

    ``law``: the law that the sampler states. ``versions``: of packages in the cell's worker.
    ``search``: folders, the first that has a certificate decides; default: ``folders()``.
    """
    stage = cell.stage("sampler")
    if stage is None or cell.gathers:
        return None
    for folder in folders() if search is None else search:
        for certificate in _known(folder.resolve()):
            if _applies(certificate, cell, stage, versions):
                return _standing(certificate, cell, law)
    return None


def _applies(
    certificate: Certificate, cell: Cell, stage: Mapping[str, object], versions: Mapping[str, str]
) -> bool:
    if certificate.device != _sampled_on(cell, stage) or certificate.sampler != stage.get("name"):
        return False
    wanted, given = (
        {k: v for k, v in values.items() if k not in ("name", *IGNORED)}
        for values in (certificate.settings, stage)
    )
    if json.dumps(wanted, sort_keys=True) != json.dumps(given, sort_keys=True):
        return False
    return all(
        _version(name, cell, versions) == version
        for name, version in certificate.packages.items()
        if name != "torch"
    )


def _sampled_on(cell: Cell, stage: Mapping[str, object]) -> str:
    """The device that samples: PyG, and a graph on the host, are sampled by the CPU."""
    on_host = stage.get("name") in ON_HOST or stage.get("topology") == "cpu"
    return "cpu" if on_host else cell.device


def _version(name: str, cell: Cell, versions: Mapping[str, str]) -> str | None:
    known = versions.get(name) or versions.get(name.replace("-", "_"))
    if known or cell.env:
        return known
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _standing(certificate: Certificate, cell: Cell, law: str) -> Standing:
    scopes = {ALWAYS, f"law:{law.removesuffix('-uneven')}"}
    if cell.setting("sampler", "workers") not in ("", "0"):
        scopes.add(WORKERS)
    if cell.stage_name("schedule") in SEVERAL_RANKS:
        scopes.add(RANKS)
    failed = [entry for entry in certificate.failed if entry.scope in scopes]
    unused = tuple(e.name for e in certificate.failed if e.scope not in scopes)
    if not failed:
        return Standing(certificate.file_name, "", unused)
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    first = failed[0]
    reason = f"its certificate fails '{first.name}'{more}: {first.reason}"
    return Standing(certificate.file_name, reason, unused)
