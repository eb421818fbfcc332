"""Measure time and memory of twin generation; with a GPU, on both devices with a bitwise check.

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

from gnnbench.datasets.generators.twin import make_spec
from gnnbench.datasets.manifest import manifests
from gnnbench.kernels import twin


def generate(spec: twin.TwinSpec, device: str) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Generate all arrays of a twin. Return them and the seconds that each took."""
    arrays: dict[str, Tensor] = {}
    seconds: dict[str, float] = {}
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def timed(name: str, call: Any) -> Any:
        wait()
        begin = time.perf_counter()
        result = call()
        wait()
        seconds[f"{name}_s"] = time.perf_counter() - begin
        return result

    arrays["indptr"], arrays["indices"] = timed("graph", lambda: twin.graph(spec, device))
    arrays["labels"] = timed("labels", lambda: twin.labels(spec, device))
    parts = timed("splits", lambda: twin.splits(spec, device))
    arrays |= dict(zip(("train", "val", "test"), parts, strict=True))
    arrays["features"] = timed("features", lambda: twin.features(spec, 0, spec.num_nodes, device))
    return arrays, seconds


def sha256(array: Tensor) -> str:
    """Return the digest of the array's bytes."""
    return hashlib.sha256(array.cpu().numpy().data).hexdigest()


def main() -> None:
    """Generate each twin on every available device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["reddit", "products"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    parser.add_argument("--out", type=Path, default=Path("twins.json"))
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    devices = ["cuda", "cpu"] if torch.cuda.is_available() else ["cpu"]
    rows = []
    for name in options.datasets:
        spec = make_spec(manifests()[name].twin_recipe().scaled(options.scale), 0)
        row: dict[str, Any] = {
            "name": name, "scale": options.scale, "nodes": spec.num_nodes, "edges": spec.num_edges,
            "threads": torch.get_num_threads(),
        }  # fmt: skip
        digests = []
        for device in devices:
            generate(spec, device)  # the first call loads kernels and touches memory
            if device == "cuda":
                torch.cuda.reset_peak_memory_stats()
            arrays, seconds = generate(spec, device)
            row |= {f"{device}_{name}": taken for name, taken in seconds.items()}
            row[f"{device}_edges_per_s"] = spec.num_edges / seconds["graph_s"]
            if device == "cuda":
                row["cuda_peak_alloc_bytes"] = torch.cuda.max_memory_allocated()
            digests.append({key: sha256(array) for key, array in arrays.items()})
            del arrays
        row["sha256"] = digests[0]
        wrong = [key for key in digests[0] if digests[-1][key] != digests[0][key]]
        print({k: v for k, v in row.items() if k != "sha256"}, "DIFFERS:" if wrong else "equal",
              *wrong, flush=True)  # fmt: skip
        rows.append(row)
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
        if wrong:
            sys.exit(1)


if __name__ == "__main__":
    main()
