"""This machine's rates compared with the paper's, where they may explain a refuted claim."""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.analysis import metrics as m
from gnnbench.core.units import significant
from gnnbench.reproduction.claim import papers
from gnnbench.reproduction.evidence import RunEvidence

LINK_COPIES = ("host_copy", "zero_copy")
MEMORY_CEILINGS = ("copy", "read")


def rates_here(paper: str, judged: RunEvidence | None, runs: Sequence[RunEvidence]) -> str:
    """How much faster link and memory of this machine are than the paper's, as text.

    Uses runs on the machine of ``judged``: copy rates of ``bandwidth`` and the memory ceiling of
    ``roofline``. Names the command for a rate that was not measured. "" where the paper does not
    state its rates.
    """
    rates = papers()[paper].rates
    if rates is None or judged is None:
        return ""
    here = [evidence for evidence in runs if evidence.machine == judged.machine]
    sentences = []
    for name, theirs, ours, run in (
        ("link", rates.link, _link_rate(here), "bandwidth --profile gpu"),
        ("memory", rates.memory, _memory_rate(here), "roofline --profile gpu"),
    ):
        if theirs is None:
            continue
        if ours is None:
            sentences.append(f"this {name} was not measured (run 'gnnbench run {run}')")
        else:
            sentences.append(
                f"this {name} copies at {significant(ours / 1e9)} GB/s,"
                f" {ours / theirs:.1f} times as fast as the paper's"
            )
    return f"{' and '.join(sentences)} ({rates.machine})" if sentences else ""


def _link_rate(runs: Sequence[RunEvidence]) -> float | None:
    """The fastest copy between host and GPU; B/s."""
    rates = []
    for evidence in runs:
        on_gpu = {r["id"] for r in evidence.run.cells if r["device"] == "cuda"}
        rates += [
            float(r["value"])
            for r in evidence.run.metrics
            if r["name"] == m.COPY_RATE.name and r["where"] in LINK_COPIES and r["id"] in on_gpu
        ]
    return max(rates, default=None)


def _memory_rate(runs: Sequence[RunEvidence]) -> float | None:
    """The measured peak rate of the GPU's memory; B/s."""
    rates = [
        float(r["value"])
        for evidence in runs
        for r in evidence.run.roofline
        if (r["kind"], r["device"], r["level"]) == ("ceiling", "cuda", "memory")
        and r["name"] in MEMORY_CEILINGS
    ]
    return max(rates, default=None)
