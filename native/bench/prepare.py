"""Measure the cost of preparing a twin at several sizes, in the processes that a run uses.

    GNNBENCH_DATA=/dev/shm/gnnbench python native/bench/prepare.py --out prepare.json

Each size is prepared from scratch, as a run's shared-memory cache does it: one process generates
edges, labels and splits, writes them to the store (a temporary folder below $GNNBENCH_DATA),
validates them and seals them; another generates the features in shared memory. Rounds alternate
between ascending and descending sizes. Times are wall times and include process start-up. Memory is
the peak resident memory of each process, for the GPU torch's reserved memory. Writes JSON to --out,
with a linear fit per quantity: the cost per edge, the fixed cost, and the largest deviation of a
size from the line in percent.
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
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="papers100m")
    parser.add_argument("--scales", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1800.0, help="limit per process, s")
    parser.add_argument("--out", type=Path, default=Path("prepare.json"))
    return parser.parse_args(given)


def cell_of(dataset: str, folder: Path) -> Cell:
    """Return a cell with the dataset; its system has no effect."""
    over = Overrides(profile="smoke", systems=("baseline",), datasets=(dataset,))
    return make_request("breakdown", over, folder).plan.cells[0]


def prepare(dataset: str, folder: Path, timeout_s: float) -> dict[str, float]:
    """Prepare a dataset in an empty store, return its costs, and remove the store."""
    store = folder / "store"
    os.environ["GNNBENCH_DATA"] = str(store)
    cache = SharedMemoryCache(folder, timeout_s)
    try:
        cell = cell_of(dataset, folder)
        begin = time.perf_counter()
        if (failure := cache.prepare(cell)) is not None:
            raise SystemExit(f"{dataset}: {failure.reason}")
        topology = time.perf_counter()
        graph = cache.graph(cell)
        end = time.perf_counter()
        assert graph is not None
        meta = layout.read_meta(Path(graph["folder"]))
        topology_cost, features = cache.prepared[dataset], cache.facts[dataset]["features"]
        return {
            "nodes": meta["num_nodes"],
            "edges": meta["num_edges"],
            "topology_s": topology - begin,
            "features_s": end - topology,
            "whole_s": end - begin,
            "topology_rss_bytes": topology_cost["peak_rss_bytes"],
            "gpu_bytes": topology_cost.get("peak_gpu_bytes", 0),
            "stored_bytes": sum(file.stat().st_size for file in Path(graph["folder"]).iterdir()),
            "features_bytes": features["bytes"],
            "features_huge_bytes": features["huge_bytes"],
        }
    finally:
        cache.close()
        shutil.rmtree(store, ignore_errors=True)


def line_through(edges: Sequence[float], values: Sequence[float]) -> dict[str, float]:
    """Fit a line by least squares.

    Return the cost per edge, the fixed cost, and the largest deviation in percent of the line.
    """
    slope, fixed = statistics.linear_regression(edges, values)
    expected = [fixed + slope * n for n in edges]
    deviations = [100 * abs(v - e) / e for v, e in zip(values, expected, strict=True) if e > 0]
    return {"per_edge": slope, "fixed": fixed, "worst_off_percent": max(deviations, default=0.0)}


def main(given: Sequence[str] | None = None) -> None:
    """Prepare every size in each round."""
    options = arguments(given)
    os.environ["GNNBENCH_FEATURES"] = "memory"
    root = data_root()
    existed = root.exists()
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
    measured: dict[float, list[dict[str, float]]] = {scale: [] for scale in options.scales}
    folder = Path(tempfile.mkdtemp(prefix="bench-prepare-", dir=root))
    try:
        for number in range(options.rounds):
            for scale in options.scales[:: -1 if number % 2 else 1]:
                costs = prepare(f"{options.dataset}~twin@{scale:g}", folder, options.timeout)
                measured[scale].append(costs)
                text = ", ".join(f"{k} {v:.4g}" for k, v in costs.items())
                print(f"@{scale:g}: {text}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not existed:
            root.rmdir()
    results: list[dict[str, Any]] = []
    for scale, rounds in measured.items():
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
