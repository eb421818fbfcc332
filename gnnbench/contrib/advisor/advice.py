"""``gnnbench advise``: look at a graph, measure the machine, and rank the choices."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from gnnbench.contrib.advisor.model import Estimate, ranked
from gnnbench.core import errors, fanouts, names
from gnnbench.core.errors import DataError, HostMemoryError, MissingError, UsageError
from gnnbench.harness.process import WORKER_ENVIRONMENT
from gnnbench.kernels.missing import native_missing
from gnnbench.measure import machine

if TYPE_CHECKING:
    from gnnbench.contrib.advisor.facts import Facts
    from gnnbench.contrib.advisor.rates import Rates

SYSTEM = "best"  # whose stages are chosen; its aggregation stays


@dataclass(frozen=True)
class Setting:
    """What is to be trained. ``device``: ``cpu``, ``cuda`` or ``auto``; ``threads`` 0: all cores;
    ``cache_gib``: what a GPU's memory may hold of the features, None: what training leaves."""

    dataset: str
    model: str = "gcn"
    hidden: int = 64
    batch_size: int = 1024
    fanouts: tuple[int, ...] = (15, 10, 5)
    device: str = "auto"
    threads: int = 0
    seed: int = 0
    cache_gib: float | None = None


@dataclass(frozen=True)
class Advice:
    """``ranking`` has the choice that is advised first."""

    setting: Setting
    cores: int
    facts: Facts
    rates: Rates
    ranking: list[Estimate]

    @property
    def command(self) -> str:
        """What runs the advised choice beside the baseline."""
        s, best = self.setting, self.ranking[0]
        words = [
            "gnnbench", "run", "breakdown", "--systems", f"baseline,{SYSTEM}",
            "--datasets", s.dataset, "--models", s.model, "--device", s.device,
            "-o", f"batch_size={s.batch_size}",
            "-o", f"fanouts=[[{','.join(map(str, s.fanouts))}]]", "-o", f"hidden={s.hidden}",
        ]  # fmt: skip
        if s.threads:
            words += ["-o", f"threads={s.threads}"]
        for path, value in best.choice.settings(self.facts.ratio, self.setting.device).items():
            words += ["-o", f"{SYSTEM}.{path}={value}"]
        return shlex.join(words)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        told = [
            {
                "settings": e.choice.settings(self.facts.ratio, self.setting.device),
                "phases_s": e.phases,
                "batch_s": e.batch_s,
                "first_s": e.first_s,
                "epoch_s": e.epoch_s,
                "terms": [{**asdict(t), "seconds": t.seconds} for t in e.terms],
            }
            for e in self.ranking
        ]
        return {
            "setting": asdict(self.setting), "system": SYSTEM, "cores": self.cores,
            "command": self.command, "facts": asdict(self.facts), "rates": asdict(self.rates),
            "ranking": told,
        }  # fmt: skip


def advise(setting: Setting) -> Advice:
    """Open the graph (made or imported where it is not in the store), look, measure and rank.

    Raises ``UsageError`` for an unknown graph or a setting that is none, ``MissingError`` where the
    graph or the device is not there, ``DataError`` where there is nothing to train on or to sample,
    ``GpuMemoryError`` or ``HostMemoryError`` where a batch does not fit.
    """
    from gnnbench.contrib.advisor.facts import facts_of
    from gnnbench.contrib.advisor.rates import Rates
    from gnnbench.datasets.prepare import load_dataset

    setting = checked(setting)
    graph = load_dataset(setting.dataset, seed=setting.seed)
    if graph.train_idx.numel() == 0:
        raise DataError(f"graph '{graph.name}' has no training nodes; give it a split")
    if not graph.num_edges:
        raise DataError(f"graph '{graph.name}' has no edges to sample; give another")
    found = _measured(setting)
    facts, rates = facts_of(found["facts"]), Rates(**found["rates"])
    cores = machine.usable_cores()
    return Advice(
        setting, cores, facts, rates, ranked(facts, rates, setting.device, setting.threads, cores)
    )


def _measured(setting: Setting) -> dict[str, Any]:
    """Facts and rates as plain values, by a process like a run's workers.

    They allocate, wait and share cores otherwise than a shell's: rates are to be theirs.
    """
    threads = machine.resolve_threads(setting.threads)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gnnbench.contrib.advisor.measured"],
        input=json.dumps(asdict(setting)),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        start_new_session=True,  # Ctrl-C is this process's: it kills the other, which says nothing
        env={**os.environ, **WORKER_ENVIRONMENT, "OMP_NUM_THREADS": str(threads)},
    )
    if done.returncode == -signal.SIGKILL:
        raise HostMemoryError(
            "the process that measures was killed; free memory, or take smaller batches"
        )
    if done.returncode:
        raise RuntimeError(f"the process that measures ended with code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "error" in found:
        raise getattr(errors, found["kind"])(found["error"])
    return found


def checked(setting: Setting) -> Setting:
    """The same with the device said. Raises ``UsageError`` or ``MissingError``."""
    from gnnbench.models.kinds import MODELS

    device = names.known_spelling(setting.device, ("cpu", "cuda", "auto"))
    setting = replace(setting, model=names.known_spelling(setting.model, MODELS))
    if device not in ("cpu", "cuda", "auto"):
        raise UsageError(f"there is no device '{device}'; give cpu, cuda or auto")
    if setting.model not in MODELS:
        raise UsageError(f"there is no model '{setting.model}'; it is {', '.join(MODELS)}")
    try:
        known = [fanouts.check(f) for f in setting.fanouts]
    except ValueError:
        known = []
    if not known:
        raise UsageError("fanouts are numbers from 1, or -1, by commas, as 15,10,5")
    if setting.threads > (cores := machine.usable_cores()):
        raise UsageError(f"threads={setting.threads} is more than the {cores} cores here")
    if device == "auto":
        device = "cuda" if machine.gpus() and not native_missing("cuda") else "cpu"
    if (missing := native_missing(device)) is not None:
        raise MissingError(
            f"nothing can be measured on '{device}': {missing.reason}; {missing.fix}"
        )
    if device == "cpu" and setting.cache_gib is not None:
        raise UsageError("a cache is of a GPU's memory; leave the limit out, or give --device cuda")
    return replace(setting, device=device)
