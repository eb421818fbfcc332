"""``python -m gnnbench.contrib.emulated_network``: machines emulated on this one, and what is run
on them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gnnbench.contrib.emulated_network import link, network, start
from gnnbench.contrib.emulated_network.network import NAME, Network
from gnnbench.core.console import print_table
from gnnbench.core.errors import CellsFailedError, GnnbenchError
from gnnbench.core.terminal import guard_streams
from gnnbench.distributed.partition.command import comma_list, numbers

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Several machines, emulated on one by network namespaces with shaped links.",
)

Machines = Annotated[int, typer.Option(help="How many.")]
Rate = Annotated[float, typer.Option(help="Of each link, each way; Gbit/s.")]
Delay = Annotated[float, typer.Option(help="Of each link, each way; ms.")]
Name = Annotated[str, typer.Option(help="Namespaces are NAME-1, NAME-2 ... and NAME-switch.")]


@app.command()
def make(machines: Machines = 2, rate: Rate = 1.0, delay: Delay = 0.0, name: Name = NAME) -> None:
    """Make a network and leave it there; 'remove' removes it."""
    network.make(Network(machines, rate, delay, name))
    print_table(f"{machines} machines", network.status(name))


@app.command()
def remove(name: Name = NAME) -> None:
    """End what runs on a network's machines and remove it, half made or whole."""
    print(f"{network.remove(name)} namespaces removed")


@app.command()
def status(name: Name = NAME) -> None:
    """What is there: addresses, links, processes, and bytes that the links have carried."""
    lines = network.status(name)
    if lines:
        print_table(f"{len(lines)} machines", lines)
    else:
        print(f"there is no network '{name}'")


@app.command()
def copy(
    machines: Machines = 2,
    rate: Rate = 1.0,
    delay: Delay = 0.0,
    seconds: Annotated[float, typer.Option(help="Of each copy, about.")] = 1.0,
    name: Name = NAME,
) -> None:
    """Make a network, copy from the first machine to the second and back, and remove it."""
    with network.made(Network(machines, rate, delay, name)) as there:
        for sender, receiver in ((0, 1), (1, 0)):
            rates = link.measured(there, seconds, sender, receiver)
            print(f"{sender + 1} to {receiver + 1}: {rates:.3f} Gbit/s of {rate:g}")


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
def run(
    command: Annotated[
        list[str],
        typer.Argument(help="{machines}, {rank} (from 0), {first} and {address} are put in."),
    ],
    machines: Machines = 2,
    rate: Rate = 1.0,
    delay: Delay = 0.0,
    limit: Annotated[float, typer.Option(help="Seconds that it may take; 0 any.")] = 0.0,
    name: Name = NAME,
) -> None:
    """Make a network, run a command on each machine, and remove it.

    Where one ends with an error all others are ended. Each has RANK, WORLD_SIZE, MASTER_ADDR,
    MASTER_PORT and GLOO_SOCKET_IFNAME, as torch.distributed asks for them.
    """
    with network.made(Network(machines, rate, delay, name)) as there:
        commands = [start.filled(command, there, rank) for rank in range(machines)]
        start.run(there, commands, [None] * machines, limit=limit or None)


@app.command()
def compare(
    dataset: Annotated[str, typer.Argument(help="A name of 'gnnbench data list'.")] = "ogbn_arxiv",
    machines: Annotated[str, typer.Option(help="Numbers of machines, by commas.")] = "2,4",
    rates: Annotated[str, typer.Option(help="Of links, Gbit/s, by commas.")] = "1,10",
    delay: Delay = 0.0,
    lives: Annotated[int, typer.Option(help="Fresh processes of each program and setting.")] = 5,
    epochs: Annotated[int, typer.Option(help="Of a life, after one of warm-up.")] = 1,
    max_steps: Annotated[int, typer.Option(help="Only the first of an epoch; 0 all.")] = 0,
    warm_steps: Annotated[int, typer.Option(help="Of the warm-up; 0 all.")] = 3,
    method: Annotated[str, typer.Option(help="Of the partition; dgl: DistDGL's for all.")] = "dgl",
    fanouts: Annotated[str, typer.Option(help="From the seeds outwards, by commas.")] = "15,10,5",
    batch_size: Annotated[int, typer.Option(help="Of each rank.")] = 1000,
    hidden: Annotated[int, typer.Option(help="Width of hidden layers.")] = 256,
    seed: Annotated[int, typer.Option(help="Of partitions, draws, order and weights.")] = 0,
    peer: Annotated[bool, typer.Option(help="Also measure DistDGL.")] = True,
    out: Annotated[
        Path, typer.Option(help="A folder that holds no run, or with --resume this one.")
    ] = Path("results/machines"),
    resume: Annotated[
        bool, typer.Option(help="Go on: lives that are missing or failed are run.")
    ] = False,
) -> None:
    """Hybrid and vanilla partitions and DistDGL in turn: epochs, bytes on the links, rounds."""
    from gnnbench.contrib.emulated_network.compare import Comparison, compare, failed_lives
    from gnnbench.contrib.emulated_network.shown import show

    what = Comparison(
        dataset=dataset,
        machines=tuple(numbers("machines", machines)),
        rates=tuple(map(float, comma_list(rates))),
        delay=delay,
        lives=lives,
        epochs=epochs,
        method=method,
        fanouts=tuple(numbers("fanouts", fanouts)),
        batch_size=batch_size,
        hidden=hidden,
        seed=seed,
        max_steps=max_steps,
        warm_steps=warm_steps,
        peer=peer,
    )
    show(compare(what, out, resume=resume))
    if failed := failed_lives(out):
        raise CellsFailedError(
            f"{failed} of the lives failed, and the tables are of the others; rows say why, and"
            " --resume runs them again"
        )


@app.command("show")
def show_again(folder: Annotated[Path, typer.Argument(help="What 'compare' wrote.")]) -> None:
    """A comparison's tables and its figure again."""
    from gnnbench.contrib.emulated_network.shown import show

    show(folder)


def main() -> None:
    """The program; an error of the user's is one line, with its exit code."""
    guard_streams()
    try:
        with start.ending_by_signal():
            app()
    except GnnbenchError as error:
        print(f"gnnbench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
