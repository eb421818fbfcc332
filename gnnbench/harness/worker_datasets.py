"""Commands of a worker about datasets: prepare them, copy arrays to memory, open graphs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gnnbench.core.errors import DataError, GnnbenchError, HostMemoryError
from gnnbench.harness.startup import age_s, memory_peaks

if TYPE_CHECKING:
    from gnnbench.datasets.graph import Graph
    from gnnbench.datasets.store.seal import Stamp
    from gnnbench.harness.protocol import (
        ArrayFacts,
        CopyToMemoryAnswer,
        GraphFacts,
        GraphLocation,
        PreparationFacts,
        PrepareAnswer,
    )


def prepare(dataset: str) -> PrepareAnswer:
    """Prepare a dataset on disk and check every byte, so that workers only map it."""
    from gnnbench.datasets.prepare import prepare_verified
    from gnnbench.datasets.store.layout import is_generated, read_meta

    try:
        folder, verified = prepare_verified(dataset)
    except HostMemoryError:
        raise
    except GnnbenchError as error:
        return {"error": str(error), "exit_code": error.exit_code}
    arrays = read_meta(folder)["arrays"]
    generated = [name for name, entry in arrays.items() if is_generated(entry)]
    facts: PreparationFacts = {"seconds": age_s()}
    for peak, size in memory_peaks().items():
        facts[peak] = size  # type: ignore[literal-required]
    return {
        "graph": {"folder": str(folder), "verified": verified, "made": generated},
        "facts": facts,
    }


def copy_to_memory(folder: Path, arrays: Sequence[str], verified: Stamp) -> CopyToMemoryAnswer:
    """Copy arrays of a verified graph to memory that lives as long as this process.

    Arrays without a file are computed. Raises ``DataError`` if a file has changed since then.
    """
    from gnnbench.datasets.shared_memory import address_of, array_sharer, memory_sizes
    from gnnbench.datasets.store.seal import stamp

    addresses: dict[str, str] = {}
    facts: dict[str, ArrayFacts] = {}
    for array in arrays:
        fill = array_sharer(folder, array)
        begin = time.perf_counter()
        descriptor = fill()
        seconds = time.perf_counter() - begin
        addresses[array] = address_of(descriptor)
        sizes = memory_sizes(descriptor)
        facts[array] = {
            "bytes": sizes["bytes"], "huge_bytes": sizes["huge_bytes"], "seconds": seconds,
        }  # fmt: skip
    if stamp(folder) != verified:
        raise DataError(f"{folder} changed while its graph was in use; run again")
    return {"shared": addresses, "facts": facts}


def open_graph(name: str, location: GraphLocation | None = None) -> Graph:
    """Map the graph that the run has prepared at ``location``, else the dataset of this name."""
    if location is not None:
        from gnnbench.datasets.store.reader import open_graph

        return open_graph(location["folder"], location["verified"], location.get("shared"))
    from gnnbench.datasets.prepare import load_dataset

    return load_dataset(name)


def graph_facts(graph: Graph) -> GraphFacts:
    """Return the sizes that rows of ``cells.csv`` have."""
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "train_nodes": int(graph.train_idx.numel()),
        "feature_dim": graph.feature_dim,
        "features": str(graph.meta.get("features", "")),
    }
