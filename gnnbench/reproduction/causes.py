"""What the machine at hand does beside the paper's, where a claim's failure may come from it."""

from __future__ import annotations

from collections.abc import Sequence

from gnnbench.analysis import metrics as m
from gnnbench.reproduction.claim import papers
from gnnbench.reproduction.evidence import Opened

LINK = ("host_copy", "zero_copy")
MEMORY = ("copy", "read")


def rates_here(paper: str, judged: Opened | None, runs: Sequence[Opened]) -> str:
    """How many times the paper's link and memory this machine's are, in words.

    From runs on the machine of the judged one: copies beside gathers (``bandwidth``) and the
    memory's ceiling (``roofline``). Says what was not measured; "" where the paper tells no rates.
    """
    known = papers()[paper].rates
    if known is None or judged is None:
        return ""
    here = [o for o in runs if o.machine == judged.machine]
    told = []
    for name, theirs, ours, run in (
        ("link", known.link, _link(here), "bandwidth --profile gpu"),
        ("memory", known.memory, _memory(here), "roofline --profile gpu"),
    ):
        if theirs is None:
            continue
        if ours is None:
            told.append(f"this {name} was not measured (run 'gnnbench run {run}')")
        else:
            told.append(f"this {name} is {ours / theirs:.1f} times as fast as the paper's")
    return f"{' and '.join(told)} ({known.machine})" if told else ""


def _link(runs: Sequence[Opened]) -> float | None:
    """The fastest copy between host and GPU; B/s."""
    rates = []
    for opened in runs:
        on_gpu = {r["id"] for r in opened.run.cells if r["device"] == "cuda"}
        rates += [
            float(r["value"])
            for r in opened.run.metrics
            if r["name"] == m.COPY_RATE.name and r["where"] in LINK and r["id"] in on_gpu
        ]
    return max(rates, default=None)


def _memory(runs: Sequence[Opened]) -> float | None:
    """The GPU memory's ceiling; B/s."""
    rates = [
        float(r["value"])
        for opened in runs
        for r in opened.run.roofline
        if (r["kind"], r["device"], r["level"]) == ("ceiling", "cuda", "memory")
        and r["name"] in MEMORY
    ]
    return max(rates, default=None)
