"""Native layers compared with hand-computed values, with several aggregations."""

import math

import pytest
import torch
from model_blocks import OUTER, block, framework_of

from gnnbench.core.errors import UnsupportedError
from gnnbench.kernels.reference.aggregate import aggregate as reference
from gnnbench.models.aggregation import FEWEST_BYTES, Csr, GnnAdvisor, Scatter, Spmm
from gnnbench.models.kinds import GAT, GCN, GIN, GRAPHSAGE, PINSAGE
from gnnbench.models.native import Native, moves_less_aggregated_first
from gnnbench.models.weights import (
    AttentionWeights,
    ConvolveWeights,
    LinearWeights,
    MlpWeights,
    make_weights,
)

X = torch.tensor([[1.0], [2.0], [3.0], [5.0]])
ONE = LinearWeights(torch.ones(1, 1), None, torch.zeros(1))
WITH_SELF = LinearWeights(torch.ones(1, 1), torch.full((1, 1), 10.0), torch.zeros(1))
WEIGHTED = block([0, 2, 2], [2, 3], [10, 11, 12, 13], 2, torch.tensor([3.0, 1.0]))


def test_gcn_layer_by_hand():
    """(sum of sampled + self) / (d + 1) with an identity weight."""
    layer = framework_of("native").layer(GCN, ONE)
    assert layer(OUTER, X).tolist() == [[(3.0 + 5.0 + 1.0) / 3], [2.0]]


def test_graphsage_layer_by_hand():
    """Self plus the mean of the sampled neighbours, which is 0 without any."""
    layer = framework_of("native").layer(GRAPHSAGE, WITH_SELF)
    assert layer(OUTER, X).tolist() == [[4.0 + 10.0], [20.0]]


@pytest.mark.parametrize("kind,weights", [(GCN, ONE), (GRAPHSAGE, WITH_SELF)])
def test_fused_bias_and_relu_equal_separate_ones(kind, weights):
    """With values above and below the bias, and with ``fewest_bytes``."""
    weights = LinearWeights(weights.neighbour, weights.self_, torch.full((1,), -2.5))
    frameworks = [Native(reference, None, fewest) for fewest in (False, True)]
    layers = [one.layer(kind, weights).double() for one in frameworks]
    values = layers[0](OUTER, X.double())
    assert (values > 0).tolist() == ([[True], [False]] if kind is GCN else [[True], [True]])
    gradients = []
    for layer in layers:
        x = X.double().requires_grad_()
        rows = layer.forward_relu(OUTER, x)
        assert torch.equal(rows, values.clamp(min=0))
        (rows * torch.tensor([[2.0], [3.0]])).sum().backward()
        gradients.append([x.grad, *(p.grad for p in layer.parameters())])
    for separate, fused in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, separate)


@pytest.mark.parametrize(
    ("kind", "weights", "expected"),
    [
        (GCN, ONE, [[(3 * 3.0 + 5.0 + 1.0) / 5], [2.0]]),
        (GRAPHSAGE, WITH_SELF, [[(3 * 3.0 + 5.0) / 4 + 10.0], [20.0]]),
    ],
)
@pytest.mark.parametrize("width", [1, 2])  # the linear map after the aggregation, and before
def test_edge_weights_reach_the_aggregation(kind, weights, expected, width):
    """With the visits of random walks as weights; a second column of zeros changes nothing."""
    zeros = torch.zeros(1, width - 1)
    wide = LinearWeights(
        torch.cat([weights.neighbour, zeros], 1),
        None if weights.self_ is None else torch.cat([weights.self_, zeros], 1),
        weights.bias,
    )
    layer = Native(reference).layer(kind, wide).double()
    x = torch.cat([X, torch.ones(4, width - 1)], 1).double()
    edge_weight = WEIGHTED.weights.double().requires_grad_()
    out = layer(WEIGHTED, x, edge_weight)
    torch.testing.assert_close(out, torch.tensor(expected, dtype=torch.float64))
    out.sum().backward()
    assert edge_weight.grad.abs().sum() > 0


def test_gin_layer_by_hand():
    """ReLU(2 (self + sum of the sampled) - 12) * 3 + 1: the second row is below 0 inside."""
    weights = MlpWeights(*(torch.tensor(v) for v in ([[2.0]], [-12.0], [[3.0]], [1.0])))
    layer = framework_of("native").layer(GIN, weights)
    assert layer(OUTER, X).tolist() == [[3 * (2 * (1.0 + 3.0 + 5.0) - 12) + 1], [1.0]]


@pytest.mark.parametrize("spec", [Csr, Scatter])
def test_gat_layer_by_hand(spec):
    """Two heads, one wide. Scores of head 0 are 1 + 3 and 1 + 5, of head 1 its sources' negated and
    through the LeakyReLU; the second destination has no neighbour and gets the bias."""
    weights = AttentionWeights(
        neighbour=torch.ones(2, 1),
        source=torch.tensor([[1.0], [-1.0]]),
        destination=torch.tensor([[1.0], [0.0]]),
        bias=torch.tensor([0.5, 0.0]),
    )
    out = spec().build().layer(GAT, weights)(OUTER, X)
    first = (3 * math.exp(4) + 5 * math.exp(6)) / (math.exp(4) + math.exp(6))
    second = (3 * math.exp(-0.6) + 5 * math.exp(-1)) / (math.exp(-0.6) + math.exp(-1))
    torch.testing.assert_close(out, torch.tensor([[first + 0.5, second], [0.5, 0.0]]))


@pytest.mark.parametrize(
    ("of", "mean"),
    [(OUTER, (4 + 8) / 2), (WEIGHTED, (3 * 4 + 8) / 4)],
    ids=["equal", "visits"],
)
def test_pinsage_layer_by_hand(of, mean):
    """10 self + 100 times the mean of ReLU(2 h - 2) + 7; without neighbours the mean is 0."""
    weights = ConvolveWeights(*(torch.tensor(v) for v in ([[2.0]], [-2.0], [[10.0, 100.0]], [7.0])))
    layer = framework_of("native").layer(PINSAGE, weights)
    assert layer(of, X).tolist() == [[10.0 + 100 * mean + 7], [20.0 + 7]]


def test_edge_weights_with_the_csr_operator():
    layer = framework_of("native").layer(GCN, ONE)
    expected = [[(3 * 3.0 + 5.0 + 1.0) / 5], [2.0]]
    torch.testing.assert_close(layer(WEIGHTED, X, WEIGHTED.weights), torch.tensor(expected))


@pytest.mark.parametrize("spec", [GnnAdvisor, Spmm])
def test_aggregation_without_attention_refuses_gat(spec):
    (weights,) = make_weights([1, 3], GAT, 0)
    with pytest.raises(UnsupportedError, match="'gat' needs an aggregation that weighs edges by"):
        spec().build().layer(GAT, weights)


def test_gnnadvisor_refuses_edge_weights():
    layer = GnnAdvisor().build().layer(GCN, ONE)
    with pytest.raises(UnsupportedError, match="'gnnadvisor' aggregation takes no edge weights"):
        layer(WEIGHTED, X, WEIGHTED.weights)


@pytest.mark.parametrize("width", [1, 3])
def test_custom_aggregation_gets_block_rows_and_mode(width):
    """The layer passes the block, the narrower rows and the mode."""
    calls = []

    def zeros_of(block, x, mode, edge_weight=None):
        calls.append((block, tuple(x.shape), mode, edge_weight))
        return x.new_zeros(block.num_dst, x.shape[1])

    framework = Native(zeros_of)
    bias = torch.tensor([0.5, -1.0])
    out = framework.layer(GCN, LinearWeights(torch.ones(2, width), None, bias))(
        OUTER, torch.ones(4, width)
    )
    assert calls == [(OUTER, (4, min(width, 2)), "gcn", None)]
    assert torch.equal(out, bias.expand(2, 2))


# Every source in every destination: 9 edges, 3 destinations, 3 sources.
FULL = block([0, 3, 6, 9], [0, 1, 2] * 3, [10, 11, 12], 3)


def test_bytes_moved_by_both_orders_of_a_layer():
    """Aggregation first moves 18 elements per input column; the linear map first moves 6, and 30
    per output column."""
    assert moves_less_aggregated_first(FULL, 2, 4)  # 72 < 24 + 60
    assert not moves_less_aggregated_first(FULL, 2, 5)  # 90 = 30 + 60
    assert not moves_less_aggregated_first(FULL, 1, 4)  # 72 > 24 + 30


@pytest.mark.parametrize("kind", [GCN, GRAPHSAGE])
@pytest.mark.parametrize("fewest", [False, True])
@pytest.mark.parametrize(
    ("width", "needs", "trains", "first"),
    [
        (4, False, True, True),
        (5, False, True, False),  # not fewer bytes
        (4, True, True, False),  # its gradient is required
        (4, False, False, False),  # there is no backward pass
    ],
)
def test_rows_without_gradient_are_aggregated_first(kind, fewest, width, needs, trains, first):
    (weights,) = make_weights([width, 2], kind, 1)
    x = torch.randn(3, width, requires_grad=needs)
    widths = []

    def recorded(block, rows, mode, edge_weight=None):
        widths.append(rows.shape[1])
        return reference(block, rows, mode, edge_weight).float()

    def plain(*args):
        return reference(*args).float()

    outs, grads = [], []
    for framework in (Native(recorded, fewest_bytes=fewest), Native(plain)):
        layer = framework.layer(kind, weights)
        with torch.set_grad_enabled(trains):
            out = layer(FULL, x)
        outs.append(out)
        if trains:
            grads.append(torch.autograd.grad(out.pow(2).sum(), list(layer.parameters())))
    assert widths == [width if fewest and first else 2]
    torch.testing.assert_close(*outs)
    if trains:
        torch.testing.assert_close(*grads)


def test_default_linear_order_is_left_out_of_recipes():
    assert "linear" not in Csr().plain()
    assert Csr(linear=FEWEST_BYTES).plain()["linear"] == FEWEST_BYTES
