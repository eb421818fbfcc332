"""Pack the raw rows of runs, so that they are small enough to be committed.

``python -m gnnbench.results.pack FOLDER...`` replaces journals by ``raw.tar.xz`` in each folder.
``samples.csv`` is left out where the journals have all that it has. ``tar xf raw.tar.xz`` restores
the journals.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from pathlib import Path

from gnnbench.files import atomic_path
from gnnbench.results import raw, reader
from gnnbench.results.schema import SAMPLES


def pack(folder: Path) -> None:
    """Replace the raw files of a run by an archive; equal files give equal bytes."""
    unpack(folder)
    names = [name for name in raw.RAW if (folder / name).is_file()]
    if not names:
        return
    table = folder / raw.SAMPLE_TABLE
    kept = [name for name in names if not (name == table.name and _is_derived(table))]
    with (
        atomic_path(folder / raw.ARCHIVE) as temporary,
        lzma.open(temporary, "wb", preset=9 | lzma.PRESET_EXTREME) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in kept:
            content = (folder / name).read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    for name in names:
        (folder / name).unlink()


def _is_derived(table: Path) -> bool:
    return reader.read_csv(table, SAMPLES) == raw.samples_of_journals(table.parent)


def unpack(folder: Path) -> None:
    """Replace the archive of a run by its raw files, so that the run can continue.

    Plain files that exist are kept. Raises ``UsageError`` for a damaged archive.
    """
    archive = folder / raw.ARCHIVE
    if not archive.is_file():
        return
    for name in raw.RAW:
        if not (folder / name).exists() and raw.exists(folder / name):
            with raw.opened(folder / name) as file, atomic_path(folder / name) as temporary:
                temporary.write_bytes(file.read())
    archive.unlink()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        pack(Path(argument))
