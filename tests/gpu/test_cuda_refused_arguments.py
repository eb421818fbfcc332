"""Inconsistent sizes of arguments are refused before any allocation on the GPU."""

import pytest
import torch

pytestmark = pytest.mark.gpu

RING = torch.arange(8), (torch.arange(7, dtype=torch.int32) + 1) % 7  # node v <- v + 1
BIG = 1 << 62

SAMPLERS = {
    "hop_by_hop": ["three-pass"],
    "gnnlab": [torch.zeros(24, dtype=torch.int64), 1],
    "fused_map": [[]],
    "fastsample": [torch.full((7,), -1, dtype=torch.int32), []],
    "pgsampler": ["persistent", 5, "split", "warp", []],
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_more_seeds_than_nodes_are_a_repeated_seed(ops, gpu, name):
    frontier = [] if name == "pgsampler" else ["new"]
    own = [gpu.put(a) if isinstance(a, torch.Tensor) else a for a in SAMPLERS[name]]
    graph = [gpu.put(t) for t in RING]

    def sample(seeds):
        args = [*graph, gpu.put(seeds), [5, 5], "floyd", [], [], *frontier, 1, 0, True, *own]
        return getattr(ops, name)(*args)

    for seeds in (torch.arange(5000) % 7, torch.arange(8) % 7, torch.arange(5000)):
        with pytest.raises(RuntimeError, match=r"^gnnbench: seeds holds an id twice"):
            sample(seeds)
    assert sample(torch.arange(7))
    gpu.sync()


SHARED = torch.zeros(64, dtype=torch.int32)


def floats(*shape):
    return torch.zeros(shape)


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


REFUSED = [
    ("union_ids", lambda: ([torch.tensor([1])], BIG, False), "num_nodes must be 0 to"),
    ("twin_features", lambda: (1, 5, torch.tensor([0, 5]), 2, 1, (1 << 63) - 2, floats(3, 4)),
     "out has 3 rows, from row"),
    ("ceiling_read", lambda: (torch.zeros(16, dtype=torch.int32), BIG), "passes must be at most"),
    ("aggregate_groups", lambda: (ints(0), ints(), ints(), floats(0, 0), BIG, 1),
     "num_rows must be 0 to 2147483647"),
    ("aggregate", lambda: (ints(0), ints(), floats(0, 3), (1 << 63) - 1, "sum", None),
     "num_dst must be 0 to 2147483647"),
    ("aggregate_memory_aware", lambda: (ints(0, 1), ints(0), floats(1, 3), 1, "sum", None, 1 << 32,
                                        1 << 32), "targets times dims"),
    ("aggregate_heads", lambda: (ints(0), ints(), floats(0, 1 << 31, 1 << 31), floats(0, 1 << 31),
                                 0), "x must have less than"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "message"), REFUSED)
def test_sizes_beyond_bounds_are_refused(ops, gpu, name, args, message):
    def put(a):
        if isinstance(a, list):
            return [put(t) for t in a]
        return gpu.put(a) if isinstance(a, torch.Tensor) else a

    with pytest.raises(RuntimeError, match=f"^gnnbench: {message}"):
        getattr(ops, name)(*map(put, args()))


def test_output_must_not_share_memory_with_input(ops, gpu):
    shared = gpu.put(SHARED)
    with pytest.raises(RuntimeError, match="target must not share memory with source"):
        ops.ceiling_copy(shared[:32], shared[16:48])
    with pytest.raises(RuntimeError, match="out must not share memory with table"):
        ops.gather_out(shared[:6].view(3, 2), gpu.put(ints(0, 1)), shared[4:8].view(2, 2))
    with pytest.raises(RuntimeError, match="out must not share memory with table"):
        ids = gpu.put(ints(0, 1))
        ops.gather_to(shared[:6].view(3, 2), ids, ids.clone(), shared[4:8].view(2, 2), 0)


def test_rows_without_columns_need_no_work(ops, gpu):
    x = torch.empty(1 << 40, 0, device="cuda")
    ops.bias_relu_(x, torch.empty(0, device="cuda"))
    grad_x, grad_bias = ops.bias_relu_backward(x, x)
    assert grad_x.shape == x.shape and grad_bias.shape == (0,)
    assert ops.ceiling_read(gpu.put(ints()), 3).tolist() == [0]
