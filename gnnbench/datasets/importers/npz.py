"""Import a graph from arrays by name: an ``.npz``, ``.pt`` or DGL file.

Edges, in one of these forms (`rows`: see below):

``edge_index``            ``[2, num_edges]``: sources, then targets
``src`` and ``dst``       ``[num_edges]`` each (or ``source`` and ``target``)
``row`` and ``col``       an adjacency matrix by its entries
``indptr``, ``indices``   an adjacency matrix by its rows
what ``scipy.sparse.save_npz`` writes: a CSR, CSC or COO matrix; ``data`` are the edges' weights,
unless they are all 1; duplicate entries are summed, zeros are no edges

``rows`` (a text) says what a row of a matrix is: ``targets`` (row v lists the sources of the edges
into v: CSC of in-neighbours) or ``sources`` (row u lists the targets of u's edges). A directed
graph without it needs the option ``--rows``; a symmetric graph needs neither.

Weights of the edges, as they are listed: ``weights``, ``edge_weight`` or ``weight``. Features:
``features``, ``x``, ``feat`` or ``feature`` ``[num_nodes, width]``, or as CSR in ``feat_data``,
``feat_indices``, ``feat_indptr`` with ``feat_dim`` (``feat_kind`` says ``dense``, ``csr`` or
``none``). Labels: ``labels``, ``y`` or ``label`` (-1: unlabelled). Split: ``train_idx``,
``val_idx``, ``test_idx`` (ids), or ``train_mask``, ``val_mask``, ``test_mask`` (0 and 1). Single
values: ``num_nodes``, ``num_classes``; texts ``source``, ``license``, ``split_origin``, ``note``.
Everything but the edges may be missing; an array of another name is not kept, and named in a note.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from gnnbench.core.errors import DataError
from gnnbench.datasets.generators.seeded import DEFAULT_WIDTH
from gnnbench.datasets.importers.common import ImportOptions
from gnnbench.datasets.importers.edge_arrays import EdgeArrays, find_edges, write_edges
from gnnbench.datasets.importers.named import NamedArrays
from gnnbench.datasets.importers.node_values import MAX_CLASSES
from gnnbench.datasets.importers.nodes import FEATURES, NodeSources
from gnnbench.datasets.importers.rawfile import NpzFile
from gnnbench.datasets.importers.room import check_room, memory_errors
from gnnbench.datasets.store.csc import csc_edges
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.datasets.store.writer import GraphWriter


def import_npz(path: Path, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """Write the arrays of ``path``; returns the description.

    Raises as :func:`import_arrays`.
    """
    with memory_errors(path), NpzFile(path) as npz:
        return {**import_arrays(npz, out, options), "loader": "npz"}


def import_arrays(arrays: NamedArrays, out: GraphWriter, options: ImportOptions) -> NewGraph:
    """Write a graph that is arrays by name; returns the description.

    Features, labels and a split that are missing are drawn from ``options.seed``, and the result
    says so. Raises ``DataError`` for what is damaged or malformed, ``UsageError`` for a directed
    graph that does not say which way it points.
    """
    edges = find_edges(arrays)
    nodes = NodeSources(arrays, options.given)
    num_nodes = _num_nodes(edges, arrays, nodes.num_nodes, options)
    _check_room(out, edges, nodes, num_nodes, options, arrays.path)
    write_edges(out, edges, num_nodes, options, arrays)
    classes = _num_classes(arrays) or options.num_classes
    about = nodes.write(out, num_nodes, replace(options, num_classes=classes))
    about["split"] = str(arrays.scalar("split_origin", "")) or about["split"]
    notes = [str(arrays.scalar("note", "")).strip(), *arrays.notes, *edges.notes, *nodes.notes]
    if options.add_reverse and options.merge:
        notes += _merged(out, edges)
    if left := arrays.left(edges.used | nodes.used):
        notes.append(f"not kept: {', '.join(left)}")
    return {
        **about,
        "source": ("" if "source" in edges.used else str(arrays.scalar("source", "")))
        or str(arrays.path),
        "licence": str(arrays.scalar("license", "")),
        "notes": [note for note in notes if note],
        "symmetric": True if options.add_reverse and options.merge else None,
    }


def _num_nodes(edges: EdgeArrays, arrays: NamedArrays, rows: int, options: ImportOptions) -> int:
    """Number of nodes, by what is asked or stated, by the nodes' rows or by the largest id."""
    stated = arrays.count("num_nodes")
    requested = options.num_nodes or stated or 0
    if stated is not None and stated < 1:
        raise DataError(f"the graph in {arrays.path} has no nodes; give one that has")
    if edges.num_nodes:  # a matrix has its own
        if requested not in (0, edges.num_nodes):
            raise DataError(
                f"indptr in {arrays.path} has {edges.num_nodes + 1} entries for {requested} nodes; "
                "correct the file"
            )
        return edges.num_nodes
    ids = [ids for ids in edges.ends or () if ids.dtype.kind in "iu"]
    count = requested or rows or max((int(i.max(initial=-1)) + 1 for i in ids), default=0)
    if count < 1:
        raise DataError(f"the graph in {arrays.path} has no edges; give one that has")
    return count


def _check_room(
    out: GraphWriter,
    edges: EdgeArrays,
    nodes: NodeSources,
    num_nodes: int,
    options: ImportOptions,
    path: Path,
) -> None:
    """Raise ``HostMemoryError`` or ``UsageError`` where the graph does not fit."""
    features = nodes.features
    key = features.first(FEATURES) if features is not None else ""
    if features is not None and key:
        width = features.header(key).shape[-1] if features.header(key).shape else 0
    elif features is not None and "feat_data" in features:
        width = features.count("feat_dim") or 0
    else:
        in_file = os.environ.get("GNNBENCH_FEATURES") != "memory"
        width = (options.feature_dim or DEFAULT_WIDTH) * in_file
    weighted = edges.weights is not None
    check_room(out.final.parent, num_nodes, edges.count, width, path, weighted)


def _merged(out: GraphWriter, edges: EdgeArrays) -> list[str]:
    """How many listed edges a graph that was made symmetric has no edges of their own for."""
    indptr, indices = out.read("indptr"), out.read("indices")
    loops = sum(int((src == dst).sum()) for src, dst in csc_edges(indptr, indices)())
    merged = edges.count - (len(indices) - loops) // 2 - loops
    return [f"edges that repeat another or its reverse: {merged:,}, merged"] * (merged > 0)


def _num_classes(arrays: NamedArrays) -> int:
    """The stated number of classes; 0 where there is none."""
    classes = arrays.count("num_classes") or 0
    if classes > MAX_CLASSES:
        raise DataError(
            f"{arrays.label('num_classes')} is {classes}, {MAX_CLASSES} at most are possible; "
            "correct it"
        )
    return classes
