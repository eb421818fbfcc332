"""The picks of a sampler with random numbers of its own, held against the law that it states.

DGL's, PyG's and WholeGraph's samplers are timed as they are, by whatever numbers: of theirs counts
and edges are looked at. One that draws the suite's own edges is held against the reference.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from torch import Tensor

from gnnbench.core import registry
from gnnbench.core.job import Job
from gnnbench.sampling.stage import SamplerSpec, SamplerStage
from gnnbench.systems.runtime.verification import Verifier
from gnnbench.validation.inclusion import TESTED, Inclusion

TIMES = 2  # that each batch is drawn: the second must not know of the first
EPOCHS = 2**30  # the harness's numbers are drawn at random from as many
VERIFIED_ROWS = 512  # of each hop in a verification epoch, which has hundreds


def tested(spec: SamplerSpec, stage: SamplerStage) -> bool:
    """Whether the picks are tested: not of gnnbench's own stages, and of those whose law is known.

    ``spec`` says whose it is: a stage may call itself anything.
    """
    ours = spec.name in registry.OURS[registry.SAMPLER]
    return not (ours or stage.exact or stage.job.cell.gathers) and stage.law.name in TESTED


def law_fault(job: Job, sampler: SamplerStage, batches: Sequence[Tensor]) -> str:
    """Draw batches of these seeds as they are timed, each twice, in epochs that nobody can know;
    what is wrong with them or with their picks, or ``""``."""
    inclusion = Inclusion(job.graph, sampler.law)
    look = Verifier(job.graph, sampler.law, job.cell.fanouts, sampler.frontier, inclusion)
    for _ in range(TIMES):
        epoch = secrets.randbelow(EPOCHS)
        for nth, seeds in enumerate(batches):
            look.look(sampler.sample(seeds, epoch, nth), None)
    return look.fault


def verifier(job: Job, spec: SamplerSpec, sampler: SamplerStage) -> Verifier:
    """What looks at a verification epoch of a sampler."""
    law = sampler.law
    rows = Inclusion(job.graph, law, VERIFIED_ROWS) if tested(spec, sampler) else None
    return Verifier(job.graph, law, job.cell.fanouts, sampler.frontier, rows)
