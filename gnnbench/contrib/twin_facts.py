"""What a twin's parameters are fitted to: facts that papers tell of the real graph, measured on
the twin's topology alone (no features, no store).

    python -m gnnbench.contrib.twin_facts papers100m --scale 0.1 --seeds 0 1 2 --workload graphsage

A twin at scale s is sampled in batches of s times the paper's size, so that a node's chance to be
in a batch is that of scale 1. The tables ``[[distance]]`` of ``datasets/*.toml`` have what this
prints.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gnnbench.datasets.generators.parallel import generating, gpu_bytes
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.generators.seeded import seeded_weights
from gnnbench.datasets.generators.twin import make_spec
from gnnbench.datasets.graph import Graph
from gnnbench.datasets.manifest import Distance, Measured, manifests
from gnnbench.features.policies.policy import DEGREE, PRESAMPLED, PRESC, out_degrees, ranked
from gnnbench.features.policies.similarity import hot_similarity
from gnnbench.features.policies.trace import Trace
from gnnbench.kernels import twin
from gnnbench.kernels.match import match_degrees, overlaps, pairs
from gnnbench.kernels.picks import WEIGHTED
from gnnbench.pipelines.order import Permuted
from gnnbench.sampling.build import build_sampler

BATCH = 8000
MATCHED = 64  # batches of an epoch of which all pairs are matched, as experiments do
POLICIES = (DEGREE, f"{PRESC}#1")
PIECE = 1 << 24  # edges whose ends are compared at a time


RATIOS = (0.01, 0.05, 0.07, 0.1, 0.14, 0.21, 0.25)  # printed for every graph


@dataclass(frozen=True)
class Workload:
    """What a paper samples: neighbours hop by hop from the seeds outwards, and the pick."""

    fanouts: tuple[int, ...]
    pick: str | None = None  # None: uniformly, without replacement


# GNNLab, section 7.1; FastGL's GCN is the same.
WORKLOADS = {
    "gcn": Workload((15, 10, 5)),
    "graphsage": Workload((10, 25)),
    "pinsage": Workload((5, 5, 5), "random_walk"),
    "weighted": Workload((15, 10, 5), "weighted_prefix"),
}


def hit(policy: str, ratio: float) -> str:
    """Name of a hit rate: share of an epoch's rows that a static cache of ``ratio`` holds."""
    return f"hit {policy} {ratio:g}"


def published(dataset: str, workload: str) -> dict[str, Distance]:
    """What papers tell of a dataset under a workload, by fact."""
    distances = manifests()[dataset].distance
    return {distance.fact: distance for distance in distances if distance.workload == workload}


def topology(recipe: TwinRecipe, scale: float, seed: int) -> Graph:
    """A twin without features, on the host, with drawn weights of its edges; made where ``making``
    says."""
    scaled = recipe.scaled(scale)
    spec = make_spec(scaled, seed)
    with generating(spec.num_edges, gpu_bytes(spec.num_nodes, spec.num_edges)) as device:
        indptr, indices = (part.cpu() for part in twin.graph(spec, device))
        labels = twin.labels(spec, device).cpu()
        train, val, test = (part.cpu() for part in twin.splits(spec, device))
    drawn = seeded_weights(indices.numpy(), spec.num_nodes, seed)
    weights = torch.from_numpy(np.concatenate(list(drawn)))
    return Graph(
        "twin", indptr, indices, torch.empty((spec.num_nodes, 0)), labels, train, val, test,
        scaled.num_classes, weights,
    )  # fmt: skip


def same_label(graph: Graph) -> float:
    """Share of edges whose two ends have one label."""
    equal, degrees = 0, graph.indptr.diff()
    step = max(1, PIECE * graph.num_nodes // max(graph.num_edges, 1))
    for first in range(0, graph.num_nodes, step):
        last = min(first + step, graph.num_nodes)
        ends = graph.labels[first:last].repeat_interleave(degrees[first:last])
        starts = graph.indices[int(graph.indptr[first]) : int(graph.indptr[last])]
        equal += int((graph.labels[starts.long()] == ends).sum())
    return equal / max(graph.num_edges, 1)


def measured(
    graph: Graph,
    batch_size: int,
    hits: bool = True,
    device: str = "cpu",
    workload: str = "gcn",
    ratios: Sequence[float] = RATIOS,
) -> dict[str, float]:
    """Facts of ``graph`` by name: ``match``, its ``spread``, with ``hits`` every ``hit`` at
    ``ratios`` and the ``similarity`` of two epochs' hottest nodes.

    Seeds of an epoch are those of experiments (``Permuted``, seed 0); rows are its batches' input
    nodes. ``presc#1`` ranks by an epoch of its own. Hits are those of a whole epoch; without them
    no more is drawn than is matched.
    """
    work = WORKLOADS[workload]
    weights = "graph" if work.pick in WEIGHTED else None
    sampler = build_sampler(
        "fused-map", graph, work.fanouts, device, pick=work.pick, weights=weights
    )
    order = Permuted(graph.train_idx, batch_size, 0, 0 if hits else MATCHED)

    def drawn(epoch: int) -> Iterator[Tensor]:
        for number, seeds in enumerate(order.batches(epoch, device)):
            yield sampler.sample(seeds, epoch, number).input_nodes

    trace = Trace.record(graph.num_nodes, drawn(0))
    facts = {
        "largest in-degree": float(graph.indptr.diff().max()),
        "rows of a batch": trace.requests / len(trace.batches),
    }
    if len(trace.batches) > 1:
        degrees = pairs(match_degrees(overlaps(trace.batches[:MATCHED])))
        facts["match"] = float(degrees.mean())
        facts["match spread"] = float(degrees.max() - degrees.min())
    if not hits:
        return facts
    before = Trace.record(graph.num_nodes, drawn(PRESAMPLED))
    facts["similarity"] = hot_similarity(before.visits, trace.visits)
    known = dict(zip(POLICIES, (ranked(out_degrees(graph)), before.optimal), strict=True))
    for policy, ranking in {**known, "optimal": trace.optimal}.items():
        for ratio, rows in zip(ratios, trace.hits_at(ranking, ratios), strict=True):
            facts[hit(policy, ratio)] = rows / trace.requests
    return facts


def changed(recipe: TwinRecipe, settings: Sequence[str]) -> TwinRecipe:
    """``recipe`` with ``KEY=VALUE`` (values as in TOML) in place of its own."""
    values = tomllib.loads("\n".join(settings))
    return TwinRecipe.model_validate({**recipe.model_dump(), **values})


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each fact of each seed's twin, with the target where there is one."""
    parser = argparse.ArgumentParser(
        description=__doc__, prog="python -m gnnbench.contrib.twin_facts"
    )
    parser.add_argument("dataset", choices=sorted(manifests()))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--batch", type=int, default=BATCH, help="at scale 1")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="that samples")
    parser.add_argument("--workload", choices=WORKLOADS, default="gcn", help="GNNLab's models")
    parser.add_argument("--hits", action="store_true", help="also where no paper tells of any")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="to try others")
    options = parser.parse_args(arguments)
    recipe = changed(manifests()[options.dataset].twin_recipe(), options.set)
    targets = published(options.dataset, options.workload)
    target_ratios = {float(fact.rpartition(" ")[2]) for fact in targets if fact.startswith("hit")}
    fanouts = WORKLOADS[options.workload].fanouts
    for seed in options.seeds:
        graph = topology(recipe, options.scale, seed)
        batch = max(1, round(options.batch * options.scale))
        print(
            f"{options.dataset}~twin@{options.scale:g}, seed {seed}: {graph.num_nodes:,} nodes, "
            f"{graph.num_edges:,} edges, batches of {batch}, {len(fanouts)} hops {fanouts}"
        )
        hits = options.hits or any(fact.startswith(("hit", "similarity")) for fact in targets)
        ratios = sorted({*RATIOS, *target_ratios})
        values = measured(graph, batch, hits, options.device, options.workload, ratios)
        values["same label"] = same_label(graph)
        for fact, value in values.items():
            line = f"  {fact:28} {value:12.4f}"
            if target := targets.get(fact):
                here = Measured(scale=options.scale, seeds=[seed], values=[value])
                unit = "points" if target.unit == "share" else "%"
                bound = "at most " * target.at_most
                line += f"  {target.source} {bound}{target.published:g}: "
                line += f"{target.deviation(here):+.1f} {unit}"
            print(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
