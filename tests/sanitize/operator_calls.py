"""A valid call of every CPU operator, drawn at random, with a check of its result."""

from __future__ import annotations

import random
from collections.abc import Callable

import block_calls as blocks
import feature_calls as features
import sampler_calls as samplers
from fuzz_call import Call

Make = Callable[[random.Random], Call]


def _forms(make: Callable[[random.Random, str], Call], *names: str) -> dict[str, Make]:
    return {name: lambda r, name=name: make(r, name) for name in names}


def _plain(*makers: Make) -> dict[str, Make]:
    return {make.__name__: make for make in makers}


CALLS: dict[str, Make] = {
    **_plain(samplers.sample_hop, samplers.id_map, samplers.weight_tables, samplers.philox),
    **_forms(samplers.batch_of, "hop_by_hop", "gnnlab", "fused_map", "fastsample"),
    **_forms(samplers.batch_of, "fastsample_loops", "pgsampler"),
    **_plain(features.union_ids, features.gather_of_set, features.ones_of_set),
    **_plain(features.sieve_insert, features.pad_blocks, features.trace),
    **_plain(features.rmat_graph, features.seeded_features),
    **_forms(features.gather, "gather", "gather_out", "gather_to", "gather_over_out"),
    **_forms(features.ceiling, "ceiling_copy", "ceiling_read", "ceiling_rows", "ceiling_fma"),
    **_forms(features.twin, "twin_graph", "twin_labels", "twin_splits", "twin_features"),
    **_plain(blocks.symmetric_weights, blocks.transpose, blocks.neighbor_groups),
    **_plain(blocks.aggregate_groups, blocks.dropout),
    **_forms(blocks.aggregate, "aggregate", "aggregate_transposed"),
    **_forms(blocks.heads, "aggregate_heads", "aggregate_heads_transposed", "edge_dots"),
    **_forms(blocks.edges, "edge_add", "edge_sums", "edge_softmax", "edge_softmax_backward"),
    **_forms(blocks.bias_relu, "bias_relu_", "bias_relu_backward"),
}
