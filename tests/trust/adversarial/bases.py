"""What cheats and attacks share: specs for stages of their own, and honest stages."""

from dataclasses import dataclass, replace

import own_cheats
import torch

import gnnbench
from gnnbench.features.host import HostGather
from gnnbench.features.spec import StoreSpec
from gnnbench.models.aggregation import Csr
from gnnbench.models.native import Native
from gnnbench.pipelines.order import OrderSpec, Permuted
from gnnbench.pipelines.serial import Serial
from gnnbench.sampling.native import NativeStage, native
from gnnbench.sampling.stated_law import StatedLawStage
from gnnbench.systems.baseline import BASELINE


def is_timed(batch):
    """Whether a batch is no batch of the gate, which have the positions of their edges."""
    return batch.blocks[0].positions is None


class Stage(NativeStage):
    """The baseline's sampler; ``over`` once the gate has passed."""

    over = False

    def gate_is_over(self):
        if not self.over:
            self.once_over()
        self.over = True

    def once_over(self):
        """The gate has passed for the first time."""


class Store(HostGather):
    """The baseline's store, with another ``load`` for timed batches."""

    def load(self, batch):
        return self.timed(batch) if is_timed(batch) else super().load(batch)

    def timed(self, batch):
        return super().load(batch)


class Plain(own_cheats.Honest):
    """An honest sampler in plain torch: sorts a random number for each edge of a row."""

    name = "plain"


class Ordered(Permuted):
    """The default order; ``bent`` in all epochs but the gate's."""

    def __init__(self, job):
        cell = job.cell
        super().__init__(job.graph.train_idx, cell.batch_size, cell.seed, cell.max_batches)
        self.job = job

    def batches(self, epoch, device="cpu"):
        honest = super().batches(epoch, device)
        return self.bent(honest) if epoch else honest

    def bent(self, batches):
        return batches


class ClaimsExact(StatedLawStage):
    """Says that it draws the reference's edges, and shows a digest of its own."""

    exact = True

    def digest(self, batches):
        return "0" * 64


def ragged(counts):
    """Row and place in the row of each element of rows that have so many elements."""
    owner = torch.arange(counts.numel()).repeat_interleave(counts)
    return owner, torch.arange(owner.numel()) - (counts.cumsum(0) - counts)[owner]


def _named(cls):
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in cls.__name__).strip("-")


def sampler(stage, **more):
    """The spec of a stage derived from ``Stage``, or of a sampler derived from ``Plain``."""
    if issubclass(stage, gnnbench.Sampler):
        return native(type(stage.__name__, (stage,), {"name": _named(stage), **more}))

    def build(self, job):
        same = {option: getattr(self, option) for option in type(native("hop-by-hop"))().options()}
        return stage(native("hop-by-hop", **same), job)

    base = type(native("hop-by-hop"))
    return dataclass(frozen=True)(
        type(f"{stage.__name__}Spec", (base,), {"name": _named(stage), "build": build, **more})
    )()


def own_stage(stage, library=Plain):
    """The spec of a stage derived from ``StatedLawStage``, over an honest library sampler."""
    spec = sampler(library)

    def build(self, job):
        from gnnbench.sampling.native import _built

        return stage(self, job, _built(self, job))

    own = type(f"{stage.__name__}Spec", (type(spec),), {"name": _named(stage), "build": build})
    return dataclass(frozen=True)(own)()


def _of(base):
    """A function that makes the spec of a stage of one kind."""

    def make(stage, **more):
        def build(self, job):
            return stage(job) if base in (StoreSpec, OrderSpec) else stage()

        namespace = {"name": _named(stage), "devices": ("cpu",), "build": build, **more}
        return dataclass(frozen=True)(type(f"{stage.__name__}Spec", (base,), namespace))()

    return make


store, order, schedule = _of(StoreSpec), _of(OrderSpec), _of(Serial)


def aggregate(function):
    """The spec of layers of ours that aggregate by ``function``."""

    def build(self):
        Csr.build(self)
        return Native(function)

    namespace = {"name": f"by-{function.__name__}", "build": build, "padded": False}
    return dataclass(frozen=True)(type("Layers", (Csr,), namespace))()


def recipe(**stages):
    """The baseline with some stages replaced."""
    return replace(BASELINE, **stages)


PLAIN = recipe(sampler=sampler(Plain))
