"""Raw files of real datasets: where they are on this machine, and how to get them."""

from __future__ import annotations

from pathlib import Path

from gnnbench.core.errors import DataError
from gnnbench.datasets.download_sources import downloads
from gnnbench.datasets.manifest import Manifest, Source
from gnnbench.datasets.names import DatasetRef
from gnnbench.datasets.paths import find_raw
from gnnbench.datasets.store import layout


def find_source(ref: DatasetRef, root: Path) -> tuple[Source, Path] | None:
    """The first source of a real dataset whose files are on this machine, and their path."""
    manifest = ref.manifest
    for source in manifest.source if manifest is not None else []:
        if (path := find_raw(source.paths, root, source.needs)) is not None:
            return source, path
    return None


def source_path(ref: DatasetRef, root: Path) -> Path | None:
    """Path of the file or folder that a dataset is made from; None if there is none here."""
    if ref.kind != "real":
        return ref.path
    available = find_source(ref, root)
    return None if available is None else available[1]


def how_to_get(manifest: Manifest, root: Path) -> str:
    """All ways to get a real dataset; commands come before manual steps."""
    if manifest.variant_of:
        return f"it is generated: use '{manifest.name}~twin'"
    ours = [f"gnnbench data get {manifest.name}"] if manifest.name in downloads() else []
    ways = [s.get.replace("{raw}", str(root / "raw")) for s in manifest.source]
    return "; or ".join(ours + sorted(ways, key=lambda way: way.startswith(("put ", "get "))))


def check_digests(source: Source, path: Path) -> None:
    """Raise ``DataError`` if a file differs from the SHA-256 that its manifest states."""
    for name, digest in source.sha256.items():
        file = path if path.name == name else path / name
        if file.is_file() and layout.sha256_file(file) != digest:
            raise DataError(
                f"{file} is not the file that the manifest describes (SHA-256 differs from "
                f"{digest[:12]}...); get it again, or prepare it by its path instead of its name"
            )
