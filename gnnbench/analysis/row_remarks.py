"""Sentences below the tables of a run: failures, unreliable rows, limits, compared pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.reliability import (
    NO_VERDICT,
    ONE_OF_MANY_MARK,
    UNRELIABLE_MARK,
    reasons_for_doubt,
    summarize_doubts,
    verdict,
)
from gnnbench.core.precision import FLOAT32
from gnnbench.core.units import plural, times
from gnnbench.schema import CellRow, RatioRow

COUNTS = {"sampled_edges": "the edges", "unique_nodes": "the nodes"}


def reasons(rows: Sequence[CellRow]) -> list[str]:
    """Why rows have no result or an unreliable one."""
    named = labels(rows)
    failed = [r for r in rows if r["reason"] and not r["reason"].endswith(NO_VERDICT)]
    groups = group_by(
        failed, lambda r: (", ".join(named.varying(r).values()), r["status"], r["reason"])
    )
    sentences = [
        f"{', '.join(map(named.system, group))}{f' ({where})' if where else ''}: {status}: {reason}"
        for (where, status, reason), group in groups.items()
    ]
    doubts = {named.of(r): reasons_for_doubt(r) for r in rows}
    shown = {named.of(r): r["reason"] for r in rows}
    return sentences + summarize_doubts(
        {n: d for n, d in doubts.items() if d.endswith(NO_VERDICT) or (d and d not in shown[n])}
    )


def remarks(rows: Sequence[CellRow], different: bool = False) -> list[str]:
    """What a reader of the tables must know; ``different``: ratios of different work are shown."""
    named = labels(rows)
    lines = reasons(rows)
    lines += [*_cut_epochs(rows), *_version_differences(rows, named)]
    lines += [*_missing_verdicts(rows, named), *_references(rows, named)]
    lines += [f"{named.of(r)}: {r['remark']}" for r in rows if r.get("remark")]
    if any(r.get("verified") is False for r in rows):
        lines.append(
            "unverified: the system runs its own epoch loop, so its work could not be checked"
        )
    hidden = [r for r in rows if r.get("work_class") == "different"]
    if hidden and not different:
        systems = ", ".join(dict.fromkeys(named.system(r) for r in hidden))
        lines.append(
            f"{systems}: different work, so no ratio; --show-different gives it per edge and batch"
        )
    return list(dict.fromkeys(lines))


def _cut_epochs(rows: Sequence[CellRow]) -> list[str]:
    """Which epochs were cut, and which graphs have epochs shorter than the limit."""
    cut = [r for r in rows if 0 < (r.get("batches") or 0) < (r.get("epoch_batches") or 0)]
    if not cut:
        return []
    limits = {r.get("max_batches") for r in rows}
    whole = {
        r["dataset"]: r["epoch_batches"]
        for r in rows
        if len(limits) == 1 and r.get("batches") and r["batches"] == r.get("epoch_batches")
    }
    short = ", ".join(f"{plural(n, 'batch')} of {name}" for name, n in whole.items())
    exceptions = f"; whole epochs: {short}" if short else ""
    lengths = {(r["batches"], r["epoch_batches"]) for r in cut}
    batches, epoch_batches = next(iter(lengths))
    first = f"{batches} of {plural(epoch_batches, 'batch')}" if len(lengths) == 1 else "batches"
    return [f"epochs were cut to their first {first} (max_batches){exceptions}"]


def _missing_verdicts(rows: Sequence[CellRow], named: Labels) -> list[str]:
    """Why ratios have no verdict or an unclear one, and what to do."""
    with_ratio = [r for r in rows if r.get("ratio") is not None]
    lines = []
    short = [r for r in with_ratio if not r.get("verdict") and not r.get("doubtful")]
    if short:
        fix = "a larger profile has them"
        if any(r.get("stopped") == "budget" for r in short):
            fix = "raise -o time_budget_s"
        lines.append(f"no verdict from so few pairs of fresh processes; {fix}")
    lines += _multiplicity(with_ratio)
    for row in with_ratio:
        if row.get("verdict") == "unclear" and row.get("pairs_needed"):
            lines.append(
                f"{named.of(row)}: unclear; about {row['pairs_needed']} pairs would decide"
                f" (a new run with -o pairs=[3,{row['pairs_needed']}] and a larger time_budget_s)"
            )
    return lines


def _multiplicity(rows: Sequence[CellRow] | Sequence[RatioRow]) -> list[str]:
    """Explain ``ONE_OF_MANY_MARK`` where a verdict has it."""
    if not any(verdict(r).endswith(ONE_OF_MANY_MARK) for r in rows):
        return []
    return [
        f"{ONE_OF_MANY_MARK} may be chance: the verdict does not hold after a correction for all"
        " comparisons of the run (Holm; column p_adjusted)"
    ]


def _references(rows: Sequence[CellRow], named: Labels) -> list[str]:
    """The reference of each system that has another one than the run's."""
    special = [r for r in rows if r.get("env") or (r.get("reference") and " " in r["reference"])]
    return [
        f"{', '.join(dict.fromkeys(map(named.system, group)))}: compared with {reference}"
        for reference, group in group_by(special, lambda r: str(r["reference"])).items()
    ]


def _version_differences(rows: Sequence[CellRow], named: Labels) -> list[str]:
    """Packages whose version differs between a row of another environment and its reference."""
    by_id = {r["id"]: r for r in rows}
    lines = []
    for row in rows:
        reference = by_id.get(row["reference_id"]) if row.get("env") else None
        if reference is None or reference is row or not (row["versions"] and reference["versions"]):
            continue
        own, other = (_versions(r["versions"]) for r in (row, reference))
        differences = [
            f"{name} {own.get(name, 'none')} (not {other.get(name, 'none')})"
            for name in {**own, **other}
            if own.get(name) != other.get(name)
        ]
        text = ", ".join(differences) or "the same versions of all that ran"
        lines.append(f"{named.system(row)} has {text}")
    return lines


def _versions(versions: str) -> dict[str, str]:
    """Versions by package of ``torch 2.1, dgl 1.1``."""
    split = (part.partition(" ") for part in versions.split(", "))
    return {package: version for package, _, version in split}


def ratio_lines(ratios: Sequence[RatioRow], rows: Sequence[CellRow] = ()) -> list[str]:
    """One sentence for each pair of systems that the definition compares, with their times' ratio.

    A system and its own reference are left out: the table has their speed-up. For different work,
    ``rows`` of ``cells.csv`` add how much the work differs.
    """
    by_id = {r["id"]: r for r in rows}
    named = labels([{**r, "system": ""} for r in ratios])
    lines = []
    for r in ratios:
        first, _, second = str(r.get("pair") or "").partition("-")
        if first in by_id and second == by_id[first].get("reference_id"):
            continue
        where = ", ".join(named.varying(r, but=("threads",)).values())
        device = f", {r['device_ratio']:.2f}x by events" if r.get("device_ratio") else ""
        per_edge = " per edge" if r["work_class"] == "different" else ""
        interval = times(r["ratio"], r.get("ratio_ci_low"), r.get("ratio_ci_high"), r.get("pairs"))
        if not interval:
            interval, per_edge = "no ratio", ""
        elif r.get("doubtful"):
            interval += f" {UNRELIABLE_MARK}"
        lines.append(
            f"time of {r['first']} / {r['second']}{f' ({where})' if where else ''}:"
            f" {interval}{per_edge}"
            f"{device}; {r['work_class']} work, {plural(r['pairs'], 'pair')}"
            + (f", {_second_is(r)}" if r["verdict"] else "")
            + _work_difference(r, by_id)
        )
    return lines + _multiplicity(ratios)


def _second_is(ratio: RatioRow) -> str:
    """The verdict as a phrase; of a pair it is about the second system."""
    text = verdict(ratio)
    return text if text.startswith("unclear") else f"{ratio['second']} is {text}"


def _work_difference(ratio: RatioRow, by_id: Mapping[str, CellRow]) -> str:
    """Edges, nodes and time per epoch of the second system divided by the first's."""
    if ratio["work_class"] != "different" or not by_id:
        return ""
    first, second = map(by_id.get, ratio["pair"].split("-"))
    if first is None or second is None:
        return ""
    if not all(r.get(key) for r in (first, second) for key in COUNTS):
        return ""
    quotients = {words: second[key] / first[key] for key, words in COUNTS.items()}
    if ratio["ratio"]:  # a ratio of times per edge
        quotients["the time"] = second["sampled_edges"] / first["sampled_edges"] / ratio["ratio"]
    text = ", ".join(f"{value:.2f}x {words}" for words, value in quotients.items())
    why = ""
    for name, default in (("frontier", None), ("precision", FLOAT32)):
        one, other = (r.get(name) or default for r in (first, second))
        why += f" ({name} {other}, not {one})" if one != other else ""
    return f"; the second has {text}{why}"
