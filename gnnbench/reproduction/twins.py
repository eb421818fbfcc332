"""Numbers that were measured on generated twins of graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gnnbench.reproduction.claim import Claim
from gnnbench.reproduction.evidence import graph_of
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.verdict import HOLDS, ON_TWIN, SHAPE

TWIN = "~twin"


def graphs_of_twins(findings: Iterable[Finding]) -> list[str]:
    """The graphs on whose twins some numbers were measured."""
    datasets = (str(row["dataset"]) for finding in findings for row in finding.rows)
    return list(dict.fromkeys(graph_of(name) for name in datasets if TWIN in name))


def fitted_graphs(claim: Claim, findings: Iterable[Finding]) -> list[str]:
    """Those of these graphs whose twins were fitted to the number of the claim."""
    return [graph for graph in graphs_of_twins(findings) if graph in claim.fitted]


def limited_to_twins(
    claim: Claim, findings: Sequence[Finding], verdict: str, reason: str
) -> tuple[str, str]:
    """What supports a claim about a graph on a twin does not confirm it for the graph itself."""
    graphs = graphs_of_twins(findings)
    if not claim.of_graph or not graphs or verdict not in (HOLDS, SHAPE):
        return verdict, reason
    fitted = fitted_graphs(claim, findings)
    twin = f"twin of {', '.join(graphs)}"
    if fitted:
        which = "it" if fitted == graphs else f"that of {', '.join(fitted)}"
        twin += f"; {which} was fitted to this number"
    return SHAPE if verdict == SHAPE else ON_TWIN, "; ".join(filter(None, [reason, twin]))


def twin_doubt(claim: Claim, findings: Sequence[Finding]) -> str:
    """Why a contradiction by a twin does not refute a claim about the graph, or ""."""
    graphs = graphs_of_twins(findings)
    return f"it was measured on a twin of {', '.join(graphs)}" if claim.of_graph and graphs else ""
