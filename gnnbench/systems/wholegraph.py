"""``wholegraph``: NVIDIA's WholeGraph, its multi-layer sampler, from its PyPI wheels.

What a user would pick instead for sampling on one GPU: ``GraphStructure`` over the topology in
device memory, ``multilayer_sample_without_replacement``. It samples only (model ``none``).
"""

from __future__ import annotations

import importlib.util
import os
import random
import socket
from typing import Any, ClassVar

import torch
from torch import Tensor

from gnnbench.cell import Cell
from gnnbench.check.hops import Hop
from gnnbench.data.graph import Graph
from gnnbench.errors import UnsupportedError
from gnnbench.minibatch import MiniBatch
from gnnbench.systems.base import CheckReport, Missing
from gnnbench.systems.training import Counted, TrainingSystem

MEMORY = ("continuous", "chunked", "distributed")


class WholeGraph(TrainingSystem):
    """WholeGraph's sampler on one GPU; in-neighbours are its CSR's rows."""

    name = "wholegraph"
    summary = "NVIDIA's WholeGraph: its multi-layer sampler on one GPU, sampling only"
    devices = ("cuda",)
    framework = "none"
    picks: ClassVar[tuple[str, ...]] = ("wholegraph",)
    frontiers: ClassVar[tuple[str, ...]] = ("cumulative",)
    options: ClassVar[dict[str, str]] = {
        "memory": "continuous (default), chunked or distributed: WholeMemory of the topology"
    }
    option_values: ClassVar[dict[str, tuple[Any, ...]]] = {"memory": MEMORY}

    def __init__(self, cell: Cell, graph: Graph) -> None:
        super().__init__(cell, graph)
        if self.trains:
            raise UnsupportedError("system 'wholegraph' samples only; give it the model 'none'")
        self._lookup: _EdgeLookup | None = None

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The wheels must be installed, and a GPU be there."""
        needed = ("pylibwholegraph", "libwholegraph", "librmm")
        if absent := [name for name in needed if importlib.util.find_spec(name) is None]:
            return Missing(
                f"WholeGraph is not installed ({absent[0]} is not there)",
                "pip install pylibwholegraph-cu13",
            )
        if torch.version.cuda is None:
            return Missing("this torch is built without CUDA", "install a torch with CUDA")
        if not torch.cuda.is_available():
            return Missing("there is no CUDA device", "run on a machine with a GPU")
        return None

    def build_backend(self) -> None:
        """Topology into WholeMemory of a communicator of one rank."""
        threads = torch.get_num_threads()
        # libwholegraph needs librmm; its own loader finds it through libraft, of which it needs
        # nothing else.
        import librmm

        librmm.load_library()
        import pylibwholegraph.torch as wgth

        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = str(_free_port())  # two workers may be alive
        wgth.init_torch_env_and_create_wm_comm(0, 1, 0, 1, wm_log_level="warn")
        torch.set_num_threads(threads)  # which it sets to one
        random.seed(self.cell.seed)  # its sampler draws its seeds here
        self._wgth = wgth
        self._comm = wgth.get_local_device_communicator()
        memory = str(self.cell.options.get("memory", MEMORY[0]))
        if not self._comm.support_type_location(memory, "cuda"):
            raise UnsupportedError(
                f"WholeGraph has no {memory} memory on this GPU; give -o wholegraph.memory=chunked"
            )
        graph = self.graph
        self._tensors = [self._store(t, memory) for t in (graph.indptr, graph.indices)]
        self._structure = wgth.GraphStructure()
        self._structure.set_csr_graph(*self._tensors)

    def _store(self, values: Tensor, memory: str) -> Any:
        stored = self._wgth.create_wholememory_tensor(
            self._comm, memory, "cuda", [values.numel()], values.dtype, [1]
        )
        local, first = stored.get_local_tensor()
        local.copy_(values[first : first + local.numel()])
        return stored

    def sample(self, seeds: Tensor, epoch: int, batch: int) -> Any:
        """(nodes by layer, edges by layer, row offsets, columns), the input layer first."""
        nodes = seeds.to(self.device, self.graph.indices.dtype)
        return self._structure.multilayer_sample_without_replacement(nodes, list(self.cell.fanouts))

    def keep(self, drawn: Any) -> Any:
        """Nodes by layer and numbers of edges."""
        nodes, _, _, columns = drawn
        return nodes, [c.numel() for c in columns]

    def counted(self, kept: Any) -> Counted:
        """The seeds are the last layer's nodes."""
        nodes, edges = kept
        hops = list(zip(reversed(nodes[1:]), reversed(edges), strict=True))
        return Counted(hops, nodes[0].numel(), nodes[-1].numel())

    def input_nodes(self, drawn: Any) -> Tensor:
        """Global ids of the input layer."""
        nodes: Tensor = drawn[0][0]
        return nodes

    def seeds(self, drawn: Any) -> Tensor:
        """Seeds of the batch."""
        nodes: Tensor = drawn[0][-1]
        return nodes

    def hop_sizes(self, drawn: Any) -> list[tuple[Tensor, int]]:
        """Destinations and edges by hop."""
        return self.counted(self.keep(drawn)).hops

    def block_tensors(self, drawn: Any) -> list[Tensor]:
        """Offsets, columns and nodes; it returns the edges by their ends as well."""
        nodes, _, offsets, columns = drawn
        return [*nodes[:-1], *offsets, *columns]

    def graph_bytes(self) -> int:
        """WholeMemory is none of torch's."""
        return 0

    def hops(self, drawn: Any) -> list[Hop]:
        """Edges in neutral form.

        The multi-layer sampler does not say which of parallel edges it drew: repeated ends get the
        positions of the row's parallel edges one by one.
        """
        if self._lookup is None:
            self._lookup = _EdgeLookup(self.graph, self.device)
        nodes, _, offsets, columns = drawn
        found = []
        for layer in reversed(range(len(columns))):
            dst = nodes[layer + 1].long()
            rows = torch.repeat_interleave(
                torch.arange(dst.numel(), device=self.device), offsets[layer].diff().long()
            )
            edge_dst, edge_src = dst[rows], nodes[layer].long()[columns[layer].long()]
            positions = self._lookup.positions(edge_dst, edge_src)
            found.append(Hop(*(t.cpu().numpy() for t in (dst, edge_dst, edge_src, positions))))
        return found

    def check(self) -> CheckReport:
        """As every system's; what it took of the GPU's memory is given back."""
        try:
            return super().check()
        finally:
            self._forget_lookup()

    def recheck(self, epoch: int) -> str:
        """As every system's."""
        try:
            return super().recheck(epoch)
        finally:
            self._forget_lookup()

    def _forget_lookup(self) -> None:
        self._lookup = None
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(self.device)

    def close(self) -> None:
        """Destroy the topology, then WholeGraph's state."""
        if hasattr(self, "_tensors"):
            del self._structure
            for stored in self._tensors:
                self._wgth.destroy_wholememory_tensor(stored)
            self._wgth.finalize()

    # Without a model nobody asks for these.

    def load(self, drawn: Any) -> Tensor:
        """There are no features."""
        raise UnsupportedError("system 'wholegraph' samples only")

    def blocks(self, drawn: Any) -> list[Any]:
        """There are no layers."""
        raise UnsupportedError("system 'wholegraph' samples only")

    def convert(self, batch: MiniBatch) -> list[Any]:
        """There are no layers."""
        raise UnsupportedError("system 'wholegraph' samples only")


class _EdgeLookup:
    """Positions of edges by their ends, over the edges sorted by (destination, source)."""

    def __init__(self, graph: Graph, device: torch.device) -> None:
        indptr = graph.indptr.to(device)
        rows = torch.repeat_interleave(
            torch.arange(graph.num_nodes, device=device), indptr.diff(), output_size=graph.num_edges
        )
        self._nodes = graph.num_nodes
        ends = rows.mul_(self._nodes).add_(graph.indices.to(device))
        self._sorted, self._order = torch.sort(ends, stable=True)

    def positions(self, dst: Tensor, src: Tensor) -> Tensor:
        """Offsets in ``indices`` of drawn edges, int64.

        The n-th of equal edges gets the n-th of the graph's; one too many the position of another
        edge, where no such edge exists that of the nearest: the structural check finds both.
        """
        drawn, back = torch.sort(dst * self._nodes + src, stable=True)
        first = torch.searchsorted(drawn, drawn)
        nth = torch.arange(drawn.numel(), device=drawn.device) - first
        at = torch.searchsorted(self._sorted, drawn) + nth
        found = torch.empty_like(drawn)
        found[back] = self._order[at.clamp_(max=self._sorted.numel() - 1)]
        return found


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        port: int = s.getsockname()[1]
    return port
