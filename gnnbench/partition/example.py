"""Train over partitions: ``torchrun --nproc-per-node 2 -m gnnbench.partition.example GRAPH``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from gnnbench.partition.command import comma_list, numbers, print_table, run


def train(
    dataset: Annotated[str, typer.Argument(help="A name that 'gnnbench data list' tells.")],
    methods: Annotated[str, typer.Option(help="Of partitioning, by commas.")] = "metis",
    modes: Annotated[
        str, typer.Option(help="vanilla, hybrid, unpartitioned, by commas.")
    ] = "vanilla,hybrid,unpartitioned",
    fanouts: Annotated[str, typer.Option(help="From the seeds outwards, by commas.")] = "15,10,5",
    batch_size: Annotated[int, typer.Option(help="Of each rank.")] = 1000,
    hidden: Annotated[int, typer.Option(help="Width of hidden layers.")] = 256,
    epochs: Annotated[int, typer.Option(help="Epochs to train.")] = 1,
    seed: Annotated[int, typer.Option(help="Of partition, draws, order and weights.")] = 0,
) -> None:
    """Train GraphSAGE on as many parts as there are ranks, in each mode in turn, under Gloo.

    Rank 0 prints rounds a step, bytes that all ranks send in all epochs, and losses.
    """
    import gnnbench
    from gnnbench.partition.ranks import join
    from gnnbench.partition.stored import load_or_make
    from gnnbench.partition.train import Trainer

    with _group() as (rank, ranks):
        graph = gnnbench.load_dataset(dataset)
        rows = []
        for method in comma_list(methods):
            partition = load_or_make(graph, ranks, method, seed)
            for mode in comma_list(modes):
                here = join(graph, partition, mode, numbers("fanouts", fanouts), seed=seed)
                trainer = Trainer(here, hidden=hidden, batch_size=batch_size, seed=seed)
                losses = [loss for epoch in range(epochs) for loss in trainer.epoch(epoch)]
                rows.append({"partition": f"{method}, {mode}", **_told(here, losses)})
        if rank == 0:
            print_table(f"{graph.name}, {ranks} ranks, {trainer.steps} steps an epoch", rows)


def _told(here: Any, losses: list[float]) -> dict[str, Any]:
    """A line of the table; the bytes are added up over the ranks."""
    import torch
    import torch.distributed as dist

    traffic, steps = here.exchange.traffic, max(1, len(losses))
    sent = torch.tensor([traffic.sent[of] for of in ("sample", "features")])
    dist.all_reduce(sent)
    return {
        "rounds": f"{sum(traffic.rounds.values()) / steps:g}",
        "MB sampling": f"{int(sent[0]) / 1e6:.1f}",
        "MB features": f"{int(sent[1]) / 1e6:.1f}",
        "first loss": f"{losses[0]:.6f}" if losses else "",
        "last loss": f"{losses[-1]:.6f}" if losses else "",
    }


@contextmanager
def _group() -> Iterator[tuple[int, int]]:
    """The process group that torchrun describes; without it, one of this process alone."""
    import torch.distributed as dist

    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    if "RANK" not in os.environ:
        os.environ |= alone
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    run(train)
