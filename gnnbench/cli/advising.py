"""``gnnbench advise``."""

from __future__ import annotations

from typing import Annotated

import typer

from gnnbench.cli.common import Json, comma
from gnnbench.core.console import print_json
from gnnbench.core.errors import UsageError


def advise(
    graph: Annotated[str, typer.Argument(help="Name of a dataset, or a path as for 'run'.")],
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    model: Annotated[str, typer.Option(help="Model to train.")] = "gcn",
    hidden: Annotated[int, typer.Option(min=1, help="Width of its hidden layers.")] = 64,
    batch_size: Annotated[int, typer.Option(min=1, help="Seeds of a batch.")] = 1024,
    fanouts: Annotated[str, typer.Option(help="Neighbours per hop, comma-separated.")] = "15,10,5",
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0: all cores.")] = 0,
    cache_gib: Annotated[
        float | None,
        typer.Option(min=0, help="GPU memory for cached features, in GiB."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Recommend a sampler, feature store, cache, order and schedule for a graph.

    Samples batches of the graph, measures this machine's rates, and predicts the epoch time of up
    to 24 compositions as work / rate, phase by phase. Prints every number used. The machine should
    be idle.
    """
    from gnnbench.contrib.advisor.advice import Setting
    from gnnbench.contrib.advisor.advice import advise as advised
    from gnnbench.contrib.advisor.text import lines

    try:
        hops = tuple(int(part) for part in comma(fanouts))
    except ValueError:
        raise UsageError("fanouts are numbers from 1, or -1, by commas, as 15,10,5") from None
    advice = advised(
        Setting(graph, model, hidden, batch_size, hops, device, threads, seed, cache_gib)
    )
    if json:
        print_json(advice.plain())
        return
    for line in lines(advice):
        print(line)
