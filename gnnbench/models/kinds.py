"""The models, described by one of their layers; imports no torch, so that listing them is fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gnnbench.core.errors import UsageError

Mode = Literal["sum", "mean", "gcn"]
Form = Literal["linear", "mlp", "attention", "convolve"]

HEADS = 8
SLOPE = 0.2  # of the LeakyReLU over attention scores


@dataclass(frozen=True)
class LayerKind:
    """A layer that makes of a block's rows h those of its destinations, up to the pre-activation.

    A destination's neighbours are those that were sampled. No self loop is added: its own row is
    among them only where the sampler drew it, as DGL's examples train on blocks (``GATConv`` with
    ``allow_zero_in_degree``). ``mode``, how a_v is made of their rows: their ``sum``; their
    ``mean``, 0 where there are none; ``gcn``, (sum + self) / (d + 1). By ``form`` a layer computes

    ``linear``     W_neighbour a_v (+ W_self h_v) + bias; ``own_weights``: there is W_self.
                   W_neighbour goes first where it narrows the rows, in every framework: it commutes
                   with the aggregation and leaves fewer bytes to aggregate (DGL's layers decide the
                   same way; ``aggregate.linear=fewest-bytes`` decides otherwise). ``symmetric``: an
               edge (u, v) of the sum weighs 1 / sqrt(d_u d_v), where d_u counts the block's edges
               that begin at u and d_v those that end at v: DGL's ``GraphConv`` with
               ``norm="both"``, by which FastGL (sections 2.1 and 6.1) trains GCN
    ``mlp``        W_2 ReLU(W_1 (h_v + a_v) + bias_1) + bias_2, aggregated before W_1 in every
                   framework, as DGL's and PyG's own layers do
    ``attention``  sum of alpha_uv W h_u + bias, alpha_uv the softmax over v's neighbours of
                   LeakyReLU(source . W h_u + destination . W h_v), for each head by itself, the
                   concatenated heads; a destination without neighbours gets the bias
    ``convolve``   W (h_v, n_v) + bias, where n_v is the mean of ReLU(Q h_u + q), weighted by the
                   visits of random walks where the block carries them (``Block.weights``)

    ReLU follows each layer but the last; ``unit_rows``: rows are then scaled to unit l2 norm.
    ``heads`` are those of a hidden layer; the output layer has one.
    """

    name: str
    mode: Mode
    own_weights: bool = False
    form: Form = "linear"
    heads: int = 1
    unit_rows: bool = False
    symmetric: bool = False
    paper: str = ""

    def check_hidden(self, hidden: int) -> None:
        """Raise ``UsageError`` unless the heads share ``hidden`` columns evenly."""
        if hidden % self.heads:
            raise UsageError(
                f"model '{self.name}' has {self.heads} heads in a hidden layer, which cannot share"
                f" hidden={hidden} columns; give a multiple of {self.heads}"
            )


GCN = LayerKind("gcn", "gcn", paper="Kipf and Welling, ICLR 2017, on a block")
GRAPHSAGE = LayerKind(
    "graphsage", "mean", own_weights=True, paper="Hamilton et al., NeurIPS 2017, mean"
)
GIN = LayerKind("gin", "sum", form="mlp", paper="Xu et al., ICLR 2019, GIN-0, MLPs of two layers")
GAT = LayerKind(
    "gat", "sum", form="attention", heads=HEADS, paper="Velickovic et al., ICLR 2018, 8 heads"
)
PINSAGE = LayerKind(
    "pinsage", "mean", form="convolve", unit_rows=True,
    paper="Ying et al., KDD 2018, Algorithm 1; class scores as they are",
)  # fmt: skip

# Kipf's Eq. 2 on a block. The graph must have self loops if own rows are to count, as in Kipf's.
GCN_SYMMETRIC = LayerKind(
    "gcn-symmetric", "sum", symmetric=True,
    paper="Kipf and Welling, ICLR 2017, weighted by degrees in the block as DGL's GraphConv",
)  # fmt: skip

MODELS: dict[str, LayerKind] = {
    k.name: k for k in (GCN, GRAPHSAGE, GIN, GAT, PINSAGE, GCN_SYMMETRIC)
}
