"""Raw rows of a run: plain files, or files of one compressed archive, ``raw.tar.xz``.

A run writes plain files; committed runs are packed (``gnnbench.schema.pack``). Every reader opens
files of a run here, so that both forms read alike.
"""

from __future__ import annotations

import functools
import io
import json
import lzma
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from gnnbench.core.errors import UsageError
from gnnbench.schema import SampleRow
from gnnbench.schema.samples import EpochSample

ARCHIVE = "raw.tar.xz"
SAMPLE_JOURNAL, EVENT_JOURNAL = "samples.jsonl", "events.jsonl"
SAMPLE_TABLE = "samples.csv"
JOURNALS = (SAMPLE_JOURNAL, EVENT_JOURNAL)


def exists(path: Path) -> bool:
    """Whether a run has this file, plain or packed. Raises ``UsageError``."""
    return path.exists() or _packed(path) is not None


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file of a run; a plain file has precedence over a packed one.

    Raises ``FileNotFoundError`` where there is neither, ``UsageError`` for a damaged archive.
    """
    content = None if path.exists() else _packed(path)
    with path.open("rb") if content is None else io.BytesIO(content) as file:
        yield file


def records(path: Path) -> Iterator[Any]:
    """Records of a journal, in order; none without a file. A torn line of a killed run is skipped.

    Raises ``UsageError`` for a damaged archive.
    """
    if not exists(path):
        return
    with opened(path) as file:
        for line in file:
            with suppress(ValueError):
                yield json.loads(line)


def samples_of_journals(folder: Path) -> list[SampleRow]:
    """Rows of ``samples.csv``, made from the two journals of a run; none without them.

    A sample is void unless its trial finished, was not void, and was not retried later.
    """
    counted: set[tuple[str, int]] = set()
    for event in records(folder / EVENT_JOURNAL):
        if event["event"] == "life" and not event["void"]:
            counted.add((event["pair"], event["life"]))
        elif event["event"] == "retry":
            counted = {key for key in counted if key[0] not in event["pairs"]}
    lines = records(folder / SAMPLE_JOURNAL)
    samples: list[SampleRow] = [EpochSample.parse(line) for line in lines]
    for sample in samples:
        sample.void = (sample.pair, sample.life) not in counted
    return samples


def _packed(path: Path) -> bytes | None:
    """A file of the archive in the same folder, or None."""
    archive = path.with_name(ARCHIVE)
    if not archive.is_file():
        return None
    status = archive.stat()
    return _contents(archive, status.st_mtime_ns, status.st_size).get(path.name)


@functools.lru_cache(1)
def _contents(archive: Path, changed_ns: int, size: int) -> dict[str, bytes]:
    """Files of an archive by name. The last archive is cached: a run's files are read together."""
    del changed_ns, size  # keys of the cache: a changed archive is read again
    try:
        whole = io.BytesIO(
            lzma.decompress(archive.read_bytes())
        )  # at once, so that checksums are checked
        with tarfile.open(fileobj=whole, mode="r:") as tar:
            files = [(member.name, tar.extractfile(member)) for member in tar]
            return {name: file.read() for name, file in files if file}
    except (tarfile.TarError, lzma.LZMAError, OSError) as error:
        raise UsageError(
            f"'{archive}' is damaged ({error}); restore it, or give the folder of another run"
        ) from None
