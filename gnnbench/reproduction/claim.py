"""The claims of the papers as data: the statement, how it is judged, and by which rows.

There is one TOML file for each paper. Ids and numbers are those of the paper; a number that the
paper does not print appears nowhere. ``[[claim]]`` tables have the fields of :class:`Claim`. A
table of ``points`` has the fields in which one number differs from the others of its claim.
"""

from __future__ import annotations

import math
import tomllib
import warnings
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.reproduction.formulas import FORMULAS
from gnnbench.reproduction.measures import MEASURES
from gnnbench.reproduction.multi_machine import MULTI_MACHINE_MEASURES
from gnnbench.reproduction.time_ratios import TIME_MEASURES

PAPERS = ("fastgl", "zero-copy", "pgsampler", "gnnlab", "fastsample")
DEPRECATED_KEYS = {"beside": "versus", "beside_rows": "versus_rows"}
UPTO_TOLERANCE = 0.05  # how far below "up to X" the best point may remain
Bounds = tuple[float, float]
PaperNumber = float | tuple[float, float]
Value = str | int | float


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class PointFields(_Strict):
    """The fields of a point. A table of ``points`` sets some of them.

    ``measure``    name in ``gnnbench.reproduction.measures``, ``time_ratios``, ``formulas`` (needs
                   no run) or ``multi_machine`` (then ``of`` and ``versus`` are systems of
                   ``machines.csv`` and ``rows`` are its columns)
    ``of``         label (``gnnbench.analysis.labels``) of the cells
    ``versus``     label of the cells to compare with; ``beside`` is its deprecated name
    ``by``         ``ratio`` (``of`` over ``versus``) or ``difference`` (``of`` less ``versus``)
    ``versus_rows`` columns in which the cells of ``versus`` differ from ``rows``, such as the graph
    ``along``      an axis or ``SYSTEM.PATH``: compare each value with the next one, by ``by``.
                   With ``versus`` the compared numbers are those of the pairs, and two paths are
                   the axes of ``of`` and of ``versus``
    ``along_with`` columns that change together with that axis, such as the graph
    ``than``       labels ``of`` and ``versus`` of other pairs: the number is a ratio over theirs
    ``than_rows``  columns in which those pairs differ from ``rows``, such as the graph; without
                   ``than`` their labels are the same
    ``over``       a column, such as ``seed``: the mean over cells that differ in it is one number
    ``rows``       columns of ``cells.csv`` and their values; ``dataset`` is the graph's name,
                   whether real or a twin of any scale
    ``as_printed`` columns with the paper's values. Rows that differ count only where there are no
                   others, and leave the claim unclear
    ``nodes``      smallest number of nodes of the graph
    ``full_batch`` batch size on the whole graph; a twin at scale s has s times as many seeds
    ``arguments``  arguments of a formula
    ``values``     the paper's numbers by graph, or graph and model (``"products gcn"``): shown next
                   to the measured ones, and not judged
    ``number``     the paper's number, or [from, to], in the unit of the measure
    ``tolerance``  accepted deviation: absolute, for ``upto`` relative
    ``least``, ``most``  bounds where the paper prints no number
    """

    measure: str = ""
    of: str = ""
    versus: str = Field("", validation_alias=AliasChoices("versus", "beside"))
    by: Literal["", "ratio", "difference"] = ""
    along: str = ""
    along_with: list[str] = []
    than: dict[Literal["of", "versus"], str] = {}
    than_rows: dict[str, Value | list[Value]] = {}
    over: str = ""
    versus_rows: dict[str, Value | list[Value]] = Field(
        {}, validation_alias=AliasChoices("versus_rows", "beside_rows")
    )
    rows: dict[str, Value | list[Value]] = {}
    as_printed: dict[str, Value] = {}
    nodes: int = 0
    full_batch: Annotated[int, Field(ge=0)] = 0
    arguments: list[int | float] = []
    values: dict[str, float] = {}
    number: PaperNumber | None = None
    tolerance: Annotated[float, Field(ge=0)] = 0.0
    least: float | None = None
    most: float | None = None


class ClaimPoint(PointFields):
    """One number of a claim: how it is measured, and the paper's value."""

    @model_validator(mode="after")
    def _check_combination(self) -> ClaimPoint:
        if self.measure and self.measure not in FORMULAS:
            known = {*MEASURES, *TIME_MEASURES, *MULTI_MACHINE_MEASURES, *FORMULAS}
            if self.measure not in known:
                hint = names.suggestion(self.measure, known)
                raise ValueError(f"unknown measure '{self.measure}'; {hint}")
            if not self.of:
                raise ValueError("a measure needs 'of', the label of its cells")
        if bool(self.by) != bool(self.versus or self.along):
            raise ValueError("'by' requires 'versus' or 'along', and each of them requires 'by'")
        several = MULTI_MACHINE_MEASURES.get(self.measure)
        if several is not None and bool(self.versus) != several.needs_two:
            raise ValueError("a measure of two systems needs 'versus', and no other measure has it")
        if self.measure in TIME_MEASURES and not (self.versus and self.by == "ratio"):
            raise ValueError("times are judged as ratios: give 'versus' and by = \"ratio\"")
        if self.over and (self.along or self.measure in TIME_MEASURES):
            raise ValueError("'over' cannot be combined with 'along' or with times")
        if len(self.along.split()) > (2 if self.versus else 1):
            raise ValueError("'along' takes one path, or two with 'versus'")
        relative = self.than or self.than_rows
        if relative and (len(self.than) == 1 or self.along or self.by != "ratio"):
            raise ValueError("'than' needs 'of' and 'versus', by = \"ratio\" and no 'along'")
        if self.than_rows and not self.versus:
            raise ValueError("'than_rows' requires 'versus'")
        if self.along_with and not self.along:
            raise ValueError("'along_with' requires 'along'")
        if self.versus_rows and not self.versus:
            raise ValueError("'versus_rows' requires 'versus'")
        return self

    def expected(self, kind: str) -> Bounds:
        """The range in which the number must lie for a claim of this kind to hold."""
        low, high = -math.inf, math.inf
        if self.number is not None:
            first, last = self.number if isinstance(self.number, tuple) else (self.number,) * 2
            if kind == "upto":
                low = last * (1 - (self.tolerance or UPTO_TOLERANCE))
            else:
                low, high = first - self.tolerance, last + self.tolerance
        low = low if self.least is None else self.least
        return low, high if self.most is None else self.most


class Point(PointFields):
    """A point of a claim. ``improved``: fields that differ in its improved variant."""

    improved: PointFields = PointFields()


class Claim(ClaimPoint):
    """A statement of a paper.

    ``id``       ``PAPER/TABLE-OR-FIGURE.aN``
    ``source``   section, table or figure of the paper
    ``says``     the statement, one sentence. Names between backticks are code, here and in
                 ``note``, ``because`` and ``lacks``
    ``unit``     of the numbers: ``x`` a ratio, ``%`` a share printed as percent (a difference of
                 shares is printed in points), ``points`` a difference of shares, ``B`` bytes in GB,
                 ``iB`` bytes in MiB or GiB, ``NO|YES`` words for 0 and 1; any other word as it is
    ``kind``     ``value``, ``range``, ``order``, ``bound``: every point must lie within the bounds;
                 ``upto``: the best point; ``mean``: the mean of the points
    ``port``     what carries over to other hardware: P the number, S its order, H nothing
    ``of_graph`` whether the number is a property of the named graph, so that a twin can neither
                 confirm nor refute it
    ``fitted``   graphs whose twins were fitted to this number
    ``device``   of the rows, unless ``rows`` has another: cpu, cuda, or "" for either
    ``gpus``     GPUs that the runs need; with fewer the claim is not checkable
    ``runs``     ``EXPERIMENT PROFILE`` of the runs that measure it
    ``cause``    ``rates``: a refuted claim is reported with this machine's link and memory rates
    ``points``   fields of each number, for a claim of several
    ``improved`` fields that differ where the same idea is implemented as well as this suite can;
                 they count where the published one is contradicted. Those of a point come on top
    ``cells``    number of cells of the paper's grid, for a claim about all of them
    ``faster_rival`` whether the rival is faster than the paper's: the claim can hold, and failing
                 does not refute it
    ``verdict``  ``not checkable here`` or ``ill-posed``, with the reason in ``because``
    ``lacks``    what has to be built to measure it
    ``note``     how the judged number differs from the claimed one
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
    points: list[Point] = []
    improved: PointFields | None = None
    cells: Annotated[int, Field(ge=0)] = 0
    gpus: Annotated[int, Field(ge=1)] = 1
    faster_rival: bool = False
    verdict: Literal["", "not checkable here", "ill-posed"] = ""
    because: str = ""
    lacks: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _check_judgeable(self) -> Claim:
        if bool(self.verdict) != bool(self.because):
            raise ValueError("'verdict' and 'because' belong together")
        if sum(map(bool, (self.verdict, self.lacks, self.measure))) != 1:
            raise ValueError("a claim needs exactly one of 'measure', 'lacks' and 'verdict'")
        needs_run = self.measure and self.measure not in {*FORMULAS, *MULTI_MACHINE_MEASURES}
        if needs_run and not self.runs:
            raise ValueError("a measured claim needs 'runs', the runs that measure it")
        variant = self.improved_variant()
        if variant is not None and not self.measure:
            raise ValueError("'improved' requires 'measure'")
        points = [*self.claim_points(), *(variant.claim_points() if variant else ())]
        for point in points if self.measure else ():
            if not any(map(math.isfinite, point.expected(self.kind))):
                raise ValueError("the expected value is missing; give 'number', 'least' or 'most'")
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
    def has_words(self) -> bool:
        """Whether the numbers 0 and 1 are printed as words."""
        return "|" in self.unit

    @property
    def shape_bounds(self) -> Bounds | None:
        """The range in which the order is right although the size is not.

        None unless the claim is about ratios above 1 whose size need not carry over.
        """
        points = self.claim_points()
        expected = [p.expected(self.kind) for p in points]
        if self.port != "S" or not all(p.by == "ratio" for p in points):
            return None
        if all(low >= 1 and (low, high) != (1, math.inf) for low, high in expected):
            return 1.0, math.inf
        return None

    @property
    def is_absolute_size(self) -> bool:
        """Whether only a size is claimed, no ratio and no order: it depends on the hardware."""
        ratios = any(p.by == "ratio" for p in self.claim_points())
        return self.port == "S" and self.kind != "order" and not ratios

    def claim_points(self) -> list[ClaimPoint]:
        """All points, completed by the fields that they have in common."""
        shared = self.model_dump(exclude_unset=True, include=_POINT_FIELDS)
        result = []
        for point in self.points or [Point()]:
            own = point.model_dump(exclude_unset=True, include=_POINT_FIELDS)
            rows = {**self.rows, **point.rows}
            result.append(ClaimPoint.model_validate({**shared, **own, "rows": rows}))
        return result

    def improved_variant(self) -> Claim | None:
        """The claim about the improved variant, None if it has none."""
        if self.improved is None and not any(p.improved.model_fields_set for p in self.points):
            return None
        points = []
        for point in self.points or [Point()]:
            layers = [
                layer.model_dump(exclude_unset=True, include=_POINT_FIELDS)
                for layer in (point, self.improved or PointFields(), point.improved)
            ]
            rows = {key: value for layer in layers for key, value in layer.get("rows", {}).items()}
            fields = {key: value for layer in layers for key, value in layer.items()}
            points.append(Point.model_validate({**fields, "rows": rows}))
        return self.model_copy(update={"points": points, "improved": None})


_POINT_FIELDS = set(PointFields.model_fields)


class HardwareRates(_Strict):
    """Rates of the paper's machine: link and GPU memory in bytes per second."""

    machine: str
    link: float | None = None
    memory: float | None = None


class Paper(_Strict):
    """The file of a paper.

    ``name`` is the system's. ``remarks`` hold for many claims and are printed once. ``headlines``
    are the ids, without the paper, of the claims of its abstract. ``assertions`` are the ids of
    all its assertions, and ``exempt`` has the reason for each that has no claim. ``entries`` says
    what each table or figure shows.
    """

    name: str = ""
    title: str
    remarks: list[str] = []
    headlines: list[str] = []
    entries: dict[str, str] = {}
    assertions: list[str] = []
    exempt: dict[str, str] = {}
    rates: HardwareRates | None = None
    claim: list[Claim]


@cache
def papers() -> dict[str, Paper]:
    """All papers by name. Raises ``UsageError`` for an invalid file."""
    return {name: load(Path(__file__).with_name(f"{name}.toml")) for name in PAPERS}


def load(path: Path) -> Paper:
    """Read the file of a paper.

    Warns once for each deprecated key. Raises ``UsageError`` that names the invalid claim.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        paper = Paper.model_validate(raw)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"'{path.name}' is not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        location = first["loc"]
        in_claim = len(location) > 1 and location[0] == "claim"
        claim = raw["claim"][location[1]] if in_claim else {}
        raise UsageError(
            f"'{path.name}', claim '{claim.get('id', location)}',"
            f" {'.'.join(map(str, location[2:]))}: {first['msg'].removeprefix('Value error, ')}"
        ) from None
    tables = [table for claim in raw["claim"] for table in (claim, *claim.get("points", ()))]
    for old, new in DEPRECATED_KEYS.items():
        if any(old in table for table in tables):
            message = f"'{path.name}': the key '{old}' is deprecated; write '{new}'"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
    ids = [c.id for c in paper.claim]
    if duplicates := [i for i in dict.fromkeys(ids) if ids.count(i) > 1]:
        raise UsageError(f"'{path.name}' has the claim '{duplicates[0]}' twice; rename one of them")
    if foreign := [c.id for c in paper.claim if c.paper != path.stem]:
        raise UsageError(f"'{path.name}' has the claim '{foreign[0]}' of another paper")
    return paper


def choose(only: Collection[str] = ()) -> list[Claim]:
    """All claims, or those of the papers, figures and ids in ``only``.

    Examples: ``fastgl``, ``fastgl/table8``, ``fastgl/table8.a2``. Raises ``UsageError`` for an
    unknown name.
    """
    claims = [c for p in papers().values() for c in p.claim]
    known = {name for c in claims for name in (c.paper, c.entry, c.id)}
    only = {name.lower() for name in only}
    for name in sorted(only - known):
        paper, slash, _ = name.partition("/")
        if slash and paper in papers():
            names.check("claim", name, known)
        names.check("paper", paper, papers())
    return [c for c in claims if not only or {c.paper, c.entry, c.id} & set(only)]


@cache
def sizes() -> dict[str, list[str]]:
    """The runs of each size (``smoke``, ``laptop``, ...) as ``EXPERIMENT PROFILE``, in order."""
    text = Path(__file__).with_name("plans.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
