"""``gnnbench.build_sampler``: from names and tensors to a sampler that is ready."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnnbench.core import names
from gnnbench.core.errors import MissingError, UnsupportedError, UsageError
from gnnbench.core.fanouts import ALL
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.missing import native_missing
from gnnbench.kernels.picks import WEIGHTED, PickSpec, all_fault
from gnnbench.sampling.arguments import fanout_list, topology_of, weight_tensor, whole, yes_or_no
from gnnbench.sampling.base import Sampler
from gnnbench.sampling.registry import sampler_class
from gnnbench.sampling.setting import CUMULATIVE, TOPOLOGIES, Setting, check_options
from gnnbench.validation.law import BY_WEIGHT

WALK = (4, 3, 0.5)  # walks, steps and restart probability of PinSAGE as GNNLab runs it


def build_sampler(
    name: str | type[Sampler],
    graph: Graph | tuple[Tensor, Tensor],
    fanouts: Sequence[int],
    device: str | torch.device = "cpu",
    seed: int = 0,
    *,
    pick: str | None = None,
    frontier: str | None = None,
    topology: str | None = None,
    weights: Tensor | np.ndarray | str | None = None,
    walks: int | None = None,
    walk_length: int | None = None,
    restart: float | None = None,
    with_positions: bool = False,
    **options: Any,
) -> Sampler:
    """Build a sampler by its name.

    Args:
        name: one of ``gnnbench.samplers()``, or a class of one's own derived from
            ``gnnbench.Sampler``.
        graph: what ``gnnbench.load_dataset`` returns, or the CSC of in-neighbours as a pair of
            ``indptr`` int64 ``[num_nodes + 1]`` and ``indices`` int32 or int64 ``[num_edges]``.
        fanouts: neighbours per destination and hop, from the seeds outwards (``[15, 10, 5]``: 15 at
            the seeds), each at least 1, or -1 for all neighbours, which picks without replacement
            take.
        device: where the blocks are given, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        seed: of all draws; (seed, epoch, batch) decides what is drawn.
        pick: the pick function; None: the sampler's default.
        frontier: ``"cumulative"``: every node known so far is a destination of the next hop (DGL);
            ``"new"``: only nodes first seen at the last one (PyG). None: ``cumulative`` where the
            sampler has it, and in ``as_pyg`` ``new``.
        topology: where the graph is: ``"gpu"``: copied to the device (the default there);
            ``"uva"``: in locked host memory that the GPU reads; ``"cpu"``: sampled on the CPU, the
            blocks moved to the device.
        weights: of the weighted picks and of samplers of the law ``weighted``, which need them:
            float32 or float64 ``[num_edges]`` in the order of ``indices``, or ``"graph"`` for those
            that the graph stores.
        walks: of ``random_walk``: walks from each destination; 4 by default, with walk_length 3 and
            restart 0.5, as GNNLab runs PinSAGE.
        walk_length: of ``random_walk``: steps of a walk.
        restart: of ``random_walk``: probability of going back to the destination before a step.
        with_positions: blocks carry each edge's offset in ``indices``.
        options: the sampler's own, see ``gnnbench.samplers()``.

    Raises:
        UsageError: an argument that is unknown, or wrong in type, shape, dtype or range.
        UnsupportedError: a device, pick or frontier that the sampler does not do.
        MissingError: the native library for the device, or the device, is not there.
        DataError: the graph's offsets are broken.
    """
    cls = sampler_class(name)
    name = name if isinstance(name, str) else cls.name
    check_options(cls, options)
    target = _device(cls, device)
    place = _topology(topology, target)
    sampled_on = "cpu" if place == "cpu" else target.type
    if sampled_on not in cls.devices:
        raise UnsupportedError(f"sampler '{name}' does not sample on the CPU: no topology 'cpu'")
    chosen = pick if pick is not None else cls.picks_on(sampled_on)[0]
    _one_of(cls, "pick", chosen, cls.picks_on(sampled_on))
    chosen_frontier = frontier if frontier is not None else _default_frontier(cls)
    _one_of(cls, "frontier", chosen_frontier, cls.frontiers)
    hops = fanout_list(fanouts)
    if ALL in hops and (fault := all_fault(chosen)):
        raise UnsupportedError(fault)
    indptr, indices = topology_of(graph)
    missing = native_missing(target.type)
    if missing is not None:
        raise MissingError(f"sampler '{name}' cannot run: {missing.reason}; {missing.fix}")
    walk = {"walks": walks, "walk_length": walk_length, "restart": restart}
    stored = isinstance(graph, Graph) and graph.path is not None
    setting = Setting(
        graph if stored else (indptr, indices),
        hops,
        _pick(cls, chosen, graph, indptr, weights, walk),
        chosen_frontier,
        whole("seed", seed, 0),
        target,
        place,
        yes_or_no("with_positions", with_positions),
        weight_tensor(weights, graph) if cls.law == BY_WEIGHT else None,
        frontier_chosen=frontier is not None,
    )
    return cls(setting, **options)


def _default_frontier(cls: type[Sampler]) -> str:
    return CUMULATIVE if CUMULATIVE in cls.frontiers else cls.frontiers[0]


def _one_of(cls: type[Sampler], what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UnsupportedError(
            f"sampler '{cls.name}' has no {what} '{value}'; {names.suggestion(str(value), known)}"
        )


def _device(cls: type[Sampler], device: str | torch.device) -> torch.device:
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise UsageError(f"device must be cpu, cuda or cuda:N, not {device!r}") from None
    if found.type not in cls.devices:
        raise UnsupportedError(
            f"sampler '{cls.name}' does not run on device '{device}'; it runs on:"
            f" {', '.join(cls.devices)}"
        )
    if found.type == "cuda" and found.index is None and torch.cuda.is_available():
        found = torch.device("cuda", torch.cuda.current_device())
    return found


def _topology(asked: str | None, device: torch.device) -> str:
    if asked is None:
        return "cpu" if device.type == "cpu" else "gpu"
    names.check("topology", asked, TOPOLOGIES)
    if device.type == "cpu" and asked != "cpu":
        raise UnsupportedError(f"topology '{asked}' needs device='cuda', the device is cpu")
    return asked


def _pick(
    cls: type[Sampler],
    name: str,
    graph: Any,
    indptr: Tensor,
    weights: Any,
    walk: dict[str, float | None],
) -> PickSpec:
    """The pick with what it needs; what it does not need is refused."""
    weighted = name in WEIGHTED or cls.law == BY_WEIGHT
    if weights is not None and not weighted:
        raise UsageError(
            f"weights is given, but pick '{name}' takes none; choose pick={' or '.join(WEIGHTED)}"
        )
    given = [key for key, value in walk.items() if value is not None]
    if given and name != "random_walk":
        raise UsageError(f"{given[0]} is given, but pick '{name}' does not walk; it is random_walk")
    if weighted and weights is None:
        raise UsageError(
            f"weights is missing: pick '{name}' needs a tensor [num_edges], or 'graph'"
        )
    if cls.law:
        return PickSpec(name)  # known to the sampler alone
    if weighted:
        return PickSpec.weighted(name, indptr.cpu(), weight_tensor(weights, graph))
    if name == "random_walk":
        walks, length, restart = (
            default if value is None else value
            for value, default in zip(walk.values(), WALK, strict=True)
        )
        if not isinstance(restart, Real) or not 0 <= restart < 1:
            raise UsageError(f"restart must be at least 0 and below 1, it is {restart!r}")
        return PickSpec.random_walk(
            whole("walks", walks, 1), whole("walk_length", length, 1), float(restart)
        )
    return PickSpec.of(name)
