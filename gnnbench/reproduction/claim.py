"""A claim of a paper as a value: what is said, how it is judged, by which rows.

One TOML file a paper lies beside this one. Ids and numbers are those of the papers: what a paper's
text does not print stands nowhere. ``[[claim]]`` tables have the fields of :class:`Claim`; a table
of ``points`` has those fields of the claim that differ from point to point.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.reproduction.formulas import FORMULAS
from gnnbench.reproduction.measures import MEASURES
from gnnbench.reproduction.multi_machine import ACROSS
from gnnbench.reproduction.times import TIMES

PAPERS = ("fastgl", "zero-copy", "pgsampler", "gnnlab", "fastsample")
UPTO = 0.05  # how far below "up to X" the best of the points may stay
Bounds = tuple[float, float]
Number = float | tuple[float, float]
Value = str | int | float


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Point(_Strict):
    """What one number is of, and what the paper has it to be.

    ``measure``    of ``gnnbench.reproduction.measures``, a formula that needs no run, or one of
    several
                   machines (``gnnbench.reproduction.multi_machine``): ``of`` and ``beside`` are
                   systems of
                   ``machines.csv`` then, ``rows`` columns of it
    ``of``         label (``gnnbench.analysis.labels``) of the cells that it is of
    ``beside``     label of those that it is held against: ``of`` over, or less, that
    ``by``         ``ratio`` or ``difference`` of the two
    ``beside_rows`` columns that those must have otherwise than ``rows`` says: another graph, say
    ``along``      an axis or ``SYSTEM.PATH``: steps from each value of it to the next, as ``by``;
                   with ``beside``: steps of what the two make, the later over, or less, the
                   earlier; two paths are that of ``of`` and that of ``beside``
    ``along_with`` columns that change together with that axis: the graph whose width it is, say
    ``over``       a column, ``seed`` say: cells alike in all else make one number, their mean
    ``rows``       columns of ``cells.csv`` and what they must be; ``dataset`` is the graph's name
                   alone, whether real or a twin of any scale
    ``as_printed`` columns as the paper has them: rows that differ are shown where there are no
                   others, and leave the claim unclear
    ``nodes``      the least number of nodes that the graph must have
    ``full_batch`` seeds of a batch on the whole graph: on a twin at scale s it has s times as many
    ``arguments``  of a formula
    ``values``     what the paper prints of each graph, or graph and model (``"products gcn"``):
                   shown beside what is measured of it, and not judged by
    ``number``     what the paper prints, or [from, to]; in the measure's unit
    ``tolerance``  how far from it, absolute (of ``upto`` relative), still agrees
    ``least``, ``most``  bounds where the paper prints no number; they hold as they stand
    """

    measure: str = ""
    of: str = ""
    beside: str = ""
    by: Literal["", "ratio", "difference"] = ""
    along: str = ""
    along_with: list[str] = []
    over: str = ""
    beside_rows: dict[str, Value | list[Value]] = {}
    rows: dict[str, Value | list[Value]] = {}
    as_printed: dict[str, Value] = {}
    nodes: int = 0
    full_batch: Annotated[int, Field(ge=0)] = 0
    arguments: list[Value] = []
    values: dict[str, float] = {}
    number: Number | None = None
    tolerance: Annotated[float, Field(ge=0)] = 0.0
    least: float | None = None
    most: float | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Point:
        if self.measure and self.measure not in FORMULAS:
            known = {*MEASURES, *TIMES, *ACROSS, *FORMULAS}
            if self.measure not in known:
                hint = names.suggestion(self.measure, known)
                raise ValueError(f"unknown measure '{self.measure}'; {hint}")
            if not self.of:
                raise ValueError("a measure needs 'of', the label of the cells that it is of")
        if bool(self.by) != bool(self.beside or self.along):
            raise ValueError("'by' belongs to 'beside' or 'along', and they to it")
        if self.measure in ACROSS and bool(self.beside) != ACROSS[self.measure].of_two:
            raise ValueError("'beside' belongs to a measure of two systems, and it to that")
        if self.measure in TIMES and not (self.beside and self.by == "ratio"):
            raise ValueError("times are judged as ratios: give 'beside' and by = \"ratio\"")
        if self.over and (self.along or self.measure in TIMES):
            raise ValueError("'over' makes one number of cells: without 'along', and not of times")
        if len(self.along.split()) > (2 if self.beside else 1):
            raise ValueError("'along' has a path, or with 'beside' one for either")
        if self.along_with and not self.along:
            raise ValueError("'along_with' belongs to 'along', which is not given")
        if self.beside_rows and not self.beside:
            raise ValueError("'beside_rows' are those of 'beside', which is not given")
        return self

    def expected(self, kind: str) -> Bounds:
        """From where to where the number may lie for the claim to hold."""
        low, high = -math.inf, math.inf
        if self.number is not None:
            first, last = self.number if isinstance(self.number, tuple) else (self.number,) * 2
            if kind == "upto":
                low = last * (1 - (self.tolerance or UPTO))
            else:
                low, high = first - self.tolerance, last + self.tolerance
        low = low if self.least is None else self.least
        return low, high if self.most is None else self.most

    @property
    def neutral(self) -> float:
        """What two equals give: 1 for a ratio, 0 for a difference."""
        return 0.0 if self.by == "difference" else 1.0


class Claim(Point):
    """A row of the papers' claims.

    ``id``       ``PAPER/TABLE-OR-FIGURE.aN``
    ``source``   where the paper has it
    ``says``     the claim, in a sentence
    ``unit``     of the printed numbers: ``x`` a ratio, ``%`` a share told as percent, ``B``
    ``kind``     ``value``, ``range``, ``upto``, ``mean``, ``order``, ``bound``: within
                 the bounds is to lie every point, of ``upto`` the best one, of ``mean`` their mean
    ``port``     P does not depend on hardware, S its shape does not, H one machine's number
    ``of_graph`` the number is one of the named graph: a twin can neither confirm nor refute it
    ``fitted``   graphs whose twins were fitted to this very number
    ``device``   of the rows, unless ``rows`` says otherwise: cpu, cuda, or "" for either
    ``gpus``     how many GPUs its runs take: of fewer it is not checkable
    ``runs``     ``EXPERIMENT PROFILE`` that measure it
    ``cause``    ``rates``: a refuted claim is told beside what link and memory do here
    ``points``   where it is of several numbers
    ``cells``    how many cells the paper's grid has, where it is claimed of every one of them
    ``verdict``  ``not checkable here`` or ``ill-posed``, and ``because`` why; or "": judged
    ``lacks``    what is not built that would measure it
    ``note``     how what is judged differs from what is claimed, or a word on either
    """

    id: Annotated[str, Field(pattern=r"^[a-z-]+/[a-z0-9.-]+$")]
    source: Annotated[str, Field(min_length=1)]
    says: Annotated[str, Field(min_length=1)]
    unit: str = ""
    kind: Literal["value", "range", "upto", "mean", "order", "bound"] = "value"
    port: Literal["P", "S", "H"] = "P"
    of_graph: bool = False
    fitted: list[str] = []
    device: Literal["", "cpu", "cuda"] = ""
    runs: list[Annotated[str, Field(pattern=r"^\S+ \S+$")]] = []
    cause: Literal["", "rates"] = ""
    points: list[dict[str, Any]] = []
    cells: Annotated[int, Field(ge=0)] = 0
    gpus: Annotated[int, Field(ge=1)] = 1
    verdict: Literal["", "not checkable here", "ill-posed"] = ""
    because: str = ""
    lacks: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _is_judged_or_says_why(self) -> Claim:
        if bool(self.verdict) != bool(self.because):
            raise ValueError("'verdict' and 'because' belong together")
        if sum(map(bool, (self.verdict, self.lacks, self.measure))) != 1:
            raise ValueError("a claim has a measure, or lacks one, or says why there is none")
        if self.measure and self.measure not in {*FORMULAS, *ACROSS} and not self.runs:
            raise ValueError("a claim that is measured names the runs that do")
        for point in self.numbers() if self.measure else ():
            if not any(map(math.isfinite, point.expected(self.kind))):
                raise ValueError("neither a number nor a bound says what is expected")
        return self

    @property
    def paper(self) -> str:
        """``fastgl`` of ``fastgl/table4.a1``."""
        return self.id.partition("/")[0]

    @property
    def entry(self) -> str:
        """``fastgl/table4`` of ``fastgl/table4.a1``."""
        return self.id.rpartition(".")[0] or self.id

    @property
    def shape(self) -> Bounds | None:
        """Where the order is right though the size is not: of ratios that need not carry over."""
        expected = [p.expected(self.kind) for p in self.numbers()]
        if self.port != "S" or not all(p.by == "ratio" for p in self.numbers()):
            return None
        if all(low >= 1 and (low, high) != (1, math.inf) for low, high in expected):
            return 1.0, math.inf
        return None

    @property
    def of_a_machine(self) -> bool:
        """Whether a size alone is claimed, no ratio and no order: other hardware has another."""
        ratios = any(p.by == "ratio" for p in self.numbers())
        return self.port == "S" and self.kind != "order" and not ratios

    def numbers(self) -> list[Point]:
        """Its points, each with what they have in common."""
        common = {k: v for k, v in self.model_dump(exclude_unset=True).items() if k in _POINT}
        return [
            Point(**{**common, **own, "rows": {**self.rows, **own.get("rows", {})}})
            for own in self.points or [{}]
        ]


_POINT = frozenset(Point.model_fields)


class Rates(_Strict):
    """What the paper's machine had: bytes a second of the link and of the GPU's memory."""

    machine: str
    link: float | None = None
    memory: float | None = None


class Paper(_Strict):
    """A paper's file.

    ``assertions`` are the ids, without the paper, of all that it asserts; ``exempt`` says of those
    that have no claim why not.
    """

    title: str
    assertions: list[str] = []
    exempt: dict[str, str] = {}
    rates: Rates | None = None
    claim: list[Claim]


@cache
def papers() -> dict[str, Paper]:
    """All papers by name. Raises ``UsageError`` for a file that is not as described."""
    return {name: load(Path(__file__).with_name(f"{name}.toml")) for name in PAPERS}


def load(path: Path) -> Paper:
    """One paper's file. Raises ``UsageError`` naming the claim at fault."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        found = Paper.model_validate(raw)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"'{path.name}' is not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = first["loc"]
        at = raw["claim"][where[1]] if len(where) > 1 and where[0] == "claim" else {}
        raise UsageError(
            f"'{path.name}', claim '{at.get('id', where)}', {'.'.join(map(str, where[2:]))}:"
            f" {first['msg'].removeprefix('Value error, ')}"
        ) from None
    ids = [c.id for c in found.claim]
    if twice := [i for i in dict.fromkeys(ids) if ids.count(i) > 1]:
        raise UsageError(f"'{path.name}' has the claim '{twice[0]}' twice; give one another number")
    if astray := [c.id for c in found.claim if c.paper != path.stem]:
        raise UsageError(f"'{path.name}' has the claim '{astray[0]}', which is another paper's")
    return found


def choose(only: Collection[str] = ()) -> list[Claim]:
    """All claims, or those whose id is, or begins at a whole part with, one of ``only``.

    ``fastgl``, ``fastgl/table8`` and ``fastgl/table8.a2`` are such. Raises ``UsageError``.
    """
    every = [c for p in papers().values() for c in p.claim]
    known = {name for c in every for name in (c.paper, c.entry, c.id)}
    only = {name.lower() for name in only}
    for name in sorted(only - known):
        if "/" in name:
            names.check("claim", name, known)
        names.check("paper", name, papers())
    return [c for c in every if not only or {c.paper, c.entry, c.id} & set(only)]


@cache
def sizes() -> dict[str, list[str]]:
    """The runs of each size: ``EXPERIMENT PROFILE``, in the order in which they are made."""
    text = Path(__file__).with_name("plans.toml").read_text(encoding="utf-8")
    found: dict[str, list[str]] = tomllib.loads(text)
    return found
