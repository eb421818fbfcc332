"""Rows of ``cells.csv`` for figures, and what figures show."""

import json

from gnnbench.schema import VERSION

JUDGED = {"sample": "sample_time_s", "memory_io": "memory_io_time_s", "compute": "epoch_wall_s"}


def plot_cell(ident, experiment, until, recipe, /, **values):
    """A cell of the baseline on a CPU that was measured."""
    return {
        "id": str(ident), "experiment": experiment, "reference": "baseline", "system": "baseline",
        "dataset": "d", "until": until, "device": "cpu", "threads": 2, "batch_size": 100,
        "fanouts": "15/10/5", "status": "ok", "judged": JUDGED[until], "schema_version": VERSION,
        "recipe": json.dumps(recipe), **values,
    }  # fmt: skip


def lines(ax):
    """x and y of every line by its label."""
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
        for line in ax.lines
        if line.get_label()[0] != "_"
    }
