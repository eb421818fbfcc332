"""``gnnbench advise``: inspect a graph, measure the machine, and rank the choices of stages."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, TypedDict

from gnnbench.contrib.advisor.model import Estimate, OptionValue, ranked
from gnnbench.core import errors, fanouts, names
from gnnbench.core.errors import DataError, HostMemoryError, MissingError, UsageError
from gnnbench.harness.worker_environment import WORKER_ENVIRONMENT
from gnnbench.kernels.missing import native_missing
from gnnbench.measure import machine

if TYPE_CHECKING:
    from gnnbench.contrib.advisor.facts import Facts
    from gnnbench.contrib.advisor.rates import Rates

SYSTEM = "best"  # the system whose stages are chosen; its aggregation is not varied


class ChoiceRecord(TypedDict):
    """One ranked choice in the JSON of an advice."""

    settings: dict[str, OptionValue]
    phases_s: dict[str, float]
    batch_s: float
    first_s: float
    epoch_s: float
    terms: list[dict[str, object]]


class AdviceRecord(TypedDict):
    """The JSON of an advice, as ``gnnbench advise --json`` prints it."""

    setting: dict[str, object]
    system: str
    cores: int
    command: str
    facts: dict[str, object]
    rates: dict[str, object]
    ranking: list[ChoiceRecord]


@dataclass(frozen=True)
class Setting:
    """The training to advise on.

    ``device`` is ``cpu``, ``cuda`` or ``auto``. ``threads`` 0 uses all cores. ``cache_gib`` limits
    the feature cache in GPU memory; None uses the memory that training leaves free.
    """

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
    """A ranking of choices with the facts and rates behind it; the advised choice comes first."""

    setting: Setting
    cores: int
    facts: Facts
    rates: Rates
    ranking: list[Estimate]

    @property
    def command(self) -> str:
        """The shell command that compares the advised choice with the baseline."""
        s, best = self.setting, self.ranking[0]
        arguments = [
            "gnnbench", "run", "breakdown", "--systems", f"baseline,{SYSTEM}",
            "--datasets", s.dataset, "--models", s.model, "--device", s.device,
            "-o", f"batch_size={s.batch_size}",
            "-o", f"fanouts=[[{','.join(map(str, s.fanouts))}]]", "-o", f"hidden={s.hidden}",
        ]  # fmt: skip
        if s.threads:
            arguments += ["-o", f"threads={s.threads}"]
        for path, value in best.choice.settings(self.facts.ratio, self.setting.device).items():
            arguments += ["-o", f"{SYSTEM}.{path}={value}"]
        return shlex.join(arguments)

    def plain(self) -> AdviceRecord:
        """Convert to JSON values."""
        ranking: list[ChoiceRecord] = [
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
            "ranking": ranking,
        }  # fmt: skip


def advise(setting: Setting) -> Advice:
    """Load the graph, measure its batches and the machine, and rank the choices.

    The graph is generated or imported if it is not in the store. Raises ``UsageError`` for an
    unknown graph or an invalid setting, ``MissingError`` if the graph or the device is missing,
    ``DataError`` if the graph has no training nodes or no edges, ``GpuMemoryError`` or
    ``HostMemoryError`` if a batch does not fit.
    """
    from gnnbench.datasets.prepare import load_dataset

    setting = checked(setting)
    graph = load_dataset(setting.dataset, seed=setting.seed)
    if graph.train_idx.numel() == 0:
        raise DataError(f"graph '{graph.name}' has no training nodes; give it a split")
    if not graph.num_edges:
        raise DataError(f"graph '{graph.name}' has no edges to sample; give another")
    facts, rates = _measured(setting)
    cores = machine.usable_cores()
    return Advice(
        setting, cores, facts, rates, ranked(facts, rates, setting.device, setting.threads, cores)
    )


def _measured(setting: Setting) -> tuple[Facts, Rates]:
    """Measure in a process with the environment of a run's workers.

    The environment sets allocator, waiting policy and threads, so the rates are those of a run.
    """
    from gnnbench.contrib.advisor.facts import facts_of
    from gnnbench.contrib.advisor.rates import Rates

    threads = machine.resolve_threads(setting.threads)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gnnbench.contrib.advisor.measured"],
        input=json.dumps(asdict(setting)),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        start_new_session=True,  # only this process handles Ctrl-C
        env={**os.environ, **WORKER_ENVIRONMENT, "OMP_NUM_THREADS": str(threads)},
    )
    if done.returncode == -signal.SIGKILL:
        raise HostMemoryError(
            "the measuring process was killed; free memory, or use smaller batches"
        )
    if done.returncode:
        raise RuntimeError(f"the measuring process ended with exit code {done.returncode}")
    answer = json.loads(done.stdout.splitlines()[-1])
    if "error" in answer:
        raise getattr(errors, answer["kind"])(answer["error"])
    return facts_of(answer["facts"]), Rates(**answer["rates"])


def checked(setting: Setting) -> Setting:
    """Validate a setting and resolve ``auto``. Raises ``UsageError`` or ``MissingError``."""
    from gnnbench.models.kinds import MODELS

    device = names.known_spelling(setting.device, ("cpu", "cuda", "auto"))
    setting = replace(setting, model=names.known_spelling(setting.model, MODELS))
    if device not in ("cpu", "cuda", "auto"):
        raise UsageError(f"there is no device '{device}'; give cpu, cuda or auto")
    if setting.model not in MODELS:
        raise UsageError(f"there is no model '{setting.model}'; it is {', '.join(MODELS)}")
    try:
        valid_fanouts = [fanouts.check(f) for f in setting.fanouts]
    except ValueError:
        valid_fanouts = []
    if not valid_fanouts:
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
