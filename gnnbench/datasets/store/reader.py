"""Open and verify prepared graphs; nothing is unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gnnbench.core.errors import DataError
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.schema import ArrayEntry
from gnnbench.datasets.store.seal import Stamp, break_seal, seal, settled_stamp, stamp
from gnnbench.datasets.store.validate import validate

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph
    from gnnbench.datasets.store.disk import Progress


@dataclass(frozen=True)
class VerifyReport:
    """Result of recomputing every checksum of a prepared graph.

    ``unsealed``: why the graph could not be sealed, so that later runs check every byte again.
    """

    path: Path
    files: int
    bytes: int
    problems: tuple[str, ...]
    unsealed: str = ""

    @property
    def ok(self) -> bool:
        """Whether all checksums agree."""
        return not self.problems

    @property
    def message(self) -> str:
        """The result as one sentence."""
        if self.ok:
            seal = f"; not sealed ({self.unsealed}), so every run checks them" * bool(self.unsealed)
            return f"{self.path}: {self.files} files, {self.bytes} bytes, all checksums agree{seal}"
        return (
            f"{self.path} is damaged: {'; '.join(self.problems)}; "
            "delete the folder and prepare the dataset again"
        )


def open_graph(
    path: str | Path,
    verified: Stamp | None = None,
    shared: Mapping[str, str] | None = None,
) -> Graph:
    """Map a prepared graph read-only (private pages).

    Sizes, dtypes and all indices are checked, so that native code stays within the arrays;
    checksums and features are not (:func:`verify`). A graph that still has the ``verified`` stamp
    is not checked again. ``shared``: addresses of arrays of this graph in another process's memory.
    Raises ``MissingError`` if there is no graph, ``DataError`` if it is damaged or if shared arrays
    are those of an earlier version.
    """
    from gnnbench.datasets.graph import Graph

    folder = Path(path)
    meta = layout.read_meta(folder)
    layout.check_sizes(folder, meta)
    if verified is not None and verified == stamp(folder):
        return Graph.mapped(folder, meta, shared)
    if shared:
        raise DataError(f"{folder} changed while its graph was in use; run again")
    mapped = {
        array: layout.stored_array(folder, array, entry) for array, entry in meta["arrays"].items()
    }
    again = "delete the folder and prepare the dataset again"
    validate(f"{folder} is damaged", mapped, meta["num_classes"], advice=again)
    return Graph.mapped(folder, meta)


def verify(path: str | Path, progress: Progress | None = None) -> VerifyReport:
    """Recompute every checksum, list each changed file, and seal the graph or break its seal.

    Raises ``MissingError`` if there is no graph; damage is reported, not raised.
    """
    folder = Path(path)
    try:
        meta = layout.read_meta(folder)
    except DataError:
        return VerifyReport(folder, 1, 0, (f"{layout.META} changed or cannot be read",))
    try:
        before = settled_stamp(folder)
    except DataError:  # a file is missing, which is reported below
        before = None
    problems, size = [], (folder / layout.META).stat().st_size
    stored = {a: e for a, e in meta["arrays"].items() if not layout.is_generated(e)}
    with ThreadPoolExecutor() as pool:
        checks = {
            a: pool.submit(_check_file, layout.file_of(folder, a), e) for a, e in stored.items()
        }
        for array, check in checks.items():
            file_size, problem = check.result()
            size += file_size
            problems += [problem] if problem else []
            if progress is not None:
                progress(f"verify {array}", file_size, file_size)
    if problems or before is None:
        break_seal(folder)
        return VerifyReport(folder, 1 + len(stored), size, tuple(problems))
    return VerifyReport(folder, 1 + len(stored), size, (), seal(folder, before))


def _check_file(file: Path, entry: ArrayEntry) -> tuple[int, str]:
    """Size of a file (0 if missing) and its problem (empty if intact)."""
    if not file.is_file():
        return 0, f"{file.name} is missing"
    size = file.stat().st_size
    if size != entry["bytes"]:
        return size, f"{file.name} is {size} bytes long instead of {entry['bytes']}"
    if layout.sha256_file(file) != entry["sha256"]:
        return size, f"{file.name} changed"
    return size, ""
