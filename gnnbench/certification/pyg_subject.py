"""PyG's ``NeighborLoader`` as a subject."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.certification.stages import (
    StageDrawer,
    StageSubject,
    data_of,
    job_of,
    seed_everything,
)
from gnnbench.certification.subject import (
    SUCCESSIVE,
    Drawer,
    Ids,
    Request,
    Snippet,
    Temporal,
    TemporalDraw,
    WalkDraws,
    WorkerDraws,
)
from gnnbench.core.minibatch import host_ids
from gnnbench.kernels.pyg_import import sampling_by
from gnnbench.sampling.pyg import PygSampler, PygStage, PygWorkersStage
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

if TYPE_CHECKING:
    from torch_geometric.loader import NeighborLoader

    from gnnbench.datasets.graph import Graph

PICKS = {
    WITHOUT: "pyg",
    WITH: "replace",
    BY_WEIGHT: "weight_attr, replace",
    SUCCESSIVE: "weight_attr",
}
PYG_LIB_ONLY = (BY_WEIGHT, SUCCESSIVE)


class _OptionStage(PygStage):
    """The stage with ``replace`` and ``weight_attr`` of PyG's loader."""

    def __init__(self, spec: PygSampler, request: Request, name: str, device: str) -> None:
        self._request = request
        super().__init__(spec, job_of(request, name, device))

    def _build_loader(self) -> NeighborLoader:
        from torch_geometric.loader import NeighborLoader

        request = self._request
        weighted = request.law in PYG_LIB_ONLY
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*pyg-lib.*")
            return NeighborLoader(
                data_of(request.graph),
                num_neighbors=list(request.fanouts),
                input_nodes=None,
                replace=request.law in (WITH, BY_WEIGHT),
                weight_attr="weight" if weighted else None,
                is_sorted=True,
                filter_per_worker=False,
                batch_size=request.batch_size,
            )


class PygSubject(StageSubject):
    """PyG with the options of ``gnnbench.sampling.pyg``."""

    @property
    def extension(self) -> str:
        """``pyg-lib`` or ``torch-sparse``."""
        assert isinstance(self.resolved, PygSampler)
        return self.resolved.extension

    def picks(self, law: str) -> tuple[str, ...]:
        """Arguments of ``NeighborLoader`` that give the law."""
        if law in PYG_LIB_ONLY and self.extension != "pyg-lib":
            return ()
        return (PICKS[law],) if law in PICKS else ()

    def reason(self, law: str) -> str:
        """What the law needs."""
        return "PyG samples by weight with pyg-lib only" if law in PYG_LIB_ONLY else ""

    def build(self, request: Request) -> Drawer:
        """Build the loader and seed torch."""
        spec = self.resolved
        assert isinstance(spec, PygSampler)
        if request.seed is not None:
            seed_everything(request.seed)
        return StageDrawer(_OptionStage(spec, request, self.name, self.device))

    def workers(self, request: Request, seeds: Tensor) -> WorkerDraws | str:
        """``NeighborLoader`` with two worker processes."""
        spec = self.resolved
        assert isinstance(spec, PygSampler)
        stage = PygWorkersStage(replace(spec, workers=2), job_of(request, self.name, "cpu"))

        def draw(epochs: int, batches: int) -> list[list[Ids]]:
            drawn: list[list[Ids]] = []
            try:
                for epoch in range(epochs):
                    expected = [seeds.clone() for _ in range(batches)]
                    stage.expect(epoch, expected)
                    drawn.append(
                        [
                            host_ids(stage.sample(part, epoch, number).out.edge).copy()
                            for number, part in enumerate(expected)
                        ]
                    )
            finally:
                stage.close()
            return drawn

        return draw

    def walks(self) -> WalkDraws | str:
        """PyG's walks need another extension."""
        return "PyG's random walks need torch-cluster, which is not tested"

    def temporal(self) -> Temporal | str:
        """``NeighborLoader`` with ``time_attr`` of edges and ``temporal_strategy='uniform'``."""
        if self.extension != "pyg-lib":
            return "PyG samples by time with pyg-lib only"

        def build(
            graph: Graph, times: Ids, fanouts: Sequence[int], seeds: Tensor, seed_times: Tensor
        ) -> Callable[[], TemporalDraw]:
            from torch_geometric.loader import NeighborLoader

            data = data_of(graph)
            data.time = torch.from_numpy(times)
            with sampling_by("pyg-lib"):
                loader = NeighborLoader(
                    data,
                    num_neighbors=list(fanouts),
                    input_nodes=seeds,
                    input_time=seed_times,
                    time_attr="time",
                    temporal_strategy="uniform",
                    is_sorted=True,
                    batch_size=seeds.numel(),
                    filter_per_worker=False,
                )

            def draw() -> TemporalDraw:
                with sampling_by("pyg-lib"):
                    out = loader.collate_fn(torch.arange(seeds.numel()))
                return TemporalDraw(
                    host_ids(out.batch[out.col]),
                    host_ids(out.node[out.col]),
                    host_ids(out.edge),
                )

            return draw

        return build

    def snippet(self, request: Request) -> Snippet | None:
        """Source with PyG alone."""
        options = ""
        if request.law in (WITH, BY_WEIGHT):
            options += ", replace=True"
        if request.law in PYG_LIB_ONLY:
            options += ", weight_attr='weight'"
        weight = "data.weight = torch.tensor(weights)\n" if request.law in PYG_LIB_ONLY else ""
        return Snippet(
            f"""\
import torch, torch_geometric.typing
torch_geometric.typing.WITH_PYG_LIB = {self.extension == "pyg-lib"}
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
degree = torch.tensor(indptr).diff()
dst = torch.arange(len(degree)).repeat_interleave(degree)
data = Data(edge_index=torch.stack([torch.tensor(indices), dst]), num_nodes=len(degree))
{weight}loader = NeighborLoader(
    data, fanouts, input_nodes=None, is_sorted=True, filter_per_worker=False{options}
)
torch.manual_seed(seed)

def draw(seeds):
    out = loader.collate_fn(torch.tensor(seeds))
    dst, src = out.node[out.col].tolist(), out.node[out.row].tolist()
    return [list(zip(dst, src, out.edge.tolist()))]  # all hops together
"""
        )
