"""Stores that fetch less because batches overlap, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from gnnbench.errors import UnsupportedError
from gnnbench.missing import Missing
from gnnbench.ops.missing import native_missing
from gnnbench.stages.features.spec import DEFAULT, Host, StoreSpec, Uva
from gnnbench.stages.spec import option

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from gnnbench.stages.features.base import FeatureStore
    from gnnbench.stages.job import Job

PATHS: dict[str, StoreSpec] = {"host": Host(), "uva": Uva()}
WINDOWS = range(1, 1025)


@dataclass(frozen=True)
class OverlapSpec(StoreSpec):
    """A store over another one, which fetches the rows that are not there yet."""

    path: str = option(
        DEFAULT,
        "what fetches missing rows: host: gathered by the cores, for a GPU copied (default);"
        " uva: read by the GPU",
        (DEFAULT, *PATHS),
    )

    @classmethod
    def missing(cls, device: str) -> Missing | None:
        """The native library must have been built, for a GPU its CUDA part."""
        return native_missing(device)

    def resolved(self, device: str) -> Self:
        """The same with the default put in."""
        spec = super().resolved(device)
        spec = replace(spec, path="host") if self.path == DEFAULT else spec
        if device not in PATHS[spec.path].devices:
            raise UnsupportedError(
                f"features.path={spec.path} needs a GPU; give --device cuda, or host"
            )
        return spec

    def _under(self) -> StoreSpec:
        return PATHS["host" if self.path == DEFAULT else self.path]

    def shared(self, device: str) -> tuple[str, ...]:
        """What the store below asks for."""
        return self._under().shared(device)


@dataclass(frozen=True)
class Match(OverlapSpec):
    """FastGL's Match: rows of the last batch are kept, only those that it lacks are fetched."""

    name: ClassVar[str] = "match"
    summary: ClassVar[str] = "rows of the last batch reused, the others fetched (FastGL's Match)"

    def build(self, job: Job) -> FeatureStore:
        """Over the store that fetches."""
        from gnnbench.stages.features.match import MatchStore

        return MatchStore(job, self._under().build(job))


@dataclass(frozen=True)
class Window(OverlapSpec):
    """The union of several batches' nodes, fetched once; each batch's rows are copied out of it."""

    name: ClassVar[str] = "window"
    summary: ClassVar[str] = "rows of several batches' union fetched once, in ascending order"
    window: int = option(8, "batches whose rows are fetched together", WINDOWS)

    def build(self, job: Job) -> FeatureStore:
        """Over the store that fetches."""
        from gnnbench.stages.features.window import WindowStore

        return WindowStore(job, self._under().build(job), self.window)
