"""Run folders with rows written by hand."""

from __future__ import annotations

import json
from pathlib import Path

from gnnbench.reproduction.claim import Claim
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge
from gnnbench.schema import CELLS, METRICS, RATIOS, ROOFLINE, SAMPLES, VERSION
from gnnbench.schema.writer import write_csv

CELL = {
    "experiment": "cache-ratio", "env": "", "reference": "baseline", "reference_id": "ref",
    "dataset": "papers100m~twin@0.1", "until": "memory_io", "device": "cpu", "batch_size": 8000,
    "fanouts": "15/10/5", "threads": 2, "seed": 0, "max_batches": 0, "nodes": 1000,
    "judged": "memory_io_time_s", "judged_s": 1.0, "status": "ok", "work_class": "identical",
    "schema_version": VERSION,
}  # fmt: skip


def cell(ident, system="tsota", recipe=None, **more):
    """A row of cells.csv."""
    return {**CELL, "id": ident, "system": system, "recipe": json.dumps(recipe or {}), **more}


def cached(ident, policy, size, **more):
    """A row of a system with a cache."""
    return cell(
        ident, recipe={"features": {"name": "cache", "policy": policy, "ratio": size}}, **more
    )


def epochs(ident, *served, life=0, **more):
    """Measured epochs of a cell; each of ``served`` maps a place to its feature bytes."""
    return [
        {
            "id": ident, "system": "tsota", "dataset": "d", "pair": "p", "life": life, "worker": 1,
            "round": n, "order": 0, "warmup": False, "epoch": 100 + n, "wall_s": 1.0, "ok": True,
            "counts": [["features", "feature_bytes", where, size] for where, size in at.items()],
            **more,
        }
        for n, at in enumerate(served)
    ]  # fmt: skip


def metric(ident, stage, name, value, low=None, high=None, n=2, where=""):
    """A row of metrics.csv."""
    return {
        "id": ident, "stage": stage, "name": name, "where": where, "value": value, "low": low,
        "high": high, "n": n, "unit": "1", "description": "",
    }  # fmt: skip


def write_run(
    folder: Path, cells, samples=(), metrics=(), ratios=(), roofline=(),
    started="20260101T000000Z", machine="here", record=None,
):  # fmt: skip
    """Write a run's folder; ``record`` is added to its ``run.json``."""
    folder.mkdir(parents=True)
    known = {c.name for c in SAMPLES}
    rows = [{"void": False, **{k: v for k, v in s.items() if k in known}} for s in samples]
    write_csv(folder / "cells.csv", CELLS, cells)
    write_csv(folder / "samples.csv", SAMPLES, rows)
    write_csv(folder / "metrics.csv", METRICS, metrics)
    write_csv(folder / "ratios.csv", RATIOS, ratios)
    write_csv(folder / "roofline.csv", ROOFLINE, roofline)
    lines = "".join(json.dumps(s) + "\n" for s in samples)
    (folder / "samples.jsonl").write_text(lines)
    run_record = {
        "started": started, "machine_id": machine, "finished": True, "profile": "laptop",
        "experiment": {"name": "cache-ratio", "title": "Hits"},
        "machine": {"cores_usable": 2, "cpu": "a <processor>", "memory_bytes": 2**34},
        "versions": {"python": "3.11"}, "revision": {"git_revision": "0123456789abcdef"},
        **(record or {}),
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run_record))
    return folder


def claim(**more):
    """A claim of a hit ratio of 50 % at a ratio of 0.1, within 5 points."""
    common = {
        "id": "gnnlab/fig0.a1", "source": "Fig. 0", "says": "it hits 50 %", "unit": "%",
        "measure": "hit_ratio", "of": "tsota features.policy=degree features.ratio=0.1",
        "number": 0.5, "tolerance": 0.05, "runs": ["cache-ratio smoke", "cache-ratio laptop"],
    }  # fmt: skip
    return Claim(**{k: v for k, v in {**common, **more}.items() if v is not None})


def timed(**more):
    """A claim that degree takes 2 to 3 times as long as presc#1."""
    common = {
        "measure": "time", "of": "tsota features.policy=degree", "by": "ratio", "kind": "range",
        "versus": "tsota features.policy=presc#1", "number": (2.0, 3.0), "tolerance": 0.0,
        "unit": "x", "port": "S",
    }  # fmt: skip
    return claim(**{**common, **more})


def verdict_of(claim, *folders):
    """The verdict on one claim by the runs in these folders."""
    (judged,) = judge([claim], open_runs(list(folders)))
    return judged
