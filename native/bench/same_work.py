"""Compare this revision's work with committed runs: gate digests and epoch counters.

    python native/bench/same_work.py results/reference/epyc-2-threads/* [--epochs 2] > same.json

Rebuilds each cell of the runs from its row, if its recipe can run here, gates it, and runs the
first epochs that the run has samples of. The digest of the gate's edges must be equal, and in each
epoch the batches, seeds, sampled edges and unique nodes. Third-party samplers use other random
numbers, so only batches and seeds are compared. Nothing is timed. Exits with 1 on a difference.
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
    """Build the cell of a row of ``cells.csv``."""
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
    """Describe the differences of a cell from its committed row."""
    torch.set_num_threads(cell.threads)
    system = SystemRunner(cell, load_dataset(cell.dataset))
    try:
        system.setup()
        report = system.check()
        faults = [] if report.ok else [f"the gate: {report.reason}"]
        if row["digest"] != report.digest:
            faults.append(f"digest {report.digest[:12]}, committed {row['digest'][:12]}")
        for sample in samples:
            timeline = Timeline.on(cell.device)
            timeline.start()
            system.run_epoch(sample["epoch"], timeline)
            timeline.stop()
            audit = system.audit(sample["epoch"])
            if not audit.ok:
                faults.append(f"epoch {sample['epoch']}: {audit.reason}")
            for name in COUNTERS if report.digest else COUNTERS[:2]:
                if getattr(audit, name) != sample[name]:
                    faults.append(
                        f"epoch {sample['epoch']}: {name} {getattr(audit, name)}, committed"
                        f" {sample[name]}"
                    )
        return faults
    finally:
        system.close()


def main() -> None:
    """Print a line per cell to standard error, and all results as JSON to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for folder in options.runs:
        if not (folder / "cells.csv").exists():
            continue
        run = reader.read(folder)
        for row in run.cells:
            if row["status"] not in ("ok", "unstable"):
                continue
            cell = cell_of(row)
            epochs = {s["epoch"]: s for s in run.samples if s["id"] == row["id"]}
            chosen = [epochs[e] for e in sorted(epochs)][: options.epochs]
            sampler = cell.recipe["sampler"]["name"]
            label = f"{folder.parent.name}/{folder.name}: {row['system']} {sampler}"
            if cell.id in seen:
                continue
            seen.add(cell.id)
            missing = from_plain(cell.system, cell.recipe).missing(cell.device, cell.goes_until)
            try:
                faults = differences(cell, row, chosen) if missing is None else [missing.reason]
                state = "missing" if missing else "different" if faults else "same"
            except GnnbenchError as error:
                faults, state = [str(error)], "error"
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
                    "why": faults,
                }
            )
            print(
                f"{state:9} {label} {cell.dataset} {row['fanouts']} {cell.batch_size}"
                f" {'; '.join(faults)}",
                file=sys.stderr, flush=True,
            )  # fmt: skip
    print(json.dumps(rows, indent=1))
    sys.exit(any(r["state"] in ("different", "error") for r in rows))


if __name__ == "__main__":
    main()
