"""What a run of several machines comes to: times over lives, bytes and rounds as counted."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnnbench.analysis.table_layout import Part
from gnnbench.core.units import significant, time
from gnnbench.schema.reader import Run
from gnnbench.statistics.estimates import NOTHING, Estimate, geometric_interval

Row = Mapping[str, Any]
SETTING = ("dataset", "machines", "rate_gbit_s", "delay_s", "fanouts", "batch_size", "hidden")
SYSTEMS = ("vanilla", "hybrid", "hybrid-fused", "distdgl")
QUIET = 0.1  # cores that others may use before a life's times are called noisy
MOST_GAP = 1e-4  # between equal losses, which are added up in another order


@dataclass(frozen=True)
class Setting:
    """Rows of one graph, number of machines and link."""

    key: tuple[Any, ...]
    rows: Sequence[Row]

    def __getattr__(self, name: str) -> Any:
        if name in SETTING:
            return self.key[SETTING.index(name)]
        raise AttributeError(name)

    def of(self, system: str) -> list[Row]:
        """Rows of a system."""
        return [row for row in self.rows if row["system"] == system]

    def times(self, system: str, made_of: Callable[[Row], float]) -> dict[int, float]:
        """By life the median over its measured epochs of the slowest rank's time."""
        slowest: dict[tuple[int, int], float] = {}
        for row in self.of(system):
            if not row["warmup"]:
                key = (row["life"], row["order"])
                slowest[key] = max(slowest.get(key, 0.0), made_of(row))
        lives: dict[int, list[float]] = {}
        for (life, _), value in slowest.items():
            lives.setdefault(life, []).append(value)
        return {life: statistics.median(values) for life, values in lives.items()}

    def time(self, system: str, column: str) -> Estimate:
        """Geometric mean over lives of a column's times."""
        return geometric_interval(list(self.times(system, lambda r: float(r[column])).values()))

    def ratio(self, first: str, second: str, column: str = "wall_s") -> Estimate:
        """The first's time over the second's: geometric mean over lives that have both."""
        a, b = (self.times(system, lambda r: float(r[column])) for system in (first, second))
        both = [a[life] / b[life] for life in sorted(a.keys() & b.keys()) if b[life] > 0]
        return geometric_interval(both) if both else NOTHING

    def a_step(self, system: str, column: str, over_ranks: bool = True) -> float | None:
        """A count a step: of all ranks together, or of one; None where it was not counted."""
        rows = [row for row in self.of(system) if row[column] is not None]
        if not rows:
            return None
        steps = sum(row["steps"] for row in rows)
        ranks = self.machines if over_ranks else 1
        return float(sum(row[column] for row in rows) * ranks / steps)

    def gap(self) -> float | None:
        """The largest difference of a step's loss between vanilla and hybrid."""
        gaps = [row["loss_gap"] for row in self.rows if row["loss_gap"] is not None]
        return max(gaps, default=None)

    def noisy(self) -> float:
        """Share of lives in which others used the machine."""
        lives = {(row["life"], row["system"]): row["others_cores"] for row in self.rows}
        return statistics.fmean(cores > QUIET for cores in lives.values()) if lives else 0.0


def settings(rows: Iterable[Row]) -> list[Setting]:
    """Rows by what is compared within them, in order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in SETTING), []).append(row)
    return [Setting(key, own) for key, own in sorted(found.items(), key=lambda item: item[0])]


def timed(found: Iterable[Setting]) -> list[Setting]:
    """Those in which epochs were measured; the others are for counts alone."""
    return [s for s in found if any(not row["warmup"] for row in s.rows)]


def steps_of(found: Iterable[Setting]) -> str:
    """What is timed: ``epoch of 6 steps``."""
    steps = {row["steps"] for s in found for row in s.rows if not row["warmup"]}
    return f"epoch of {', '.join(map(str, sorted(steps)))} steps"


def where(setting: Setting) -> str:
    """``2 machines, 1 Gbit/s``."""
    delay = f", {setting.delay_s * 1e3:g} ms later" if setting.delay_s else ""
    return f"{setting.machines} machines, {setting.rate_gbit_s:g} Gbit/s{delay}"


def tables(rows: Sequence[Row]) -> list[Part]:
    """Times, counts a step, and the rounds of each number of hops."""
    every = settings(rows)
    measured = timed(every)
    return [_times(measured), _counts(measured), _rounds(every)]


def _times(found: Sequence[Setting]) -> Part:
    lines = []
    for setting in found:
        for system in filter(setting.of, SYSTEMS):
            walls = setting.time(system, "wall_s")
            over = setting.ratio("vanilla", system)
            sampling = setting.ratio("vanilla", system, "sample_s")
            lines.append(
                {
                    "machines": str(setting.machines),
                    "link": f"{setting.rate_gbit_s:g} Gbit/s",
                    "name": system,
                    "steps": str(max(r["steps"] for r in setting.of(system) if not r["warmup"])),
                    "epoch": time(walls.value),
                    "+-": time((walls.high - walls.low) / 2, 2) if walls.n > 1 else "",
                    "sample": time(setting.time(system, "sample_s").value),
                    "features": time(setting.time(system, "features_s").value),
                    "vanilla's epoch over": _ratio(over, system),
                    "vanilla's sampling over": _ratio(sampling, system),
                    "lives": str(walls.n),
                    "noisy": f"{setting.noisy():.0%}",
                }
            )
    heads = (
        "machines", "link", "name", "steps", "epoch", "+-", "sample", "features",
        "vanilla's epoch over", "vanilla's sampling over", "lives", "noisy",
    )  # fmt: skip
    return Part(heads, lines, "Times of the slowest rank")


def _ratio(found: Estimate, system: str) -> str:
    if system == "vanilla" or not found.n:
        return ""
    return (
        f"{found.value:.3g} [{found.low:.3g}, {found.high:.3g}]"
        if found.n > 1
        else (f"{found.value:.3g}")
    )


def _counts(found: Sequence[Setting]) -> Part:
    lines = []
    for setting in found:
        for system in filter(setting.of, SYSTEMS):
            own = setting.of(system)
            counts = {
                "rounds": setting.a_step(system, "rounds", over_ranks=False),
                "edges": setting.a_step(system, "sampled_edges"),
                "input nodes": setting.a_step(system, "input_nodes"),
            }
            moved = {
                "sampling kB": setting.a_step(system, "sample_bytes"),
                "features kB": setting.a_step(system, "features_bytes"),
                "reduced kB": setting.a_step(system, "reduced_bytes"),
                "on links kB": setting.a_step(system, "link_sent_bytes"),
            }
            ends = [r for r in own if r["epoch"] == max(r["epoch"] for r in own)]
            lines.append(
                {
                    "machines": str(setting.machines),
                    "link": f"{setting.rate_gbit_s:g} Gbit/s",
                    "name": system,
                    **{k: "" if v is None else f"{v:,.6g}" for k, v in counts.items()},
                    **{k: "" if v is None else f"{v / 1e3:,.0f}" for k, v in moved.items()},
                    "first loss": f"{min(own, key=lambda r: r['epoch'])['first_loss']:.4f}",
                    "last loss": f"{statistics.fmean(r['last_loss'] for r in ends):.4f}",
                }
            )
    heads = list(lines[0]) if lines else ["machines"]
    return Part(heads, lines, "Counts a step, of all ranks together")


def _rounds(found: Sequence[Setting]) -> Part:
    hops: dict[tuple[int, str], set[float]] = {}
    for setting in found:
        for row in setting.rows:
            if row["rounds"] is not None and row["system"] != "distdgl":
                hops.setdefault((row["hops"], row["system"]), set()).add(
                    row["rounds"] / row["steps"]
                )
    lines = [
        {"hops": str(count), "name": system, "rounds a step": ", ".join(map(significant, told))}
        for (count, system), told in sorted(hops.items())
    ]
    return Part(("hops", "name", "rounds a step"), lines, "Rounds by number of hops")


def copies(rows: Iterable[Row]) -> Mapping[float, Estimate]:
    """By a link's rate what copies over it came to (Gbit/s)."""
    found: dict[float, dict[Any, float]] = {}
    for row in rows:
        if row["copy_gbit_s"] is not None:
            key = (row["machines"], row["life"])
            found.setdefault(row["rate_gbit_s"], {})[key] = row["copy_gbit_s"]
    return {rate: geometric_interval(list(own.values())) for rate, own in sorted(found.items())}


def _of_lives(rows: Iterable[Row]) -> float:
    """How far last losses of equal epochs lie apart: lives and links draw the same."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row["system"] != "distdgl":
            key = tuple(row[name] for name in ("dataset", "machines", "fanouts", "epoch"))
            found.setdefault(key, []).append(row["last_loss"])
    return max((max(losses) - min(losses) for losses in found.values()), default=0.0)


def remarks(run: Run) -> list[str]:
    """What stands below the tables: copies, losses, equality of work, noise."""
    told = [
        f"A copy between two machines at {rate:g} Gbit/s came to {found.value:.3f}"
        f" [{found.low:.3f}, {found.high:.3f}] Gbit/s of payload ({found.n} copies)."
        for rate, found in copies(run.machines).items()
    ]
    gaps = [gap for setting in settings(run.machines) if (gap := setting.gap()) is not None]
    if gaps:
        told.append(
            f"Losses of hybrid and vanilla differ by {max(gaps):.2g} at most, step by step; those"
            f" of gnnbench's lives by {_of_lives(run.machines):.2g}."
        )
    for row in run.record.get("work", []):
        middle, low, high = (100 * value for value in row["difference"])
        what = "edges" if row["of"] == "edges" else "input nodes"
        told.append(
            f"{row['machines']} machines: DistDGL's batches have {middle:+.2f} % [{low:+.2f},"
            f" {high:+.2f}] {what} against gnnbench's ({row['distdgl']['n']} and"
            f" {row['gnnbench']['n']} batches)."
        )
    for row in run.failed_lives:
        link = f"{row['machines']} machines, {row['rate_gbit_s']:g} Gbit/s"
        told.append(
            f"Life {row['life'] + 1} of {row['system']} ({link}) failed, {row['status']}:"
            f" {row['reason']}."
        )
    for count, made in run.record.get("distdgl_partitions", {}).items():
        told.append(
            f"{count} machines: DGL's METIS cuts {made['cut']:,} of {made['edges']:,} edges."
        )
    return told
