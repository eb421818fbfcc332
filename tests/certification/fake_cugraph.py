"""A cuGraph-PyG without a GPU: samples on the host, with cuGraph's order of seeds and its form."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from gnnbench.certification.cugraph_subject import CuGraphSubject
from gnnbench.kernels.wholegraph_import import WholeMemory
from gnnbench.sampling.cugraph_pyg import CuGraphSampler


def subject(monkeypatch: pytest.MonkeyPatch, fault: str = "") -> CuGraphSubject:
    """A subject of the fake with a planted fault: ``drops``, ``repeats``, ``wrong order``,
    ``others`` (nodes that were not requested) or none."""

    class Store(dict[object, object]):
        def put_edge_index(self, ends: Sequence[Tensor], *attributes: object) -> None:
            self.ends = ends

        def finalize(self, weight_attr: object = None) -> None:
            pass

    def loader(
        stores: tuple[Store, Store], *, num_neighbors: list[int], input_nodes: Tensor,
        batch_size: int, **options: object,
    ) -> Iterator[object]:  # fmt: skip
        for seeds in input_nodes.split(batch_size):
            yield _data(*stores[1].ends, num_neighbors, seeds, fault)

    modules: dict[str, dict[str, object]] = {
        "cugraph_pyg.data": {"GraphStore": Store, "FeatureStore": Store},
        "cugraph_pyg.loader": {"NeighborLoader": loader},
        "cugraph_pyg.tensor": {
            "DistTensor": types.SimpleNamespace(from_tensor=lambda values, **options: values),
            "DistMatrix": lambda src, **options: src,
        },
        "rmm.mr": {
            "get_current_device_resource": lambda: None,
            "set_current_device_resource": lambda resource: None,
            "CudaAsyncMemoryResource": lambda: None,
        },
    }
    for name, members in modules.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name.partition(".")[0], types.ModuleType("parent"))
        monkeypatch.setitem(sys.modules, name, module)
    whole = types.SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(WholeMemory, "share", lambda: whole)
    stream = types.SimpleNamespace(wait_stream=lambda other: None)
    for name in ("default_stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, lambda device: stream)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: None)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    made = CuGraphSubject("cugraph-pyg", CuGraphSampler(), "cuda", {}, {"cugraph-pyg": "26.10"})
    made.device = "cpu"
    return made


def _data(src: Tensor, dst: Tensor, fanouts: list[int], seeds: Tensor, fault: str) -> object:
    """A batch for ``seeds``, which come in descending order. The frontier is ``new``."""
    ordered = seeds.sort(descending=True).values.tolist()
    if fault == "drops":
        ordered = ordered[1:]
    elif fault == "repeats":
        ordered[1:2] = ordered[:1]
    elif fault == "others":
        ordered = [(node + 1) % (int(dst.max()) + 1) for node in ordered]
    local = {node: place for place, node in enumerate(ordered)}
    frontier, known, columns, edges = list(local), [len(local)], [], [0]
    for fanout in fanouts:
        for node in frontier:
            row = (dst == node).nonzero()[:, 0]
            picked = row[torch.randperm(row.numel())][: None if fanout == -1 else fanout]
            columns += [(position, local[node]) for position in picked.tolist()]
        for position, _ in columns[edges[-1] :]:
            local.setdefault(int(src[position]), len(local))
        frontier = list(local)[known[-1] :]
        known.append(len(local))
        edges.append(len(columns))
    if not columns:
        raise KeyError("renumber_map")  # as cuGraph-PyG 26.10 does
    nodes = list(local) if fault != "repeats" else ordered + list(local)[len(set(ordered)) :]
    if fault == "wrong order":
        nodes[: len(ordered)] = nodes[: len(ordered)][::-1]
    return types.SimpleNamespace(
        n_id=torch.tensor(nodes),
        edge_index=torch.tensor(
            [[local[int(src[p])] for p, _ in columns], [d for _, d in columns]]
        ),
        e_id=torch.tensor([position for position, _ in columns]),
        num_sampled_nodes=torch.tensor([known[0], *(b - a for a, b in pairwise(known))]),
        num_sampled_edges=torch.tensor([b - a for a, b in pairwise(edges)]),
        batch_size=seeds.numel(),
    )
