"""Time and memory of making full-size twins on the GPU, and that they have the CPU's bits.

python native/bench/twins.py --datasets reddit products --out twins.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnnbench.data.manifest import manifests
from gnnbench.data.twin import make_spec
from gnnbench.ops import twin


def make(spec: twin.TwinSpec, device: str) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Every array of a twin and the seconds that each took."""
    arrays: dict[str, Tensor] = {}
    seconds: dict[str, float] = {}

    def timed(what: str, call: Any) -> Any:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        made = call()
        torch.cuda.synchronize()
        seconds[f"{what}_s"] = time.perf_counter() - begin
        return made

    arrays["indptr"], arrays["indices"] = timed("graph", lambda: twin.graph(spec, device))
    arrays["labels"] = timed("labels", lambda: twin.labels(spec, device))
    parts = timed("splits", lambda: twin.splits(spec, device))
    arrays |= dict(zip(("train", "val", "test"), parts, strict=True))
    arrays["features"] = timed("features", lambda: twin.features(spec, 0, spec.num_nodes, device))
    return arrays, seconds


def sha256(array: Tensor) -> str:
    """Of the array's bytes."""
    return hashlib.sha256(array.cpu().numpy().data).hexdigest()


def main() -> None:
    """Make each twin on both devices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["reddit", "products"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: torch's default")
    parser.add_argument("--out", type=Path, default=Path("twins.json"))
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    rows = []
    for name in options.datasets:
        recipe = manifests()[name].twin
        if recipe is None:
            sys.exit(f"{name} has no twin")
        spec = make_spec(recipe.scaled(options.scale), 0)
        make(spec, "cuda")  # the first call loads the kernels
        torch.cuda.reset_peak_memory_stats()
        on_gpu, seconds = make(spec, "cuda")
        row: dict[str, Any] = {
            "name": name, "nodes": spec.num_nodes, "edges": spec.num_edges, **seconds,
            "peak_alloc_bytes": torch.cuda.max_memory_allocated(),
        }  # fmt: skip
        on_cpu, cpu_seconds = make(spec, "cpu")
        row |= {f"cpu_{what}": taken for what, taken in cpu_seconds.items()}
        row["sha256"] = {key: sha256(array) for key, array in on_gpu.items()}
        wrong = [key for key, array in on_cpu.items() if sha256(array) != row["sha256"][key]]
        print({k: v for k, v in row.items() if k != "sha256"}, "DIFFERS:" if wrong else "equal",
              *wrong, flush=True)  # fmt: skip
        rows.append(row)
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
        if wrong:
            sys.exit(1)


if __name__ == "__main__":
    main()
