"""The short tables of a run, for people: rows told by what varies, columns by ``until``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnnbench.analysis import metrics as m
from gnnbench.analysis.doubts import DOUBT, NO_VERDICT, doubts_of, in_doubt, told_once
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.table_layout import Part, in_units
from gnnbench.core.cell import PHASES, Until
from gnnbench.core.counters import (
    CACHE_RATIO,
    DEVICE_TIME,
    FEATURE_BYTES,
    MATCH_DEGREE,
    WINDOW_BYTES,
    Measure,
)
from gnnbench.core.units import (
    Time,
    edges_per_second,
    gigabytes,
    half_share,
    half_width,
    milliseconds,
    per_batch,
    percent,
    plural,
    time,
    worth,
)
from gnnbench.core.units import times as ratio

Row = dict[str, Any]
Line = dict[str, Any]  # texts, and times that are told in the unit of their column
Text = Callable[[Row, Metrics], str | Time]

HEADS = {"batch_size": "batch", "learning_rate": "learning rate", "max_batches": "batches"}
COMPARED = ("work", "verdict")
WORTH = {"sampled_edges": "the edges", "unique_nodes": "the nodes"}


def _time(key: str) -> Text:
    return lambda row, _: time(row.get(key))


def _judged(key: str) -> Text:
    """The time that is judged, in as many digits as its interval is worth."""
    return lambda row, _: time(row.get(key), worth(half_share(row)))


def _judged_ms(row: Row, _: Metrics) -> str:
    return milliseconds(per_batch(row), worth(half_share(row)))


def _width(row: Row, _: Metrics) -> str:
    return half_width(row)


def _device_ms(row: Row, known: Metrics) -> str:
    took = known.value(row["id"], Until.SAMPLE.word, DEVICE_TIME)
    return milliseconds(per_batch({**row, "took": took}, "took"))


def _hits(row: Row, known: Metrics) -> str:
    return percent(known.value(row["id"], "features", m.HIT_RATIO))


def _match(row: Row, known: Metrics) -> str:
    return percent(known.value(row["id"], "order", MATCH_DEGREE))


def _loaded(row: Row, known: Metrics) -> str:
    """Rows that were loaded over those that the batches need, where some were there already."""
    served = known.by_where(row["id"], "features", FEATURE_BYTES)
    there, whole = served.get("reused", 0.0) + served.get("cache", 0.0), sum(served.values())
    return percent(1 - there / whole) if {"reused", "cache"} & served.keys() and whole else ""


def _cached(row: Row, known: Metrics) -> str:
    """How much a cache holds, where that was derived."""
    return percent(known.value(row["id"], "features", CACHE_RATIO))


def _rate(row: Row, known: Metrics) -> str:
    """Told where the rate of copies is: without it the number says little."""
    rate = known.value(row["id"], "features", m.ROW_RATE)
    return gigabytes(rate) if _of_copy(row, known) else ""


def _of_copy(row: Row, known: Metrics) -> str:
    return percent(known.value(row["id"], "features", m.OF_COPY))


def _accuracy(what: Measure) -> Text:
    return lambda row, known: percent(known.value(row["id"], m.LEARNING, what))


def _stated(row: Row, known: Metrics, what: Measure) -> Row | None:
    """What is told of a stated accuracy: of one in a run."""
    return next((r for r in known.of(row["id"]) if r["name"] == what.name), None)


def _time_to(row: Row, known: Metrics) -> str | Time:
    """Seconds to the stated accuracy, or how many of the lives came there."""
    if (told := _stated(row, known, m.TIME_TO)) is not None:
        return time(told["value"], note=f"({told['where']})")
    told = _stated(row, known, m.REACHED)
    return "" if told is None else f"{percent(told['value'])} reach {told['where']}"


def _to_speedup(row: Row, known: Metrics) -> str:
    told = _stated(row, known, m.TO_SPEEDUP)
    return "" if told is None else ratio(told["value"], told["low"], told["high"])


def _window(row: Row, known: Metrics) -> str:
    return gigabytes(known.value(row["id"], "features", WINDOW_BYTES))


def _peak(row: Row, known: Metrics) -> str:
    """Of a GPU's memory, where stores differ by what they take of it."""
    on_gpu = row.get("device") == "cuda"
    return gigabytes(known.value(row["id"], m.EPOCH, m.PEAK_ALLOC)) if on_gpu else ""


ROWS: dict[str, Text] = {
    "cached": _cached, "hits": _hits, "match degree": _match, "rows loaded": _loaded,
    "GB/s": _rate, "of copy": _of_copy, "window GB": _window,
}  # fmt: skip
_PHASES = {p.replace("memory_io", "memory IO"): _time(f"{p}_time_s") for p in PHASES}
TIMES: dict[Until, dict[str, Text]] = {
    Until.SAMPLE: {
        "ms/batch": _judged_ms,
        "+-": _width,
        "device ms": _device_ms,
        "M edges/s": lambda row, _: edges_per_second(row),
    },
    Until.MEMORY_IO: {
        "memory IO": _judged("memory_io_time_s"),
        "+-": _width,
        "sample": _PHASES["sample"],
        "overlap": _time("overlap_s"),
        "idle": _time("idle_s"),
        "epoch": _time("epoch_wall_s"),
        **ROWS,
        "peak GB": _peak,
    },
    Until.COMPUTE: {
        "epoch": _judged("epoch_wall_s"),
        "+-": _width,
        **_PHASES,
        "overlap": _time("overlap_s"),
        "idle": _time("idle_s"),
        **ROWS,
        "validation": _accuracy(m.VAL_ACCURACY),
        "test": _accuracy(m.TEST_ACCURACY),
        "to accuracy": _time_to,
        "speed-up to it": _to_speedup,
    },
}
# Column of the ratios: the stage whose speed-up it is; the empty one is what is judged.
# What narrow tables tell below the times.
BESIDE = (*ROWS, "peak GB", "validation", "test", "to accuracy", "speed-up to it")
REFERENCE = "reference"  # its time in the same rounds as the ratio
JUDGED = {Until.SAMPLE: "ms/batch", Until.MEMORY_IO: "memory IO", Until.COMPUTE: "epoch"}
RATIOS: dict[Until, dict[str, str]] = {
    Until.SAMPLE: {"speed-up": ""},
    Until.MEMORY_IO: {"speed-up": "", "sample speed-up": Until.SAMPLE.word},
    Until.COMPUTE: {"speed-up": "", "sample speed-up": Until.SAMPLE.word},
}


def parts(
    rows: Sequence[Row], metrics: Sequence[Row], different: bool = False, narrow: bool = False
) -> list[Part]:
    """One table per ``until``; ``narrow``: times and comparison apart, for all that is alike.

    For ``different`` work ratios appear only when asked for, per edge and per batch.
    """
    named, known = labels(rows), Metrics(metrics)
    found = []
    for until in Until:
        own = [r for r in rows if r["until"] == until.word]
        lines = [_line(r, until, named, known, different) for r in own]
        if narrow:
            found += _narrow(own, lines, until, named)
        elif lines:
            axes = [_head(a) for a in named.axes]
            times = ("status", *TIMES[until], REFERENCE, *RATIOS[until], *COMPARED)
            heads = _told((*axes, "system", *times), lines, always=("status",))
            found.append(Part(heads, in_units(lines, [(JUDGED[until], REFERENCE)])))
    return found


def heading(rows: Sequence[Row]) -> str:
    """What all rows share: told once, above the table."""
    return labels(rows).title()


def _head(axis: str) -> str:
    return HEADS.get(axis, axis)


def _line(row: Row, until: Until, named: Labels, known: Metrics, different: bool) -> Line:
    line: Line = {_head(axis): text for axis, text in named.values(row).items()}
    line |= {"system": named.system(row) + f" {DOUBT}" * in_doubt(row)}
    line |= {"status": row["status"]}
    if row.get("judged_s") is None:
        return line
    line |= {head: text(row, known) for head, text in TIMES[until].items()}
    line |= {h: _ratio(row, stage, known, different) for h, stage in RATIOS[until].items()}
    line[REFERENCE] = _beside(row, until)
    return line | {"work": row.get("work_class") or "", "verdict": row.get("verdict") or ""}


def _beside(row: Row, until: Until) -> str | Time:
    """The reference's time in the rounds of the ratio, in the unit of the row's own."""
    if until is Until.SAMPLE:
        return milliseconds(per_batch(row, "reference_s"))
    return time(row.get("reference_s"))


def _ratio(row: Row, stage: str, known: Metrics, different: bool) -> str:
    if row.get("work_class") == "different":
        if not different:
            return ""
        judged = Until.SAMPLE.word if row["until"] == Until.SAMPLE.word else m.EPOCH
        edge, batch = (
            known.value(row["id"], stage or judged, w) for w in (m.PER_EDGE, m.PER_BATCH)
        )
        return "" if edge is None or batch is None else f"{edge:.2f}x/edge {batch:.2f}x/batch"
    if not stage:
        found = ratio(*(row.get(k) for k in ("ratio", "ratio_ci_low", "ratio_ci_high")))
    else:
        told = known.row(row["id"], stage, m.SPEEDUP)
        found = "" if told is None else ratio(told["value"], told["low"], told["high"])
    return found + f" {DOUBT}" * bool(found and in_doubt(row))


def _narrow(rows: Sequence[Row], lines: list[Line], until: Until, named: Labels) -> list[Part]:
    """Times, rows and accuracies, then comparison, for all that is alike but for its system."""
    groups: dict[str, list[Line]] = {}
    for row, line in zip(rows, lines, strict=True):
        groups.setdefault(", ".join(named.varying(row).values()), []).append(line)
    found = []
    for title, group in groups.items():
        told = in_units(group, [(JUDGED[until], REFERENCE)])
        status = ["status"] * any(line["status"] != "ok" for line in group)
        times = [h for h in TIMES[until] if h not in BESIDE]
        found.append(Part(_told(("system", *status, *times), group), told, title))
        beside = _told([h for h in TIMES[until] if h in BESIDE], group)
        if beside:
            found.append(Part(["system", *beside], told))
        first, *others = RATIOS[until]
        if any(line.get(head) for line in group for head in (first, *others)):
            heads = _told(("system", REFERENCE, first, *COMPARED, *others), group)
            kept = [line for line in told if line.get("work") or line.get("verdict")]
            found.append(Part(heads, kept))
    return found


def _told(heads: Sequence[str], lines: Sequence[Line], always: Sequence[str] = ()) -> list[str]:
    """Columns in which any line has something."""
    return [h for h in heads if h in always or any(x.get(h) for x in lines)]


def reasons(rows: Sequence[Row]) -> list[str]:
    """Why rows have no result, or one in doubt."""
    named = labels(rows)
    failed: dict[tuple[str, str, str], list[str]] = {}
    for r in rows:
        if r["reason"] and not r["reason"].endswith(NO_VERDICT):  # told with the doubts
            key = (", ".join(named.varying(r).values()), r["status"], r["reason"])
            failed.setdefault(key, []).append(named.system(r))
    found = [
        f"{', '.join(systems)}{f' ({where})' if where else ''}: {status}: {reason}"
        for (where, status, reason), systems in failed.items()
    ]
    doubts = {named.of(r): doubts_of(r) for r in rows}
    given = {named.of(r): r["reason"] for r in rows}
    return found + told_once(
        {n: d for n, d in doubts.items() if d.endswith(NO_VERDICT) or (d and d not in given[n])}
    )


def remarks(rows: Sequence[Row], different: bool = False) -> list[str]:
    """What the table cannot say: reasons, doubts, limits."""
    named = labels(rows)
    found = reasons(rows)
    found += [f"{named.of(r)}: {r['remark']}" for r in rows if r.get("remark")]
    found += _cut(rows)
    judged = [r for r in rows if r.get("ratio") is not None]
    short = [r for r in judged if not r.get("verdict") and not r.get("doubtful")]
    if any(r.get("stopped") == "budget" for r in short):
        found.append(
            "no verdict from fewer than 5 pairs of fresh processes; raise -o time_budget_s"
        )
    elif short:
        found.append(
            "no verdict from fewer than 5 pairs of fresh processes; a larger profile has them"
        )
    for row in judged:
        if row.get("verdict") == "unclear" and row.get("pairs_needed"):
            found.append(
                f"{named.of(row)}: unclear; about {row['pairs_needed']} pairs would tell"
                f" (-o pairs=[5,{row['pairs_needed']}] and a larger -o time_budget_s)"
            )
    own = [r for r in rows if r.get("env") or (r.get("reference") and " " in r["reference"])]
    for beside in dict.fromkeys(r["reference"] for r in own):
        several = dict.fromkeys(named.system(r) for r in own if r["reference"] == beside)
        found.append(f"{', '.join(several)}: compared with {beside}")
    found += _other_versions(rows, named)
    if any(r.get("verified") is False for r in rows):
        found.append(
            "unverified: the system has an epoch loop of its own, whose work nobody but itself"
            " vouches for"
        )
    hidden = [r for r in rows if r.get("work_class") == "different"]
    if hidden and not different:
        systems = ", ".join(dict.fromkeys(named.system(r) for r in hidden))
        found.append(
            f"{systems}: different work, so no ratio; --show-different gives it per edge and batch"
        )
    return list(dict.fromkeys(found))


def _cut(rows: Sequence[Row]) -> list[str]:
    """Of epochs that were cut, and of graphs whose epochs are shorter than the limit."""
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
    beside = f"; whole epochs: {short}" if short else ""
    kept = {(r["batches"], r["epoch_batches"]) for r in cut}
    few, all_of_them = next(iter(kept))
    first = f"{few} of {plural(all_of_them, 'batch')}" if len(kept) == 1 else "batches"
    return [f"epochs were cut to their first {first} (max_batches){beside}"]


def _other_versions(rows: Sequence[Row], named: Labels) -> list[str]:
    """What other environments have in another version than that of the row they are held against.

    Packages that but one side imported are told as such.
    """
    known = {r["id"]: r for r in rows}
    found = []
    for row in rows:
        beside = known.get(row["reference_id"]) if row.get("env") else None
        if beside is None or beside is row or not (row["versions"] and beside["versions"]):
            continue
        own, other = (_by_package(r["versions"]) for r in (row, beside))
        differ = [
            f"{name} {own.get(name, 'none')} (not {other.get(name, 'none')})"
            for name in {**own, **other}
            if own.get(name) != other.get(name)
        ]
        told = ", ".join(differ) or "the same versions of all that ran"
        found.append(f"{named.system(row)} has {told}")
    return found


def _by_package(versions: str) -> dict[str, str]:
    """Versions by package of ``torch 2.1, dgl 1.1``."""
    split = (part.partition(" ") for part in versions.split(", "))
    return {package: version for package, _, version in split}


def ratio_lines(ratios: Sequence[Row], rows: Sequence[Row] = ()) -> list[str]:
    """The couples that the definition compares, one sentence each.

    ``rows`` of ``cells.csv`` tell of different work what the difference is worth.
    """
    known = {r["id"]: r for r in rows}
    named = labels([{**r, "system": ""} for r in ratios])
    lines = []
    for r in ratios:
        where = ", ".join(named.varying(r, but=("threads",)).values())
        device = f", {r['device_ratio']:.2f}x by events" if r.get("device_ratio") else ""
        per_edge = " per edge" if r["work_class"] == "different" else ""
        interval = ratio(r["ratio"], r.get("ratio_ci_low"), r.get("ratio_ci_high"))
        if not interval:
            interval, per_edge = "no ratio", ""
        elif r.get("doubtful"):
            interval += f" {DOUBT}"
        lines.append(
            f"{r['first']} / {r['second']}{f' ({where})' if where else ''}: {interval}{per_edge}"
            f"{device}; {r['work_class']} work, {plural(r['pairs'], 'pair')}"
            + (f", {r['verdict']}" if r["verdict"] else "")
            + _worth(r, known)
        )
    return lines


def _worth(couple: Row, known: Mapping[str, Row]) -> str:
    """Edges, nodes and time of the second over the first's, an epoch's; the time by the pairs."""
    if couple["work_class"] != "different" or not known:
        return ""
    first, second = (known.get(i, {}) for i in couple["pair"].split("-"))
    if not all(r.get(key) for r in (first, second) for key in WORTH):
        return ""
    times = {words: second[key] / first[key] for key, words in WORTH.items()}
    if couple["ratio"]:  # of the times per edge
        times["the time"] = second["sampled_edges"] / first["sampled_edges"] / couple["ratio"]
    told = ", ".join(f"{value:.2f}x {words}" for words, value in times.items())
    frontiers = [r.get("frontier") for r in (first, second)]
    why = "" if len(set(frontiers)) == 1 else f" (frontier {frontiers[1]}, not {frontiers[0]})"
    return f"; the second has {told}{why}"
