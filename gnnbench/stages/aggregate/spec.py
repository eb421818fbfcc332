"""The aggregations by name. What they need is imported when they are built."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gnnbench.foreign.dgl_import import dgl_missing
from gnnbench.foreign.pyg_import import pyg_missing, require_pyg
from gnnbench.missing import Missing
from gnnbench.ops.missing import native_missing
from gnnbench.stages.spec import Spec

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from gnnbench.models.framework import Framework


@dataclass(frozen=True)
class AggregateSpec(Spec):
    """An aggregation as a recipe names it; ``devices`` are those that its layers run on."""

    kind: ClassVar[str] = "aggregate"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)

    @classmethod
    @abstractmethod
    def missing(cls, device: str) -> Missing | None:
        """None where the layers can run on this machine's ``device``; must be cheap."""

    @abstractmethod
    def build(self) -> Framework:
        """The framework whose layers aggregate so. Raises ``MissingError`` where it is not here."""


@dataclass(frozen=True)
class Csr(AggregateSpec):
    """Our layers; a destination's sampled neighbours are added up one after the other."""

    name: ClassVar[str] = "csr"
    summary: ClassVar[str] = "our layers, over our SpMM on the blocks' CSR"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built."""
        return native_missing(device)

    def build(self) -> Framework:
        """Our layers over the native operator."""
        from gnnbench.models.native import Native
        from gnnbench.ops.aggregate import aggregate
        from gnnbench.ops.library import load_native

        load_native()
        return Native(aggregate)


@dataclass(frozen=True)
class DglLayers(AggregateSpec):
    """DGL's own layers."""

    name: ClassVar[str] = "dgl"
    summary: ClassVar[str] = "the real DGL: its own layers, and its message passing"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """DGL must be installed, for a GPU one with CUDA."""
        return dgl_missing(device)

    def build(self) -> Framework:
        """DGL's layers."""
        from gnnbench.models.dgl_layers import DglFramework

        return DglFramework()


@dataclass(frozen=True)
class PygLayers(AggregateSpec):
    """PyG's own layers, and its message passing."""

    name: ClassVar[str] = "pyg"
    summary: ClassVar[str] = "the real PyG: its own layers, and message passing"
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """PyG must be installed."""
        return pyg_missing(device)

    def build(self) -> Framework:
        """PyG's layers."""
        require_pyg()
        from gnnbench.models.pyg_layers import PygFramework

        return PygFramework()
