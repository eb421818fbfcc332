"""The phases of an epoch's batches one by one, each between two readings of the harness's clock.

In a timed epoch the schedule says which phase runs when. Here nobody is asked: a batch is drawn and
its nodes are read, then its rows are loaded, then the model is trained on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gnnbench.core.cell import phases
from gnnbench.core.minibatch import Batch
from gnnbench.measure.timed import timed
from gnnbench.pipelines.schedule import Stages

BATCHES = 8  # of an epoch


def probe(
    stages: Stages,
    epochs: Sequence[tuple[int, Sequence[Tensor]]],
    device: torch.device,
    until: str,
    look: Callable[[Batch, Tensor], None] = lambda batch, seeds: None,
) -> dict[str, list[float]]:
    """Seconds of each phase of every batch looked at, of ``epochs``: numbers and seeds by batch.

    ``look`` is shown each batch and its seeds, outside the clock. Of batches that are drawn ahead
    together each loads for the mean of them. A short last batch is left out.
    """
    found: dict[str, list[float]] = {phase: [] for phase in phases(until)}
    for epoch, batches in epochs:
        if stages.store is not None:
            stages.store.forget()
        whole = [(n, s) for n, s in enumerate(batches) if s.numel() == batches[0].numel()]
        last: Batch | None = None
        ahead = stages.window
        for first in range(0, min(max(BATCHES, ahead), len(whole)), ahead):
            drawn: list[Batch] = []
            for number, seeds in whole[first : first + ahead]:

                def draw(seeds: Tensor = seeds, epoch: int = epoch, number: int = number) -> Batch:
                    batch = stages.sampler.sample(seeds, epoch, number)
                    batch.sizes()
                    batch.tensors()
                    return batch

                batch, spent = timed(draw, device)
                look(batch, seeds)
                found["sample"].append(spent)
                drawn.append(batch)
            if stages.store is None:
                continue
            fetching = 0.0  # by all batches that are drawn ahead: one may fetch for the others
            if ahead > 1:
                drawn, fetching = timed(lambda d=drawn, o=last: stages.reorder(d, o), device)  # type: ignore[misc]
                last = drawn[-1]
            for nth, batch in enumerate(drawn):
                rows, spent = timed(lambda d=drawn, n=nth: stages.load(d, n), device)  # type: ignore[misc]
                fetching += spent
                if stages.trainer is None:
                    continue
                _, spent = timed(lambda b=batch, r=rows: stages.trainer.step(b, r), device)  # type: ignore[misc]
                found["compute"].append(spent)
            found["memory_io"] += [fetching / len(drawn)] * len(drawn)
    return found
