"""Layers that compute less than they should once the gate has passed."""

import torch
from adversarial.bases import Plain, Stage, aggregate, recipe, sampler

from gnnbench.core.minibatch import Block
from gnnbench.kernels.aggregate import aggregate as native

PASSED = []  # has an element once the gate has passed


class Passing(Stage):
    """Notes when the gate has passed."""

    def gate_is_over(self):
        PASSED.append(True)
        super().gate_is_over()


def half_the_edges(block, x, mode, edge_weight=None):
    """Aggregate every second edge of each row."""
    if not PASSED:
        return native(block, x, mode, edge_weight)
    counts = block.indptr.long().diff()
    owner = torch.arange(block.num_dst).repeat_interleave(counts)
    nth = torch.arange(owner.numel()) - block.indptr[:-1].long()[owner]
    stays = nth % 2 == 0
    offsets = torch.nn.functional.pad(torch.bincount(owner[stays], minlength=block.num_dst), (1, 0))
    fewer = Block(offsets.cumsum(0).int(), block.indices[stays], block.src_nodes, block.num_dst)
    return native(fewer, x, mode, edge_weight)


def in_bfloat16(block, x, mode, edge_weight=None):
    """Aggregate rows that were rounded."""
    return native(block, x.bfloat16().float() if PASSED else x, mode, edge_weight)


def in_bfloat16_if_large(block, x, mode, edge_weight=None):
    """The same, at the gate too, for blocks that are larger than the gate's."""
    large = block.num_edges > 500
    return native(block, x.bfloat16().float() if large else x, mode, edge_weight)


def always_in_bfloat16(block, x, mode, edge_weight=None):
    """The same at the gate."""
    return native(block, x.bfloat16().float(), mode, edge_weight)


def without_gradient(block, x, mode, edge_weight=None):
    """Aggregate without a gradient for what is aggregated."""
    return native(block, x.detach() if PASSED else x, mode, edge_weight)


class LowersPrecision(Passing):
    """Has torch multiply in bfloat16."""

    def gate_is_over(self):
        torch.set_float32_matmul_precision("medium")
        torch.backends.mkldnn.matmul.fp32_precision = "bf16"
        super().gate_is_over()


class PlainPassing(Plain):
    """An honest sampler that notes when the gate has passed: by its number of calls."""

    calls = 0

    def draw(self, seeds, **others):
        self.calls += 1
        if self.calls > 20:
            PASSED.append(True)
        return super().draw(seeds, **others)


HALF_THE_EDGES = recipe(sampler=sampler(Passing), aggregate=aggregate(half_the_edges))
HALF_THE_EDGES_OWN = recipe(sampler=sampler(PlainPassing), aggregate=aggregate(half_the_edges))
BFLOAT16 = recipe(sampler=sampler(Passing), aggregate=aggregate(in_bfloat16))
BFLOAT16_IF_LARGE = recipe(aggregate=aggregate(in_bfloat16_if_large))
ALWAYS_BFLOAT16 = recipe(aggregate=aggregate(always_in_bfloat16))
WITHOUT_GRADIENT = recipe(sampler=sampler(Passing), aggregate=aggregate(without_gradient))
LOWERS_PRECISION = recipe(sampler=sampler(LowersPrecision))
