"""The command line: parses, asks the modules that know, prints what they answer."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from typing import NoReturn

import typer

from gnnbench.cli import calibrating, claiming, comparing, data, inventory, running
from gnnbench.cli.common import Stop
from gnnbench.errors import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    GnnbenchError,
)

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    # A flag not given is converted by pydantic unless it has a value; so the help of a command,
    # which comes after that of its groups, does without.
    context_settings={"default_map": {"help": False, "data": {"help": False}}},
    help="Compare sampling-based GNN training systems on this machine, on identical work.",
)
app.command()(running.run)
app.command()(running.plot)
app.command()(calibrating.calibrate)
app.command()(comparing.compare)
app.command()(claiming.verdicts)
app.command()(claiming.reproduce)
app.command("list")(inventory.list_)
app.command()(inventory.doctor)
app.add_typer(data.app, name="data")


def _fail(message: str, code: int) -> NoReturn:
    print(f"gnnbench: {message}", file=sys.stderr)
    sys.exit(code)


def _unexpected(error: BaseException) -> NoReturn:
    with tempfile.NamedTemporaryFile("w", prefix="gnnbench-", suffix=".log", delete=False) as file:
        traceback.print_exc(file=file)
    first = next(iter(str(error).splitlines()), "")
    _fail(
        f"internal error ({type(error).__name__}: {first}); the traceback is in {file.name}",
        EXIT_INTERNAL,
    )


def _terminate(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    """Entry point: every end is an exit code and at most one sentence."""
    signal.signal(signal.SIGTERM, _terminate)
    debug = os.environ.get("GNNBENCH_DEBUG") == "1"
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except Stop as stop:
        _fail(str(stop), stop.code)
    except GnnbenchError as error:
        if debug:
            traceback.print_exc()
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # A reader that has seen enough (`| head`) is no failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(EXIT_OK)
    except Exception as error:
        if hasattr(error, "format_message"):  # what the parser raises
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.format_message(), file=sys.stderr)
                sys.exit(EXIT_USAGE)
            _fail(_sentence(error.format_message()), getattr(error, "exit_code", 2))
        if debug:
            traceback.print_exc()
        _unexpected(error)


def _sentence(text: str) -> str:
    text, _, hint = text.partition(". Did you mean ")
    hint = f"; did you mean {hint}" if hint else ""
    return text[:1].lower() + text[1:].rstrip(".") + hint + "; see 'gnnbench --help'"
