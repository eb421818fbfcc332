"""Results of runs of several machines: times over trials, counted bytes and rounds."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.table_layout import TextTable
from gnnbench.core.units import significant, time
from gnnbench.schema import MachineRow
from gnnbench.schema.reader import Run
from gnnbench.statistics.estimates import NOTHING, Estimate, geometric_interval

SYSTEMS = ("vanilla", "hybrid", "hybrid-fused", "distdgl")
MOST_OTHER_CORES = 0.1  # CPU use of other programs above which a trial is noisy
MOST_GAP = 1e-4  # between equal losses that are added in another order


@dataclass(frozen=True)
class Setting:
    """Rows of one graph, number of machines, link and model."""

    dataset: str
    machines: int
    rate_gbit_s: float
    delay_s: float
    fanouts: str
    batch_size: int
    hidden: int
    rows: Sequence[MachineRow] = ()

    def of(self, system: str) -> list[MachineRow]:
        """Rows of a system."""
        return [row for row in self.rows if row["system"] == system]

    def times(self, system: str, column: str) -> dict[int, float]:
        """Median over the measured epochs of each trial of the slowest rank's time (s)."""
        slowest: dict[tuple[int, int], float] = {}
        for row in self.of(system):
            if not row["warmup"]:
                key = (row["life"], row["order"])
                slowest[key] = max(slowest.get(key, 0.0), row[column])
        by_trial = group_by(slowest, lambda key: key[0])
        return {
            trial: statistics.median(slowest[key] for key in keys)
            for trial, keys in by_trial.items()
        }

    def time(self, system: str, column: str) -> Estimate:
        """Geometric mean of a column's times over trials."""
        return geometric_interval(list(self.times(system, column).values()))

    def ratio(self, first: str, second: str, column: str = "wall_s") -> Estimate:
        """Time of ``first`` / time of ``second``: geometric mean over trials that have both."""
        a, b = self.times(first, column), self.times(second, column)
        both = [a[trial] / b[trial] for trial in sorted(a.keys() & b.keys()) if b[trial] > 0]
        return geometric_interval(both) if both else NOTHING

    def per_step(self, system: str, column: str, over_ranks: bool = True) -> float | None:
        """A count per step, of all ranks or of one; None if it was not counted."""
        rows = [row for row in self.of(system) if row[column] is not None]
        if not rows:
            return None
        steps = sum(row["steps"] for row in rows)
        ranks = self.machines if over_ranks else 1
        return float(sum(row[column] for row in rows) * ranks / steps)

    def loss_gap(self) -> float | None:
        """The largest difference between the losses of vanilla and hybrid in one step."""
        gaps = [row["loss_gap"] for row in self.rows if row["loss_gap"] is not None]
        return max(gaps, default=None)

    def noisy_share(self) -> float:
        """Share of trials in which other programs used the machine."""
        cores = {(row["life"], row["system"]): row["others_cores"] for row in self.rows}
        if not cores:
            return 0.0
        return statistics.fmean(used > MOST_OTHER_CORES for used in cores.values())


SETTING = tuple(f.name for f in dataclasses.fields(Setting) if f.name != "rows")


def settings(rows: Iterable[MachineRow]) -> list[Setting]:
    """Rows grouped by their setting, in ascending order."""
    groups = group_by(rows, lambda row: tuple(row[name] for name in SETTING))
    return [dataclasses.replace(Setting(*key), rows=own) for key, own in sorted(groups.items())]


def with_times(every: Iterable[Setting]) -> list[Setting]:
    """Settings with measured epochs; the others have counts only."""
    return [s for s in every if any(not row["warmup"] for row in s.rows)]


def steps_of(timed: Iterable[Setting]) -> str:
    """Name of the measured time: ``epoch of 6 steps``."""
    steps = {row["steps"] for s in timed for row in s.rows if not row["warmup"]}
    return f"epoch of {', '.join(map(str, sorted(steps)))} steps"


def where(setting: Setting) -> str:
    """Machines and link of a setting: ``2 machines, 1 Gbit/s``."""
    delay = f", {setting.delay_s * 1e3:g} ms later" if setting.delay_s else ""
    return f"{setting.machines} machines, {setting.rate_gbit_s:g} Gbit/s{delay}"


def tables(rows: Sequence[MachineRow]) -> list[TextTable]:
    """Tables of times, of counts per step, and of rounds by number of hops."""
    every = settings(rows)
    measured = with_times(every)
    return [_times(measured), _counts(measured), _rounds(every)]


def _times(timed: Sequence[Setting]) -> TextTable:
    lines = []
    for setting in timed:
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
                    "noisy": f"{setting.noisy_share():.0%}",
                }
            )
    heads = (
        "machines", "link", "name", "steps", "epoch", "+-", "sample", "features",
        "vanilla's epoch over", "vanilla's sampling over", "lives", "noisy",
    )  # fmt: skip
    return TextTable(heads, lines, "Times of the slowest rank")


def _ratio(ratio: Estimate, system: str) -> str:
    if system == "vanilla" or not ratio.n:
        return ""
    interval = f" [{ratio.low:.3g}, {ratio.high:.3g}]" if ratio.n > 1 else ""
    return f"{ratio.value:.3g}{interval}"


def _counts(timed: Sequence[Setting]) -> TextTable:
    lines = []
    for setting in timed:
        for system in filter(setting.of, SYSTEMS):
            own = setting.of(system)
            counts = {
                "rounds": setting.per_step(system, "rounds", over_ranks=False),
                "edges": setting.per_step(system, "sampled_edges"),
                "input nodes": setting.per_step(system, "input_nodes"),
            }
            moved = {
                "sampling kB": setting.per_step(system, "sample_bytes"),
                "features kB": setting.per_step(system, "features_bytes"),
                "reduced kB": setting.per_step(system, "reduced_bytes"),
                "on links kB": setting.per_step(system, "link_sent_bytes"),
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
    return TextTable(heads, lines, "Counts per step, sum over all ranks")


def _rounds(every: Sequence[Setting]) -> TextTable:
    hops: dict[tuple[int, str], set[float]] = {}
    for setting in every:
        for row in setting.rows:
            if row["rounds"] is not None and row["system"] != "distdgl":
                hops.setdefault((row["hops"], row["system"]), set()).add(
                    row["rounds"] / row["steps"]
                )
    lines = [
        {"hops": str(count), "name": system, "rounds a step": ", ".join(map(significant, counts))}
        for (count, system), counts in sorted(hops.items())
    ]
    return TextTable(("hops", "name", "rounds a step"), lines, "Rounds by number of hops")


def copies(rows: Iterable[MachineRow]) -> Mapping[float, Estimate]:
    """Measured rate of copies (Gbit/s) by the nominal rate of the link."""
    rates: dict[float, dict[tuple[int, int], float]] = {}
    for row in rows:
        if row["copy_gbit_s"] is not None:
            key = (row["machines"], row["life"])
            rates.setdefault(row["rate_gbit_s"], {})[key] = row["copy_gbit_s"]
    return {rate: geometric_interval(list(own.values())) for rate, own in sorted(rates.items())}


def _loss_spread(rows: Iterable[MachineRow]) -> float:
    """Largest difference between last losses of equal epochs. Trials and links draw alike."""
    own = [row for row in rows if row["system"] != "distdgl"]
    columns = ("dataset", "machines", "fanouts", "epoch")
    groups = group_by(own, lambda row: tuple(row[name] for name in columns))
    losses = [[row["last_loss"] for row in group] for group in groups.values()]
    return max((max(group) - min(group) for group in losses), default=0.0)


def remarks(run: Run) -> list[str]:
    """Lines below the tables: copies, losses, equality of work, failures, partitions."""
    lines = [
        f"A copy between two machines at {rate:g} Gbit/s came to {copy.value:.3f}"
        f" [{copy.low:.3f}, {copy.high:.3f}] Gbit/s of payload ({copy.n} copies)."
        for rate, copy in copies(run.machines).items()
    ]
    gaps = [gap for setting in settings(run.machines) if (gap := setting.loss_gap()) is not None]
    if gaps:
        lines.append(
            f"Losses of hybrid and vanilla differ by {max(gaps):.2g} at most, step by step; those"
            f" of gnnbench's trials by {_loss_spread(run.machines):.2g}."
        )
    for row in run.record.work:
        middle, low, high = (100 * value for value in row.difference)
        counted = "edges" if row.of == "edges" else "input nodes"
        lines.append(
            f"{row.machines} machines: DistDGL's batches have {middle:+.2f} % [{low:+.2f},"
            f" {high:+.2f}] {counted} compared with gnnbench's ({row.distdgl.n} and"
            f" {row.gnnbench.n} batches)."
        )
    for failed in run.failed_lives:
        link = f"{failed['machines']} machines, {failed['rate_gbit_s']:g} Gbit/s"
        lines.append(
            f"Trial {failed['life'] + 1} of {failed['system']} ({link}) failed,"
            f" {failed['status']}: {failed['reason']}."
        )
    for count, partition in run.record.distdgl_partitions.items():
        cut, edges = partition.cut, partition.edges
        lines.append(f"{count} machines: DGL's METIS cuts {cut:,} of {edges:,} edges.")
    return lines
