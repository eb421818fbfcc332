"""Cell ids of every shipped definition and profile, and the text that each id hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gnnbench.analysis.labels import fits
from gnnbench.config import experiment, grid
from gnnbench.config.experiment import Experiment
from gnnbench.core.cell import Cell
from gnnbench.harness import available, environment

ARCHIVE = "ids.json.xz"
DIGESTS = "ids.txt"
DEVICES = ("cpu", "cuda")


@dataclass
class Ids:
    """``texts``: what an id hashes. ``cells``: by definition and profile the ids in order."""

    texts: dict[str, str] = field(default_factory=dict)
    cells: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, cells: list[Cell]) -> None:
        """The cells of one definition and profile."""
        for cell in cells:
            if cell.id not in self.texts:
                self.texts[cell.id] = cell.hashed_text
        self.cells[name] = [cell.id for cell in cells]

    def digests(self) -> list[str]:
        """One line for each definition and profile: its name, how many cells, their digest."""
        return [
            f"{name}: {len(ids)} cells {hashlib.sha256(' '.join(ids).encode()).hexdigest()[:16]}"
            for name, ids in self.cells.items()
        ]


def current() -> Ids:
    """The ids of this code. ``device = "auto"`` counts as both devices."""
    collected = Ids()
    resolve, known = _remembered(available.resolve), _remembered(environment.known_paths)
    for name in experiment.shipped():
        loaded = experiment.load(name)
        for profile in ("", *loaded.profiles):
            for device, resolved in _resolved(loaded, profile):
                title = " ".join(filter(None, [name, profile or "(no profile)", device]))
                collected.add(title, list(_cells(resolved, resolve, known)))
    return collected


def _remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which computes equal calls once: definitions share most of their cells."""
    made: dict[str, Any] = {}

    def call(*arguments: Any) -> Any:
        key = json.dumps(arguments, sort_keys=True)
        if key not in made:
            made[key] = function(*arguments)
        return made[key]

    return call


def _resolved(loaded: Experiment, profile: str) -> Iterator[tuple[str, Experiment]]:
    plain = loaded.model_copy(update={"default_profile": ""})
    complete = all(loaded.axes.get(a) or loaded.zip.get(a) for a in ("system", "dataset"))
    if not (profile or complete):  # a definition that only its profiles complete
        return
    chosen = loaded.profiles[profile].axes if profile else {}
    if "auto" not in (chosen.get("device") or loaded.axes.get("device") or []):
        yield "", experiment.resolve(plain, profile)
        return
    for device in DEVICES:
        yield device, experiment.resolve(plain, profile, {"axes": {"device": [device]}})


def _cells(
    resolved: Experiment, resolve: Callable[..., Any], known: Callable[..., Any]
) -> Iterator[Cell]:
    """All cells of the grid, and the references that systems have of their own."""
    cells = grid.expand(resolved, resolve, known=known).cells
    yield from cells
    seen = {cell.id for cell in cells}
    systems = {cell.system for cell in cells}
    labels = dict.fromkeys(v for k, v in resolved.references.items() if k in systems)
    for cell in cells:
        if resolved.reference != "none" and fits(_fields(cell), resolved.reference):
            for label in labels:
                other, _ = environment.variant(cell, label)
                if other.id not in seen:
                    seen.add(other.id)
                    yield other


def _fields(cell: Cell) -> dict[str, object]:
    return dict(vars(cell))
