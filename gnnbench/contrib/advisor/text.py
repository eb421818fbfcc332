"""Format an advice as text: facts, rates and the estimate computed from them."""

from __future__ import annotations

from collections.abc import Iterator

from gnnbench.contrib.advisor.advice import SYSTEM, Advice
from gnnbench.contrib.advisor.facts import RATIOS, WINDOW, Facts
from gnnbench.contrib.advisor.model import Choice, Estimate, Term
from gnnbench.contrib.advisor.rates import Rates
from gnnbench.core.units import percent, seconds

ALTERNATIVES = 5  # choices printed after the advised one
FACTORS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def number(value: float, unit: str) -> str:
    """Format a number with three significant digits and a unit: ``15.8 MB``, ``79.7 M edges``."""
    factor, prefix = next(((f, p) for f, p in FACTORS if value >= f), (1.0, ""))
    prefixed = f"{prefix}{unit}" if unit == "B" else f"{prefix} {unit}".strip()
    return f"{value / factor:.3g} {prefixed}"


def lines(advice: Advice) -> list[str]:
    """Format the advised choice, then its reasons."""
    best = advice.ranking[0]
    return [
        *_advised(advice, best), "",
        *_section("facts of the graph", _facts(advice.facts, advice.setting.device)), "",
        *_section("rates of this machine", _rates(advice.rates)), "",
        "mean batch of the advised choice: work / rate",
        *(f"  {_term(t)}" for t in best.terms),
        *_sums(best, advice), "",
        f"next of {len(advice.ranking)} choices",
        *(
            f"  {seconds(e.epoch_s):>8}  {named(e.choice)}"
            for e in advice.ranking[1 : 1 + ALTERNATIVES]
        ),
    ]  # fmt: skip


def named(choice: Choice) -> str:
    """Format a choice as one line."""
    store = choice.store
    options = [f"sampler={choice.sampler}", f"features={store.name}"]
    if store.policy:
        options.append(f"cache={store.policy}")
    if store.order != "as-drawn":
        options.append(f"order={store.order}")
    return " ".join([*options, f"schedule={choice.schedule}"])


def _advised(advice: Advice, best: Estimate) -> Iterator[str]:
    s = advice.setting
    fanouts = "/".join(map(str, s.fanouts))
    training = f"{s.model} {s.hidden}, batch {s.batch_size}, fanouts {fanouts}"
    yield f"{s.dataset} on {s.device}: {training}"
    yield ""
    yield f"advised for system '{SYSTEM}'; estimated epoch: {seconds(best.epoch_s)}"
    for path, value in best.choice.settings(advice.facts.ratio, s.device).items():
        yield f"  {path:22}{value}"
    yield ""
    yield "to compare it with the baseline:"
    yield advice.command  # whole, to be copied


def _section(title: str, entries: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield title
    for key, value in entries:
        yield f"  {key:29} {value}"


def _facts(f: Facts, device: str) -> Iterator[tuple[str, str]]:
    yield "nodes, edges", f"{f.nodes:,}, {f.edges_of_graph:,}"
    degrees = f"{f.mean_degree:.1f}, {f.most_degree:,}, {percent(f.isolated)}"
    yield "in-degree: mean, most, none", degrees
    yield "features", f"{f.row_bytes:,} B a row, {number(f.table_bytes, 'B')} in all"
    yield "batches of an epoch", f"{f.batches:.2f}; {f.looked} inspected"
    yield "mean batch", f"{f.rows:,.0f} rows, {f.edges:,.0f} edges"
    share = percent(f.footprint / f.nodes)
    yield "distinct rows inspected", f"{f.footprint:,} ({share} of all nodes)"
    yield "match degree, all pairs", percent(f.match_degree)
    kept = f"{percent(f.kept_drawn)} default order, {percent(f.kept_greedy)} greedy"
    yield "rows in the previous batch", kept
    yield f"distinct rows of {WINDOW} batches", f"{percent(f.union)} of their rows"
    for curve in f.curves:
        for ratio, hit in curve.hits:
            if ratio in RATIOS:
                yield f"hits of {curve.policy} at {ratio:g}", percent(hit)
    if not f.ratio:
        why = "not needed on a CPU" if device == "cpu" else "no free GPU memory"
        yield "cache", f"none: {why}"
    else:
        yield "cacheable", f"{percent(f.ratio)} of the rows"
        for curve in f.curves:
            yield f"  hits of {curve.policy}", percent(curve.at(f.ratio))
        yield f"  misses of {WINDOW} batches", f"{percent(f.union_missed)} of distinct rows"


def _rates(r: Rates) -> Iterator[tuple[str, str]]:
    yield "rows read from memory", number(r.there, "B") + "/s"
    yield "random 4-byte reads", number(r.words, "reads") + "/s"
    yield "rows fetched", number(r.fetch, "B") + "/s"
    yield "rows of a union fetched", number(r.fetch_union, "B") + "/s"
    yield "ids reordered", number(r.order, "ids") + "/s"
    yield "training steps", f"{r.step:.4g} batches/s"
    for name, rate in r.sample.items():
        yield f"sampling, {name}", number(rate, "edges") + "/s"


def _term(t: Term) -> str:
    work = f"{number(t.amount, t.unit)} / {number(t.rate, t.unit)}/s = {seconds(t.seconds)}"
    return f"{t.phase:10}{t.what}: {work}"


def _sums(e: Estimate, advice: Advice) -> Iterator[str]:
    phases = " + ".join(f"{seconds(t)} {phase}" for phase, t in e.phases.items())
    yield f"  serial phases: {phases} = {seconds(sum(e.phases.values()))}"
    if e.choice.schedule == "prefetch":
        yield f"  overlapped, limited by the busiest resource: {seconds(e.batch_s)}"
    batches = advice.facts.batches
    total = f"{batches:.2f} batches x {seconds(e.batch_s)}"
    first = f" + {seconds(e.first_s)} for the first" if e.first_s else ""
    yield f"  epoch: {total}{first} = {seconds(e.epoch_s)}"
