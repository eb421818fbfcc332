"""Open and verify prepared graphs. Nothing here unpickles anything."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnbench.core.errors import DataError
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.seal import break_seal, seal, settled, stamp
from gnnbench.datasets.store.validate import validate

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph
    from gnnbench.datasets.store.writer import Progress


@dataclass(frozen=True)
class VerifyReport:
    """Outcome of recomputing every checksum of a prepared graph."""

    path: Path
    files: int
    bytes: int
    problems: tuple[str, ...]
    unsealed: str = ""  # why later runs check every byte again

    @property
    def ok(self) -> bool:
        """Whether every byte is as it was written."""
        return not self.problems

    @property
    def message(self) -> str:
        """One sentence for the user."""
        if self.ok:
            seal = f"; not sealed ({self.unsealed}), so every run checks them" * bool(self.unsealed)
            return f"{self.path}: {self.files} files, {self.bytes} bytes, all checksums agree{seal}"
        return (
            f"{self.path} is damaged: {'; '.join(self.problems)}; "
            "delete the folder and prepare the dataset again"
        )


def open_graph(
    path: str | Path,
    verified: Mapping[str, list[int]] | None = None,
    held: Mapping[str, str] | None = None,
) -> Graph:
    """Map a prepared graph read-only (private pages).

    Sizes, types and everything that is an index are checked, so that no later damage makes native
    code leave an array; checksums and features are not (``verify``). A graph that still has the
    ``verified`` stamp is not looked through again. ``held``: addresses of arrays of that very graph
    in another process's memory. Raises ``MissingError`` where there is no graph and ``DataError``
    where it is damaged, or changed since it is held.
    """
    from gnnbench.datasets.graph import Graph

    folder = Path(path)
    meta = layout.read_meta(folder)
    layout.check_sizes(folder, meta)
    if verified is not None and verified == stamp(folder):
        return Graph.mapped(folder, meta, held)
    if held:
        raise DataError(f"{folder} changed while its graph was in use; run again")
    mapped = {
        array: layout.checked_array(folder, array, entry) for array, entry in meta["arrays"].items()
    }
    again = "delete the folder and prepare the dataset again"
    classes = int(meta["num_classes"])
    validate(f"{folder} is damaged", mapped, classes, contents_of_features=False, advice=again)
    return Graph.mapped(folder, meta)


def verify(path: str | Path, progress: Progress | None = None) -> VerifyReport:
    """Recompute every checksum, name each file that changed, and seal the graph or break its seal.

    Raises ``MissingError`` where there is no graph; damage is reported, not raised.
    """
    folder = Path(path)
    try:
        meta = layout.read_meta(folder)
    except DataError:
        return VerifyReport(folder, 1, 0, (f"{layout.META} changed or cannot be read",))
    try:
        seen = settled(folder)
    except DataError:  # a file is missing, which is told below
        seen = None
    problems, size = [], (folder / layout.META).stat().st_size
    stored = {a: e for a, e in meta["arrays"].items() if not layout.is_made(e)}
    with ThreadPoolExecutor() as pool:
        looked = {a: pool.submit(_look, layout.file_of(folder, a), e) for a, e in stored.items()}
        for array, found in looked.items():
            have, problem = found.result()
            size += have
            problems += [problem] if problem else []
            if progress is not None:
                progress(f"verify {array}", have, have)
    if problems or seen is None:
        break_seal(folder)
        return VerifyReport(folder, 1 + len(stored), size, tuple(problems))
    return VerifyReport(folder, 1 + len(stored), size, (), seal(folder, seen))


def _look(file: Path, entry: Mapping[str, Any]) -> tuple[int, str]:
    """Size of a file (0: it is missing) and what is wrong with it."""
    if not file.is_file():
        return 0, f"{file.name} is missing"
    have = file.stat().st_size
    if have != entry["bytes"]:
        return have, f"{file.name} is {have} bytes long instead of {entry['bytes']}"
    if layout.sha256_file(file) != entry["sha256"]:
        return have, f"{file.name} changed"
    return have, ""
