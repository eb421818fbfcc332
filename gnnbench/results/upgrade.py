"""Tables of version 1 of the schema in the form of today's.

Version 1 had a model ``none`` where an epoch samples and goes no further, a system's ``options``
in place of its recipe, one wide table in place of ``metrics.csv``, and phases that ran one after
the other, so that each was alone. Its ratios rest on rounds of one pair of processes and on a
reference that lived on; they and their verdicts are withdrawn, its times stand.
"""

from __future__ import annotations

import json
from typing import Any

from gnnbench.cell import PHASES, Until
from gnnbench.measure import judged
from gnnbench.measure.stats import median_interval
from gnnbench.results import metrics as m
from gnnbench.results.labels import labels
from gnnbench.results.schema import CELLS, KERNELS, STAGES, VERSION, Column
from gnnbench.results.schema.cells import RATIO
from gnnbench.stages.counts import DEVICE_TIME, FEATURE_BYTES, Measure

Row = dict[str, Any]
Tables = dict[str, list[Row]]

NO_MODEL = "none"
# Features in device memory were booked as a cache, which version 1 had none of. On a CPU what was
# booked as copied was read there.
PLACES = {"host_copy": "host_copy", "zero_copy": "zero_copy", "cache": "device",
          "reused": "reused", "peer": "peer"}  # fmt: skip
RATIOS_OF = {"epoch": "", **{phase: f"{phase}_" for phase in PHASES}}
WITHDRAWN = (
    "its ratio was withdrawn: one pair of processes, a reference that lived on; measure again"
)


def _columns(text: str, strings: str, whole: str, truth: str = "") -> tuple[Column, ...]:
    kinds = {name: "str" for name in strings.split()} | {name: "int" for name in whole.split()}
    kinds |= {name: "bool" for name in truth.split()}
    return tuple(Column(name, kinds.get(name, "float"), "", "") for name in text.split())


_BYTES = " ".join(f"feature_bytes_{place}" for place in PLACES) + " h2d_bytes"
_SPEEDUPS = " ".join(
    f"{p}speedup {p}speedup_ci_low {p}speedup_ci_high" for p in RATIOS_OF.values()
)  # fmt: skip
_TIMES = " ".join(f"{phase}_time_s" for phase in PHASES)
_MEMORY = "peak_alloc_bytes peak_rss_bytes"
_WORK = "batches seeds sampled_edges unique_nodes"
FIRST: dict[str, tuple[Column, ...]] = {
    "cells": _columns(
        "id experiment system reference dataset model device pick frontier law batch_size fanouts"
        " hidden learning_rate threads seed options nodes edges train_nodes feature_dim features"
        f" epoch_batches {_WORK} {_BYTES} {_MEMORY} {_TIMES} device_time_s residual_s epoch_wall_s"
        " ci_low_s ci_high_s outer_s first_epoch_s n setup_time_s check_time_s digest work_class"
        f" {_SPEEDUPS} speedup_per_edge speedup_per_batch sample_speedup_per_edge"
        " sample_speedup_per_batch rounds noise_floor verdict loss stopped throttled"
        " idle_cpu_share foreign_cpu_share doubtful remark stand_in_for status reason",
        "id experiment system reference dataset model device pick frontier law fanouts options"
        " features digest work_class verdict stopped doubtful remark stand_in_for status reason",
        "batch_size hidden threads seed nodes edges train_nodes feature_dim epoch_batches n rounds"
        f" throttled {_WORK} {_BYTES} {_MEMORY}",
    ),
    "samples": _columns(
        "id system dataset model pair attempt worker round order warmup epoch wall_s outer_s"
        f" {_TIMES} device_time_s {_WORK} {_BYTES} loss {_MEMORY} idle_cpu_s foreign_cpu_s"
        " sm_clock_mhz power_w temperature_c throttle void ok",
        "id system dataset model pair throttle",
        f"attempt worker round order epoch sm_clock_mhz temperature_c {_WORK} {_BYTES} {_MEMORY}",
        "warmup void ok",
    ),
    "ratios": _columns(
        "pair first second dataset model device batch_size fanouts rounds work_class ratio"
        " ratio_ci_low ratio_ci_high device_ratio noise_floor verdict",
        "pair first second dataset model device fanouts work_class verdict",
        "batch_size rounds",
    ),
    "stages": STAGES,
    "kernels": KERNELS,
}


def upgrade(first: Tables, record: Row) -> Tables:
    """Tables of today, by name, from those of version 1 and their ``run.json``."""
    devices = {r["id"]: r["device"] for r in first["cells"]}
    samples = [_sample(s, devices.get(s["id"], "")) for s in first["samples"]]
    limit = record.get("experiment", {}).get("measure", {}).get("max_batches", 0)
    cells = [_cell(r, samples, limit) for r in first["cells"]]
    named = labels(cells)
    label = {r["id"]: named.of(r) for r in cells}
    return {
        "cells": cells,
        "samples": samples,
        "metrics": [found for r in first["cells"] for found in _metrics(r)],
        "ratios": [],
        **{
            name: [{**r, "cell": label.get(r["id"], r["cell"])} for r in first[name]]
            for name in ("stages", "kernels")
        },
    }


def until_of(model: str) -> str:
    """How far an epoch of a version 1 model went."""
    return (Until.SAMPLE if model == NO_MODEL else Until.COMPUTE).word


def _cell(row: Row, samples: list[Row], limit: int) -> Row:
    until = until_of(row["model"])
    by = judged.of(until)
    made = {c.name: row.get(c.name, "" if c.dtype == "str" else None) for c in CELLS}
    made |= {
        "until": until,
        "model": "" if row["model"] == NO_MODEL else row["model"],
        "max_batches": limit,
        "recipe": json.dumps(recipe(row), sort_keys=True),
        "overlap_s": None if row.get("residual_s") is None else 0.0,
        "idle_s": row.get("residual_s"),
        "judged": by.name,
        "judged_s": row.get(by.name),
        **dict.fromkeys(c.name for c in RATIO if c.dtype != "str"),
        "floor_from": "",
        "verdict": "reference" if row["verdict"] == "reference" else "",
        "remark": WITHDRAWN if row.get("speedup") is not None else row["remark"],
        "verified": True if row["status"] in ("ok", "unstable") else None,
        "schema_version": VERSION,
    }
    if until == Until.SAMPLE.word:  # the interval was the wall time's
        own = [s for s in samples if s["id"] == row["id"] and not s["warmup"] and not s["void"]]
        found = median_interval([by.value(s) for s in own], row["seed"] or 0)
        known = found.n > 1
        made |= {"ci_low_s": found.low if known else None}
        made |= {"ci_high_s": found.high if known else None}
    return made


def recipe(row: Row) -> dict[str, Any]:
    """The resolved recipe of a version 1 row, from its system and options."""
    options = json.loads(row["options"] or "{}")
    rules = {"pick": row["pick"], "frontier": row["frontier"]}
    system = row["system"]
    places = {"sampler": {}, "features": {"name": system}, "aggregate": {"name": system}}
    if system == "baseline":
        places["sampler"] = _native_sampler(row, options) | rules
        places["features"] = {"name": options.get("features", "host")}
        places["aggregate"] = {"name": "csr"}
    elif system == "dgl":
        settings = {"fused": options.get("fused", True), "id_type": options.get("id_type", "int64")}
        places["sampler"] = {"name": "dgl", **settings, **rules}
    elif system in ("pyg", "pyg-native-sampler"):
        places["sampler"] = {"name": system.removesuffix("-sampler"), **rules}
        places["features"] = places["aggregate"] = {"name": "pyg"}
    else:  # wholegraph, or a system from elsewhere with settings of its own
        memory = {"memory": "continuous"} if system == "wholegraph" else {}
        places["sampler"] = {"name": system, **memory, **options, **rules}
    made: dict[str, Any] = {
        "sampler": places["sampler"], "order": {"name": "as-drawn"}, "schedule": {"name": "serial"},
    }  # fmt: skip
    if row["model"] != NO_MODEL:
        made |= {"features": places["features"], "aggregate": places["aggregate"]}
        made["dtype"] = "float32"
    return made


def _native_sampler(row: Row, options: Row) -> Row:
    name = sampler_name(options.get("sampler", "baseline"))
    made = {"name": name}
    made["topology"] = options.get("topology", "gpu" if row["device"] == "cuda" else "cpu")
    if name in ("pgsampler", "dgl-fusion", "pgsampler-as-printed"):
        made |= {"fetch_size": options.get("fetch_size", 5), "hubs": "split"}
    if name == "pgsampler":
        made["worker"] = "warp"
    if name == "pgsampler-as-printed":
        made["unsafe"] = options.get("unsafe", False)
    return made


def sampler_name(old: str) -> str:
    """``baseline`` was a system and its sampler; the sampler is ``hop-by-hop`` now."""
    return "hop-by-hop" if old == "baseline" else old


def _sample(row: Row, device: str) -> Row:
    times = {p: row.get(f"{p}_time_s") for p in PHASES}
    made = {k: v for k, v in row.items() if "_bytes" not in k and k != "device_time_s"}
    made |= {"peak_alloc_bytes": row.get("peak_alloc_bytes")}
    made |= {"peak_rss_bytes": row.get("peak_rss_bytes"), "block_s": None, "overlap_s": 0.0}
    made |= {f"{p}_alone_s": time for p, time in times.items()}
    made["life"] = (made.pop("attempt", None) or 1) - 1
    made["model"] = "" if row["model"] == NO_MODEL else row["model"]
    wall = row.get("wall_s")
    made["idle_s"] = None if wall is None else wall - sum(t or 0.0 for t in times.values())
    made["counts"] = [
        [stage, what.name, where, value] for stage, what, where, value in _counts(row, device)
    ]
    return made


def _counts(row: Row, device: str) -> list[tuple[str, Measure, str, float]]:
    """What was counted, of a row or a sample; a path that moved nothing is no count."""
    places = PLACES | ({"host_copy": "host"} if device == "cpu" else {})
    found = [
        ("features", FEATURE_BYTES, place, row.get(f"feature_bytes_{old}") or 0)
        for old, place in places.items()
    ]
    found.append((m.EPOCH, m.H2D, "", row.get("h2d_bytes") or 0))
    found.append((Until.SAMPLE.word, DEVICE_TIME, "", row.get("device_time_s") or 0))
    return [f for f in found if f[-1]]


def _metrics(row: Row) -> list[Row]:
    cell, n = row["id"], row.get("n")
    found = [
        m.metric(cell, stage, what, row[name], n=n)
        for name, stage, what in (
            ("outer_s", m.EPOCH, m.OUTER),
            ("first_epoch_s", m.EPOCH, m.FIRST),
            ("setup_time_s", "setup", m.SETUP),
            ("check_time_s", "check", m.CHECK),
            ("peak_alloc_bytes", m.EPOCH, m.PEAK_ALLOC),
            ("peak_rss_bytes", m.EPOCH, m.PEAK_RSS),
            ("throttled", m.EPOCH, m.THROTTLED),
            ("idle_cpu_share", m.EPOCH, m.IDLE_CPU),
            ("foreign_cpu_share", m.EPOCH, m.FOREIGN_CPU),
        )
        if row.get(name) is not None
    ]
    if row.get("epoch_wall_s") is not None:
        wall = m.metric(cell, m.EPOCH, m.WALL, row["epoch_wall_s"], n=n)
        found.append(wall | {"low": row.get("ci_low_s"), "high": row.get("ci_high_s")})
    found += [
        m.metric(cell, phase, m.ALONE, row[f"{phase}_time_s"], n=n)
        for phase in PHASES
        if row.get(f"{phase}_time_s") is not None
    ]
    found += [
        m.metric(cell, stage, what, value, where=where, n=n)
        for stage, what, where, value in _counts(row, row["device"])
    ]
    return found
