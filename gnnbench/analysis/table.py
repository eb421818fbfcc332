"""The main tables of a run: one line for each cell, columns by the last phase of its epochs."""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.analysis import metrics as m
from gnnbench.analysis.grouping import group_by
from gnnbench.analysis.labels import Labels, labels
from gnnbench.analysis.metric_tables import AXIS_HEADS, Text, axis_texts
from gnnbench.analysis.metrics import Metrics
from gnnbench.analysis.reliability import UNRELIABLE_MARK, is_unreliable, verdict
from gnnbench.analysis.table_layout import TextTable, in_units, nonempty
from gnnbench.core.cell import PHASES, Until
from gnnbench.core.counters import (
    CACHE_RATIO,
    DEVICE_TIME,
    FEATURE_BYTES,
    MATCH_DEGREE,
    MEMORY_BYTES,
    WINDOW_BYTES,
    Metric,
)
from gnnbench.core.units import (
    Time,
    binary,
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
from gnnbench.schema import CellRow, MetricRow

Line = dict[str, str | Time]

COMPARED = ("work", "verdict")


def _time(key: str) -> Text:
    return lambda row, _: time(row.get(key))


def _primary(key: str) -> Text:
    """The primary metric, with as many digits as its interval justifies."""
    return lambda row, _: time(row.get(key), worth(half_share(row)))


def _primary_ms(row: CellRow, _: Metrics) -> str:
    return milliseconds(per_batch(row), worth(half_share(row)))


def _half_width(row: CellRow, _: Metrics) -> str:
    return half_width(row)


def _device_ms(row: CellRow, known: Metrics) -> str:
    device_time = known.value(row["id"], Until.SAMPLE.word, DEVICE_TIME)
    return milliseconds(per_batch({**row, "device_time": device_time}, "device_time"))


def _percent(stage: str, measure: Metric) -> Text:
    return lambda row, known: percent(known.value(row["id"], stage, measure))


def loaded_share(row: CellRow, known: Metrics) -> float | None:
    """Feature rows loaded / feature rows needed; None if none came from a cache or a batch."""
    by_source = known.by_where(row["id"], "features", FEATURE_BYTES)
    present = by_source.get("reused", 0.0) + by_source.get("cache", 0.0)
    total = sum(by_source.values())
    return 1 - present / total if {"reused", "cache"} & by_source.keys() and total else None


def _rate(row: CellRow, known: Metrics) -> str:
    """The rate of feature rows. It is shown only where a copy was measured to compare it with."""
    rate = known.value(row["id"], "features", m.ROW_RATE)
    return gigabytes(rate) if ROWS["of copy"](row, known) else ""


def _accuracy_metric(row: CellRow, known: Metrics, measure: Metric) -> MetricRow | None:
    """The metric of the target accuracy; a run has one."""
    return next((r for r in known.of(row["id"]) if r["name"] == measure.name), None)


def _time_to_accuracy(row: CellRow, known: Metrics) -> str | Time:
    """Time to the target accuracy, or the share of processes that reached it."""
    if (reached := _accuracy_metric(row, known, m.TIME_TO)) is not None:
        return time(reached["value"], note=f"({reached['where']})")
    share = _accuracy_metric(row, known, m.REACHED)
    return "" if share is None else f"{percent(share['value'])} reach {share['where']}"


def _accuracy_speedup(row: CellRow, known: Metrics) -> str:
    speedup = _accuracy_metric(row, known, m.TO_SPEEDUP)
    return "" if speedup is None else ratio(speedup["value"], speedup["low"], speedup["high"])


def _window(row: CellRow, known: Metrics) -> str:
    return gigabytes(known.value(row["id"], "features", WINDOW_BYTES))


def _peak(row: CellRow, known: Metrics) -> str:
    """Peak memory of a GPU: stores differ in how much of it they use."""
    on_gpu = row.get("device") == "cuda"
    return gigabytes(known.value(row["id"], m.EPOCH, m.PEAK_ALLOC)) if on_gpu else ""


def peak_memory(row: CellRow, known: Metrics) -> str:
    """Memory at an epoch's peak, of all components: of the GPU, or on a CPU of the process."""
    return binary(known.value(row["id"], m.EPOCH, MEMORY_BYTES))


ROWS: dict[str, Text] = {
    "cached": _percent("features", CACHE_RATIO),
    "hits": _percent("features", m.HIT_RATIO),
    "match degree": _percent("order", MATCH_DEGREE),
    "rows loaded": lambda row, known: percent(loaded_share(row, known)),
    "GB/s": _rate,
    "of copy": _percent("features", m.OF_COPY),
    "window GB": _window,
}
_PHASES = {p.replace("memory_io", "memory IO"): _time(f"{p}_time_s") for p in PHASES}
TIMES: dict[Until, dict[str, Text]] = {
    Until.SAMPLE: {
        "ms/batch": _primary_ms,
        "+-": _half_width,
        "device ms": _device_ms,
        "M edges/s": lambda row, _: edges_per_second(row),
    },
    Until.MEMORY_IO: {
        "memory IO": _primary("memory_io_time_s"),
        "+-": _half_width,
        "sample": _PHASES["sample"],
        "overlap": _time("overlap_s"),
        "idle": _time("idle_s"),
        "epoch": _time("epoch_wall_s"),
        **ROWS,
        "peak GB": _peak,
        "memory": peak_memory,
    },
    Until.COMPUTE: {
        "epoch": _primary("epoch_wall_s"),
        "+-": _half_width,
        **_PHASES,
        "overlap": _time("overlap_s"),
        "idle": _time("idle_s"),
        **ROWS,
        "memory": peak_memory,
        "validation": _percent(m.LEARNING, m.VAL_ACCURACY),
        "test": _percent(m.LEARNING, m.TEST_ACCURACY),
        "to accuracy": _time_to_accuracy,
        "speed-up to it": _accuracy_speedup,
    },
}
# Columns that narrow tables show below the times.
SEPARATE = (*ROWS, "peak GB", "memory", "validation", "test", "to accuracy", "speed-up to it")
REFERENCE = "reference"  # the reference's time in the rounds of the ratio
PRIMARY = {Until.SAMPLE: "ms/batch", Until.MEMORY_IO: "memory IO", Until.COMPUTE: "epoch"}
# The stage of each ratio; "" is the primary metric.
RATIOS: dict[Until, dict[str, str]] = {
    Until.SAMPLE: {"speed-up": ""},
    Until.MEMORY_IO: {"speed-up": "", "sample speed-up": Until.SAMPLE.word},
    Until.COMPUTE: {"speed-up": "", "sample speed-up": Until.SAMPLE.word},
}


def main_tables(
    rows: Sequence[CellRow],
    metrics: Sequence[MetricRow],
    different: bool = False,
    narrow: bool = False,
) -> list[TextTable]:
    """One table for each value of ``until``.

    ``narrow`` splits it into times, feature rows and comparison for each group of cells that differ
    in their system only. ``different`` shows ratios of different work, per edge and per batch.
    """
    named, known = labels(rows), Metrics(metrics)
    tables = []
    for until in Until:
        own = [r for r in rows if r["until"] == until.word]
        lines = [_line(r, until, named, known, different) for r in own]
        if narrow:
            tables += _narrow(own, lines, until, named)
        elif lines:
            axes = [AXIS_HEADS.get(axis, axis) for axis in named.axes]
            columns = ("status", *TIMES[until], REFERENCE, *RATIOS[until], *COMPARED)
            heads = nonempty((*axes, "system", *columns), lines, always=("status",))
            tables.append(TextTable(heads, in_units(lines, [(PRIMARY[until], REFERENCE)])))
    return tables


def heading(rows: Sequence[CellRow]) -> str:
    """The settings that all rows share, to be printed above the table."""
    return labels(rows).title()


def _line(row: CellRow, until: Until, named: Labels, known: Metrics, different: bool) -> Line:
    line = axis_texts(row, named)
    line |= {"system": named.system(row) + f" {UNRELIABLE_MARK}" * is_unreliable(row)}
    line |= {"status": row["status"]}
    if row.get("judged_s") is None:
        return line
    line |= {head: text(row, known) for head, text in TIMES[until].items()}
    line |= {h: _ratio(row, stage, known, different) for h, stage in RATIOS[until].items()}
    line[REFERENCE] = _reference_time(row, until)
    return line | {"work": row.get("work_class") or "", "verdict": verdict(row)}


def _reference_time(row: CellRow, until: Until) -> str | Time:
    """The reference's time in the rounds of the ratio, in the unit of the primary metric."""
    if until is Until.SAMPLE:
        return milliseconds(per_batch(row, "reference_s"))
    return time(row.get("reference_s"))


def _ratio(row: CellRow, stage: str, known: Metrics, different: bool) -> str:
    if row.get("work_class") == "different":
        return _ratio_of_different_work(row, stage, known) if different else ""
    if not stage:
        text = ratio(*(row.get(k) for k in ("ratio", "ratio_ci_low", "ratio_ci_high", "pairs")))
    else:
        speedup = known.row(row["id"], stage, m.SPEEDUP)
        text = "" if speedup is None else ratio(speedup["value"], speedup["low"], speedup["high"])
    return text + f" {UNRELIABLE_MARK}" * bool(text and is_unreliable(row))


def _ratio_of_different_work(row: CellRow, stage: str, known: Metrics) -> str:
    primary = Until.SAMPLE.word if row["until"] == Until.SAMPLE.word else m.EPOCH
    edge, batch = (
        known.value(row["id"], stage or primary, measure) for measure in (m.PER_EDGE, m.PER_BATCH)
    )
    return "" if edge is None or batch is None else f"{edge:.2f}x/edge {batch:.2f}x/batch"


def _narrow(
    rows: Sequence[CellRow], lines: list[Line], until: Until, named: Labels
) -> list[TextTable]:
    """Tables of times, of feature rows and accuracies, and of the comparison."""
    pairs = zip(rows, lines, strict=True)
    groups = group_by(pairs, lambda pair: ", ".join(named.varying(pair[0]).values()))
    tables = []
    for title, pairs_of_group in groups.items():
        group = [line for _, line in pairs_of_group]
        texts = in_units(group, [(PRIMARY[until], REFERENCE)])
        status = ["status"] * any(line["status"] != "ok" for line in group)
        times = [h for h in TIMES[until] if h not in SEPARATE]
        tables.append(TextTable(nonempty(("system", *status, *times), group), texts, title))
        separate = nonempty([h for h in TIMES[until] if h in SEPARATE], group)
        if separate:
            tables.append(TextTable(["system", *separate], texts))
        first, *others = RATIOS[until]
        if any(line.get(head) for line in group for head in (first, *others)):
            heads = nonempty(("system", REFERENCE, first, *COMPARED, *others), group)
            compared = [line for line in texts if line.get("work") or line.get("verdict")]
            tables.append(TextTable(heads, compared))
    return tables
