"""Conversion and checks of user arguments: graph, fanouts, seeds and weights."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.fanouts import ALL
from gnnbench.datasets.graph import Graph

Topology = tuple[Tensor, Tensor]
IDS = (torch.int32, torch.int64)


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Convert ``value`` to an int. Raises ``UsageError`` outside ``least`` to ``most``."""
    if type(value) is int:  # the common case
        number = value
    else:
        try:
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, SupportsIndex):
                raise TypeError
            number = operator.index(value)
        except TypeError:
            raise UsageError(f"{name} must be a whole number, not {value!r}") from None
    if number < least:
        raise UsageError(f"{name} must be at least {least}, it is {number}")
    if most is not None and number > most:
        raise UsageError(f"{name} must be at most {most}, it is {number}")
    return number


def yes_or_no(name: str, value: object) -> bool:
    """Convert ``value`` to a bool. Raises ``UsageError`` for other types."""
    if not isinstance(value, (bool, np.bool_)):
        raise UsageError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def fanout_list(fanouts: object) -> tuple[int, ...]:
    """Convert fanouts, neighbours per destination and hop, to a tuple.

    Raises ``UsageError`` unless each is 1 to 2^31 - 1, or -1: all neighbours.
    """
    if isinstance(fanouts, np.ndarray) and fanouts.ndim > 0:
        fanouts = list(fanouts)
    if isinstance(fanouts, (str, bytes)) or not isinstance(fanouts, Sequence):
        raise UsageError(
            f"fanouts must be a list of whole numbers from the seeds outwards, not {fanouts!r}"
        )
    if len(fanouts) == 0:
        raise UsageError("fanouts is empty; give one number for each hop, as in [15, 10, 5]")
    return tuple(_fanout(f"fanouts[{at}]", value) for at, value in enumerate(fanouts))


def _fanout(name: str, value: object) -> int:
    number = whole(name, value, ALL, 2**31 - 1)
    if number == 0:
        raise UsageError(f"{name} must be at least 1, or -1 for all neighbours, it is 0")
    return number


def topology_of(graph: object) -> Topology:
    """Return ``indptr`` and ``indices`` of a ``Graph`` or a pair of tensors or arrays.

    Raises ``UsageError`` for other types, and for offsets that do not fit the ids.
    """
    if isinstance(graph, Graph):
        return graph.indptr, graph.indices
    if not isinstance(graph, (tuple, list)) or len(graph) != 2:
        raise UsageError(
            "graph must be what gnnbench.load_dataset returns or a pair (indptr, indices), not"
            f" {type(graph).__name__}"
        )
    indptr, indices = (_tensor(n, t) for n, t in zip(("indptr", "indices"), graph, strict=True))
    if indptr.dtype != torch.int64:
        raise UsageError(f"indptr must be int64, it is {_dtype(indptr)}")
    if indices.dtype not in IDS:
        raise UsageError(f"indices must be int32 or int64, it is {_dtype(indices)}")
    if indptr.numel() == 0 or int(indptr[0]) != 0 or int(indptr[-1]) != indices.numel():
        raise UsageError(
            f"indptr must begin with 0 and end with {indices.numel()}, the length of indices"
        )
    return indptr, indices


def _tensor(name: str, values: object) -> Tensor:
    if not isinstance(values, (Tensor, np.ndarray)):
        raise UsageError(f"{name} must be a tensor, not {type(values).__name__}")
    tensor = _dense(name, values if isinstance(values, Tensor) else _from_array(name, values))
    if tensor.ndim != 1:
        raise UsageError(f"{name} must have one dimension, it has {tensor.ndim}")
    return tensor.contiguous()


def _dense(name: str, tensor: Tensor) -> Tensor:
    """Return ``tensor``. Raises ``UsageError`` if it is sparse, quantized or has no values."""
    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
        kind = "a quantized" if tensor.is_quantized else "a meta" if tensor.is_meta else "a sparse"
        raise UsageError(f"{name} must be a dense tensor with values, it is {kind} tensor")
    return tensor


def _from_array(name: str, array: npt.NDArray[np.generic[object]]) -> Tensor:
    """Convert an array to a tensor, copied if torch cannot read its memory.

    Torch supports neither negative strides nor foreign byte order. Raises ``UsageError`` for a
    masked array, since tensors have no mask, and for a dtype without a torch equivalent.
    """
    if isinstance(array, np.ma.MaskedArray):
        raise UsageError(f"{name} must not be a masked array; give array.compressed()")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        with warnings.catch_warnings():  # the tensor is only read
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.as_tensor(array.copy() if any(s < 0 for s in array.strides) else array)
    except TypeError:
        raise UsageError(f"{name} must be numbers, they are {array.dtype}") from None


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def seed_tensor(seeds: object, device: torch.device) -> Tensor:
    """Convert seeds to an int32 or int64 tensor ``[n]`` on ``device``.

    Accepts tensors of these types on any device, sequences of ints, and integer arrays. Raises
    ``UsageError`` for other types; ``check_seeds`` checks the ids.
    """
    if not isinstance(seeds, Tensor):
        try:
            array = np.asanyarray(seeds)
        except (TypeError, ValueError):
            raise UsageError("seeds must be node ids in one dimension") from None
        if array.size == 0 and array.ndim == 1:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu":
            raise UsageError(f"seeds must be whole numbers, they are {array.dtype}")
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise UsageError(f"seeds holds the id {array.max()}, which is no node")
        if array.dtype.newbyteorder("=") not in (np.int32, np.int64):
            array = array.astype(np.int64)
        seeds = _from_array("seeds", array)
    _dense("seeds", seeds)
    if seeds.dtype not in IDS:
        raise UsageError(f"seeds must be int32 or int64, they are {_dtype(seeds)}")
    if seeds.ndim != 1:
        raise UsageError(f"seeds must have one dimension, they have {seeds.ndim}")
    return seeds.to(device).contiguous()


def weight_tensor(weights: object, graph: object) -> Tensor:
    """Return edge weights ``[num_edges]`` on the CPU from a tensor, an array, or ``"graph"``.

    ``"graph"`` selects the stored weights. Raises ``UsageError`` if they are missing or not
    floating-point; the values are checked when the tables are built.
    """
    if isinstance(weights, str):
        if weights != "graph":
            raise UsageError(f"weights must be a tensor or 'graph', not '{weights}'")
        stored = graph.weights if isinstance(graph, Graph) else None
        if stored is None:
            raise UsageError(
                "weights='graph', but the graph stores no edge weights; give them as a tensor"
            )
        return stored
    tensor = _tensor("weights", weights)
    if tensor.dtype not in (torch.float32, torch.float64):
        raise UsageError(f"weights must be float32 or float64, they are {_dtype(tensor)}")
    return tensor.detach().cpu()


def check_seeds(ids: Tensor, num_nodes: int, *, exhaustive: bool) -> None:
    """Raise ``UsageError`` for seeds that repeat or are outside the graph.

    gnnbench's kernels check each id, so only the count is checked here. ``exhaustive`` checks each
    id, for samplers with their own kernels; not on a GPU, where a check would synchronize.
    """
    if ids.numel() > num_nodes:
        raise UsageError(
            f"seeds holds an id twice or an id outside the graph: it has {ids.numel()} ids, the"
            f" graph {num_nodes} nodes"
        )
    if not exhaustive or ids.device.type != "cpu" or not ids.numel():
        return
    outside = (ids < 0) | (ids >= num_nodes)
    if bool(outside.any()):
        at = int(outside.nonzero()[0])
        raise UsageError(
            f"seeds holds the id {int(ids[at])} at position {at}; the graph's nodes are 0 to"
            f" {num_nodes - 1}"
        )
    if ids.unique().numel() < ids.numel():
        raise UsageError("seeds holds an id twice; every seed must be unique")
