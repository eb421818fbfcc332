"""The command line: parses options, calls one function, prints its result."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from typing import Annotated, NoReturn

import typer

from gnnbench.cli import (
    advising,
    calibrating,
    certifying,
    claiming,
    comparing,
    data,
    inventory,
    new,
    running,
    showing,
    tracking,
)
from gnnbench.cli.common import Stop
from gnnbench.cli.experiment_help import ExperimentCommand
from gnnbench.cli.formats import FormatCommand
from gnnbench.cli.usage_errors import ParserError, sentence
from gnnbench.core.errors import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, GnnbenchError
from gnnbench.version import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    # pydantic, slow to import, converts a flag that is not given unless it has a value here. The
    # help of a command comes after the flags of its groups, and so does without it.
    context_settings={
        "default_map": {
            "help": False, "install_completion": False, "show_completion": False,
            "data": {"help": False}, "new": {"help": False},
        },
        "help_option_names": ["-h", "--help"],
    },
)  # fmt: skip


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"gnnbench {__version__}")
        raise typer.Exit


@app.callback()
def gnnbench(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Benchmark sampling-based GNN training systems against each other on identical work."""


app.command(cls=ExperimentCommand)(running.run)
app.command(cls=FormatCommand)(showing.show)
app.command(cls=FormatCommand)(showing.runs)
app.command()(showing.plot)
app.command()(advising.advise)
app.command()(calibrating.calibrate)
app.command()(certifying.certify)
app.command(cls=FormatCommand)(comparing.compare)
app.command(cls=FormatCommand)(tracking.track)
app.command(cls=FormatCommand)(tracking.history)
app.command(cls=FormatCommand)(claiming.verdicts)
app.command()(claiming.reproduce)
app.command("list", cls=FormatCommand)(inventory.list_)
app.command(cls=FormatCommand)(inventory.doctor)
app.add_typer(data.app, name="data")
app.add_typer(new.app, name="new")


def _fail(message: str, code: int) -> NoReturn:
    from gnnbench.core.terminal import discard
    from gnnbench.core.text import printable

    try:
        sys.stdout.flush()
    except (OSError, GnnbenchError):  # the message below reports it, or an earlier one did
        discard(1)
    try:
        print(f"gnnbench: {printable(message)}", file=sys.stderr)
        sys.stderr.flush()
    except (OSError, GnnbenchError):  # the message has no reader; the exit code has its meaning
        discard(2)
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
    """Run the command line. It ends with an exit code and at most one message."""
    from gnnbench.core.terminal import guard_streams

    guard_streams()
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup sets it
        signal.signal(signal.SIGHUP, _terminate)
    debug = os.environ.get("GNNBENCH_DEBUG") == "1"
    try:
        code = app(standalone_mode=False, prog_name="gnnbench") or EXIT_OK
        sys.stdout.flush()
        if code == EXIT_INTERRUPTED:  # the parser's code for Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except Stop as stop:
        _fail(str(stop), stop.code)
    except GnnbenchError as error:
        if debug:
            traceback.print_exc()
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        _reader_gone()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # the parser exits on a closed pipe
            _reader_gone()
        raise
    except Exception as error:
        if isinstance(error, ParserError):
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.format_message(), file=sys.stderr)
                sys.exit(EXIT_USAGE)
            _fail(sentence(error), getattr(error, "exit_code", EXIT_USAGE))
        if debug:
            traceback.print_exc()
        _unexpected(error)


def _reader_gone() -> NoReturn:
    """Exit without an error when the reader closed the pipe (``| head``)."""
    from gnnbench.core.terminal import discard

    discard(1)
    discard(2)
    sys.exit(EXIT_OK)
