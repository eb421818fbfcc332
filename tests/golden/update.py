"""Rewrite the golden files from the code as it is.

    python tests/golden/update.py [ids] [interface] [verdicts] [runs]

For intended changes alone: a change that only moves or renames code must leave every golden file as
it is. Without words all are rewritten. ``runs`` recomputes the tables of the pinned journals.
"""

from __future__ import annotations

import lzma
import sys
import tempfile
from pathlib import Path

import golden_ids
import golden_interface
import golden_runs
import golden_verdicts
from golden_files import write_json, write_lines


def ids() -> None:
    """``ids.json.xz`` and ``ids.txt``."""
    present = golden_ids.current()
    write_json(golden_ids.ARCHIVE, {"texts": present.texts, "cells": present.cells})
    write_lines(golden_ids.DIGESTS, present.digests())


def interface() -> None:
    """The text files of the public interface."""
    for name, lines in golden_interface.current().items():
        write_lines(name, lines)


def verdicts() -> None:
    """``verdicts.json.xz`` and ``verdicts.txt``."""
    present = golden_verdicts.current()
    write_json(golden_verdicts.ARCHIVE, present)
    write_lines(golden_verdicts.LINES, golden_verdicts.lines(present))


def runs() -> None:
    """The tables of every pinned run; its journals stay. Empty ``renames.toml`` afterwards."""
    for run in golden_runs.names():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            golden_runs.unpack(run, folder)
            golden_runs.compute(folder)
            for table in golden_runs.TABLES:
                target = golden_runs.RUNS / run / f"{table}.xz"
                target.unlink(missing_ok=True)
                if (folder / table).exists():
                    content = (folder / table).read_bytes()
                    target.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


PARTS = {"ids": ids, "interface": interface, "verdicts": verdicts, "runs": runs}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        if part not in PARTS:
            sys.exit(f"'{part}' is no part; give some of {', '.join(PARTS)}, or nothing")
        PARTS[part]()
