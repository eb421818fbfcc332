"""Runs on disk whose cells have ratios over one reference."""

from gnnbench import schema
from gnnbench.core import files
from gnnbench.schema import writer
from gnnbench.statistics.estimates import geometric_interval

ROW = {
    "system": "s", "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu",
    "pick": "floyd", "frontier": "cumulative", "law": "l", "batch_size": 8, "fanouts": "2/2",
    "hidden": 4, "learning_rate": 0.1, "seed": 0, "max_batches": 0, "recipe": "{}", "batches": 4,
    "epoch_batches": 4, "schema_version": schema.VERSION, "seeds": 32, "threads": 2,
    "sampled_edges": 1000, "unique_nodes": 500, "n": 4, "status": "ok", "reason": "",
}  # fmt: skip
REFERENCE = {"id": "ref", "system": "r", "verdict": "reference"}
# Ratios over the reference, pair by pair; the machine of the day is another each time.
RATIOS = (1.00, 1.01, 0.99, 1.00, 1.005)


def run(folder, cells, machine="m1", samples=True, day=1.0, **record):
    """A run on disk: a reference, and ``cells`` of (changes of the row, ratios over it)."""
    folder.mkdir()
    rows, taken = [{**ROW, **REFERENCE, "judged_s": day}], []
    for nth, (changes, ratios) in enumerate(cells):
        row = {
            **ROW,
            "id": f"c{nth}",
            "reference": "r",
            "reference_id": "ref",
            "verdict": "",
        } | changes
        pair = f"ref-{row['id']}"
        if ratios:
            row |= {"judged_s": day / sorted(ratios)[len(ratios) // 2], "pairs": len(ratios)}
            row |= {"ratio": sorted(ratios)[len(ratios) // 2]}
            ends = geometric_interval(ratios)
            row |= {"ratio_ci_low": ends.low, "ratio_ci_high": ends.high}
        rows.append(row)
        for trial, ratio in enumerate(ratios):
            for side, time in (("ref", day), (row["id"], day / ratio)):
                where = {"id": side, "pair": pair, "life": trial, "round": 0, "warmup": False}
                # Where sampling is judged the wall time is three times as long, whatever it is.
                taken.append(
                    {**where, "wall_s": time}
                    if row["until"] == "compute"
                    else {**where, "wall_s": 3.0, "sample_time_s": time}
                )
            taken.append({**where, "warmup": True, "wall_s": 100.0})
            taken.append({**where, "life": 99, "wall_s": 50.0, "void": True})
    writer.write_csv(folder / "cells.csv", schema.CELLS, rows)
    if samples:
        writer.write_csv(folder / "samples.csv", schema.SAMPLES, taken)
    files.write_json(folder / "run.json", {"machine_id": machine, "versions": {}, **record})
    return folder


def scaled(factor):
    return tuple(r * factor for r in RATIOS)
