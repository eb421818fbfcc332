"""``gnnbench advise``."""

from __future__ import annotations

from typing import Annotated

import typer

from gnnbench.cli.common import Json, comma
from gnnbench.core.console import print_json
from gnnbench.core.errors import UsageError


def advise(
    graph: Annotated[str, typer.Argument(help="A dataset's name, or a path as 'run' takes it.")],
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    model: Annotated[str, typer.Option(help="The model that is to be trained.")] = "gcn",
    hidden: Annotated[int, typer.Option(min=1, help="Width of its hidden layers.")] = 64,
    batch_size: Annotated[int, typer.Option(min=1, help="Seeds of a batch.")] = 1024,
    fanouts: Annotated[str, typer.Option(help="From the seeds outwards, by commas.")] = "15,10,5",
    threads: Annotated[int, typer.Option(min=0, help="Of a CPU; 0: all cores.")] = 0,
    cache_gib: Annotated[
        float | None,
        typer.Option(min=0, help="What a GPU's memory may hold of the features, in GiB."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    json: Json = False,
) -> None:
    """Say which sampler, store, cache, order and schedule a graph asks for, and why.

    Draws batches of the graph and measures this machine's rates, then works out an epoch of at most
    24 compositions: work over rates, phase by phase. Prints every number that it used. Nothing else
    should run meanwhile.
    """
    from gnnbench.contrib.advisor.advice import Setting
    from gnnbench.contrib.advisor.advice import advise as advised
    from gnnbench.contrib.advisor.text import lines

    try:
        hops = tuple(int(part) for part in comma(fanouts))
    except ValueError:
        raise UsageError("fanouts are numbers from 1, or -1, by commas, as 15,10,5") from None
    found = advised(
        Setting(graph, model, hidden, batch_size, hops, device, threads, seed, cache_gib)
    )
    if json:
        print_json(found.plain())
        return
    for line in lines(found):
        print(line)
