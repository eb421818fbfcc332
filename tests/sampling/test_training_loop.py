"""A plain training loop on our own layers, with nothing but the library."""

from itertools import pairwise

import pytest
import torch
from sampling_cases import INFOS, build, one_thread

from gnnbench.kernels.aggregate import aggregate


class Sage(torch.nn.Module):
    def __init__(self, *dims: int) -> None:
        super().__init__()
        pairs = list(pairwise(dims))
        self.own = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in pairs)
        self.near = torch.nn.ModuleList(torch.nn.Linear(a, b, bias=False) for a, b in pairs)

    def forward(self, blocks, x):
        for number, (own, near, block) in enumerate(zip(self.own, self.near, blocks, strict=True)):
            x = x.relu() if number else x
            x = own(x[: block.num_dst]) + near(aggregate(block, x, "mean"))
        return x


@pytest.mark.parametrize(("name", "frontier"), [(s.name, f) for s in INFOS for f in s.frontiers])
@one_thread()
def test_it_learns(name, frontier, small_graph):
    torch.manual_seed(0)
    sampler = build(name, small_graph, [5, 5], frontier=frontier)
    model = Sage(small_graph.feature_dim, 16, small_graph.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for epoch in range(4):
        total = 0.0
        for number, seeds in enumerate(small_graph.train_idx.split(64)):
            batch = sampler.sample(seeds, epoch=epoch, batch=number)
            x = small_graph.features[batch.input_nodes]
            optimizer.zero_grad()
            logits = model(batch.blocks, x)
            loss = torch.nn.functional.cross_entropy(logits, small_graph.labels[batch.seeds])
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(seeds)
        losses.append(total / 200)
    assert losses[-1] < 0.9 * losses[0]
