"""``gnnbench data get``: download a known graph, check it, and take it into the store."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from gnnbench import names
from gnnbench.data.downloads import Download, downloads
from gnnbench.data.importers.imported import import_source
from gnnbench.data.importers.rawfile import reading
from gnnbench.data.manifest import manifests
from gnnbench.data.names import imported_graphs, known_names, plain_name, resolve
from gnnbench.data.paths import data_root
from gnnbench.data.prepare import find_source, how_to_get, is_prepared, prepare, prepared_path
from gnnbench.data.store.layout import read_meta
from gnnbench.data.store.writer import Progress, free_disk_bytes, graph_lock, writing_to
from gnnbench.data.transport import WAITS, Waits, download
from gnnbench.errors import DataError, UsageError


def find(
    name: str, *, root: str | Path | None = None, table: Mapping[str, Download] | None = None
) -> Download:
    """The known source of a name, or of a dataset's other name. Raises ``UsageError``."""
    known = downloads() if table is None else table
    wanted = known_names().get(plain_name(name), plain_name(name))
    if wanted not in known:
        raise UsageError(_unknown(name, wanted, known, data_root(root)))
    return known[wanted]


def get(
    name: str,
    *,
    root: str | Path | None = None,
    table: Mapping[str, Download] | None = None,
    progress: Progress | None = None,
    waits: Waits = WAITS,
) -> Path:
    """Folder of a graph that is downloaded, checked and prepared where it is not here yet.

    ``table`` is that of known sources (``gnnbench.data.downloads``) if not given. An interrupted
    call goes on where it was. Raises ``UsageError`` for a name that the table lacks, else as
    ``transport.download`` and ``prepare``.
    """
    source = find(name, root=root, table=table)
    raw = data_root(root) / "raw"
    if source.name in manifests():
        _bring_known(source, data_root(root), progress, waits)
        return prepare(source.name, root=root, progress=progress)
    if (there := imported_graphs(root).get(source.name)) is not None:
        return there
    file = _bring(source, raw, progress, waits)
    return import_source(
        file, source.name, symmetric=source.symmetric, root=root, progress=progress
    )


def _bring_known(source: Download, root: Path, progress: Progress | None, waits: Waits) -> None:
    """Bring a manifest's dataset, unless what is here is as good by the order of its sources.

    A graph that was prepared from a lesser source (one without features, say) is removed.
    """
    ref, manifest = resolve(source.name, root), manifests()[source.name]
    where = source.to if source.file.endswith(".zip") else source.file
    rank = next(
        i for i, s in enumerate(manifest.source) if any(p.startswith(where) for p in s.paths)
    )
    prepared = prepared_path(ref, root)
    stored = is_prepared(ref, root)
    if stored:
        origin = str(read_meta(prepared)["fingerprint"].get("from", ""))
        good = [f"/{path}" for s in manifest.source[: rank + 1] for path in s.paths]
        if origin.endswith(tuple(good)):
            return

    def here() -> bool:
        found = find_source(ref, root)
        return found is not None and manifest.source.index(found[0]) <= rank

    if not here():
        _bring(source, root / "raw", progress, waits)
        if not here():
            raise DataError(
                f"{source.url} has not the files that '{source.name}' is made of; get it by hand: "
                f"{how_to_get(manifest, root)}"
            )
    if stored:
        for folder in (prepared, prepared.with_name(f"{prepared.name}+sym")):
            with graph_lock(folder), writing_to(root):
                shutil.rmtree(folder, ignore_errors=True)


def _unknown(name: str, wanted: str, known: Mapping[str, Download], root: Path) -> str:
    if wanted in manifests():
        return f"'{name}' cannot be downloaded; {how_to_get(manifests()[wanted], root)}"
    return f"nothing is known of where to get '{name}'; {names.suggestion(wanted, known)}"


def _bring(source: Download, raw: Path, progress: Progress | None, waits: Waits) -> Path:
    """The file of a source, or the folder that it is unpacked into."""
    archive = source.file.endswith(".zip")
    target = raw / source.file if archive else raw / source.to / source.file
    with graph_lock(target):
        download(source.url, target, sha256=source.sha256, progress=progress, waits=waits)
        if not archive:
            return target
        _unpack(target, raw / source.to, progress)
        with writing_to(raw):
            target.unlink()
    return raw / source.to


def _unpack(archive: Path, folder: Path, progress: Progress | None) -> None:
    """Put the files of a ``.zip`` into a folder, all of them or none."""
    aside = archive.with_name(f".{archive.name}.unpacked")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        with reading(archive), zipfile.ZipFile(archive) as zipped:
            members = zipped.infolist()
            total = sum(member.file_size for member in members)
            if total > free_disk_bytes(archive.parent):
                raise UsageError(
                    f"{archive} unpacks to {total} bytes, and its disk has "
                    f"{free_disk_bytes(archive.parent)} free; free some space or set GNNBENCH_DATA "
                    "to a folder on another disk"
                )
            done = 0
            for member in members:
                with writing_to(archive.parent):
                    zipped.extract(member, aside)  # which keeps it below the folder
                done += member.file_size
                if progress is not None:
                    progress(f"unpack {archive.name}", done, total)
    except DataError:
        archive.unlink(missing_ok=True)  # it could not be unpacked the next time either
        shutil.rmtree(aside, ignore_errors=True)
        raise
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(aside.iterdir()):
            there = folder / path.name
            if there.is_dir():
                shutil.rmtree(there)
            path.replace(there)
        shutil.rmtree(aside)
