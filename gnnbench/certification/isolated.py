"""Draws a certificate in a process of its own, which is replaced once a property fails.

A sampler that raises an error may leave its package in a broken state; some end the process.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection

from gnnbench.certification.certify import PARTS, Progress, certificate_of
from gnnbench.certification.plan import Plan
from gnnbench.certification.record import ABSENT, ALWAYS, FAILS, Certificate, Entry
from gnnbench.certification.subjects import subject_of
from gnnbench.core.errors import GnnbenchError


def certify_isolated(
    name: str,
    device: str,
    options: Mapping[str, object],
    plan: Plan,
    progress: Progress = lambda name: None,
) -> Certificate:
    """Test every property of the subject of a name; arguments as of ``certify``, ``subject_of``.

    A process that ends before it has finished a part is a failing entry.
    """
    subject = subject_of(name, device, options)
    context = multiprocessing.get_context("spawn")  # a forked process cannot use CUDA
    entries: list[Entry] = []
    part = 0
    while part < len(PARTS):
        line, other = context.Pipe(duplex=False)
        process = context.Process(
            target=_draw, args=(other, name, device, dict(options), plan, part)
        )
        process.start()
        other.close()
        drawn: list[Entry] = []  # of the current part
        for message in _received(line):
            if isinstance(message, GnnbenchError):
                raise message
            if isinstance(message, Entry):
                drawn.append(message)
                progress(message.name)
            else:
                entries, drawn, part = entries + drawn, [], part + 1
        process.join()
        if process.exitcode:
            entries += [*drawn, *_lost(PARTS[part].names[len(drawn) :], process.exitcode)]
            part += 1
    return certificate_of(subject, plan, entries)


def _draw(
    line: Connection[object, object],
    name: str,
    device: str,
    options: dict[str, object],
    plan: Plan,
    first: int,
) -> None:
    """Send the entries of each part, and None after it, until one fails."""
    try:
        subject = subject_of(name, device, options)
        for part in PARTS[first:]:
            fails = False
            for entry in part.draw(subject, plan):
                line.send(entry)
                fails = fails or entry.verdict == FAILS
            line.send(None)
            if fails:
                return
    except GnnbenchError as error:
        line.send(error)


def _received(line: Connection[object, object]) -> Iterator[object]:
    while True:
        try:
            yield line.recv()
        except EOFError:
            return


def _lost(names: Sequence[str], exit_code: int) -> list[Entry]:
    """Entries of the properties that a process left open when it ended."""
    end = f"exit code {exit_code}" if exit_code > 0 else signal.Signals(-exit_code).name
    return [
        Entry(name, ABSENT if index else FAILS, ALWAYS, f"the sampler ended its process ({end})")
        for index, name in enumerate(names)
    ]
