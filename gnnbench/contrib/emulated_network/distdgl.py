"""The real DistDGL as a peer: its own partitions, servers, sampling over RPC, and DDP.

``python -m gnnbench.contrib.emulated_network.distdgl host PLAN OUT`` is one machine: a server and
a trainer, ended
together. After DGL's own example of GraphSAGE on several machines (Zheng et al., IA3 2020).
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gnnbench.contrib.emulated_network.plan import Plan
from gnnbench.contrib.emulated_network.records import EpochReport, Measured
from gnnbench.schema.run_json import DglPartitionJson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dgl import DGLBlock
    from dgl.distributed import DistGraph
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

    DrawnBatch = tuple[Tensor, Tensor, list[DGLBlock]]  # as DGL's loader yields it

PORT = 30050
NAME = "graph"
OWNERS = "owners.npy"  # next to DGL's own files: the part of each node, int64 [num_nodes]
_TIMEOUT_S = 45.0
_LEFT_S = 20.0  # how long a server may take to end once its trainers have


def partition(dataset: str, parts: int, folder: Path, seed: int) -> DglPartitionJson:
    """Split a graph of the store by DGL's METIS into ``folder``; edges that it cuts, and its parts.

    Nodes, edges and training nodes are balanced, as its example does; a part keeps the one ring of
    others' nodes around its own, which is DGL's default.
    """
    import numpy as np
    import torch

    from gnnbench.datasets.prepare import load_dataset

    dgl = _dgl()
    dgl.seed(seed)
    graph = load_dataset(dataset)
    targets = torch.repeat_interleave(torch.arange(graph.num_nodes), graph.indptr.diff())
    made = dgl.graph((graph.indices.long(), targets), num_nodes=graph.num_nodes)
    made.ndata["feat"] = torch.clone(graph.features)
    made.ndata["label"] = torch.clone(graph.labels)
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
    mask[graph.train_idx] = True
    made.ndata["train"] = mask
    nodes, _ = dgl.distributed.partition_graph(
        made, NAME, parts, str(folder), part_method="metis", balance_ntypes=mask,
        balance_edges=True, return_mapping=True,
    )  # fmt: skip
    owner = torch.empty(graph.num_nodes, dtype=torch.int64)
    ends = json.loads((folder / f"{NAME}.json").read_text())["node_map"]["_N"]
    for part, (first, last) in enumerate(ends):
        owner[nodes[first:last]] = part
    np.save(folder / OWNERS, owner.numpy())
    cut = int((owner[graph.indices.long()] != owner[targets]).sum())
    training = torch.bincount(owner[graph.train_idx], minlength=parts)
    return {
        "cut": cut,
        "edges": graph.num_edges,
        "nodes": [last - first for first, last in ends],
        "training_nodes": training.tolist(),
    }


def _dgl() -> ModuleType:
    """The real DGL with its distributed part."""
    from gnnbench.kernels.dgl_import import require_dgl

    dgl = require_dgl()
    importlib.import_module("dgl.distributed")
    return dgl


def host(plan: Path, out: Path) -> int:
    """A machine: its server and its trainer; the exit status, 0 where both ended well."""
    read = Plan.read(plan)
    with tempfile.TemporaryDirectory() as folder:
        hosts = Path(folder) / "hosts.txt"
        hosts.write_text("".join(f"{a} {PORT}\n" for a in read.addresses), encoding="utf-8")
        common = {
            **os.environ,
            "DGL_DIST_MODE": "distributed",
            "DGL_IP_CONFIG": str(hosts),
            "DGL_NUM_SERVER": "1",
            "DGL_NUM_SAMPLER": "0",
            "DGL_NUM_CLIENT": str(len(read.addresses)),
            "DGL_CONF_PATH": str(Path(read.folder) / f"{NAME}.json"),
            "DGL_GRAPH_FORMAT": "csc",
            "OMP_NUM_THREADS": "1",
        }
        roles = {
            "server": {"DGL_ROLE": "server", "DGL_SERVER_ID": os.environ["RANK"]},
            "train": {"DGL_ROLE": "client"},
        }
        running = {
            role: subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "gnnbench.contrib.emulated_network.distdgl",
                    role,
                    str(plan),
                    str(out),
                ],
                env={**common, **own},
            )
            for role, own in roles.items()
        }
        try:
            return _watch(running)
        finally:
            for process in running.values():
                if process.poll() is None:
                    process.kill()
                process.wait()


def _watch(running: dict[str, subprocess.Popen[bytes]]) -> int:
    """Wait for both; the first status that is not 0, or 1 for a server that does not end."""
    until = None
    while True:
        ended = {role: p.returncode for role, p in running.items() if p.poll() is not None}
        if bad := [code for code in ended.values() if code]:
            return abs(bad[0])
        if len(ended) == len(running):
            return 0
        if "train" in ended:
            until = until or time.monotonic() + _LEFT_S
            if time.monotonic() > until:
                print("the server did not end with its trainers", file=sys.stderr)
                return 1
        time.sleep(0.05)


def serve() -> None:
    """A server: it ends by itself once all trainers have."""
    import torch

    torch.set_num_threads(1)
    _dgl().distributed.initialize(os.environ["DGL_IP_CONFIG"])


def train(plan: Plan) -> list[EpochReport]:
    """A trainer: all epochs of a life, as it saw them."""
    import torch
    import torch.distributed as dist

    from gnnbench.datasets.prepare import load_dataset

    torch.set_num_threads(1)
    dgl = _dgl()
    dgl.seed(plan.seed)
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=_TIMEOUT_S))
    torch.manual_seed(plan.seed)
    graph = dgl.distributed.DistGraph(NAME, part_config=os.environ["DGL_CONF_PATH"])
    own = dgl.distributed.node_split(
        graph.ndata["train"], graph.get_partition_book(), force_even=True
    )
    # DGL's lists begin with the hop that is drawn last.
    sampler = dgl.dataloading.NeighborSampler(plan.fanouts[::-1])
    loader = dgl.dataloading.DistNodeDataLoader(
        graph, own, sampler, batch_size=plan.batch_size, shuffle=True, drop_last=False
    )
    classes = load_dataset(plan.dataset).num_classes
    model = torch.nn.parallel.DistributedDataParallel(
        _sage(graph.ndata["feat"].shape[1], plan.hidden, classes, len(plan.fanouts))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=plan.learning_rate)
    asked = _count_requests()
    rows: list[EpochReport] = []
    for place, (system, number) in enumerate(plan.epochs):
        epoch_row = _epoch(plan.steps(number), graph, loader, model, optimizer, asked)
        rows.append({"place": place, "system": system, "epoch": number, **epoch_row})
    dist.barrier()
    return rows


def _epoch(
    most: int, graph: DistGraph, loader: Iterable[DrawnBatch], model: Module, optimizer: Optimizer,
    asked: list[int],
) -> Measured:  # fmt: skip
    import torch
    import torch.distributed as dist

    from gnnbench.contrib.emulated_network.network import counters

    seconds = {"sample": 0.0, "features": 0.0}
    edges, nodes, counts, losses = [], [], [], []
    fetched: list[torch.Tensor] = []
    asked.clear()
    dist.barrier()
    link = counters()
    begun = time.perf_counter()
    for seeds, inputs, blocks in _timed(loader, seconds, most):
        at = time.perf_counter()
        features = graph.ndata["feat"][inputs]
        labels = graph.ndata["label"][seeds].long()
        seconds["features"] += time.perf_counter() - at
        loss = torch.nn.functional.cross_entropy(
            model(blocks, features), labels, ignore_index=-1, reduction="sum"
        ) / len(seeds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        edges.append(sum(block.num_edges() for block in blocks))
        nodes.append(len(inputs))
        counts.append(len(seeds))
        losses.append(loss.detach() * len(seeds))
        fetched.append(inputs)
    wall = time.perf_counter() - begun
    dist.barrier()
    sent, received = (now - then for now, then in zip(counters(), link, strict=True))
    requests = len(asked)
    parts = graph.get_partition_book()
    remote = sum(bool((parts.nid2partid(n) != parts.partid).any()) for n in fetched)
    # Of all ranks, as ours are; after the epoch, so that it is in no time.
    summed = torch.stack([torch.stack(losses), torch.tensor(counts, dtype=torch.float32)])
    dist.all_reduce(summed)
    return {
        "rank": dist.get_rank(),
        "wall_s": wall,
        "sample_s": seconds["sample"],
        "features_s": seconds["features"],
        "steps": len(counts),
        "seeds": sum(counts),
        "edges": edges,
        "nodes": nodes,
        "losses": (summed[0] / summed[1]).tolist(),
        "rounds": 2 * (requests + remote),
        "reduces": len(counts),
        "link_sent_bytes": sent,
        "link_received_bytes": received,
    }


def _timed(
    loader: Iterable[DrawnBatch], seconds: dict[str, float], most: int
) -> Iterator[DrawnBatch]:
    """Batches, the time to have each added up: without sampler processes it is drawn then."""
    batches, taken = iter(loader), 0
    while not most or taken < most:
        begun = time.perf_counter()
        try:
            batch = next(batches)
        except StopIteration:
            return
        finally:
            seconds["sample"] += time.perf_counter() - begun
        taken += 1
        yield batch[1], batch[0], batch[2]


def _sage(width: int, hidden: int, classes: int, layers: int) -> Module:
    """GraphSAGE with means and ReLU between layers, of DGL's own layers."""
    import torch
    from dgl.nn.pytorch import SAGEConv

    class Sage(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            wide = [width, *[hidden] * (layers - 1), classes]
            self.layers = torch.nn.ModuleList(SAGEConv(a, b, "mean") for a, b in pairwise(wide))

        def forward(self, blocks: list[DGLBlock], rows: Tensor) -> Tensor:
            for place, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
                rows = layer(block, rows)
                if place < len(self.layers) - 1:
                    rows = rows.relu()
            return rows

    return Sage()


def _count_requests() -> list[int]:
    """A list that grows by one each time a hop asks other machines: there and back are 2 rounds."""
    from dgl.distributed import graph_services

    asked: list[int] = []
    send = graph_services.send_requests_to_machine

    def counted(requests: list[tuple[int, object]]) -> object:
        asked.append(len(requests))
        return send(requests)

    graph_services.send_requests_to_machine = counted
    return asked


def main() -> None:
    """The program."""
    if sys.argv[1] == "partition":
        dataset, parts, folder, seed = sys.argv[2:]
        print(json.dumps(partition(dataset, int(parts), Path(folder), int(seed))))
        return
    role, plan, out = sys.argv[1], *map(Path, sys.argv[2:])
    if role == "host":
        sys.exit(host(plan, out))
    if role == "server":
        serve()
        return
    rows = train(Plan.read(plan))
    out.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
