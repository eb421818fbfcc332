"""A paper's table or figure by its name, ``fastgl/table8``: the runs that measure it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from gnnbench.config import experiment
from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.reproduction.claim import PAPERS, choose, sizes
from gnnbench.reproduction.multi_machine import ACROSS, COMMAND

_NUMBER = re.compile(r"\d+[a-z]?$")


@dataclass(frozen=True)
class Run:
    """``experiment`` and ``profile`` of a run, and what the profile says of itself."""

    experiment: str
    profile: str

    @property
    def description(self) -> str:
        """As the definition has it."""
        return experiment.load(self.experiment).profiles[self.profile].description


@dataclass(frozen=True)
class Figure:
    """``name``, where the paper has it, the ids of its claims, and the runs that measure them."""

    name: str
    source: str
    claims: tuple[str, ...]
    runs: tuple[Run, ...]
    across: bool = False

    @property
    def profiles(self) -> dict[str, Run]:
        """Runs by the profile to be given: its name, with the experiment's where two share it."""
        alike = [run.profile for run in self.runs]
        return {
            run.profile if alike.count(run.profile) == 1 else f"{run.experiment}-{run.profile}": run
            for run in self.runs
        }


@cache
def figures() -> dict[str, Figure]:
    """All tables and figures that have claims, in the papers' order."""
    order = [run for runs in sizes().values() for run in runs]
    order += [run for claim in choose() for run in claim.runs]  # what no plan has comes last
    by: dict[str, list[str]] = {}
    for claim in choose():
        by.setdefault(claim.entry, []).append(claim.id)
    found = {}
    for name in by:
        claims = choose([name])
        runs = sorted({run for claim in claims for run in claim.runs}, key=order.index)
        found[name] = Figure(
            name,
            claims[0].source,
            tuple(c.id for c in claims),
            tuple(Run(*run.split(" ")) for run in runs),
            any(c.measure in ACROSS for c in claims),
        )
    return found


def is_one(name: str) -> bool:
    """Whether a name is to be a figure's: it begins with a paper's, and is no file."""
    paper, slash, rest = name.partition("/")
    if not (slash and rest) or paper.lower() not in PAPERS or name.endswith(".toml"):
        return False
    return not names.typed_path(name).is_file()


def find(name: str) -> Figure:
    """The figure of a name, or the one that it is told with: Fig. 14b with "Figs. 14a and 14b".

    Raises ``UsageError``.
    """
    known = figures()
    name = name.lower()
    paper, _, rest = name.partition("/")
    kind, number = rest.rstrip("0123456789abcdef") or rest, _NUMBER.search(rest)
    if name not in known and number is not None:
        told = re.compile(rf"{kind}[^;]*?\b{number[0]}\b", re.IGNORECASE)
        within = [
            f for f in known.values() if f.name.startswith(f"{paper}/") and told.search(f.source)
        ]
        if len(within) == 1:
            return within[0]
    names.check("figure", name, known)
    return known[name]


def run_of(name: str, profile: str = "") -> Run:
    """The run of a figure that a profile names, or the only one.

    Raises ``UsageError`` for an unknown figure or profile, where there are several and none is
    named, and where there is none.
    """
    figure = find(name)
    known = figure.profiles
    if not known:
        if figure.across:
            raise UsageError(f"'{name}' is of several machines; '{COMMAND}' measures it, as root")
        raise UsageError(f"no run measures '{name}'; 'gnnbench verdicts --paper {name}' says why")
    if profile:
        if profile not in known:
            near = names.nearest(profile, known)
            hint = f"; did you mean '{near}'?" if near else ";"
            raise UsageError(f"unknown profile '{profile}'{hint} '{name}' has {', '.join(known)}")
        return known[profile]
    if len(known) > 1:
        raise UsageError(
            f"'{name}' is measured by several runs; give as --profile one of"
            f" {', '.join(known)} ('gnnbench list {name}' says what each is)"
        )
    return next(iter(known.values()))
