"""The short tables of a run, for people: rows told by what varies, columns by ``until``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnnbench.analysis import metrics as m
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.reliability import UNRELIABLE_MARK, is_unreliable
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
    time,
    worth,
)
from gnnbench.core.units import times as ratio
from gnnbench.schema import MetricRow

Row = Mapping[str, Any]
Line = dict[str, Any]  # texts, and times that are told in the unit of their column
Text = Callable[[Row, Metrics], str | Time]

HEADS = {"batch_size": "batch", "learning_rate": "learning rate", "max_batches": "batches"}
COMPARED = ("work", "verdict")


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
    rows: Sequence[Row], metrics: Sequence[MetricRow], different: bool = False, narrow: bool = False
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
    line |= {"system": named.system(row) + f" {UNRELIABLE_MARK}" * is_unreliable(row)}
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
    return found + f" {UNRELIABLE_MARK}" * bool(found and is_unreliable(row))


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
