"""A training step and its matrix products alone: the possible gain for wide rows on a CPU.

Floor of a step on a block's S sources, D destinations and E edges, rows of W values into H columns,
W first: the product and that of W's gradient are 4 S W H operations and read the S rows of W values
twice; the aggregation moves rows of H values, 4 H (2 E + S + D) bytes. Where W is in the thousands
the products are all but everything, and torch's are what every framework calls.

A step's products are noted as torch is asked for them, then done again by themselves, on the same
tensors; steps and products take turns. ``ceiling`` is the rate of multiply-adds of all threads.

    GNNBENCH_REAL_DATA=FOLDER python native/bench/products.py coauthor_physics --out results.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gnnbench import load_dataset
from gnnbench.core.cell import Cell, Until
from gnnbench.kernels import ceilings
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.runner import SystemRunner

STEPS = 1 << 22  # of a chain of multiply-adds


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    parser.add_argument("--system", default="fastsample")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--fanouts", type=int, nargs="+", default=[15, 10, 5])
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    return parser.parse_args()


class Products(TorchDispatchMode):
    """Notes the matrix products that torch is asked for, with their operands."""

    NAMES = ("aten::mm", "aten::addmm")

    def __init__(self) -> None:
        super().__init__()
        self.operands: list[tuple[Tensor, Tensor]] = []
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Torch's hook."""
        if func.name() in self.NAMES:
            a, b = args[-2:]
            self.operations += 2 * a.shape[0] * a.shape[1] * b.shape[1]
            self.operands.append((a.detach(), b.detach()))
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def again(operands: list[tuple[Tensor, Tensor]]) -> None:
    """The products alone."""
    for a, b in operands:
        torch.mm(a, b)


def timed(call: Callable[[], Any]) -> float:
    """Seconds."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def system_of(options: argparse.Namespace) -> SystemRunner:
    """The system, set up."""
    graph, named = load_dataset(options.dataset), find(options.system)
    recipe = named.resolved({}, "cpu", Until.COMPUTE).recipe
    cell = Cell(
        "products", options.system, graph.name, options.model, batch_size=options.batch_size,
        fanouts=tuple(options.fanouts), hidden=options.hidden, recipe=recipe,
    )  # fmt: skip
    made = SystemRunner(cell, graph)
    made.setup()
    return made


def measure(system: SystemRunner, options: argparse.Namespace) -> dict[str, Any]:
    """Medians over batches and repeats."""
    stages, trainer = system.stages, system.trainer
    assert stages.store is not None and trainer is not None
    steps, alone, operations = [], [], []
    for number, seeds in enumerate(system.seeds(0)[: options.batches]):
        batch = stages.sampler.sample(seeds, 0, number)
        rows = stages.store.load(batch)
        noted = Products()
        with noted, torch.enable_grad():
            trainer.step(batch, rows)
        operations.append(noted.operations)
        for _ in range(options.repeats):
            steps.append(timed(partial(trainer.step, batch, rows)))
            alone.append(timed(partial(again, noted.operands)))
    ceiling = max(_rate() for _ in range(options.repeats))
    return {
        "dataset": system.graph.name, "system": options.system, "model": options.model,
        "batch_size": options.batch_size, "fanouts": options.fanouts, "hidden": options.hidden,
        "threads": options.threads, "feature_dim": system.graph.feature_dim,
        "step_s": statistics.median(steps), "products_s": statistics.median(alone),
        "step_over_products": statistics.median(
            step / product for step, product in zip(steps, alone, strict=True)
        ),
        "operations": statistics.median(operations), "ceiling_per_s": ceiling,
    }  # fmt: skip


def _rate() -> float:
    """Floating-point operations a second of multiply-adds."""
    like = torch.zeros(1)
    begin = time.perf_counter()
    done = int(ceilings.fma(like, STEPS))
    return 2 * done / (time.perf_counter() - begin)


def main() -> None:
    """Measure, print, write."""
    options = arguments()
    torch.set_num_threads(options.threads)
    found = measure(system_of(options), options)
    rate = found["operations"] / found["products_s"]
    print(
        f"step {found['step_s'] * 1e3:.1f} ms, products alone {found['products_s'] * 1e3:.1f} ms"
        f" (step / products {found['step_over_products']:.3f}); {found['operations'] / 1e9:.1f} G"
        f" operations at {rate / 1e9:.1f} G/s, {rate / found['ceiling_per_s']:.2f} of the"
        f" multiply-adds' {found['ceiling_per_s'] / 1e9:.1f} G/s"
    )
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
