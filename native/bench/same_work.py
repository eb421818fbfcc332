"""This revision's work held against committed runs: digests of the gate, counters of every epoch.

    python native/bench/same_work.py results/reference/epyc-2-threads/* [--epochs 2] > same.json

Every cell of the runs that a recipe of ours can make here is built anew from its row, gated, and
runs the first epochs that the run has samples of. Equal must be the digest of the gate's edges
and, epoch by epoch, batches, seeds, sampled edges and unique nodes; a foreign sampler draws other
numbers and is held to batches and seeds alone. Nothing is timed. Exit code 1 on a difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

from gnnbench.core.cell import Cell
from gnnbench.core.errors import GnnbenchError
from gnnbench.datasets.prepare import load_dataset
from gnnbench.measure.timeline import Timeline
from gnnbench.schema import reader
from gnnbench.systems.runtime.recipe import from_plain
from gnnbench.systems.runtime.runner import SystemRunner

COUNTERS = ("batches", "seeds", "sampled_edges", "unique_nodes")


def cell_of(row: dict[str, Any]) -> Cell:
    """The cell that a row of ``cells.csv`` was measured as."""
    names = ("experiment", "system", "dataset", "model", "until", "device", "batch_size", "seed")
    return Cell(
        **{name: row[name] for name in names},
        fanouts=tuple(map(int, row["fanouts"].split("/"))),
        hidden=row["hidden"] or 0,
        learning_rate=row["learning_rate"] or 0.0,
        threads=row["threads"],
        max_batches=row["max_batches"] or 0,
        recipe=json.loads(row["recipe"]),
    )


def differences(cell: Cell, row: dict[str, Any], samples: list[dict[str, Any]]) -> list[str]:
    """What differs of a cell, as sentences."""
    torch.set_num_threads(cell.threads)
    system = SystemRunner(cell, load_dataset(cell.dataset))
    try:
        system.setup()
        report = system.check()
        found = [] if report.ok else [f"the gate: {report.reason}"]
        if row["digest"] != report.digest:
            found.append(f"digest {report.digest[:12]} where it was {row['digest'][:12]}")
        for sample in samples:
            timeline = Timeline.on(cell.device)
            timeline.start()
            system.run_epoch(sample["epoch"], timeline)
            timeline.stop()
            now = system.audit(sample["epoch"])
            if not now.ok:
                found.append(f"epoch {sample['epoch']}: {now.reason}")
            for name in COUNTERS if report.digest else COUNTERS[:2]:
                if getattr(now, name) != sample[name]:
                    found.append(
                        f"epoch {sample['epoch']}: {name} {getattr(now, name)} where it was"
                        f" {sample[name]}"
                    )
        return found
    finally:
        system.close()


def main() -> None:
    """Print a line a cell on standard error, everything as JSON on standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for folder in given.runs:
        if not (folder / "cells.csv").exists():
            continue
        run = reader.read(folder)
        for row in run.cells:
            if row["status"] not in ("ok", "unstable"):
                continue
            cell = cell_of(row)
            own = [s for s in run.samples if s["id"] == row["id"]]
            epochs = {s["epoch"]: s for s in own}
            chosen = [epochs[e] for e in sorted(epochs)][: given.epochs]
            sampler = cell.recipe["sampler"]["name"]
            label = f"{folder.parent.name}/{folder.name}: {row['system']} {sampler}"
            if cell.id in seen:
                continue
            seen.add(cell.id)
            missing = from_plain(cell.system, cell.recipe).missing(cell.device, cell.goes_until)
            try:
                found = differences(cell, row, chosen) if missing is None else [missing.reason]
                state = "missing" if missing else "different" if found else "same"
            except GnnbenchError as error:
                found, state = [str(error)], "error"
            rows.append(
                {
                    "cell": label,
                    "dataset": cell.dataset,
                    "fanouts": row["fanouts"],
                    "batch_size": cell.batch_size,
                    "device": cell.device,
                    "digest": row["digest"],
                    "epochs": len(chosen),
                    "state": state,
                    "why": found,
                }
            )
            print(
                f"{state:9} {label} {cell.dataset} {row['fanouts']} {cell.batch_size}"
                f" {'; '.join(found)}",
                file=sys.stderr, flush=True,
            )  # fmt: skip
    print(json.dumps(rows, indent=1))
    sys.exit(any(t["state"] in ("different", "error") for t in rows))


if __name__ == "__main__":
    main()
