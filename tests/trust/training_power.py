"""False alarms and detection rates of the training check, for one setting.

    python tests/trust/training_power.py amazon_computers gin --fanouts 5 5 --max-batches 4

Trains DGL, the baseline and faulty baselines on the CPU, then applies ``find_excess`` to
comparisons drawn from these trainings, with the repeat that a run makes.
"""

from __future__ import annotations

import argparse
import random
import secrets
from typing import Any

import torch

from gnnbench import load_dataset
from gnnbench.core.cell import Cell, Until
from gnnbench.harness.training_check import REPEATS, RETRAININGS, find_excess
from gnnbench.measure.timeline import Timeline
from gnnbench.schema.samples import EpochSample
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.runner import SystemRunner

SYSTEMS = {  # name -> system, share of the learning rate, every how many-th update is skipped
    "dgl": ("dgl", 1.0, 0),
    "baseline": ("baseline", 1.0, 0),
    "a quarter of the updates skipped": ("baseline", 1.0, 4),
    "half of the updates skipped": ("baseline", 1.0, 2),
    "half the learning rate": ("baseline", 0.5, 0),
}
Training = list[EpochSample]


def train(cell: Cell, graph: Any, epochs: list[int], rate: float, skipped: int) -> Training:
    """The epochs of one training from the first weights."""
    system = find(cell.system).build(cell, graph)
    assert isinstance(system, SystemRunner)
    system.setup()
    trainer = system.trainer
    assert trainer is not None
    trainer._optimizer._lr *= rate
    step, count = trainer.step, 0

    def some(batch: Any, rows: torch.Tensor) -> None:
        nonlocal count
        count += 1
        if not skipped or count % skipped:
            return step(batch, rows)
        with torch.no_grad():
            logits = trainer.model(trainer.framework.blocks(batch), rows)
            labels = trainer.labels_of(batch)
            loss = torch.nn.functional.cross_entropy(logits, labels, ignore_index=-1)
            trainer.losses.append(loss)

    trainer.step = some  # type: ignore[method-assign]
    records = []
    for epoch in epochs:
        timeline = Timeline.on("cpu")
        timeline.start()
        system.run_epoch(epoch, timeline)
        timeline.stop()
        report = system.audit(epoch).to_json()
        records.append(EpochSample.parse(report))
    system.close()
    return records


def refused(trials: list[tuple[Training, Training]], spread: list[Training], pairs: int) -> bool:
    """Whether a run of so many pairs calls the system incorrect."""
    seen: list[str] = []
    fresh: list[tuple[Training, Training]] = []
    counted = 0
    for trial in trials:
        fresh.append(trial)
        excess = find_excess(fresh, [], "equivalent") and find_excess(fresh, spread, "equivalent")
        if excess is None:
            counted += 1
        elif seen.count(excess.quantity) >= REPEATS:
            return True
        else:
            seen.append(excess.quantity)
            fresh = []
        if counted == pairs:
            return False
    return False


def main() -> None:
    """Print a line for each system with each reference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--fanouts", type=int, nargs="+", default=[5, 5])
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--max-batches", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--trainings", type=int, default=16)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--comparisons", type=int, default=60)
    given = parser.parse_args()
    torch.set_num_threads(1)
    graph = load_dataset(given.dataset)
    runs: dict[str, list[Training]] = {name: [] for name in SYSTEMS}
    for _ in range(given.trainings):
        epochs = [secrets.randbelow(2**30) for _ in range(given.epochs)]
        for name, (system, rate, skipped) in SYSTEMS.items():
            recipe = find(system).resolved({}, "cpu", Until.COMPUTE).recipe
            cell = Cell(
                "power", system, graph.name, given.model, batch_size=given.batch_size,
                fanouts=tuple(given.fanouts), max_batches=given.max_batches, recipe=recipe,
                threads=1,
            )  # fmt: skip
            runs[name].append(train(cell, graph, epochs, rate, skipped))
    for reference, name in (("baseline", "dgl"), *(("dgl", n) for n in SYSTEMS if n != "dgl")):
        count = 0
        for _ in range(given.comparisons):
            order = random.sample(range(given.trainings), given.trainings)
            trials = [
                (runs[reference][n], runs[name][n]) for n in order[: given.pairs + 1 + REPEATS]
            ]
            rest = order[given.pairs + 1 + REPEATS :][:RETRAININGS]
            count += refused(trials, [runs[reference][n] for n in rest], given.pairs)
        print(f"{name} compared with {reference}: incorrect in {count} of {given.comparisons}")


if __name__ == "__main__":
    main()
