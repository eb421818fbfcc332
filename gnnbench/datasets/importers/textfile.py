"""Read text files of edges and of nodes: encoding, line ends, comments.

A ``#`` or ``%`` begins a comment anywhere in a line. A byte-order mark of UTF-8 is skipped, files
may be gzipped, and lines may end as on Unix, Windows or old Macs.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from gnnbench.core.errors import DataError

LINE_BYTES = 1 << 20  # of a line without its comment
_BLOCK_BYTES = 1 << 24
_BOM = b"\xef\xbb\xbf"
_ARCHIVES = {
    b"BZh": ("compressed by bzip2", "decompress it, or compress it by gzip"),
    b"\xfd7zXZ\x00": ("compressed by xz", "decompress it, or compress it by gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "decompress it, or compress it by gzip"),
    b"PK\x03\x04": (
        "a zip archive, not text", "unpack it (or name it .npz or .pt if NumPy or torch wrote it)",
    ),
}  # fmt: skip
_OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16 or UTF-32", b"\xfe\xff": "UTF-16"}
COMMENT_LINE = "#"  # what is left of a line of a comment alone
_COMMENT = re.compile(rb"(?m)(^)?[ \t]*[#%][^\n]*")
_ONLY_BLANKS = re.compile(rb"(?m)^[ \t]+$")
_ID = re.compile(r"[+-]?[0-9]{1,4000}")  # int() reads no more digits
_BLANKS = re.compile(r"[ \t]+")
_EMPTY_LINE = re.compile(rb"(?m)^[ \t]*\n")


@dataclass
class Skipped:
    """Counts of skipped comments and empty lines of a text."""

    comments: int = 0
    empty_lines: int = 0

    def notes(self, path: Path) -> list[str]:
        """A sentence for the import report where something was skipped."""
        counts = {"comments": self.comments, "empty lines": self.empty_lines}
        skipped = [f"{what} ({count:,})" for what, count in counts.items() if count]
        return [f"skipped in {path.name}: {', '.join(skipped)}"] if skipped else []


def open_text(path: Path) -> IO[bytes]:
    """The bytes of a text, gzipped or not, after a byte-order mark.

    Raises ``DataError`` for another encoding than UTF-8 (ASCII, Latin-1 in comments), and for
    another compression than gzip.
    """
    with path.open("rb") as file:
        head = file.read(6)
    gzipped = head[:2] == b"\x1f\x8b"
    for magic, (what, advice) in _ARCHIVES.items():
        if head.startswith(magic):
            raise DataError(f"{path} is {what}; {advice}")
    text = cast(IO[bytes], gzip.open(path) if gzipped else path.open("rb"))  # noqa: SIM115
    start = text.read(len(_BOM))
    if (encoding := _OTHER_ENCODINGS.get(start[:2])) is not None:
        text.close()
        raise DataError(f"{path} is {encoding}; save it as UTF-8")
    if start != _BOM:
        text.seek(0)
    return text


def blocks(file: IO[bytes], skipped: Skipped | None = None) -> Iterator[bytes]:
    """Whole lines of a text in blocks of some megabytes, without carriage returns and comments.

    A line of a comment alone is ``COMMENT_LINE``, so lines keep their numbers. ``skipped`` counts
    comments and empty lines. Raises ``ValueError`` for a line of more than ``LINE_BYTES``.
    """
    skipped = skipped or Skipped()
    rest, pending = b"", False
    while piece := file.read(_BLOCK_BYTES):
        if pending:  # the last piece ended in a carriage return, which may be half a line end
            piece = b"\n" + piece.removeprefix(b"\n")
        pending = piece.endswith(b"\r")
        piece = piece[:-1] if pending else piece
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        rest = _cleaned(rest + piece, skipped)
        if end := rest.rfind(b"\n") + 1:
            skipped.empty_lines += len(_EMPTY_LINE.findall(rest, 0, end))
            yield rest[:end]
            rest = rest[end:]
        if len(rest) > LINE_BYTES:
            raise ValueError(f"a line is longer than {LINE_BYTES >> 20} MiB")
    if rest:
        yield _cleaned(rest + b"\n", skipped)


def _cleaned(text: bytes, skipped: Skipped) -> bytes:
    """Without comments; of one at the end its sign is left, since it may go on."""
    if b"#" not in text and b"%" not in text:
        return text
    end = text.rfind(b"\n") + 1
    last = _COMMENT.search(text, end)
    open_line = text[end:] if last is None else text[end : last.start()] + b"#"
    whole, comments = _COMMENT.subn(lambda m: b"" if m[1] is None else b"#", text[:end])
    skipped.comments += comments
    return whole + open_line


def lines(file: IO[bytes], skipped: Skipped | None = None) -> Iterator[tuple[int, str]]:
    """Number from 1 and text of every line, without comments and surrounding blanks."""
    number = 0
    for block in blocks(file, skipped):
        for line in block[:-1].split(b"\n"):
            number += 1
            yield number, line.decode("utf-8", "replace").strip()


def rows(path: Path, skipped: Skipped | None = None) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that hold a node each; lines of a comment alone hold none.

    Raises ``DataError`` for an empty line that another row follows: a reader that skips it would
    give each later node its neighbour's row.
    """
    blank = 0
    with open_text(path) as file:
        for number, text in lines(file, skipped):
            if not text:
                blank = blank or number
            elif text != COMMENT_LINE:
                if blank:
                    raise DataError(
                        f"line {blank} of {path} is empty, and line {number} is not; a line is a"
                        " node: write its value, or remove the line"
                    )
                yield number, text


def without_blank_lines(block: bytes) -> bytes:
    """A block whose lines of blanks alone are empty."""
    return _ONLY_BLANKS.sub(b"", block)


def columns_of(line: str, separator: str) -> list[str]:
    """The columns of a line as pandas has them: only a double quote is one.

    ``separator`` is a comma, a semicolon or the pattern of blanks.
    """
    line, by = line.strip(), "," if separator == "," else ";"
    if separator == r"\s+":
        line, by = _BLANKS.sub(" ", line), " "
    try:
        parts = next(csv.reader([line], delimiter=by, skipinitialspace=True), [])
    except csv.Error:  # a column of more than 131,072 characters
        parts = line.split(by)
    return [part.strip() for part in parts]


def is_id(text: str) -> bool:
    """Whether a text is an integer in decimal digits."""
    return _ID.fullmatch(text) is not None
