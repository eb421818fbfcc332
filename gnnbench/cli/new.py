"""``gnnbench new``: system, sampler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gnnbench.cli.common import Json
from gnnbench.core.console import print_json

app = typer.Typer(no_args_is_help=True, help="Create a package with your own system or sampler.")
Name = Annotated[str, typer.Argument(help="Name of package, module and system or sampler.")]
Out = Annotated[Path | None, typer.Option(help="New folder of the package; default: NAME.")]


@app.command("system")
def new_system(name: Name, out: Out = None, json: Json = False) -> None:
    """Create a package with a system: a recipe and a feature store for you to replace."""
    _write("system", name, out, json, "breakdown")


@app.command("sampler")
def new_sampler(name: Name, out: Out = None, json: Json = False) -> None:
    """Create a package with a sampler in plain PyTorch for you to replace.

    The sampler has its own random numbers, so gnnbench tests its distribution before and after
    timing.
    """
    _write("sampler", name, out, json, "sampling")


def _write(kind: str, name: str, out: Path | None, json: bool, experiment: str) -> None:
    from gnnbench.cli.package_template import write

    files = write(kind, name, out)
    folder = files[0].parent
    commands = [
        f"pip install -e {folder}",
        f"pytest {folder}",
        f"gnnbench run {experiment} --profile smoke --systems baseline,{name}",
    ]
    if json:
        print_json({"files": [str(file) for file in files], "next": commands})
        return
    for file in files:
        print(file)
    print("next:")
    for command in commands:
        print(f"  {command}")
