"""cuGraph-PyG from its PyPI wheels: its graph on one GPU, in a communicator of one rank."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from gnnbench.core.missing import Missing
from gnnbench.kernels.wholegraph_import import WholeMemory, wholegraph_missing

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from collections.abc import Iterator

    from torch import Tensor

    from gnnbench.datasets.graph import Graph

NEEDED = ("cugraph_pyg", "pylibcugraph", "cupy", "torch_geometric")
EDGES = ("node", "to", "node")
WEIGHT = "weight"
ALLOCATORS = ("async", "cuda", "managed")
_RESOURCES = {
    "async": "CudaAsyncMemoryResource",
    "cuda": "CudaMemoryResource",
    "managed": "ManagedMemoryResource",
}


def cugraph_missing() -> Missing | None:
    """Why cuGraph-PyG cannot run here, without importing it."""
    if absent := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        return Missing(
            f"cuGraph-PyG is not installed ({absent[0]} is missing)",
            "pip install cugraph-pyg-cu13 torch-geometric",
        )
    return wholegraph_missing()


class CuGraphBatch(Protocol):
    """A ``Data`` of cuGraph-PyG's loader, as far as this package uses it.

    ``n_id`` begins with the ``batch_size`` seeds, in cuGraph's order. Its ``input_id``, unused
    here, has the requested order (cuGraph-PyG 26.10), so it does not index these seeds. ``n_id``
    and ``e_id`` are on the host, ``edge_index`` on the GPU. Nodes are ordered by the hop
    at which they were first drawn, those of one hop in any order. Edges are ordered by destination.
    """

    n_id: Tensor
    e_id: Tensor
    edge_index: Tensor
    num_sampled_nodes: Tensor
    num_sampled_edges: Tensor
    batch_size: int


class CuGraph:
    """A graph in cuGraph's form, and loaders over it.

    Args:
        graph: in-neighbours by row; ``weights`` of its edges, if ``weighted``.
        allocator: one of ``ALLOCATORS``, RMM's resource for cuGraph's memory.
        weighted: neighbours are drawn by weight.
    """

    def __init__(self, graph: Graph, allocator: str, weighted: bool = False) -> None:
        # GraphStore and FeatureStore read it to find out whether all ranks are on this machine.
        os.environ.setdefault("LOCAL_WORLD_SIZE", "1")
        self._whole = WholeMemory.share()
        self._mr: ModuleType = importlib.import_module("rmm.mr")
        self._previous = self._mr.get_current_device_resource()
        self._mr.set_current_device_resource(getattr(self._mr, _RESOURCES[allocator])())
        data: ModuleType = importlib.import_module("cugraph_pyg.data")
        loaders: ModuleType = importlib.import_module("cugraph_pyg.loader")
        self._neighbor_loader = loaders.NeighborLoader
        self._weight = WEIGHT if weighted else None
        features, store = data.FeatureStore(), data.GraphStore()
        nodes = graph.num_nodes
        store.put_edge_index(_edges(graph), EDGES, "coo", False, (nodes, nodes))
        if weighted:
            features[EDGES, WEIGHT, None] = graph.weights
        store.finalize(weight_attr=(features, WEIGHT) if weighted else None)
        self._stores = (features, store)

    def batches(
        self,
        seeds: Tensor,
        fanouts: list[int],
        batch_size: int,
        replace: bool = False,
        seeds_per_call: int | None = None,
    ) -> Iterator[CuGraphBatch]:
        """Iterate over the batches of ``seeds``, in their order.

        The first batch draws all batches of a call, ``seeds_per_call`` seeds (None: cuGraph's
        number). Seeds of the random numbers come from torch's generator of the GPU.
        """
        return iter(
            self._neighbor_loader(
                self._stores,
                num_neighbors=fanouts,
                input_nodes=seeds.long(),
                replace=replace,
                weight_attr=self._weight,
                batch_size=batch_size,
                shuffle=False,
                local_seeds_per_call=seeds_per_call,
            )
        )

    def close(self) -> None:
        """Free the graph; the last user ends WholeGraph's state."""
        del self._stores
        self._mr.set_current_device_resource(self._previous)
        self._whole.close()


def _edges(graph: Graph) -> object:
    """A ``DistMatrix`` of sources and destinations, in WholeMemory of the host.

    ``GraphStore`` of cuGraph-PyG 26.10 takes tensors only where cuDF is installed, and a pair of
    ``DistTensor`` in the reverse order of PyG's.
    """
    import torch

    tensors: ModuleType = importlib.import_module("cugraph_pyg.tensor")
    dst = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    ends = [
        tensors.DistTensor.from_tensor(end, device="cpu", backend="vmm")
        for end in (graph.indices.long(), dst)
    ]
    return tensors.DistMatrix(src=tuple(ends), backend="vmm", format="coo")
