"""Look up a paper's table or figure, such as ``fastgl/table8``, and the runs that measure it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from gnnbench.config import experiment
from gnnbench.core import names
from gnnbench.reproduction.claim import PAPERS, choose, papers, sizes
from gnnbench.reproduction.multi_machine import MULTI_MACHINE_MEASURES

_NUMBER = re.compile(r"\d+[a-z]?$")


@dataclass(frozen=True)
class FigureRun:
    """Experiment and profile of a run."""

    experiment: str
    profile: str

    @property
    def description(self) -> str:
        """The profile's description in the definition."""
        return experiment.load(self.experiment).profiles[self.profile].description


@dataclass(frozen=True)
class PaperFigure:
    """A table or figure: its source and what it shows, the ids of its claims, and their runs."""

    name: str
    source: str
    title: str
    claims: tuple[str, ...]
    runs: tuple[FigureRun, ...]
    is_multi_machine: bool = False

    @property
    def profiles(self) -> dict[str, FigureRun]:
        """Runs by profile; ``EXPERIMENT-PROFILE`` where two experiments have the same one."""
        names = [run.profile for run in self.runs]
        return {
            run.profile if names.count(run.profile) == 1 else f"{run.experiment}-{run.profile}": run
            for run in self.runs
        }


@cache
def figures() -> dict[str, PaperFigure]:
    """All tables and figures that have claims, in the papers' order."""
    order = [run for runs in sizes().values() for run in runs]
    order += [run for claim in choose() for run in claim.runs]  # runs of no plan come last
    result = {}
    for name in dict.fromkeys(claim.entry for claim in choose()):
        claims = choose([name])
        runs = sorted({run for claim in claims for run in claim.runs}, key=order.index)
        result[name] = PaperFigure(
            name,
            claims[0].source,
            papers()[claims[0].paper].entries.get(name.partition("/")[2], ""),
            tuple(c.id for c in claims),
            tuple(FigureRun(*run.split(" ")) for run in runs),
            any(c.measure in MULTI_MACHINE_MEASURES for c in claims),
        )
    return result


def is_one(name: str) -> bool:
    """Whether a name has the form PAPER/FIGURE and is not a file."""
    paper, slash, rest = name.partition("/")
    if not (slash and rest) or paper.lower() not in PAPERS or name.endswith(".toml"):
        return False
    return not names.typed_path(name).is_file()


def find(name: str) -> PaperFigure:
    """The figure with this name, or the only one whose source mentions it.

    Example: ``fig14b`` gives the entry with the source "Figs. 14a and 14b". Raises ``UsageError``.
    """
    known = figures()
    name = name.lower()
    paper, _, rest = name.partition("/")
    kind, number = rest.rstrip("0123456789abcdef") or rest, _NUMBER.search(rest)
    if name not in known and number is not None:
        mention = re.compile(rf"{kind}[^;]*?\b{number[0]}\b", re.IGNORECASE)
        matches = [
            f for f in known.values() if f.name.startswith(f"{paper}/") and mention.search(f.source)
        ]
        if len(matches) == 1:
            return matches[0]
    names.check("figure", name, known)
    return known[name]
