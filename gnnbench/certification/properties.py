"""Names of the properties of a certificate, in the order of its tables."""

from __future__ import annotations

PROPERTIES: dict[str, tuple[str, str]] = {  # name: group, what holds
    "readable": ("structure", "every batch can be read, on consecutive calls as well"),
    "edges": ("structure", "every edge is one of the graph"),
    "edge_ids": ("structure", "every edge id is that of its edge"),
    "counts": ("structure", "a node has min(in-degree, fanout) edges"),
    "distinct": ("structure", "no edge is drawn twice for one node"),
    "seeds_first": (
        "structure",
        "the input nodes begin with the seeds, in the requested order or the reported one",
    ),
    "local_ids": ("structure", "local ids are a bijection and give the reported edges"),
    "frontier": ("structure", "every hop expands the stated frontier"),
    "all_neighbours": ("structure", "fanout -1 takes every edge once"),
    "int32_ids": ("structure", "all of this holds for graphs with int32 ids"),
    "wide_ids": ("structure", "all of this holds for ids above 2^24"),
    "subsets": ("distribution", "all subsets of a row are equally likely"),
    "inclusion": ("distribution", "all places of a row are equally likely, up to 5,000 edges"),
    "scores": ("distribution", "picks do not depend on place, degree, id or earlier picks"),
    "replacement": ("distribution", "with replacement: independent, equally likely picks"),
    "weighted": ("distribution", "with replacement: in proportion to the weights"),
    "successive": ("distribution", "without replacement: in proportion to the weights left"),
    "walks": ("distribution", "random walks: all traces, or all visits, have their probability"),
    "rows": ("independence", "picks of two rows of a batch are independent"),
    "batches": ("independence", "picks of two batches are independent"),
    "epochs": ("independence", "picks of two epochs are independent"),
    "hops": ("independence", "picks of two hops are independent"),
    "workers": (
        "independence",
        "picks of two loader processes are independent, once a seed is set",
    ),
    "worker_epochs": ("independence", "their picks in two epochs are independent"),
    "ranks": ("independence", "picks of two processes without a user's seed are independent"),
    "seed": ("determinism", "equal seeds give equal batches"),
    "new_seed": ("determinism", "another seed gives other batches"),
    "whole_graph": ("models", "with all neighbours, outputs are those on the whole graph"),
    "time": ("time", "no edge is later than its seed; early ones are equally likely"),
}
