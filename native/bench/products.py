"""Time a training step and its matrix products alone: the possible gain for wide rows on a CPU.

Lower bound of a step on a block with S sources, D destinations and E edges that maps rows of W
values to H columns, with the product first: the product and its weight gradient take 4 S W H
operations and read the S rows of W values twice; the aggregation moves rows of H values, 4 H (2 E +
S + D) bytes. With W in the thousands the products dominate, and all frameworks call torch's.

The operands of a step's products are recorded by a dispatch mode. The products are then repeated
alone on the same tensors, alternating with steps. ``ceiling`` is the measured multiply-add peak of
all threads.

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

STEPS = 1 << 22  # length of a chain of multiply-adds


def arguments() -> argparse.Namespace:
    """Parse the command line."""
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
    """Records the operands and operations of the matrix products that torch dispatches."""

    NAMES = ("aten::mm", "aten::addmm")

    def __init__(self) -> None:
        super().__init__()
        self.operands: list[tuple[Tensor, Tensor]] = []
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record ``func`` if it is a product, then call it."""
        if func.name() in self.NAMES:
            a, b = args[-2:]
            self.operations += 2 * a.shape[0] * a.shape[1] * b.shape[1]
            self.operands.append((a.detach(), b.detach()))
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def repeat_products(operands: list[tuple[Tensor, Tensor]]) -> None:
    """Compute the recorded products."""
    for a, b in operands:
        torch.mm(a, b)


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def system_of(options: argparse.Namespace) -> SystemRunner:
    """Build the system and set it up."""
    graph, named = load_dataset(options.dataset), find(options.system)
    recipe = named.resolved({}, "cpu", Until.COMPUTE).recipe
    cell = Cell(
        "products", options.system, graph.name, options.model, batch_size=options.batch_size,
        fanouts=tuple(options.fanouts), hidden=options.hidden, recipe=recipe,
    )  # fmt: skip
    system = SystemRunner(cell, graph)
    system.setup()
    return system


def measure(system: SystemRunner, options: argparse.Namespace) -> dict[str, Any]:
    """Return medians over batches and repeats."""
    stages, trainer = system.stages, system.trainer
    assert stages.store is not None and trainer is not None
    steps, alone, operations = [], [], []
    for number, seeds in enumerate(system.seeds(0)[: options.batches]):
        batch = stages.sampler.sample(seeds, 0, number)
        rows = stages.store.load(batch)
        recorded = Products()
        with recorded, torch.enable_grad():
            trainer.step(batch, rows)
        operations.append(recorded.operations)
        for _ in range(options.repeats):
            steps.append(timed(partial(trainer.step, batch, rows)))
            alone.append(timed(partial(repeat_products, recorded.operands)))
    ceiling = max(_peak_rate() for _ in range(options.repeats))
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


def _peak_rate() -> float:
    """Return the operations per second of multiply-adds."""
    like = torch.zeros(1)
    begin = time.perf_counter()
    done = int(ceilings.fma(like, STEPS))
    return 2 * done / (time.perf_counter() - begin)


def main() -> None:
    """Measure, print and write the results."""
    options = arguments()
    torch.set_num_threads(options.threads)
    result = measure(system_of(options), options)
    rate = result["operations"] / result["products_s"]
    print(
        f"step {result['step_s'] * 1e3:.1f} ms, products alone {result['products_s'] * 1e3:.1f} ms"
        f" (step / products {result['step_over_products']:.3f}); {result['operations'] / 1e9:.1f} G"
        f" operations at {rate / 1e9:.1f} G/s, {rate / result['ceiling_per_s']:.2f} of the"
        f" multiply-add peak of {result['ceiling_per_s'] / 1e9:.1f} G/s"
    )
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
