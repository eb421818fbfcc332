"""``gnnbench data get``: download a known graph, check it, and prepare it."""

from __future__ import annotations

import contextlib
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gnnbench.core import names
from gnnbench.core.errors import DataError, UsageError
from gnnbench.datasets.download_sources import Download, downloads
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.importers.rawfile import reading
from gnnbench.datasets.manifest import manifests
from gnnbench.datasets.names import imported_graphs, known_names, plain_name, resolve
from gnnbench.datasets.paths import data_root
from gnnbench.datasets.prepare import is_prepared, prepare, prepared_path
from gnnbench.datasets.sources import find_source, how_to_get
from gnnbench.datasets.store.disk import Progress, free_disk_bytes, graph_lock, writing_to
from gnnbench.datasets.store.layout import read_meta
from gnnbench.datasets.transport import WAITS, Fetched, Waits, download


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

    ``table`` is that of known sources (``gnnbench.datasets.download_sources``) if not given. An
    interrupted
    call goes on where it was. Raises ``UsageError`` for a name that the table lacks, else as
    ``transport.download`` and ``prepare``.
    """
    source = find(name, root=root, table=table)
    raw = data_root(root) / "raw"
    if source.name in manifests():
        brought = _bring_known(source, data_root(root), progress, waits)
        with _kept_if_right(brought):
            return prepare(source.name, root=root, progress=progress)
    if (there := imported_graphs(root).get(source.name)) is not None:
        return there
    brought = _bring(source, raw, progress, waits)
    with _kept_if_right(brought):
        return import_source(
            brought.paths[0], source.name, symmetric=source.symmetric, root=root, progress=progress
        )


@dataclass(frozen=True)
class Brought:
    """What a download put below the raw folder.

    ``fetched`` is None where the file was there already; ``ours`` says whether this call wrote
    ``paths``.
    """

    paths: list[Path]
    fetched: Fetched | None
    ours: bool

    def discard(self) -> None:
        """Remove it."""
        for path in self.paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@contextlib.contextmanager
def _kept_if_right(brought: Brought | None) -> Iterator[None]:
    """Record a download whose content can be imported; discard one whose content cannot."""
    try:
        yield
    except DataError:
        if brought is not None and brought.ours:
            brought.discard()
        raise
    if brought is not None and brought.fetched is not None:
        brought.fetched.record()


def _bring_known(
    source: Download, root: Path, progress: Progress | None, waits: Waits
) -> Brought | None:
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
            return None

    def here() -> bool:
        available = find_source(ref, root)
        return available is not None and manifest.source.index(available[0]) <= rank

    brought = None
    if not here():
        wanted = manifest.source[rank].paths
        brought = _bring(source, root / "raw", progress, waits, wanted, here)
        if not here():
            brought.discard()
            raise DataError(
                f"{source.url} has not the files that '{source.name}' is made of; get it by hand: "
                f"{how_to_get(manifest, root)}"
            )
    if stored:
        for folder in (prepared, prepared.with_name(f"{prepared.name}+sym")):
            with graph_lock(folder), writing_to(root):
                shutil.rmtree(folder, ignore_errors=True)
    return brought


def _unknown(name: str, wanted: str, known: Mapping[str, Download], root: Path) -> str:
    if wanted in manifests():
        return f"'{name}' cannot be downloaded; {how_to_get(manifests()[wanted], root)}"
    return f"nothing is known of where to get '{name}'; {names.suggestion(wanted, known)}"


def _bring(
    source: Download,
    raw: Path,
    progress: Progress | None,
    waits: Waits,
    wanted: Sequence[str] = (),
    here: Callable[[], bool] = lambda: False,
) -> Brought:
    """The file of a source, or those of the ``wanted`` paths below ``raw`` that its archive has.

    Nothing is brought where ``here`` is true once no other process brings the same file.
    """
    archive = source.file.endswith(".zip")
    target = raw / source.file if archive else raw / source.to / source.file

    def waiting() -> None:
        if progress is not None:
            progress("wait for another process that downloads the same file", 0, 0)

    with graph_lock(target, waiting):
        if here():
            return Brought([], None, ours=False)
        fetched = download(source.url, target, sha256=source.sha256, progress=progress, waits=waits)
        if not archive:
            return Brought([target], fetched, fetched is not None)
        try:
            paths = _unpack(target, raw, source.to, wanted, progress)
        except DataError:
            target.unlink(missing_ok=True)  # it could not be unpacked the next time either
            raise
        with writing_to(raw):
            target.unlink()
    return Brought(paths, fetched, ours=True)


def _unpack(
    archive: Path, raw: Path, to: str, wanted: Sequence[str], progress: Progress | None
) -> list[Path]:
    """Put the files of a ``.zip`` that belong to the ``wanted`` paths below ``raw``, all or none.

    ``to`` is the folder below ``raw`` that the archive's names are relative to. Anything else in
    the archive is left out, and nothing else below ``raw`` is touched. Returns the paths written.
    """
    aside = archive.with_name(f".{archive.name}.unpacked")
    shutil.rmtree(aside, ignore_errors=True)
    unpacked: set[str] = set()
    try:
        with reading(archive), zipfile.ZipFile(archive) as zipped:
            members = [(m, rel) for m in zipped.infolist() if (rel := _own(m, to, wanted))]
            total, done = sum(member.file_size for member, _ in members), 0
            if total > free_disk_bytes(archive.parent):
                raise UsageError(
                    f"{archive} unpacks to {total} bytes, and its disk has "
                    f"{free_disk_bytes(archive.parent)} free; free some space or set GNNBENCH_DATA "
                    "to a folder on another disk"
                )
            for member, (path, rest) in members:
                with writing_to(archive.parent):
                    there = aside / path / rest
                    there.parent.mkdir(parents=True, exist_ok=True)
                    with zipped.open(member) as packed, there.open("wb") as file:
                        shutil.copyfileobj(packed, file, 1 << 20)
                unpacked.add(path)
                done += member.file_size
                if progress is not None:
                    progress(f"unpack {archive.name}", done, total)
        with writing_to(raw):
            for path in sorted(unpacked):
                there = raw / path
                there.parent.mkdir(parents=True, exist_ok=True)
                if there.is_dir():
                    shutil.rmtree(there)
                (aside / path).replace(there)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return [raw / path for path in sorted(unpacked)]


def _own(
    member: zipfile.ZipInfo, to: str, wanted: Sequence[str]
) -> tuple[str, PurePosixPath] | None:
    """The wanted path that a file of an archive belongs to, and its place below; None for others:
    folders, other names, and names that lead elsewhere."""
    name = PurePosixPath(member.filename)
    if member.is_dir() or name.is_absolute() or ".." in name.parts or "\\" in member.filename:
        return None
    whole = PurePosixPath(to) / name
    for path in wanted:
        if whole.is_relative_to(path) and whole != PurePosixPath(path):
            return path, whole.relative_to(path)
    return None
