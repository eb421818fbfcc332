"""Losses are equal in every mode, and those of one process with the seeds of all."""

from dataclasses import replace

import pytest
import torch
from rank_tasks import called, refused, train

import gnnbench
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.ranks import MODES
from gnnbench.kernels.aggregate import aggregate
from gnnbench.models.adam import Adam
from gnnbench.models.native import Native
from gnnbench.models.stack import build

FANOUTS = [4, 3]
HOW = {"seed": 5}
TRAINING = {"hidden": 16, "batch_size": 16, "learning_rate": 0.02, "seed": 2}


def split(graph, parts):
    """Unequal parts: the last has as many nodes as all others together."""
    owners = torch.arange(graph.num_nodes) % (2 * parts)
    return Partition.of_owners(owners.clamp(max=parts - 1), parts)


def alone(graph, seeds_of_ranks):
    """Losses of one process that trains on what all ranks have in a step, by torch alone."""
    model = build("graphsage", Native(aggregate), graph.feature_dim, 16, graph.num_classes, 2, 2)
    optimizer = Adam(model.parameters(), lr=TRAINING["learning_rate"])
    sampler = gnnbench.build_sampler("hop-by-hop", graph, FANOUTS, seed=5)
    losses = []
    for epoch in range(2):
        losses.append([])
        steps = zip(*(rank[epoch] for rank in seeds_of_ranks), strict=True)
        for number, parts in enumerate(steps):
            seeds = torch.tensor([seed for part in parts for seed in part])
            batch = sampler.sample(seeds, epoch=epoch, batch=number)
            logits = model(batch.blocks, graph.features[batch.input_nodes.long()])
            loss = torch.nn.functional.cross_entropy(logits, graph.labels[seeds], ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(float(loss.detach()))
    return losses


def assert_close(ours, theirs):
    assert [len(epoch) for epoch in ours] == [len(epoch) for epoch in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one == pytest.approx(other, rel=2e-5)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_losses_are_equal_in_every_mode_and_to_one_process(four, small_graph, ranks):
    made = split(small_graph, ranks)
    losses_by_mode = {}
    for mode in MODES:
        answers = four.run(train, ranks, small_graph, made, mode, FANOUTS, HOW, TRAINING)
        losses = [losses for losses, _, _ in answers]
        assert all(of_rank == losses[0] for of_rank in losses)
        losses_by_mode[mode] = losses[0]
        seeds = [seeds for _, seeds, _ in answers]
    assert losses_by_mode["vanilla"][1][-1] < losses_by_mode["vanilla"][0][0]
    expected = alone(small_graph, seeds)
    for mode in MODES:
        assert_close(losses_by_mode[mode], expected)
    assert_close(losses_by_mode["vanilla"], losses_by_mode["unpartitioned"])


def test_each_training_node_is_in_one_batch_of_its_owner(four, small_graph):
    made = split(small_graph, 4)
    answers = four.run(train, 4, small_graph, made, "hybrid", FANOUTS, HOW, TRAINING)
    orders = []
    for rank, (_, epochs, _) in enumerate(answers):
        own = made.own(rank, small_graph.train_idx).tolist()
        for batches in epochs:
            sizes = [len(batch) for batch in batches]
            assert sorted(seed for batch in batches for seed in batch) == own
            full = len(own) // 16
            rest = [len(own) % 16] if len(own) % 16 else []
            expected = [16] * full + rest
            # Ranks with less go on without seeds.
            assert sizes == expected + [0] * (len(sizes) - len(expected))
        orders.append(epochs[0] != epochs[1])
    steps = {len(epochs[0]) for _, epochs, _ in answers}
    most = max(made.own(rank, small_graph.train_idx).numel() for rank in range(4))
    assert steps == {-(-most // 16)}
    assert all(orders)


def test_rounds_of_an_epoch(four, small_graph):
    made = split(small_graph, 2)
    for mode, per_step in (("vanilla", 4), ("hybrid", 2), ("unpartitioned", 0)):
        answers = four.run(train, 2, small_graph, made, mode, FANOUTS, HOW, TRAINING, 1)
        for losses, _, traffic in answers:
            steps = len(losses[0])
            assert sum(traffic["rounds"].values()) == per_step * steps
            assert traffic["reduces"] == {"setup": 2, "gradients": steps}
            # Two layers of two matrices and a bias; the loss and the number of seeds.
            floats = 2 * 24 * 16 + 16 + 2 * 16 * 4 + 4 + 2
            assert traffic["reduced_bytes"]["gradients"] == 4 * floats * steps


def test_an_epoch_is_all_to_alls_and_all_reduces_alone(four, small_graph):
    """FastSample, section 3.3: two a hop and one size each, two for rows; one sum a step."""
    made, hops = split(small_graph, 4), len(FANOUTS)
    small = {"vanilla": 2 * (hops - 1) + 1, "hybrid": 1}
    for mode, rounds in (("vanilla", 2 * hops), ("hybrid", 2), ("unpartitioned", 0)):
        for steps, names in four.run(called, 4, small_graph, made, mode, FANOUTS, HOW, TRAINING):
            swaps = steps * (rounds + small.get(mode, 0))
            assert names == {"all_reduce": steps} | ({"all_to_all_single": swaps} if swaps else {})


@pytest.mark.parametrize("mode", MODES)
def test_parts_without_nodes_and_without_training_nodes(four, small_graph, mode):
    training = torch.zeros(small_graph.num_nodes, dtype=torch.bool)
    training[small_graph.train_idx] = True
    # Part 0 trains, part 1 has only other nodes, 2 is empty, 3 has a little of both.
    owners = torch.where(training, 0, 1)
    owners[:30] = 3
    made = Partition.of_owners(owners, 4)
    answers = four.run(train, 4, small_graph, made, mode, FANOUTS, HOW, TRAINING)
    assert_close(answers[2][0], alone(small_graph, [seeds for _, seeds, _ in answers]))


def test_more_ranks_than_batches(four, small_graph):
    graph = replace(small_graph, train_idx=small_graph.train_idx[:3])
    made = split(graph, 4)
    answers = four.run(train, 4, graph, made, "vanilla", FANOUTS, HOW, TRAINING)
    assert [len(epoch) for epoch in answers[0][0]] == [1, 1]
    assert_close(answers[0][0], alone(graph, [seeds for _, seeds, _ in answers]))


def test_no_training_nodes_at_all(four, small_graph):
    graph = replace(small_graph, train_idx=small_graph.train_idx[:0])
    answers = four.run(train, 2, graph, split(graph, 2), "vanilla", FANOUTS, HOW, TRAINING)
    assert [losses for losses, _, _ in answers] == [[[], []]] * 2


def test_nodes_without_labels_count_nothing(four, small_graph):
    labels = small_graph.labels.clone()
    labels[small_graph.train_idx[::2]] = -1
    graph, made = replace(small_graph, labels=labels), split(small_graph, 2)
    answers = four.run(train, 2, graph, made, "hybrid", FANOUTS, HOW, TRAINING)
    assert_close(answers[0][0], alone(graph, [seeds for _, seeds, _ in answers]))


@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_other_models(four, small_graph, model):
    made, training = split(small_graph, 2), {**TRAINING, "model": model}
    losses = [
        four.run(train, 2, small_graph, made, mode, FANOUTS, HOW, training)[0][0] for mode in MODES
    ]
    assert_close(losses[0], losses[2])
    assert_close(losses[1], losses[2])


@pytest.mark.parametrize("other", [{"hidden": 8}, {"batch_size": 8}, {"seed": 1}])
def test_ranks_that_train_otherwise_are_refused_on_all(four, small_graph, other):
    how = [{"mode": "hybrid"}] * 2
    messages = four.run(refused, 2, small_graph, split(small_graph, 2), how, [{}, other])
    (what,) = other
    says = f"UsageError: the ranks differ in {what}; start all of them with the same"
    assert messages == [says, says]
