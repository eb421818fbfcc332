"""How well a model does on nodes that it was not trained on: one evaluator for all systems.

What is evaluated, over which neighbours, with which feature rows and how answers are counted is
the same whatever system trained the model; its own are the weights, and the layers that the gate
has compared with the reference. So systems differ by their training alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core.errors import DataError
from gnnbench.core.fanouts import ALL
from gnnbench.core.job import Job
from gnnbench.kernels import rng
from gnnbench.kernels.picks import WEIGHTED, all_fault
from gnnbench.models.kinds import MODELS
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.build import build_sampler

if TYPE_CHECKING:
    from gnnbench.systems.runtime.trainer import ModelTrainer

NODES = 1 << 14  # of a split at most: an accuracy of 0.9 is then known to +-0.5 % (95 %)
BATCH = 2048
EDGES = 1 << 20  # of a piece of a layer, where all neighbours are taken
OWN_PICK = "floyd"  # for all picks without replacement, foreign ones among them


class Evaluator:
    """Accuracy of a cell's model on its graph's validation and test nodes.

    Of each split at most ``NODES`` labelled nodes are evaluated, drawn by the counter-based
    generator from the cell's seed: the same for every system. ``sampled``: in batches of ``BATCH``,
    hop by hop by the cell's fanouts and the law of its pick, with the same draws after every epoch.
    ``all``: layer by layer over all neighbours, as batches of fanout -1 would give it, each node
    computed once a layer. Raises ``DataError`` where a node to evaluate is one to train on, too,
    and where a split has none.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        cell, graph = job.cell, job.graph
        self._splits = {
            name: self._some(nodes, name)
            for name, nodes in (("val", graph.val_idx), ("test", graph.test_idx))
        }
        self._nodes = torch.cat(list(self._splits.values()))
        self._all = cell.evaluate == "all"
        self._sampler = self._one_hop() if self._all else self._as_trained()
        self._needed: list[Tensor] = []

    def _some(self, nodes: Tensor, name: str) -> Tensor:
        """Nodes of a split that are evaluated, sorted."""
        graph = self._job.graph
        labelled = nodes[graph.labels[nodes] >= 0]
        if not labelled.numel():
            raise DataError(
                f"'{graph.name}' has no {name} nodes with labels to evaluate a model on"
            )
        if bool(torch.isin(labelled, graph.train_idx).any()):
            raise DataError(
                f"'{graph.name}' has {name} nodes among its training nodes: its split is broken"
            )
        if labelled.numel() <= NODES:
            return labelled
        key = rng.key(self._job.cell.seed, 0, f"evaluate {name}")
        return labelled[rng.permutation(labelled.numel(), key, first=NODES)].sort().values

    def _as_trained(self) -> Sampler:
        """Draws by the law that the cell trains by, whichever of its picks that has."""
        cell, graph = self._job.cell, self._job.graph
        asked = cell.setting("sampler", "pick") or OWN_PICK
        pick = asked if all_fault(asked) else OWN_PICK  # "": it is without replacement
        weights = "graph" if pick in WEIGHTED else None
        return build_sampler(
            "hop-by-hop", graph, cell.fanouts, seed=cell.seed, pick=pick, weights=weights
        )

    def _one_hop(self) -> Sampler:
        """Draws all neighbours of the nodes that it is given."""
        return build_sampler("hop-by-hop", self._job.graph, [ALL], pick=OWN_PICK)

    def run(self, trainer: ModelTrainer) -> dict[str, float]:
        """``val_accuracy`` and ``test_accuracy``, the share of nodes whose label has the largest
        value, over ``val_nodes`` and ``test_nodes``."""
        with torch.no_grad():
            values = self._over_all(trainer) if self._all else self._over_samples(trainer)
        right = values == self._job.graph.labels[self._nodes]
        accuracies: dict[str, float] = {}
        sizes = [nodes.numel() for nodes in self._splits.values()]
        for name, part in zip(self._splits, right.split(sizes), strict=True):
            accuracies[f"{name}_nodes"] = part.numel()
            accuracies[f"{name}_accuracy"] = float(part.double().mean())
        return accuracies

    def _over_samples(self, trainer: ModelTrainer) -> Tensor:
        """Classes answered, int64 ``[nodes]``."""
        answers = []
        todo = (seeds for nodes in self._splits.values() for seeds in nodes.split(BATCH))
        for number, seeds in enumerate(todo):
            batch = self._sampler.sample(seeds, 0, number)
            answers.append(trainer.forward(batch, self._rows(batch.input_nodes)).argmax(1).cpu())
        return torch.cat(answers)

    def _over_all(self, trainer: ModelTrainer) -> Tensor:
        """The same, layer by layer."""
        graph, device = self._job.graph, self._job.device
        place = torch.empty(graph.num_nodes, dtype=torch.int64)
        before: Tensor | None = None  # rows of the nodes that the layer needs
        symmetric = MODELS[self._job.cell.model].symmetric
        for number, dst in enumerate(self._layers(len(trainer.model.layers))):
            pieces = []
            begun = self._edges_begun(dst) if symmetric else None
            for some in self._pieces(dst):
                batch = self._sampler.sample(some, 0, 0)
                src = batch.input_nodes.long()
                rows = self._rows(src) if before is None else before[place[src].to(device)]
                if begun is not None:  # layers count the edges of the piece, not of the layer
                    here = torch.bincount(batch.blocks[0].indices, minlength=src.numel())
                    share = (here / begun[src].clamp(min=1)).sqrt().unsqueeze(1)
                    rows = rows * share.to(rows)
                (block,) = trainer.framework.blocks(batch.to(device))
                pieces.append(trainer.model.layer(number, block, rows.to(device)))
            before = torch.cat(pieces)
            place[dst] = torch.arange(dst.numel())
        assert before is not None
        return before[place[self._nodes].to(device)].argmax(1).cpu()

    def _edges_begun(self, dst: Tensor) -> Tensor:
        """In-neighbours of ``dst`` that each node is, int64 ``[num_nodes]``."""
        begun = torch.zeros(self._job.graph.num_nodes, dtype=torch.int64)
        for some in self._pieces(dst):
            batch = self._sampler.sample(some, 0, 0)
            block = batch.blocks[0].to("cpu")
            nodes = block.src_nodes.long()[block.indices.long()]
            begun += torch.bincount(nodes, minlength=begun.numel())
        return begun

    def _layers(self, count: int) -> list[Tensor]:
        """Nodes that each layer is to compute, sorted, the input's first."""
        if not self._needed:
            wanted = torch.zeros(self._job.graph.num_nodes, dtype=torch.bool)
            wanted[self._nodes] = True
            self._needed = [wanted.nonzero().flatten()]
            for _ in range(count - 1):
                for some in self._pieces(self._needed[0]):
                    wanted[self._sampler.sample(some, 0, 0).input_nodes.long()] = True
                self._needed.insert(0, wanted.nonzero().flatten())
        return self._needed

    def _pieces(self, dst: Tensor) -> Iterator[Tensor]:
        """Pieces of nodes with about ``EDGES`` in-neighbours; a hub may have more."""
        indptr = self._job.graph.indptr
        upto = (indptr[dst + 1] - indptr[dst] + 1).cumsum(0)
        piece = (upto - 1) // EDGES
        return iter(dst.split(piece.unique_consecutive(return_counts=True)[1].tolist()))

    def _rows(self, nodes: Tensor) -> Tensor:
        """Rows of the feature table, on the CPU."""
        return self._job.graph.features[nodes.long()]
