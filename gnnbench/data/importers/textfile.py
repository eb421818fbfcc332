"""Read text files of edges and of nodes: encoding, line ends, comments.

A ``#`` or ``%`` begins a comment anywhere in a line. A byte-order mark of UTF-8 is skipped, files
may be gzipped, and lines may end as on Unix, Windows or old Macs.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from gnnbench.errors import DataError

LINE_BYTES = 1 << 20  # of a line without its comment
_BLOCK_BYTES = 1 << 24
_BOM = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16 or UTF-32", b"\xfe\xff": "UTF-16"}
COMMENT_LINE = "#"  # what is left of a line of a comment alone
_COMMENT = re.compile(rb"(?m)(^)?[ \t]*[#%][^\n]*")
_ONLY_BLANKS = re.compile(rb"(?m)^[ \t]+$")


def open_text(path: Path) -> IO[bytes]:
    """The bytes of a text, gzipped or not, after a byte-order mark.

    Raises ``DataError`` for another encoding than UTF-8 (ASCII, Latin-1 in comments).
    """
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    text: Any = gzip.open(path) if gzipped else path.open("rb")  # noqa: SIM115
    start = text.read(len(_BOM))
    if (encoding := _OTHER_ENCODINGS.get(start[:2])) is not None:
        text.close()
        raise DataError(f"{path} is {encoding}; save it as UTF-8")
    if start != _BOM:
        text.seek(0)
    opened: IO[bytes] = text
    return opened


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines of a text in blocks of some megabytes, without carriage returns and comments.

    A line of a comment alone is ``COMMENT_LINE``, so lines keep their numbers. Raises
    ``ValueError`` for a line of more than ``LINE_BYTES``.
    """
    rest, pending = b"", False
    while piece := file.read(_BLOCK_BYTES):
        if pending:  # the last piece ended in a carriage return, which may be half a line end
            piece = b"\n" + piece.removeprefix(b"\n")
        pending = piece.endswith(b"\r")
        piece = piece[:-1] if pending else piece
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        rest = _cleaned(rest + piece)
        if end := rest.rfind(b"\n") + 1:
            yield rest[:end]
            rest = rest[end:]
        if len(rest) > LINE_BYTES:
            raise ValueError(f"a line is longer than {LINE_BYTES >> 20} MiB")
    if rest:
        yield rest + b"\n"


def _cleaned(text: bytes) -> bytes:
    """Without comments; of one at the end its sign is left, since it may go on."""
    if b"#" not in text and b"%" not in text:
        return text
    end = text.rfind(b"\n") + 1
    last = _COMMENT.search(text, end)
    open_line = text[end:] if last is None else text[end : last.start()] + b"#"
    return _COMMENT.sub(lambda m: b"" if m[1] is None else b"#", text[:end]) + open_line


def lines(file: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Number from 1 and text of every line, without comments and surrounding blanks."""
    number = 0
    for block in blocks(file):
        for line in block[:-1].split(b"\n"):
            number += 1
            yield number, line.decode("utf-8", "replace").strip()


def rows(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that hold a node each; lines of a comment alone hold none.

    Raises ``DataError`` for an empty line that another row follows: a reader that skips it would
    give each later node its neighbour's row.
    """
    blank = 0
    with open_text(path) as file:
        for number, text in lines(file):
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
