"""What preparing a twin takes at several sizes, in the processes that a run has for it.

    GNNBENCH_DATA=/dev/shm/gnnbench python native/bench/prepare.py --out prepare.json

Each size is made anew, as a run's keeper makes it: one process generates edges, labels and splits,
writes them to the store (a folder of its own below $GNNBENCH_DATA, removed at the end), looks
through them and seals them; another makes the features in memory that workers share. Rounds go
through the sizes up, then down. Times are those of the wall, each process's start in them; memory
is what each process had resident at most, the GPU's as torch reserved it. JSON goes to --out. For
each quantity its share of an edge, and how far the worst size is from the straight line through all
of them, in percent of it: a line that does not go through 0 has a fixed part.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import torch

from gnnbench.config.overrides import Overrides
from gnnbench.core.cell import Cell
from gnnbench.datasets.paths import data_root
from gnnbench.datasets.store import layout
from gnnbench.harness.launch import make_request
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.measure import machine

QUANTITIES = ("topology_s", "features_s", "whole_s", "topology_rss_bytes", "gpu_bytes",
              "stored_bytes", "features_bytes")  # fmt: skip


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="papers100m")
    parser.add_argument("--scales", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1800.0, help="of a process, s")
    parser.add_argument("--out", type=Path, default=Path("prepare.json"))
    return parser.parse_args(given)


def cell_of(dataset: str, folder: Path) -> Cell:
    """A cell that asks for the dataset; which system is all the same."""
    over = Overrides(profile="smoke", systems=("baseline",), datasets=(dataset,))
    return make_request("breakdown", over, folder).plan.cells[0]


def prepare(dataset: str, folder: Path, timeout_s: float) -> dict[str, float]:
    """Make a dataset in an empty store, and tell what it took; the store is empty again then."""
    store = folder / "store"
    os.environ["GNNBENCH_DATA"] = str(store)
    keeper = SharedMemoryCache(folder, timeout_s)
    try:
        cell = cell_of(dataset, folder)
        begin = time.perf_counter()
        if (failure := keeper.prepare(cell)) is not None:
            raise SystemExit(f"{dataset}: {failure.reason}")
        topology = time.perf_counter()
        graph = keeper.graph(cell)
        end = time.perf_counter()
        assert graph is not None
        meta = layout.read_meta(Path(graph["folder"]))
        took, held = keeper.prepared[dataset], keeper.facts[dataset]["features"]
        return {
            "nodes": meta["num_nodes"],
            "edges": meta["num_edges"],
            "topology_s": topology - begin,
            "features_s": end - topology,
            "whole_s": end - begin,
            "topology_rss_bytes": took["peak_rss_bytes"],
            "gpu_bytes": took.get("peak_gpu_bytes", 0),
            "stored_bytes": sum(file.stat().st_size for file in Path(graph["folder"]).iterdir()),
            "features_bytes": held["bytes"],
            "features_huge_bytes": held["huge_bytes"],
        }
    finally:
        keeper.close()
        shutil.rmtree(store, ignore_errors=True)


def line_through(edges: Sequence[float], values: Sequence[float]) -> dict[str, float]:
    """Least squares: what an edge takes, what is fixed, and the worst size's distance in percent
    of the line's value there."""
    slope, fixed = statistics.linear_regression(edges, values)
    expected = [fixed + slope * n for n in edges]
    off = [100 * abs(v - e) / e for v, e in zip(values, expected, strict=True) if e > 0]
    return {"per_edge": slope, "fixed": fixed, "worst_off_percent": max(off, default=0.0)}


def main(given: Sequence[str] | None = None) -> None:
    """Make every size, round by round."""
    options = arguments(given)
    os.environ["GNNBENCH_FEATURES"] = "memory"
    root = data_root()
    there = root.exists()
    root.mkdir(parents=True, exist_ok=True)
    gpus = torch.cuda.is_available()
    facts = {
        "dataset": f"{options.dataset}~twin", "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if gpus else "CPU",
        "threads": machine.resolve_threads(0), "memory_bytes": psutil.virtual_memory().total,
        "store": "memory" if str(root).startswith("/dev/shm") else "disk",
        "rounds": options.rounds, "load_1min": os.getloadavg()[0],
    }  # fmt: skip
    print(facts, flush=True)
    found: dict[float, list[dict[str, float]]] = {scale: [] for scale in options.scales}
    folder = Path(tempfile.mkdtemp(prefix="bench-prepare-", dir=root))
    try:
        for turn in range(options.rounds):
            for scale in options.scales[:: -1 if turn % 2 else 1]:
                took = prepare(f"{options.dataset}~twin@{scale:g}", folder, options.timeout)
                found[scale].append(took)
                text = ", ".join(f"{k} {v:.4g}" for k, v in took.items())
                print(f"@{scale:g}: {text}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not there:
            root.rmdir()
    results: list[dict[str, Any]] = []
    for scale, rounds in found.items():
        keys = rounds[0]
        row = {key: statistics.median(one[key] for one in rounds) for key in keys}
        spread = {key: [min(one[key] for one in rounds), max(one[key] for one in rounds)]
                  for key in ("topology_s", "features_s", "whole_s")}  # fmt: skip
        results.append({"scale": scale, **row, "range": spread})
    lines = {}
    if len(results) > 1:
        edges = [row["edges"] for row in results]
        lines = {key: line_through(edges, [row[key] for row in results]) for key in QUANTITIES}
    options.out.write_text(json.dumps({**facts, "results": results, "lines": lines}, indent=1))


if __name__ == "__main__":
    main()
