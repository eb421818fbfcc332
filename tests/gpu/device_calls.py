"""A call of every CUDA operator on a given device; CPU operators give the expected results."""

from collections.abc import Callable
from typing import Any

import torch
from gpu_graphs import skewed
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.generators.twin import make_spec
from gnnbench.kernels import rmat, twin
from gnnbench.kernels.library import load_native
from gnnbench.kernels.picks import PickSpec
from gnnbench.kernels.sampler import mini_batch

GPUS = max(torch.cuda.device_count(), 1)
LAST = GPUS - 1
WHERE = f"cuda:{LAST} of {GPUS}"
CSC = skewed(2000, torch.int32, seed=5)
SEEDS = torch.arange(0, 2000, 9, dtype=torch.int32)
FANOUTS = [5, 4]
FLOYD = PickSpec.of("floyd")
PICK = FLOYD.arguments()
TWIN = make_spec(
    TwinRecipe(
        num_nodes=900, num_edges=20_000, feature_dim=33, num_classes=7, train=0.3, val=0.2,
        test=0.1, symmetric=False,
    ).scaled(1.0),
    0,
)  # fmt: skip

Call = Callable[[torch.device], Any]
CALLS: dict[str, Call] = {}


def ops() -> Any:
    load_native()
    return torch.ops.gnnbench


def call_of(*names: str) -> Callable[[Call], Call]:
    """Declares which operators a function calls."""

    def note(call: Call) -> Call:
        CALLS.update(dict.fromkeys(names, call))
        return call

    return note


def whole_batch(flat: list[Tensor], device: torch.device) -> MiniBatch:
    for t in flat:
        assert t.device == device
    return mini_batch(flat, SEEDS.to(device), FLOYD, "cumulative", True)


def graph_on(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    return CSC.indptr.to(device), CSC.indices.to(device), SEEDS.to(device)


@call_of("hop_by_hop")
def hop_by_hop(device: torch.device) -> MiniBatch:
    flat = ops().hop_by_hop(*graph_on(device), FANOUTS, *PICK, "cumulative", 7, 1, True)
    return whole_batch(flat, device)


@call_of("gnnlab")
def gnnlab(device: torch.device) -> MiniBatch:
    words = torch.zeros(1 << 15, dtype=torch.int64, device=device)
    args = (*graph_on(device), FANOUTS, *PICK, "cumulative", 7, 1, True, words, 1)
    *flat, _ = ops().gnnlab(*args)
    return whole_batch(flat, device)


@call_of("fused_map")
def fused_map(device: torch.device) -> MiniBatch:
    args = (*graph_on(device), FANOUTS, *PICK, "cumulative", 7, 1, True, [])
    flat = ops().fused_map(*args)
    return whole_batch(flat, device)


@call_of("fused_map_padded")
def fused_map_padded(device: torch.device) -> MiniBatch:
    if device.type == "cpu":
        return fused_map(device)
    place = torch.tensor([7, 1, SEEDS.numel()], device=device)
    args = (*graph_on(device), FANOUTS, *PICK, "cumulative", place, True, [2000, 5000] * 2)
    *flat, sizes = ops().fused_map_padded(*args)
    inner, inner_edges, outer, outer_edges, fault = sizes.tolist()
    assert fault == 0
    lengths = [SEEDS.numel() + 1, inner_edges, inner, inner_edges]
    lengths += [inner + 1, outer_edges, outer, outer_edges]
    return whole_batch([t[:n] for t, n in zip(flat, lengths, strict=True)], device)


@call_of("fused_map_asked")
def fused_map_asked(device: torch.device) -> MiniBatch:
    if device.type == "cpu":
        return fused_map(device)
    sizes = torch.empty(5, dtype=torch.int64, pin_memory=True)
    state = torch.zeros(1 << 20, dtype=torch.uint8, device=device)
    room = [2000, 5000] * 2
    for version in (1, 2):  # the second call uses the state left by the first
        args = (*graph_on(device), FANOUTS, *PICK, "cumulative", 7, 1, True, sizes, state, version)
        flat = ops().fused_map_asked(*args, room)
    torch.cuda.synchronize(device)
    inner, inner_edges, outer, outer_edges, fault = sizes.tolist()
    assert fault == 0
    lengths = [SEEDS.numel() + 1, inner_edges, inner, inner_edges]
    lengths += [inner + 1, outer_edges, outer, outer_edges]
    return whole_batch([t[:n] for t, n in zip(flat, lengths, strict=True)], device)


@call_of("fastsample")
def fastsample(device: torch.device) -> MiniBatch:
    dense_map = torch.full((CSC.num_nodes,), -1, dtype=torch.int32, device=device)
    args = (*graph_on(device), FANOUTS, *PICK, "cumulative", 7, 1, True, dense_map, [])
    flat = ops().fastsample(*args)
    assert bool((dense_map == -1).all())
    return whole_batch(flat, device)


@call_of("pgsampler")
def pgsampler(device: torch.device) -> MiniBatch:
    args = (*graph_on(device), FANOUTS, *PICK, 7, 1, True, "persistent", 5, "split", "warp", [])
    *flat, _ = ops().pgsampler(*args)
    return whole_batch(flat, device)


@call_of("pgsampler_as_published")
def pgsampler_as_published(device: torch.device) -> MiniBatch:
    """Its edges are those of the reservoir by any operator."""
    graph = graph_on(device)
    if device.type == "cpu":
        pick = PickSpec.of("reservoir").arguments()
        flat = ops().fused_map(*graph, FANOUTS, *pick, "cumulative", 7, 1, True, [])
        return whole_batch(flat, device)
    *flat, _ = ops().pgsampler_as_published(*graph, FANOUTS, 7, 1, True, True, 5, [])
    return whole_batch(flat, device)


@call_of("sample_hop")
def sample_hop(device: torch.device) -> Any:
    return ops().sample_hop(*graph_on(device), 6, *PICK, 7, 0, 1)


@call_of("id_map")
def id_map(device: torch.device) -> Any:
    return ops().id_map(SEEDS.to(device), CSC.indices[:3000].to(device))


@call_of("fused_id_map")
def fused_id_map(device: torch.device) -> Any:
    if device.type == "cpu":
        return id_map(device)[0].sort().values, CSC.indices[:3000]
    nodes, local = ops().fused_id_map(SEEDS.to(device), [CSC.indices[:3000].to(device)], 0)
    return nodes.sort().values, nodes[local.long()]


@call_of("philox")
def philox(device: torch.device) -> Any:
    return ops().philox(9, torch.arange(400, device=device).reshape(100, 4))


def table_on(device: torch.device) -> Tensor:
    return torch.arange(4000.0, device=device).reshape(-1, 8)


@call_of("gather", "gather_out", "gather_to")
def gather(device: torch.device) -> Any:
    ids = torch.arange(499, 0, -3, device=device)
    table = table_on(device)
    out, placed = (torch.empty(ids.numel(), 8, device=device) for _ in range(2))
    ops().gather_out(table, ids, out)
    places = torch.arange(ids.numel(), dtype=torch.int32, device=device).flip(0)
    ops().gather_to(table, ids, places, placed, 2)
    return ops().gather(table, ids), out, placed


@call_of(
    "gather_zero_copy", "gather_elementwise", "gather_page_ordered", "gather_once", "gather_over",
    "gather_over_cache", "vmm_memory", "gather_zero_copy_out", "gather_elementwise_out",
    "gather_page_ordered_out", "gather_by_copies",
)  # fmt: skip
def gather_from_the_host(device: torch.device) -> Any:
    if device.type == "cpu":
        return [gather(device)[0]] * 11
    ids = torch.arange(499, 0, -3, device=device)
    locked = table_on(torch.device("cpu")).pin_memory()
    made = ops().vmm_memory(ids, locked.nbytes).view(torch.float32).view(locked.shape)
    made.copy_(locked)
    counts = torch.zeros(2, dtype=torch.int64, device=device)
    slots, generations = torch.zeros(2, 500, dtype=torch.int32, device=device).unbind()
    generations[1] = 1  # the last id is kept, in slot 0
    kept, out = table_on(device)[1:2], torch.empty(ids.numel(), 8, device=device)
    ops().gather_once(locked, list(ids.split(50)), counts[:1], out, 2, 4)
    pages, by = (1 << 10, 2, 4), (slots, generations, 1, False)
    over = ops().gather_over(locked, kept, *by, ids, counts[1:], *pages)
    assert counts.tolist() == [ids.numel(), 1]
    given = [torch.empty_like(out) for _ in range(4)]
    ops().gather_zero_copy_out(locked, ids, True, given[0])
    ops().gather_elementwise_out(locked, ids, True, given[1])
    ops().gather_page_ordered_out(locked, ids, *pages, given[2])
    ops().gather_by_copies(locked, ids.cpu(), given[3], True)
    none = (table_on(device)[:0], slots, generations.clone().zero_(), 1)
    through = ops().gather_over_cache(
        locked, *none, True, kept, slots.clone(), generations, 1, ids, counts.zero_(), *pages
    )
    assert counts.tolist() == [0, 1]
    return [
        ops().gather_zero_copy(locked, ids, True), ops().gather_page_ordered(locked, ids, *pages),
        out, over, ops().gather_zero_copy(made, ids, False),
        ops().gather_elementwise(locked, ids, True), through, *given,
    ]  # fmt: skip


@call_of("gather_sharded")
def gather_from_shards(device: torch.device) -> Any:
    ids, table = torch.arange(499, 0, -3, device=device), table_on(device)
    if device.type == "cpu":
        return [ops().gather(table, ids)] * 2
    shards = [table[::2].contiguous(), table[1::2].contiguous()]
    counts = torch.zeros(3, dtype=torch.int64, device=device)
    whole = ops().gather_sharded(shards, 1, None, None, ids, counts, 0, 1, 0, 1)
    places = torch.full((500,), -1, dtype=torch.int32, device=device)
    places[499] = 0  # the first id; the other rows come from the host
    kept = [table[499:], table[:0]]
    by = (places, table.cpu().pin_memory(), ids, counts, 2, 4, 1 << 10, 2)
    mixed = ops().gather_sharded(kept, 1, *by)
    odd = int((ids % 2).sum())
    assert counts.tolist() == [odd, ids.numel() - odd + 1, ids.numel() - 1]
    return [whole, mixed]


@call_of("union_ids", "gather_of_set", "ones_of_set")
def id_set(device: torch.device) -> Any:
    seeds = SEEDS.to(device)
    batches = [seeds, torch.arange(300, dtype=torch.int32, device=device)]
    ids, words = ops().union_ids(batches, 2000, False)
    ones = torch.zeros(2, 2, 64, dtype=torch.float16, device=device)
    ops().ones_of_set(batches, words, 3, ones)
    return ids, words, ops().gather_of_set(table_on(device)[: ids.numel()], words, seeds), ones


@call_of("limited_stream")
def limited_stream(device: torch.device) -> Any:
    if device.type == "cpu":
        return gather(device)
    error, stream, _ = ops().limited_stream(torch.empty(0, device=device), 8).tolist()
    assert error == 0
    torch.cuda.synchronize(device)
    with torch.cuda.stream(torch.cuda.ExternalStream(stream, device)):
        return gather(device)


@call_of("aggregate", "aggregate_transposed", "transpose")
def aggregate(device: torch.device) -> Any:
    # Small integers: their sums are exact in any order.
    indptr = torch.arange(0, 3001, 10, dtype=torch.int32, device=device)
    indices = (torch.arange(3000, dtype=torch.int32, device=device) * 7) % 500
    x = table_on(device)
    out = ops().aggregate(indptr, indices, x, 300, "sum")
    back = ops().transpose(indptr, indices, 500)
    return out, ops().aggregate_transposed(indptr, *back, out, "sum"), *back


@call_of(
    "aggregate_tuned", "aggregate_memory_aware", "aggregate_memory_aware_transposed",
    "aggregate_memory_aware_scattered", "aggregate_memory_aware_warp",
    "aggregate_memory_aware_warp_transposed",
)  # fmt: skip
def aggregate_otherwise(device: torch.device) -> Any:
    """Variants for which the CPU has a single operator."""
    indptr = torch.arange(0, 3001, 10, dtype=torch.int32, device=device)
    indices = (torch.arange(3000, dtype=torch.int32, device=device) * 7) % 500
    block, how = (indptr, indices, table_on(device), 300, "sum"), (None, 8, 32)
    if device.type == "cpu":
        forward = ops().aggregate(*block)
        back = ops().transpose(indptr, indices, 500)
        backward = ops().aggregate_transposed(indptr, *back, forward, "sum")
        return [forward] * 3 + [backward] * 3
    forward = ops().aggregate_tuned(*block)
    back = ops().transpose(indptr, indices, 500)
    return [
        forward,
        ops().aggregate_memory_aware(*block, *how),
        ops().aggregate_memory_aware_warp(*block),
        ops().aggregate_memory_aware_transposed(indptr, *back, forward, "sum", *how),
        ops().aggregate_memory_aware_warp_transposed(indptr, *back, forward, "sum"),
        ops().aggregate_memory_aware_scattered(indptr, indices, forward, 500, "sum", *how),
    ]


@call_of("neighbor_groups", "aggregate_groups")
def groups(device: torch.device) -> Any:
    indptr = torch.arange(0, 3001, 10, dtype=torch.int32, device=device)
    indices = (torch.arange(3000, dtype=torch.int32, device=device) * 7) % 500
    starts, rows = ops().neighbor_groups(indptr, 4)
    return starts, rows, ops().aggregate_groups(starts, rows, indices, table_on(device), 300, 32)


@call_of(
    "aggregate_heads", "aggregate_heads_transposed", "edge_add", "edge_sums", "edge_softmax",
    "edge_softmax_backward", "edge_dots", "symmetric_weights",
)  # fmt: skip
def attention(device: torch.device) -> Any:
    # Small integers, and a softmax over eight equal scores: sums are exact in any order.
    indptr = torch.arange(0, 2401, 8, dtype=torch.int32, device=device)
    indices = (torch.arange(2400, dtype=torch.int32, device=device) * 7) % 500
    back = ops().transpose(indptr, indices, 500)
    x = (torch.arange(500 * 24, device=device) % 16).float().view(500, 4, 6)
    scores = ops().edge_add(indptr, indices, x[:, :, 0] * 0, x[:300, :, 1].contiguous())
    shares = ops().edge_softmax(indptr, scores)
    out = ops().aggregate_heads(indptr, indices, x, shares, 300)
    dots = ops().edge_dots(indptr, indices, x[:300], x)
    return (
        scores, shares, out, dots, ops().edge_softmax_backward(indptr, shares, dots),
        ops().aggregate_heads_transposed(*back, out, shares), ops().edge_sums(indptr, scores),
        ops().edge_sums(back[0], scores, back[2]), ops().symmetric_weights(indptr, indices, 500),
    )  # fmt: skip


@call_of("bias_relu_", "bias_relu_backward")
def bias_and_relu(device: torch.device) -> Any:
    # Small integers: their sums are exact in any order.
    x = (torch.arange(500 * 24, device=device) % 16).float().view(500, 24) - 8
    ops().bias_relu_(x, torch.ones(24, device=device))
    return x, *ops().bias_relu_backward(x, x)


@call_of("dropout")
def dropped(device: torch.device) -> Any:
    x, nodes = torch.ones(500, 24, device=device), torch.arange(500, device=device)
    place = torch.tensor([9, 2], device=device)
    return ops().dropout(x, nodes, 9, 2, 1, 0.5), ops().dropout(x, nodes, 0, 0, 1, 0.5, place)


@call_of("pad_blocks")
def padded(device: torch.device) -> Any:
    indptr = torch.arange(0, 31, 10, dtype=torch.int32, device=device)
    indices = torch.arange(30, dtype=torch.int32, device=device)
    labels = torch.arange(3, device=device)
    room = indptr.new_zeros(6), indices.new_zeros(34), labels.new_zeros(5)
    ops().pad_blocks([indptr], [indices], [], labels, [room[0]], [room[1]], [], room[2])
    return room


@call_of("ceiling_copy", "ceiling_read", "ceiling_rows", "ceiling_mark")
def ceilings_of_memory(device: torch.device) -> list[Tensor]:
    words = torch.arange(1 << 12, dtype=torch.int32, device=device)
    target, table = torch.zeros_like(words), words.view(-1, 16)
    ids = torch.tensor([3, 0, 255, 3], device=device)
    ops().ceiling_copy(words, target)
    if device.type == "cuda":
        ops().ceiling_mark(words)
    return [target, ops().ceiling_read(words, 2), ops().ceiling_rows(table, ids)]


@call_of("ceiling_fma", "ceiling_shared")
def ceilings_of_chains(device: torch.device) -> list[Tensor]:
    """The device decides the number of results; all are integers. A CPU has no shared memory."""
    like, steps = torch.zeros(16, dtype=torch.int32, device=device), 64
    done = [ops().ceiling_fma(like, steps)] * 2
    if device.type == "cuda":
        done[1] = ops().ceiling_shared(like, steps)
    return [(count > 0) & (count % steps == 0) for count in done]


@call_of("trace")
def trace(device: torch.device) -> Any:
    like = torch.empty(0, device=device)
    ops().trace(like, True)
    hop_by_hop(device)
    marks = ops().trace(like, False)
    assert bool((marks[:, 2:] >= 0).all())
    return {"pick": int((marks[:, 0] == 1).sum())}


@call_of("rmat_graph")
def rmat_edges(device: torch.device) -> Any:
    names = torch.arange(1 << 9).flip(0).to(device)
    return rmat.graph(3, 9, 5000, [37356, 49807, 62259], names)


@call_of("twin_graph", "twin_labels", "twin_splits", "twin_features")
def twins(device: torch.device) -> Any:
    parts = twin.splits(TWIN, device)
    features = twin.features(TWIN, 0, TWIN.num_nodes, device)
    return *twin.graph(TWIN, device), *parts, twin.labels(TWIN, device), features
