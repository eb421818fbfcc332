"""``python -m gnnbench.distributed.partition``: make and store partitions, and tell how good they
are."""

from __future__ import annotations

from typing import Annotated

import typer

from gnnbench.distributed.partition.command import comma_list, numbers, print_table, run


def make(
    dataset: Annotated[str, typer.Argument(help="A name that 'gnnbench data list' tells.")],
    parts: Annotated[str, typer.Option(help="Numbers of parts, by commas.")] = "2,4",
    methods: Annotated[
        str, typer.Option(help="metis, random, contiguous, by commas.")
    ] = "metis,random,contiguous",
    seed: Annotated[int, typer.Option(help="Of the partition.")] = 0,
) -> None:
    """Split a graph of the store, keep the partitions beside it, and print what each cuts.

    Largest of a part over the mean part, of nodes, of edges into them and of training nodes.
    """
    from gnnbench.datasets.prepare import load_dataset
    from gnnbench.distributed.partition.quality import Quality, imbalance
    from gnnbench.distributed.partition.stored import load_or_make

    graph = load_dataset(dataset)
    rows = []
    for count in numbers("parts", parts):
        for method in comma_list(methods):
            found = Quality.of(graph, load_or_make(graph, count, method, seed))
            rows.append(
                {
                    "parts": str(count),
                    "method": method,
                    "edges cut": f"{found.cut:,}",
                    "of all": f"{found.cut_share:.1%}",
                    "nodes": f"{imbalance(found.nodes):.3f}",
                    "edges": f"{imbalance(found.edges):.3f}",
                    "training": f"{imbalance(found.training):.3f}",
                }
            )
    print_table(f"{graph.name}: edges between parts; largest part over the mean", rows)


if __name__ == "__main__":
    run(make)
