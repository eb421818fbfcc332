"""``python -m gnnbench.distributed.partition``: make and store partitions; print their quality."""

from __future__ import annotations

from typing import Annotated

import typer

from gnnbench.distributed.partition.command import comma_list, numbers, print_table, run


def make(
    dataset: Annotated[str, typer.Argument(help="A name of 'gnnbench data list'.")],
    parts: Annotated[str, typer.Option(help="Numbers of parts, by commas.")] = "2,4",
    methods: Annotated[
        str, typer.Option(help="metis, metis-balanced, random, contiguous, by commas.")
    ] = "metis,random,contiguous",
    seed: Annotated[int, typer.Option(help="Of the partition.")] = 0,
) -> None:
    """Partition a graph of the store, save the partitions next to it, print the edges they cut.

    Also prints the largest part over the mean part: nodes, edges into them and training nodes.
    """
    from gnnbench.datasets.prepare import load_dataset
    from gnnbench.distributed.partition.quality import Quality, imbalance
    from gnnbench.distributed.partition.stored import load_or_make

    graph = load_dataset(dataset)
    rows = []
    for count in numbers("parts", parts):
        for method in comma_list(methods):
            quality = Quality.of(graph, load_or_make(graph, count, method, seed))
            rows.append(
                {
                    "parts": str(count),
                    "method": method,
                    "edges cut": f"{quality.cut:,}",
                    "of all": f"{quality.cut_share:.1%}",
                    "nodes": f"{imbalance(quality.nodes):.3f}",
                    "edges": f"{imbalance(quality.edges):.3f}",
                    "training": f"{imbalance(quality.training):.3f}",
                }
            )
    print_table(f"{graph.name}: edges between parts; largest part over the mean", rows)


if __name__ == "__main__":
    run(make)
