"""Rows of machines.csv written by hand."""

from gnnbench.schema import MACHINES
from gnnbench.schema.writer import write_csv

ROW = {
    "dataset": "ogbn_arxiv", "partition": "dgl", "machines": 2, "rate_gbit_s": 1.0, "delay_s": 0.0,
    "fanouts": "15/10/5", "hops": 3, "batch_size": 1000, "hidden": 256, "order": 0, "first": True,
    "warmup": False, "epoch": 1, "copy_gbit_s": 0.95, "others_cores": 0.0, "features_s": 0.25,
    "steps": 10, "seeds": 10000, "sampled_edges": 4000, "input_nodes": 1000, "size_calls": 30,
    "reduces": 10, "size_bytes": 240, "reduced_bytes": 5000, "link_sent_bytes": 70000,
    "link_received_bytes": 70000, "first_loss": 2.0, "last_loss": 1.0, "loss_gap": None,
}  # fmt: skip


def epoch(system, trial, walls, samples, rounds, **more):
    """Both ranks' rows of an epoch."""
    counted = {"sample_bytes": 1000, "features_bytes": 40000}
    counted = {"sample_bytes": None, "features_bytes": None} if system == "distdgl" else counted
    return [
        {
            **ROW, **counted, "system": system, "life": trial, "rank": rank, "wall_s": wall,
            "sample_s": sample, "rounds": rounds, **more,
        }
        for rank, (wall, sample) in enumerate(zip(walls, samples, strict=True))
    ]  # fmt: skip


def run(lives=5, faster=2.0, **more):
    """Vanilla takes 4 s of which 2 are sampling; hybrid a ``faster``-th, sampling 0.5 s."""
    rows = []
    for trial in range(lives):
        drift = 1 + trial / 100  # common to all systems of a trial
        wall = 4.0 * drift
        rows += epoch("vanilla", trial, (wall, wall / 2), (2.0, 1.0), 60, **more)
        rows += epoch("vanilla", trial, (99.0, 99.0), (99.0, 99.0), 60, **{**more, "warmup": True})
        hybrid = {"loss_gap": 1e-6, **more}
        rows += epoch("hybrid", trial, (wall / faster,) * 2, (0.25, 0.5), 20, **hybrid)
        rows += epoch("distdgl", trial, (wall * 2,) * 2, (4.0, 3.0), 80, **more)
    return rows


def write(folder, rows, record="{}"):
    """Write a run's folder."""
    folder.mkdir(parents=True)
    write_csv(folder / "machines.csv", MACHINES, rows)
    (folder / "run.json").write_text(record)
