"""Train over partitions: ``torchrun --nproc-per-node 2 -m gnnbench.distributed.partition.example
GRAPH``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gnnbench.distributed.partition.command import comma_list, numbers, print_table, run

if TYPE_CHECKING:
    from gnnbench.distributed.partition.ranks import Rank


def train(
    dataset: Annotated[str, typer.Argument(help="A name of 'gnnbench data list'.")],
    methods: Annotated[str, typer.Option(help="Of partitioning, by commas.")] = "metis",
    modes: Annotated[
        str, typer.Option(help="vanilla, hybrid, unpartitioned, by commas.")
    ] = "vanilla,hybrid,unpartitioned",
    fanouts: Annotated[str, typer.Option(help="From the seeds outwards, by commas.")] = "15,10,5",
    batch_size: Annotated[int, typer.Option(help="Of each rank.")] = 1000,
    hidden: Annotated[int, typer.Option(help="Width of hidden layers.")] = 256,
    epochs: Annotated[int, typer.Option(help="Epochs to train.")] = 1,
    seed: Annotated[int, typer.Option(help="Of partition, draws, order and weights.")] = 0,
    timeout: Annotated[float, typer.Option(help="Seconds that a rank waits for others.")] = 45.0,
) -> None:
    """Train GraphSAGE on as many parts as there are ranks, in each mode in turn, under Gloo.

    Rank 0 prints rounds a step, bytes that all ranks send in all epochs, and losses.
    """
    from gnnbench.datasets.prepare import load_dataset
    from gnnbench.distributed.partition.ranks import join
    from gnnbench.distributed.partition.rendezvous import contents, meeting
    from gnnbench.distributed.partition.stored import load_or_make
    from gnnbench.distributed.partition.train import Trainer

    definition = {
        "graph": dataset, "methods": methods, "modes": modes, "fanouts": fanouts,
        "batch size": batch_size, "hidden": hidden, "epochs": epochs, "seed": seed,
        **contents(dataset, comma_list(methods), seed),
    }  # fmt: skip
    with meeting(definition, timeout=timeout) as (rank, ranks):
        graph = load_dataset(dataset)
        rows = []
        for method in comma_list(methods):
            partition = load_or_make(graph, ranks, method, seed)
            for mode in comma_list(modes):
                rank_of_mode = join(graph, partition, mode, numbers("fanouts", fanouts), seed=seed)
                trainer = Trainer(rank_of_mode, hidden=hidden, batch_size=batch_size, seed=seed)
                losses = [loss for epoch in range(epochs) for loss in trainer.epoch(epoch)]
                rows.append({"partition": f"{method}, {mode}", **_table_row(rank_of_mode, losses)})
        if rank == 0:
            print_table(f"{graph.name}, {ranks} ranks, {trainer.steps} steps an epoch", rows)


def _table_row(rank: Rank, losses: list[float]) -> dict[str, str]:
    """Return a row of the table; bytes are summed over the ranks."""
    import torch
    import torch.distributed as dist

    traffic, steps = rank.exchange.traffic, max(1, len(losses))
    sent = torch.tensor([traffic.sent[purpose] for purpose in ("sample", "features")])
    dist.all_reduce(sent)
    return {
        "rounds": f"{sum(traffic.rounds.values()) / steps:g}",
        "MB sampling": f"{int(sent[0]) / 1e6:.1f}",
        "MB features": f"{int(sent[1]) / 1e6:.1f}",
        "first loss": f"{losses[0]:.6f}" if losses else "",
        "last loss": f"{losses[-1]:.6f}" if losses else "",
    }


if __name__ == "__main__":
    run(train)
