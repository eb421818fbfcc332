"""Stochastic verification: picks of a sampler with custom random numbers, compared with its law.

Of DGL's, PyG's and WholeGraph's samplers only counts and edges are checked. A sampler that draws
the suite's own edges is compared with the reference instead.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from torch import Tensor

from gnnbench.core import registry
from gnnbench.core.job import Job
from gnnbench.sampling.stage import SamplerSpec, SamplerStage
from gnnbench.systems.runtime.spot_checks import CheckedBatch
from gnnbench.systems.runtime.verification import Verifier
from gnnbench.validation.inclusion import TESTED, Inclusion

REPEATS = 2  # samples of each batch: the second must be independent of the first
EPOCHS = 2**30  # the harness draws epoch numbers from this range, too
VERIFIED_ROWS = 512  # of each hop of a checked batch; there are dozens


def picks_are_tested(spec: SamplerSpec, stage: SamplerStage) -> bool:
    """Whether the picks are tested: only for third parties' stages whose law is known.

    ``spec`` decides who provides the stage, because a stage may give itself any name. Stages that
    call themselves exact are tested, too: their digests are their own.
    """
    ours = spec.name in registry.OURS[registry.SAMPLER]
    return not (ours or stage.job.cell.gathers) and stage.law.name in TESTED


def law_fault(job: Job, sampler: SamplerStage, batches: Sequence[Tensor]) -> str:
    """Sample batches of these seeds twice each, in random epochs, and check them and their picks.

    Returns what is wrong, or "".
    """
    inclusion = Inclusion(job.graph, sampler.law)
    verifier = Verifier(job.graph, sampler.law, job.cell.fanouts, sampler.frontier, inclusion)
    for _ in range(REPEATS):
        epoch = secrets.randbelow(EPOCHS)
        for number, seeds in enumerate(batches):
            batch = sampler.sample(seeds, epoch, number)
            verifier.check(CheckedBatch.whole(batch, None, number))
    return verifier.fault


def verifier(job: Job, spec: SamplerSpec, sampler: SamplerStage) -> Verifier:
    """Return a verifier of a system's batches."""
    law = sampler.law
    tested = picks_are_tested(spec, sampler)
    inclusion = Inclusion(job.graph, law, VERIFIED_ROWS) if tested else None
    return Verifier(job.graph, law, job.cell.fanouts, sampler.frontier, inclusion)
