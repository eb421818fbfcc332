"""Standard output and error that take any text: nothing in it controls the terminal, and what the
encoding lacks is escaped."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, cast

from gnnbench.core.errors import OutputError
from gnnbench.core.text import printable_lines

if TYPE_CHECKING:
    from rich.console import Console


class Checked:
    """A text stream that raises ``OutputError`` where it cannot be written.

    ``BrokenPipeError``, of a reader that needs no more, is not changed.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text; returns the number of its characters."""
        with self._checked():
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._checked():
            self.stream.flush()

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            err = getattr(self.stream, "name", "") == "<stderr>"
            name = "standard error" if err else "standard output"
            raise OutputError(
                f"{name} cannot be written ({error.strerror}); free space there, or write elsewhere"
            ) from None

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


class Guarded(Checked):
    """The same, but ``write`` escapes what is not printable, ends of lines and tabs apart.

    Styles of :mod:`rich` go to :func:`unguarded`, which does not escape them.
    """

    def write(self, text: str) -> int:
        """Write a text; returns the number of its characters."""
        super().write(printable_lines(text))
        return len(text)


def guard_streams() -> None:
    """Make ``sys.stdout`` and ``sys.stderr`` escape what is not printable or not in their encoding.

    A stream that was closed before the program began is replaced by one that drops its text.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, Guarded):
            continue
        if stream is None:
            stream = io.StringIO()
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, Guarded(stream))


def unguarded(stream: TextIO) -> TextIO:
    """The stream below a guarded one, which escapes nothing."""
    return cast(TextIO, Checked(stream.stream)) if isinstance(stream, Guarded) else stream


def discard(descriptor: int) -> None:
    """Discard what is written to a stream whose reader is gone, so that the program can go on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def console(stderr: bool = False, width: int | None = None) -> Console:
    """A console of :mod:`rich` on standard output or error.

    Its own styles reach the terminal, control characters in texts do not. Raises
    ``BrokenPipeError`` where the reader has closed the stream.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Escaping(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else printable_lines(text), style, control)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # which the command line handles

    stream = cast(TextIO, sys.stderr if stderr else sys.stdout)
    return Escaping(file=unguarded(stream), markup=False, highlight=False, width=width)
