"""cuGraph-PyG's ``NeighborLoader`` as a subject, on a GPU. It has not been run yet."""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
from importlib import metadata
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from gnnbench.certification.stages import data_of, seed_everything
from gnnbench.certification.subject import SUCCESSIVE, Drawer, Request, Subject
from gnnbench.core.errors import MissingError, UnsupportedError, UsageError
from gnnbench.kernels.missing import gpu_missing
from gnnbench.sampling.pyg_batch import PygBatch
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

NAME = "cugraph-pyg"
DISTRIBUTIONS = ("cugraph-pyg-cu13", "cugraph-pyg-cu12", "cugraph-pyg")
EDGES = ("node", "to", "node")
PICKS = {
    WITHOUT: "cugraph",
    WITH: "replace",
    BY_WEIGHT: "weight_attr, replace",
    SUCCESSIVE: "weight_attr",
}


class _Sampled(Protocol):
    """A batch of the loader: a ``Data``."""

    n_id: Tensor
    e_id: Tensor
    edge_index: Tensor
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]


class CuGraphSubject(Subject):
    """cuGraph-PyG on one GPU, with its default options.

    Raises ``MissingError`` where it is not installed, ``UnsupportedError`` for the CPU, and
    ``UsageError`` for an option, since it has none here.
    """

    def __init__(self, device: str, options: Mapping[str, object]) -> None:
        if options:
            raise UsageError(f"'{NAME}' has no option '{next(iter(options))}' here")
        if importlib.util.find_spec("cugraph_pyg") is None:
            raise MissingError(
                f"'{NAME}' cannot be certified: it is not installed; pip install {DISTRIBUTIONS[0]}"
            )
        if device != "cuda":
            raise UnsupportedError(f"'{NAME}' samples on a GPU only; give --device cuda")
        if missing := gpu_missing():
            raise MissingError(f"'{NAME}' cannot be certified: {missing.reason}; {missing.fix}")
        self.name, self.device, self.options = NAME, device, options
        self.packages = {"cugraph-pyg": _version(), "torch": torch.__version__}

    def picks(self, law: str) -> tuple[str, ...]:
        """Arguments of ``NeighborLoader`` that give the law."""
        return (PICKS[law],) if law in PICKS else ()

    def build(self, request: Request) -> Drawer:
        """Build the graph store and seed torch."""
        _start()
        if request.seed is not None:
            seed_everything(request.seed)
        return _CuGraphDrawer(request)


class _CuGraphDrawer(Drawer):
    frontier = "new"

    def __init__(self, request: Request) -> None:
        stores: ModuleType = importlib.import_module("cugraph_pyg.data")
        self._request, self._loaders = request, importlib.import_module("cugraph_pyg.loader")
        nodes, data = request.graph.num_nodes, data_of(request.graph)
        graph, features = stores.GraphStore(), stores.FeatureStore()
        graph[EDGES, "coo", False, (nodes, nodes)] = data.edge_index
        if request.graph.weights is not None:
            features[EDGES, "weight", None] = request.graph.weights
        self._stores = features, graph

    def draw(self, seeds: Tensor, epoch: int, number: int) -> PygBatch:
        """Draw a batch by a loader over these seeds."""
        from torch_geometric.sampler import SamplerOutput

        request = self._request
        loader = self._loaders.NeighborLoader(
            self._stores,
            num_neighbors=list(request.fanouts),
            input_nodes=seeds,
            replace=request.law in (WITH, BY_WEIGHT),
            weight_attr="weight" if request.law in (BY_WEIGHT, SUCCESSIVE) else None,
            batch_size=seeds.numel(),
            shuffle=False,
        )
        sampled: _Sampled = next(iter(loader))
        row, col = sampled.edge_index.cpu()
        order = col.argsort(stable=True)  # blocks need the edges by destination
        out = SamplerOutput(
            node=sampled.n_id.cpu(),
            row=row[order],
            col=col[order],
            edge=sampled.e_id.cpu()[order],
            num_sampled_nodes=[int(n) for n in sampled.num_sampled_nodes],
            num_sampled_edges=[int(n) for n in sampled.num_sampled_edges],
            metadata=(seeds, None),
        )
        return PygBatch(number, out, len(request.fanouts), None)


def _start() -> None:
    """Start the communicators of a single rank that the stores need, once in a process."""
    if torch.distributed.is_initialized():
        return
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    comms: ModuleType = importlib.import_module("pylibcugraph.comms")
    unique = comms.cugraph_comms_create_unique_id()
    comms.cugraph_comms_init(rank=0, world_size=1, uid=unique, device=0)
    whole: ModuleType = importlib.import_module("pylibwholegraph.torch.initialize")
    whole.init(0, 1, 0, 1)


def _version() -> str:
    for name in DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""
