"""The recipe of a synthetic twin: published counts, degrees, communities, splits."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gnnbench.core.errors import UsageError

Share = Annotated[float, Field(ge=0, le=1)]
_Growth = Annotated[float, Field(ge=1, le=64)]
Ratios = _Growth | Annotated[tuple[_Growth, ...], Field(min_length=1)]


class TwinRecipe(BaseModel):
    """Parameters of a synthetic twin; the keys of ``[twin]`` in a dataset's manifest.

    Published counts have no default; all other parameters have one and may be calibrated.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    generator: Literal[1] = Field(
        default=1, description="Version of the generator: another one may give other bits."
    )
    num_nodes: int = Field(ge=1, description="Published number of nodes; met exactly.")
    num_edges: int = Field(
        ge=0,
        description="Directed edges stored (both directions of a symmetric graph); met exactly.",
    )
    feature_dim: int = Field(ge=1, description="Width of a feature row, float32.")
    num_classes: int = Field(ge=1, description="Number of labels.")
    train: float | int = Field(
        ge=0, description="Training nodes: an int counts them, a float below 1 is a share."
    )
    val: float | int = Field(default=0, ge=0, description="Validation nodes, as `train`.")
    test: float | int = Field(default=0, ge=0, description="Test nodes, as `train`.")
    symmetric: bool = Field(description="Every edge is stored in both directions.")
    id_dtype: Literal["int32", "int64"] = Field(
        default="int32", description="dtype of `indices`; indptr is always int64."
    )

    degree_ratio: Ratios = Field(
        default=1.4,
        description="Skew of the (in-)degrees: the factor by which the expected degree grows when "
        "the rank is halved. One number is a power law (rank ^ -a has 2 ^ a; 1 is uniform); a list "
        "is for successive halvings, from the lowest degrees on, its last number for the rest.",
    )
    degree_cap: float = Field(
        default=0,
        ge=0,
        description="Largest expected (in-)degree over the mean; 0 leaves it to the law.",
    )
    isolated: Share = Field(
        default=0, description="Share of nodes without a weight: their (in-)degree is 0."
    )
    out_degree_ratio: Ratios = Field(
        default=1.2, description="As `degree_ratio`, out-degrees of a directed graph."
    )
    out_degree_cap: float = Field(
        default=0, ge=0, description="As `degree_cap`, out-degrees of a directed graph."
    )
    out_isolated: Share = Field(
        default=0, description="As `isolated`, out-degrees of a directed graph."
    )
    degree_tie: Share = Field(
        default=0,
        description="Directed graphs: share of nodes whose rank by out-degree is that by in-degree "
        "(1: the most cited are the most citing).",
    )

    communities: int = Field(
        default=0,
        ge=0,
        description="Number of communities at scale 1 (0: one per class). Their mean size is kept "
        "when the twin is scaled, down to one per class. Community c has label c % num_classes.",
    )
    class_skew: float = Field(
        default=0,
        ge=0,
        le=100,
        description="Sizes of the classes: class k has a share proportional to 1 / (1 + skew * k).",
    )
    mixing: Share = Field(default=0.2, description="Share of edges that leave their community.")
    regions: int = Field(
        default=1, ge=1, description="Communities are grouped into this many regions."
    )
    region_mixing: Share = Field(
        default=1,
        description="Share of the edges leaving a community that leave its region too; without "
        "effect for one region.",
    )

    train_locality: Share = Field(
        default=0,
        description="How far nodes of the home communities come first into train, then val, then "
        "test: 0 not at all, 1 before any other node.",
    )
    train_home: Share = Field(
        default=0.1, description="Share of communities that are home, the first in their order."
    )
    train_degree_bias: Share = Field(
        default=0,
        description="How far nodes of high (in-)degree come first into train, then val, then test.",
    )
    labels_outside_splits: bool = Field(
        default=True, description="False: nodes of no split have the label -1."
    )

    signal: Share = Field(
        default=0.1,
        description="Strength of the class pattern in a feature, against noise uniform in (-1, 1).",
    )
    label_noise: Share = Field(
        default=0, description="Share of nodes whose label is drawn anew among all classes."
    )

    def scaled(self, scale: float) -> TwinRecipe:
        """The recipe with nodes, edges and split sizes times ``scale``; the mean degree stays.

        Raises ``UsageError`` if the result is not a graph.
        """
        factor = Fraction(str(scale))
        if factor <= 0:
            raise UsageError(f"a twin's scale must be above 0, it is {scale}; use e.g. 0.05")
        nodes = round(self.num_nodes * factor)
        unit = 2 if self.symmetric else 1
        edges = self.num_edges if factor == 1 else round(self.num_edges * factor / unit) * unit

        # Cumulative sums are rounded, so that a split of all nodes stays one.
        total, bounds = Fraction(0), [0]
        for part in (self.train, self.val, self.test):
            size = Fraction(str(part))
            total += size * self.num_nodes if isinstance(part, float) else size
            minimum = 1 if self.train else 0  # keep at least one training node
            bounds.append(max(round(total * factor), minimum, bounds[-1]))
        train, val, test = (high - low for low, high in pairwise(bounds))
        communities = max(self.num_classes, round((self.communities or 1) * factor))
        scaled = self.model_copy(
            update={
                "num_nodes": nodes,
                "num_edges": edges,
                "train": train,
                "val": val,
                "test": test,
                "communities": communities,
            }
        )
        scaled.check(scale)
        return scaled

    def check(self, scale: float) -> None:
        """Raise ``UsageError`` if a scaled recipe cannot be a graph."""
        n, e = self.num_nodes, self.num_edges
        at = f"the twin at scale {scale:g}"
        if n < 2:
            raise UsageError(f"{at} would have {n} node(s); use a larger scale")
        if n >= 2**31:
            raise UsageError(f"{at} would have {n} nodes, above 2^31 - 1; use a smaller scale")
        if self.symmetric and e % 2:
            raise UsageError(f"{at} is symmetric but has an odd number of edges ({e})")
        if e > n * (n - 1):
            raise UsageError(
                f"{at} would have {e} edges on {n} nodes, more than the {n * (n - 1)} possible "
                "without parallel edges and self-loops; use a larger scale"
            )
        if self.train + self.val + self.test > n:
            raise UsageError(
                f"{at} would have more training, validation and test nodes than its {n} nodes"
            )
