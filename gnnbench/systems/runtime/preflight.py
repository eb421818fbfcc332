"""A sampler or a system tried before it is timed: what a run would find wrong with it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gnnbench.core import names
from gnnbench.core.cell import PHASES, Cell, Until
from gnnbench.core.errors import MissingError, UsageError
from gnnbench.datasets.graph import Graph
from gnnbench.measure.timeline import Timeline
from gnnbench.sampling.arguments import fanout_list, topology_of, whole
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.native import native
from gnnbench.sampling.registry import sampler_class
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.find import check_stage_names
from gnnbench.systems.runtime.recipe import Recipe
from gnnbench.systems.runtime.runner import SystemRunner
from gnnbench.systems.runtime.stochastic import EPOCHS


def _graph(indptr: Tensor, indices: Tensor) -> Graph:
    """Of a pair of arrays, every node one to train on."""
    nodes = indptr.numel() - 1
    every, none = torch.arange(nodes), torch.empty(0, dtype=torch.int64)
    rows, labels = torch.zeros(nodes, 1), torch.zeros(nodes, dtype=torch.int64)
    return Graph("a pair of arrays", indptr, indices, rows, labels, every, none, none, 1)


def check_sampler(
    sampler: type[Sampler],
    graph: Graph | tuple[Tensor, Tensor],
    fanouts: Sequence[int] = (10, 5),
    *,
    batch_size: int = 256,
    device: str = "cpu",
) -> str:
    """What ``gnnbench run`` would find wrong with a sampler's batches, as a sentence, or ``""``.

    ``graph`` is what ``gnnbench.load_dataset`` returns, and the batches are of its training nodes;
    or a pair ``(indptr, indices)``, ``[nodes + 1]`` and ``[edges]``, and they are of all nodes.
    Raises ``UnsupportedError`` and ``MissingError`` where it cannot run on the ``device``,
    ``UsageError`` for arguments that are no sampler, graph, fanouts or batch size.
    """
    graph = graph if isinstance(graph, Graph) else _graph(*topology_of(graph))
    recipe = replace(BASELINE, sampler=native(sampler_class(sampler)))
    until = Until.SAMPLE.word
    return check_system(recipe, graph, fanouts, batch_size=batch_size, device=device, until=until)


def check_system(
    recipe: Recipe,
    graph: Graph,
    fanouts: Sequence[int] = (10, 5),
    *,
    batch_size: int = 256,
    device: str = "cpu",
    until: str = Until.COMPUTE.word,
) -> str:
    """The same of a system: its gate, an epoch of which every batch is looked at, and what is asked
    again after timing. A GCN 16 wide is trained."""
    names.check("until", until, PHASES)
    if not isinstance(recipe, Recipe):
        raise UsageError(f"recipe must be a Recipe, not {type(recipe).__name__}")
    if not isinstance(graph, Graph):
        raise UsageError(
            f"graph must be what gnnbench.load_dataset returns, not {type(graph).__name__}"
        )
    check_stage_names(recipe)
    fanouts, batch_size = fanout_list(fanouts), whole("batch_size", batch_size, 1)
    goes = Until.of(until)
    if (missing := recipe.missing(device, goes)) is not None:
        raise MissingError(f"system '{recipe.name}' cannot run: {missing.reason}; {missing.fix}")
    resolved = recipe.resolved(device, goes)
    trains = goes is Until.COMPUTE
    cell = Cell(
        "trial", recipe.name, graph.name, "gcn" if trains else "", until, device, batch_size,
        tuple(fanouts), 16 if trains else 0, recipe=resolved.plain(goes),
    )  # fmt: skip
    system = SystemRunner(cell, graph, resolved)
    try:
        system.setup()
        report = system.check()
        if not report.ok:
            return report.reason
        timeline = Timeline.on(device)
        timeline.start()
        verified = system.verify(secrets.randbelow(EPOCHS), timeline)
        timeline.stop()
        return verified.reason or system.recheck(secrets.randbelow(EPOCHS))
    finally:
        system.close()
