"""Pack the raw rows and large tables of runs, so that they are small enough to be committed.

``python -m gnnbench.schema.pack FOLDER...`` moves journals and tables to ``raw.tar.xz`` in each
folder; ``cells.csv``, ``ratios.csv`` and ``metrics.csv`` (up to 100 kB) stay. ``samples.csv`` is
left out where the journals have all that it has. ``tar xf raw.tar.xz`` restores the files.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from pathlib import Path

from gnnbench.core.files import atomic_path
from gnnbench.schema import METRICS, MetricRow, SampleRow, raw, reader
from gnnbench.schema.writer import write_csv

# In the order of the archive.
PACKED = (
    raw.SAMPLE_TABLE, *raw.JOURNALS, "curves.csv", "kernels.csv", "stages.csv", "convergence.csv",
    "metrics.csv",
)  # fmt: skip
DESCRIPTION = "description"  # the column of ``metrics.csv`` that is left out
LARGEST_METRICS = 100_000  # bytes of a ``metrics.csv`` that stays


def pack(folder: Path) -> None:
    """Move files of a run to its archive; equal files give equal bytes."""
    unpack(folder)
    _leave_out_descriptions(folder / "metrics.csv")
    names = [name for name in PACKED if (folder / name).is_file()]
    if "metrics.csv" in names and (folder / "metrics.csv").stat().st_size <= LARGEST_METRICS:
        names.remove("metrics.csv")
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


def _leave_out_descriptions(table: Path) -> None:
    """Write ``metrics.csv`` without its column of descriptions, which are in SCHEMA.md."""
    if table.is_file():
        columns = tuple(c for c in METRICS if c.name != DESCRIPTION)
        rows = reader.read_csv(table, MetricRow)
        write_csv(table, columns, [{k: v for k, v in r.items() if k != DESCRIPTION} for r in rows])


def _is_derived(table: Path) -> bool:
    return reader.read_csv(table, SampleRow) == raw.samples_of_journals(table.parent)


def unpack(folder: Path) -> None:
    """Replace the archive of a run by its files, so that the run can continue.

    Plain files that exist are kept. Raises ``UsageError`` for a damaged archive.
    """
    archive = folder / raw.ARCHIVE
    if not archive.is_file():
        return
    for name in PACKED:
        if not (folder / name).exists() and raw.exists(folder / name):
            with raw.opened(folder / name) as file, atomic_path(folder / name) as temporary:
                temporary.write_bytes(file.read())
    archive.unlink()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        pack(Path(argument))
