"""What the ranks of a test do: sampling, fetching, training."""

import torch.distributed as dist
from collectives import collectives

from gnnbench.core.errors import GnnbenchError
from gnnbench.distributed.partition.ranks import join
from gnnbench.distributed.partition.train import Trainer


def own_batch(rank, size):
    """The first of a rank's own training nodes."""
    return rank.training_nodes(rank.rank)[:size]


def draw(group, graph, partition, mode, fanouts, how, batches=((0, 0),), size=40):
    """Batches with their rows, and the traffic of it all."""
    rank = join(graph, partition, mode, fanouts, group=group, **how)
    batches_and_rows = []
    for epoch, number in batches:
        batch = rank.sampler.sample(own_batch(rank, size), epoch=epoch, batch=number)
        batches_and_rows.append((batch, rank.features.rows(batch.input_nodes)))
    return batches_and_rows, vars(rank.exchange.traffic)


def train(group, graph, partition, mode, fanouts, how, training, epochs=2):
    """Losses of each epoch's steps, the batches' sizes and the traffic."""
    rank = join(graph, partition, mode, fanouts, group=group, **how)
    trainer = Trainer(rank, **training)
    losses = [trainer.epoch(number) for number in range(epochs)]
    seeds = [[seeds.tolist() for seeds in trainer.batches(number)] for number in range(epochs)]
    return losses, seeds, vars(rank.exchange.traffic)


def called(group, graph, partition, mode, fanouts, how, training):
    """Names of the collectives of an epoch of training, by which ranks work together."""
    rank = join(graph, partition, mode, fanouts, group=group, **how)
    trainer = Trainer(rank, **training)
    with collectives() as names:
        trainer.epoch(0)
    return trainer.steps, dict(names)


def refused(group, graph, partition, how_of, trained=({}, {})):
    """What joining, or making a trainer, says: each rank with settings of its own."""
    here = dist.get_rank(group)
    how = {"graph": graph, "partition": partition, **how_of[here]}
    try:
        rank = join(fanouts=[3, 2], group=group, **how)
        Trainer(rank, **trained[here])
    except GnnbenchError as error:
        return f"{type(error).__name__}: {error}"
    return ""
