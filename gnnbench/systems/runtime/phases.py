"""The phases of an epoch's batches one by one, each between two readings of the harness's clock.

In a timed epoch the schedule says which phase runs when. Here nobody is asked: a batch is drawn and
its nodes are read, then its rows are loaded, then the model is trained on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gnnbench.core import registry
from gnnbench.core.cell import phases
from gnnbench.core.minibatch import Batch
from gnnbench.measure.timed import timed
from gnnbench.pipelines.schedule import Stages
from gnnbench.systems.runtime.built_system import BuiltSystem, foreseen_epochs
from gnnbench.systems.runtime.epoch_audit import check_batches

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
    times: dict[str, list[float]] = {phase: [] for phase in phases(until)}
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
                times["sample"].append(spent)
                drawn.append(batch if stages.store is None else stages.put_aside(batch))
            if stages.store is None:
                continue
            fetching = 0.0  # by all batches that are drawn ahead: one may fetch for the others
            if ahead > 1:
                drawn, fetching = timed(lambda d=drawn, o=last: stages.reorder(d, o), device)  # type: ignore[misc]
            for nth in range(len(drawn)):

                def load(drawn: list[Batch] = drawn, nth: int = nth) -> Tensor:
                    stages.take(drawn, nth)
                    return stages.load(drawn, nth)

                rows, spent = timed(load, device)
                fetching += spent
                if stages.trainer is not None:
                    batch = drawn[nth]
                    _, spent = timed(lambda b=batch, r=rows: stages.trainer.step(b, r), device)  # type: ignore[misc]
                    times["compute"].append(spent)
                    stages.stepped(batch)
                stages.release(drawn, nth)
            last = drawn[-1] if ahead > 1 else None
            times["memory_io"] += [fetching / len(drawn)] * len(drawn)
    return times


def probe_system(system: BuiltSystem, epochs: Sequence[int]) -> tuple[dict[str, list[float]], str]:
    """Run the phases of a system's epochs one by one.

    Returns the seconds of each phase by batch, and what is wrong with a batch, or "". Leaves out
    phases whose time by itself cannot be compared with that in an epoch.
    """
    job, sampler = system.job, system.stages.sampler
    faults: list[str] = []

    def check(batch: Batch, seeds: Tensor) -> None:
        law = sampler.law.on(job.device)
        faults.append(check_batches([batch.sizes()], [seeds], law, job.cell.fanouts))

    times: dict[str, list[float]] = {}
    for epoch in epochs:
        # Else it misses more than timed. A cache for several epochs still has their rows.
        if foreseen_epochs(system) == 1 and system.stages.store is not None:
            system.foresee((epoch,))
        batches = [(epoch, system.seeds(epoch))]
        by_phase = probe(system.stages, batches, job.device, system.until.word, check)
        times = {phase: times.get(phase, []) + seconds for phase, seconds in by_phase.items()}
    # A stage may give itself any name: the cell says who provides it, if it has a recipe.
    name = job.cell.stage_name(registry.SAMPLER) or sampler.name
    if sampler.ahead and name in registry.OURS[registry.SAMPLER]:
        times.pop("sample")  # nothing is sampled ahead here, so it takes longer
    for phase in system.recipe.leaner(0):  # of leaner stages than an epoch's: may take longer
        times.pop(phase, None)
    return times, next((fault for fault in faults if fault), "")
