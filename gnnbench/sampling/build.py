"""``gnnbench.build_sampler``: checks arguments and builds a sampler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
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

Weights = Tensor | npt.NDArray[np.float32] | npt.NDArray[np.float64] | str


class WalkArguments(NamedTuple):
    """Arguments of ``random_walk``; None where the user gave none."""

    walks: int | None = None
    walk_length: int | None = None
    restart: float | None = None


DEFAULT_WALK = WalkArguments()
PINSAGE_WALK = (4, 3, 0.5)  # walks, steps and restart probability of PinSAGE in GNNLab


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
    weights: Weights | None = None,
    walks: int | None = None,
    walk_length: int | None = None,
    restart: float | None = None,
    with_positions: bool = False,
    **options: object,
) -> Sampler:
    """Build a sampler by name.

    Args:
        name: one of ``gnnbench.samplers()``, or a subclass of ``gnnbench.Sampler``.
        graph: the result of ``gnnbench.load_dataset``, or the CSC of in-neighbours as a pair of
            ``indptr`` int64 ``[num_nodes + 1]`` and ``indices`` int32 or int64 ``[num_edges]``.
        fanouts: neighbours per destination and hop, from the seeds outwards (``[15, 10, 5]``: 15 at
            the seeds), each at least 1, or -1 for all neighbours (picks without replacement only).
        device: the device that receives the blocks, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        seed: seed of all draws; (seed, epoch, batch) determines a batch's edges.
        pick: the pick function; None: the sampler's default.
        frontier: ``"cumulative"``: every node known so far is a destination of the next hop (DGL);
            ``"new"``: only nodes first seen at the previous hop (PyG). None: ``cumulative`` if the
            sampler supports it; ``new`` in ``as_pyg``.
        topology: placement of the graph. ``"gpu"``: copied to the device (default on a GPU);
            ``"uva"``: locked host memory, read by the GPU; ``"cpu"``: sampled on the CPU, blocks
            copied to the device.
        weights: edge weights, required by weighted picks and samplers of the law ``weighted``:
            float32 or float64 ``[num_edges]`` in the order of ``indices``, or ``"graph"`` for the
            stored ones.
        walks: for ``random_walk``, walks from each destination. Defaults: 4 walks, walk_length 3,
            restart 0.5 (PinSAGE in GNNLab).
        walk_length: for ``random_walk``, steps of a walk.
        restart: for ``random_walk``, probability of returning to the destination before a step.
        with_positions: whether blocks carry each edge's offset in ``indices``.
        options: options of the sampler, see ``gnnbench.samplers()``.

    Raises:
        UsageError: an unknown argument, or one with a wrong type, shape, dtype or range.
        UnsupportedError: a device, pick or frontier that the sampler does not support.
        MissingError: the device, or the native library for it, is missing.
        DataError: the graph's offsets are invalid.
    """
    return checked_sampler(
        name,
        graph,
        fanouts,
        device,
        seed,
        pick=pick,
        frontier=frontier,
        topology=topology,
        weights=weights,
        walk=WalkArguments(walks, walk_length, restart),
        with_positions=with_positions,
        options=options,
    )


def checked_sampler(
    name: str | type[Sampler],
    graph: Graph | tuple[Tensor, Tensor],
    fanouts: Sequence[int],
    device: str | torch.device,
    seed: int,
    *,
    options: Mapping[str, object],
    pick: str | None = None,
    frontier: str | None = None,
    topology: str | None = None,
    weights: Weights | None = None,
    walk: WalkArguments = DEFAULT_WALK,
    with_positions: bool = False,
) -> Sampler:
    """Check all arguments and build the sampler; arguments and errors as ``build_sampler``."""
    cls = sampler_class(name)
    name = name if isinstance(name, str) else cls.name
    check_options(cls, options)
    target = _device(cls, device)
    placement = _topology(topology, target)
    sampled_on = "cpu" if placement == "cpu" else target.type
    if sampled_on not in cls.devices:
        raise UnsupportedError(f"sampler '{name}' does not sample on the CPU: no topology 'cpu'")
    chosen = pick if pick is not None else cls.picks_on(sampled_on)[0]
    _check_one_of(cls, "pick", chosen, cls.picks_on(sampled_on))
    default_frontier = CUMULATIVE if CUMULATIVE in cls.frontiers else cls.frontiers[0]
    chosen_frontier = default_frontier if frontier is None else frontier
    _check_one_of(cls, "frontier", chosen_frontier, cls.frontiers)
    hops = fanout_list(fanouts)
    if ALL in hops and (fault := all_fault(chosen)):
        raise UnsupportedError(fault)
    indptr, indices = topology_of(graph)
    missing = native_missing(target.type)
    if missing is not None:
        raise MissingError(f"sampler '{name}' cannot run: {missing.reason}; {missing.fix}")
    is_stored = isinstance(graph, Graph) and graph.path is not None
    setting = Setting(
        graph if is_stored else (indptr, indices),
        hops,
        _pick(cls, chosen, graph, indptr, weights, walk),
        chosen_frontier,
        whole("seed", seed, 0),
        target,
        placement,
        yes_or_no("with_positions", with_positions),
        weight_tensor(weights, graph) if cls.law == BY_WEIGHT else None,
        frontier_chosen=frontier is not None,
    )
    return cls(setting, **options)


def _check_one_of(cls: type[Sampler], argument: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        hint = names.suggestion(str(value), known)
        raise UnsupportedError(f"sampler '{cls.name}' has no {argument} '{value}'; {hint}")


def _device(cls: type[Sampler], device: str | torch.device) -> torch.device:
    try:
        target = torch.device(device)
    except (RuntimeError, TypeError):
        raise UsageError(f"device must be cpu, cuda or cuda:N, not {device!r}") from None
    if target.type not in cls.devices:
        raise UnsupportedError(
            f"sampler '{cls.name}' does not run on device '{device}'; it runs on:"
            f" {', '.join(cls.devices)}"
        )
    if target.type == "cuda" and target.index is None and torch.cuda.is_available():
        target = torch.device("cuda", torch.cuda.current_device())
    return target


def _topology(topology: str | None, device: torch.device) -> str:
    if topology is None:
        return "cpu" if device.type == "cpu" else "gpu"
    names.check("topology", topology, TOPOLOGIES)
    if device.type == "cpu" and topology != "cpu":
        raise UnsupportedError(f"topology '{topology}' needs device='cuda', the device is cpu")
    return topology


def _pick(
    cls: type[Sampler],
    name: str,
    graph: Graph | tuple[Tensor, Tensor],
    indptr: Tensor,
    weights: Weights | None,
    walk: WalkArguments,
) -> PickSpec:
    """The pick with its tables. Raises ``UsageError`` for missing or unused arguments."""
    weighted = name in WEIGHTED or cls.law == BY_WEIGHT
    if weights is not None and not weighted:
        raise UsageError(
            f"weights is given, but pick '{name}' takes none; choose pick={' or '.join(WEIGHTED)}"
        )
    given = [key for key, value in walk._asdict().items() if value is not None]
    if given and name != "random_walk":
        raise UsageError(f"{given[0]} is given, but pick '{name}' does not walk; it is random_walk")
    if weighted and weights is None:
        raise UsageError(
            f"weights is missing: pick '{name}' needs a tensor [num_edges], or 'graph'"
        )
    if cls.law:
        return PickSpec(name)  # only the sampler knows this pick
    if weighted:
        return PickSpec.weighted(name, indptr.cpu(), weight_tensor(weights, graph))
    if name == "random_walk":
        walks, length, restart = (
            default if value is None else value
            for value, default in zip(walk, PINSAGE_WALK, strict=True)
        )
        if not isinstance(restart, Real) or not 0 <= restart < 1:
            raise UsageError(f"restart must be at least 0 and below 1, it is {restart!r}")
        return PickSpec.random_walk(
            whole("walks", walks, 1), whole("walk_length", length, 1), float(restart)
        )
    return PickSpec.of(name)
