"""Memory of a system by what holds it: a look apart from any epoch that is timed.

What is measured is torch's allocator around every construction, then around every phase of some
batches that are run one by one. Three groups come of it, what sampler, feature store and training
hold. Each is divided by the sizes of the tensors that are known; what is left of a group is the
stage's own. On a CPU comes to this what is resident of the mapped graph, and of the process before
anything was built.

The peak is that of an epoch as the schedule runs it, ``processes`` what other processes of the
system take in it (a producer, ranks), not divided. ``other`` is what no component explains of it:
batches that are run ahead, the last one, which is kept for the audit; on a CPU what libraries
allocate by themselves. Components and ``other`` add up to the peak. Buffers for rows that padded
steps reserve are booked on training, which asks for them.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core.counters import MEMORY_BYTES, MEMORY_MOST, Metric
from gnnbench.measure.allocated import (
    allocating,
    forget_peak,
    resident_bytes,
    resident_of,
    resident_peak_bytes,
)
from gnnbench.systems.runtime.built_system import BuiltSystem, foresee_untimed, is_oracle
from gnnbench.systems.runtime.profile import spanned_bytes

if TYPE_CHECKING:
    from gnnbench.core.minibatch import Batch

BATCHES = 4  # of an epoch, and whole windows of them
# Groups, and what is left of each once what is known of it is taken off.
SAMPLER, FEATURES, TRAINING, ORDER = "sampler", "features", "training", "order"
LEFT = {TRAINING: "activations"}
EPOCH, SETUP, PROCESS, PROCESSES, OTHER = "epoch", "setup", "process", "processes", "other"
TOPOLOGY = ("indptr", "indices")  # arrays of a graph
HELD = "held"

Fact = tuple[str, str, int, str]  # component, measure, bytes, where


class Account:
    """Allocated bytes by group, and the bytes of each component at the peak of their sum.

    ``known``: by group, functions that return the bytes of components; they are called after each
    unit of work. Until ``built`` nothing is divided: ``most_of_all`` is then the peak of setup.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.allocated: dict[str, int] = {}
        self.known: dict[str, Callable[[], Mapping[str, int]]] = {}
        self.built = False
        self.most_of_all = 0
        self.at_peak: dict[str, int] = {}
        self.most: dict[str, int] = {}

    @contextlib.contextmanager
    def watch(self, group: str) -> Iterator[None]:
        """Attribute the allocations of a block of code to a group."""
        with allocating(self.device) as span:
            yield
        before = self.allocated.copy()
        self.allocated[group] = before.get(group, 0) + span.net
        self._look({**before, group: before.get(group, 0) + span.peak})

    def _look(self, totals: Mapping[str, int]) -> None:
        whole = sum(totals.values())
        highest = whole > self.most_of_all
        self.most_of_all = max(whole, self.most_of_all)
        if not self.built:
            return
        parts: dict[str, int] = {}
        for group, total in totals.items():
            left = max(total, 0)
            for component, size in self.known.get(group, dict)().items():
                parts[component] = min(size, left)
                left -= parts[component]
            parts[LEFT.get(group, group)] = left
        for component, size in parts.items():
            self.most[component] = max(size, self.most.get(component, 0))
        if highest:
            self.at_peak = parts

    def ready(self, known: Mapping[str, Callable[[], Mapping[str, int]]]) -> int:
        """Divide groups into components from now on. Returns the peak of setup in bytes."""
        self.known.update(known)
        self.built, peak, self.most_of_all = True, self.most_of_all, 0
        self._look(self.allocated)
        return peak


class Walk:
    """Runs some batches of an epoch one by one, and knows which of their tensors are alive."""

    def __init__(self, system: BuiltSystem, account: Account) -> None:
        self._system, self._stages, self._account = system, system.stages, account
        self._drawn: list[Batch] = []
        self._last: Batch | None = None  # of the window before, by which one is arranged
        self._rows: Tensor | None = None
        self._before = 0  # allocated by the sampler without a batch

    def known(self) -> dict[str, Callable[[], Mapping[str, int]]]:
        """Known sizes by group."""
        return {SAMPLER: self._sampler, FEATURES: self._features, TRAINING: self._training}

    def _sampler(self) -> dict[str, int]:
        """Without access to a sampler's tensors, its new allocations count as blocks."""
        device, allocated = self._account.device, self._account.allocated.get(SAMPLER, 0)
        shown = [t for b in self._drawn for t in b.tensors()]
        blocks = spanned_bytes([t for t in shown if t.device == device])
        if self._drawn and not shown:
            blocks = max(allocated - self._before, 0)
        return {"topology": self._stages.sampler.graph_bytes(), "blocks": blocks}

    def _features(self) -> dict[str, int]:
        return {"rows": 0 if self._rows is None else spanned_bytes([self._rows])}

    def _training(self) -> dict[str, int]:
        trainer = self._system.trainer
        return {} if trainer is None else trainer.memory_bytes()

    def run(self, epoch: int, seeds: Sequence[Tensor]) -> None:
        """The phases of the first batches, whole windows of them."""
        stages, account, ahead = self._stages, self._account, self._stages.window
        if stages.store is not None:
            stages.store.forget()
        for first in range(0, min(max(BATCHES, ahead), len(seeds)), ahead):
            self._before = account.allocated.get(SAMPLER, 0)
            for number, few in enumerate(seeds[first : first + ahead], first):
                with account.watch(SAMPLER):
                    self._drawn.append(self._sample(few, epoch, number))
            if stages.store is not None:
                if ahead > 1:
                    with account.watch(FEATURES):
                        self._drawn = stages.reorder(self._drawn, self._last)
                self._train()
            self._let_go()

    def _sample(self, seeds: Tensor, epoch: int, number: int) -> Batch:
        batch = self._stages.sampler.sample(seeds, epoch, number)
        batch.sizes()
        return batch if self._stages.store is None else self._stages.put_aside(batch)

    def _train(self) -> None:
        stages, account = self._stages, self._account
        for nth in range(len(self._drawn)):
            with account.watch(SAMPLER):
                stages.take(self._drawn, nth)
            with account.watch(FEATURES):
                self._rows = stages.load(self._drawn, nth)
            if stages.trainer is not None:
                with account.watch(TRAINING):
                    stages.trainer.step(self._drawn[nth], self._rows)
                    stages.stepped(self._drawn[nth])
            with account.watch(FEATURES):
                self._rows = None
            with account.watch(SAMPLER):
                stages.release(self._drawn, nth)

    def _let_go(self) -> None:
        """Drop the batches. Training keeps the transpose of a block with the block."""
        allocated = self._account.allocated
        with allocating(self._account.device) as span:
            self._last = self._drawn[-1] if self._stages.window > 1 else None
            self._drawn = []
        of_sampler = min(-span.net, max(allocated.get(SAMPLER, 0) - self._before, 0))
        allocated[SAMPLER] = allocated.get(SAMPLER, 0) - of_sampler
        allocated[TRAINING] = allocated.get(TRAINING, 0) + span.net + of_sampler


def memory_facts(system: BuiltSystem, plain: BuiltSystem, epoch: int) -> list[Fact]:
    """Set a system up and measure its memory: component, measure, bytes and place of each fact.

    Neither system may have been set up. ``plain`` is the same system: on a CPU its epoch, run
    first and without measuring components, gives the peak.
    """
    device = system.job.device
    resident = _resident_peak(plain, epoch) if device.type == "cpu" else None
    gc.collect()  # garbage must not be freed during the measurement
    with allocating(device):  # the first use of the counter allocates, too
        pass
    before = 0 if resident else torch.cuda.memory_allocated(device)
    account = Account(device)
    system.setup(account.watch)
    system.stages.sampler.gate_is_over()
    if is_oracle(system):
        with account.watch(FEATURES):
            foresee_untimed(system, epoch)
    walk = Walk(system, account)
    building = account.ready(walk.known())
    with account.watch(ORDER):
        batches = system.seeds(epoch)
    walk.run(epoch, batches)
    del batches
    parts, most = dict(account.at_peak), dict(account.most)
    if resident is None:
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        elsewhere = system.run_unmeasured(epoch)
        peak = int(torch.cuda.max_memory_allocated(device)) - before + elsewhere
        mapped = {PROCESSES: elsewhere}
    else:
        peak, mapped = resident
    for component, size in mapped.items():
        parts[component] = parts.get(component, 0) + size
        most[component] = most.get(component, 0) + size
    if system.trainer is not None:
        system.trainer.take_losses()  # of steps that no audit asks for
    parts[OTHER] = max(peak - sum(parts.values()), 0)
    shown = {name: size for name, size in parts.items() if name == OTHER or most[name]}
    facts: list[Fact] = [_fact(name, MEMORY_BYTES, size) for name, size in shown.items()]
    facts.append(_fact(EPOCH, MEMORY_BYTES, sum(shown.values())))
    facts += [_fact(name, MEMORY_MOST, size) for name, size in most.items() if size]
    facts.append(_fact(SETUP, MEMORY_MOST, building))
    return facts + _held(system)


def _resident_peak(system: BuiltSystem, epoch: int) -> tuple[int, dict[str, int]]:
    """The peak of resident memory in an epoch, and what of it is the process's own, other
    processes' and the graph's."""
    graph = system.job.graph
    topology = [getattr(graph, name) for name in TOPOLOGY]
    process = resident_bytes() - resident_of([*topology, graph.features])
    system.setup(lambda group: contextlib.nullcontext())
    system.stages.sampler.gate_is_over()
    foresee_untimed(system, epoch)
    forget_peak()
    elsewhere = system.run_unmeasured(epoch)
    peak = resident_peak_bytes() + elsewhere
    mapped = {"topology": resident_of(topology), FEATURES: resident_of([graph.features])}
    system.close()
    return peak, {PROCESS: process, PROCESSES: elsewhere, **mapped}


def _fact(component: str, what: Metric, size: int, where: str = "") -> Fact:
    return component, what.name, size, where


def _held(system: BuiltSystem) -> list[Fact]:
    """Tables on the host that stages of a GPU read: a run has one copy for all processes."""
    if system.job.device.type != "cuda":
        return []
    sizes: dict[str, int] = {}
    for name in system.recipe.shared(system.job.cell.device):
        component = "topology" if name in TOPOLOGY else FEATURES
        sizes[component] = sizes.get(component, 0) + getattr(system.job.graph, name).nbytes
    return [_fact(name, MEMORY_BYTES, size, HELD) for name, size in sizes.items()]
