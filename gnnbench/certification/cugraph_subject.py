"""cuGraph-PyG's ``NeighborLoader`` as a subject, on a GPU."""

from __future__ import annotations

import torch

from gnnbench.certification.stages import StageDrawer, StageSubject, job_of
from gnnbench.certification.subject import SUCCESSIVE, Drawer, Request, Snippet
from gnnbench.kernels.wholegraph_import import WholeMemory
from gnnbench.sampling.cugraph_pyg import CuGraphSampler, CuGraphStage
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

PICKS = {
    WITHOUT: "cugraph-pyg",
    WITH: "replace",
    BY_WEIGHT: "weight_attr, replace",
    SUCCESSIVE: "weight_attr",
}
WEIGHTED = (BY_WEIGHT, SUCCESSIVE)
# Laws in which a loader draws with replacement.
REPLACED = (WITH, BY_WEIGHT)

PROGRAM = """\
import os, socket, torch
os.environ["LOCAL_WORLD_SIZE"] = "1"
with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
os.environ |= {{"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}}
import pylibwholegraph.torch as wgth
wgth.init_torch_env_and_create_wm_comm(0, 1, 0, 1, wm_log_level="warn")
from cugraph_pyg.data import FeatureStore, GraphStore
from cugraph_pyg.loader import NeighborLoader
from cugraph_pyg.tensor import DistMatrix, DistTensor
degree = torch.tensor(indptr).diff()
dst = torch.arange(len(degree)).repeat_interleave(degree)
ends = tuple(
    DistTensor.from_tensor(end, device="cpu", backend="vmm")
    for end in (torch.tensor(indices, dtype=torch.int64), dst)
)
edges, size = ("node", "to", "node"), (len(degree), len(degree))
features, graph = FeatureStore(), GraphStore()
graph.put_edge_index(
    DistMatrix(src=ends, backend="vmm", format="coo"), edges, "coo", False, size
)
{weight}torch.cuda.manual_seed(seed)

def draw(seeds):
    loader = NeighborLoader(
        (features, graph), fanouts, input_nodes=torch.tensor(seeds), batch_size=len(seeds){options}
    )
    batch = next(iter(loader))
    src, dst = batch.n_id[batch.edge_index.cpu()].tolist()
    return [list(zip(dst, src, batch.e_id.tolist()))]  # all hops together
"""


class CuGraphSubject(StageSubject):
    """The stage of ``gnnbench.sampling.cugraph_pyg``, in one communicator for all builds."""

    _memory: WholeMemory | None = None

    def picks(self, law: str) -> tuple[str, ...]:
        """Arguments of ``NeighborLoader`` that give the law."""
        return (PICKS[law],) if law in PICKS else ()

    def build(self, request: Request) -> Drawer:
        """Build the stage. Without a seed, the generator of the GPU keeps its state."""
        if self._memory is None:
            self._memory = WholeMemory.share()  # a communicator takes half a second
        assert isinstance(self.resolved, CuGraphSampler)
        state = torch.cuda.get_rng_state()
        stage = CuGraphStage(
            self.resolved,
            job_of(request, self.name, self.device),
            replace=request.law in REPLACED,
            weighted=request.law in WEIGHTED,
        )
        if request.seed is None:
            torch.cuda.set_rng_state(state)
        return StageDrawer(stage, own_order=True)  # that of ``n_id``

    def snippet(self, request: Request) -> Snippet | None:
        """Source with cuGraph-PyG alone."""
        options = weight = ""
        if request.law in REPLACED:
            options += ", replace=True"
        if request.law in WEIGHTED:
            options += ", weight_attr='weight'"
            weight = "features[edges, 'weight', None] = torch.tensor(weights)\n"
        return Snippet(PROGRAM.format(weight=weight, options=options))
