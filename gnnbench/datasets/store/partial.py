"""The unfinished folder of a graph, and the state file that lets an interrupted writer resume."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

from gnnbench.datasets.store import layout
from gnnbench.datasets.store.disk import writing_to
from gnnbench.datasets.store.schema import ArrayEntry, Fingerprint

_STATE = "state.json"


def partial_folder(final: Path) -> Path:
    """Hidden folder in which a graph is written before it gets its name."""
    return final.parent / f".{final.name}.partial"


class PartialGraph:
    """Complete arrays of a graph that is being written, recorded in ``state.json``.

    ``fingerprint`` identifies the graph: arrays of an interrupted writer are kept only if its
    fingerprint was the same and their checksums agree.
    """

    def __init__(self, final: Path, fingerprint: Fingerprint) -> None:
        self.final = final
        self.folder = partial_folder(final)
        self.fingerprint: dict[str, object] = json.loads(json.dumps(fingerprint))
        self.entries: dict[str, ArrayEntry] = {}

    def open(self) -> None:
        """Create the folder, or resume from it. Raises ``UsageError``."""
        with writing_to(self.final.parent):
            self._resume()
            if not self.entries and self.folder.exists():
                shutil.rmtree(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)

    def _resume(self) -> None:
        file = self.folder / _STATE
        try:
            state = json.loads(file.read_text()) if file.is_file() else {}
            if state["fingerprint"] == self.fingerprint:
                for name, entry in state["arrays"].items():
                    if layout.is_generated(entry) or self._is_intact(name, entry):
                        self.entries[name] = entry
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.entries = {}

    def _is_intact(self, name: str, entry: ArrayEntry) -> bool:
        path = layout.file_of(self.folder, name)
        return path.is_file() and layout.sha256_file(path) == entry["sha256"]

    def add(self, name: str, entry: ArrayEntry) -> None:
        """Record a complete array."""
        self.entries[name] = entry
        state = {"fingerprint": self.fingerprint, "arrays": self.entries}
        with writing_to(self.final.parent):
            fresh = self.folder / f"{_STATE}.new"
            fresh.write_text(json.dumps(state))
            fresh.replace(self.folder / _STATE)

    def remove_state(self) -> None:
        """Delete the state file of a graph that is about to get its name."""
        (self.folder / _STATE).unlink(missing_ok=True)

    def discard(self) -> None:
        """Delete everything."""
        with contextlib.suppress(OSError):
            shutil.rmtree(self.folder)
