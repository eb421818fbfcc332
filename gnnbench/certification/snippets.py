"""Minimal inputs of failing properties, as programs for a sampler's maintainers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnnbench.certification.laws import row_of
from gnnbench.certification.subject import Request, Subject
from gnnbench.validation.law import WITHOUT

if TYPE_CHECKING:
    from gnnbench.certification.rows import Table
    from gnnbench.certification.structure import Violation

LONGEST = 400  # edges of a graph that a program lists
BATCHES = 2000  # most batches that a program draws


def _graph_lines(request: Request, indptr: list[int], indices: list[int], seed: int) -> list[str]:
    lines = [f"indptr = {indptr}", f"indices = {indices}", f"fanouts = {list(request.fanouts)}"]
    if request.graph.weights is not None:
        lines.append(f"weights = {request.graph.weights[: len(indices)].tolist()}")
    return [*lines, f"seed = {seed}"]


def table_snippet(subject: Subject, table: Table) -> str:
    """A program that draws one row repeatedly and prints observed and expected counts.

    Its graph is one hub: node ``degree`` with the in-neighbours 0 to ``degree`` - 1.
    """
    request = table.request
    setup = subject.snippet(request)
    if setup is None or table.hop or table.degree > LONGEST:
        return ""
    degree, fanout = table.degree, table.fanout
    indptr, indices = [0] * (degree + 1) + [degree], list(range(degree))
    lines = _graph_lines(request, indptr, indices, request.seed or 0)
    law = "with equal probability" if request.law == WITHOUT else f"by the law '{request.law}'"
    note = f"# {subject.name} {subject.version}: {fanout} of {degree} neighbours are picked {law}."
    expected = "{}"
    if table.known is not None and table.law.size <= 60:
        known = {
            tuple(table.known.places(at)): float(f"{p:.6g}") for at, p in enumerate(table.known.law)
        }
        expected = repr(known)
    elif table.known is None:
        expected = f"{{(place,): {fanout / degree:.6g} for place in range({degree})}}"
    by_place = table.known is None
    count = (
        "    seen.update((edge,) for edge in edges)" if by_place else "    seen[tuple(edges)] += 1"
    )
    return "\n".join(
        [
            note,
            *lines,
            setup.setup,
            "from collections import Counter",
            f"expected = {expected}",
            "seen = Counter()",
            f"for call in range({BATCHES}):",
            f"    edges = sorted(edge for _, _, edge in draw([{degree}])[0])",
            count,
            "print('edges: observed, expected')",
            "for edges in sorted({*seen, *expected}):",
            f"    print(list(edges), seen[edges], round(expected.get(edges, 0) * {BATCHES}, 1))",
            "",
        ]
    )


def fault_snippet(subject: Subject, violation: Violation) -> str:
    """A program that repeats the calls of a structural fault and prints every edge drawn."""
    request = violation.request
    setup = subject.snippet(request)
    if setup is None or request.graph.num_edges > LONGEST or request.graph.num_nodes > LONGEST:
        return ""
    graph = request.graph
    lines = _graph_lines(request, graph.indptr.tolist(), graph.indices.tolist(), request.seed or 0)
    degrees = {int(seed): len(row_of(graph, int(seed))) for seed in violation.seeds}
    return "\n".join(
        [
            f"# {subject.name} {subject.version}, call {violation.calls}: {violation.what}",
            *lines,
            setup.setup,
            f"print('in-degree of each seed:', {degrees})",
            f"for call in range({violation.calls}):",
            f"    hops = draw({violation.seeds.tolist()})",
            "    print('call', call + 1, 'edges by hop:', [len(hop) for hop in hops])",
            "    for hop in hops:",
            "        print('  (destination, source, edge id):', hop)",
            "        for dst, src, edge in hop:",
            "            row = range(indptr[dst], indptr[dst + 1])",
            "            edges = [edge] if edge is not None else row  # without edge ids, any",
            "            if not any(e in row and indices[e] == src for e in edges):",
            "                print('  wrong: edge', edge, 'is not', src, '->', dst)",
            "",
        ]
    )


def pair_snippet(subject: Subject, name: str, degree: int) -> str:
    """A program that shows dependent picks of one row; only for batches and epochs of a process."""
    from gnnbench.certification.inputs import graph_of

    request = Request(graph_of([range(degree)], "hub", first=degree), (1,), WITHOUT, "", seed=1)
    picks = subject.picks(WITHOUT)
    if not picks or name not in ("batches", "epochs"):
        return subject.pair_program(name)
    setup = subject.snippet(Request(request.graph, (1,), WITHOUT, picks[0], seed=1))
    if setup is None:
        return ""
    indptr, indices = request.graph.indptr.tolist(), request.graph.indices.tolist()
    return "\n".join(
        [
            f"# {subject.name} {subject.version}: picks of consecutive calls depend on each other.",
            *_graph_lines(request, indptr, indices, 1),
            setup.setup,
            f"edges = [draw([{degree}])[0][0][2] for call in range({BATCHES})]",
            "same = sum(a == b for a, b in zip(edges[0::2], edges[1::2]))",
            f"print('equal picks of consecutive calls:', same, 'of', {BATCHES // 2})",
            f"print('expected:', {BATCHES // 2 // degree})",
            "",
        ]
    )
