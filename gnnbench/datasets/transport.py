"""Download one file over HTTP: resumable, and verified by its checksum."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from gnnbench.core.errors import DataError, MissingError, UsageError
from gnnbench.core.files import write_json
from gnnbench.datasets.store.disk import Progress, free_disk_bytes, writing_to
from gnnbench.datasets.store.layout import sha256_file
from gnnbench.version import __version__

RECORD = "downloads.json"
_PIECE_BYTES = 1 << 20
_SPARE_BYTES = 1 << 28  # of the disk, which a file of unknown size leaves free
_TRIES = 5  # in a row that bring nothing
_RETRIED = {408, 429, 500, 502, 503, 504}
_BROKEN = (OSError, http.client.HTTPException)


class _Stopped(Exception):
    """The connection ended before the file did, or could not be had."""


@dataclass(frozen=True)
class Waits:
    """Timeouts of a download.

    ``silence_s``: seconds without a byte until a try ends. ``between_s``: seconds between tries,
    which grow with each. A try that brings fewer than ``slow_bytes`` in ``slow_s`` seconds ends,
    too, and counts as one that brought nothing.
    """

    silence_s: float = 60.0
    between_s: float = 1.0
    slow_bytes: int = 1 << 16
    slow_s: float = 60.0


WAITS = Waits()


@dataclass(frozen=True)
class Fetched:
    """A downloaded file whose checksum is not recorded yet."""

    url: str
    target: Path
    sha256: str
    published: bool

    def record(self) -> None:
        """Note its checksum, once its content was found right: later downloads must equal it."""
        record = self.target.parent / RECORD
        known = _read(record)
        entry = {"sha256": self.sha256, "published": self.published, "file": self.target.name}
        if known.get(self.url) != entry:
            with writing_to(record.parent):
                write_json(record, {**known, self.url: entry})


def download(
    url: str,
    target: Path,
    *,
    sha256: str = "",
    progress: Progress | None = None,
    waits: Waits = WAITS,
) -> Fetched | None:
    """Download ``url`` to the file ``target``; None if it exists already.

    What has come lies in ``target`` with ``.part`` behind it, and an interrupted call goes on from
    there, if the server can and the file has not changed since (``If-Range``); else it begins anew.
    The whole is compared with ``sha256``, or else with what ``downloads.json`` in the same folder
    has recorded of an earlier download. ``Fetched.record`` records it.

    Raises ``MissingError`` where the server has it not, cannot be reached, stops answering or is
    too slow, ``DataError`` for another checksum (nothing is kept then), ``UsageError`` where the
    disk is too small or cannot be written.
    """
    if target.exists():
        return None
    with writing_to(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    fails = 0
    while True:
        before = _size(part)
        try:
            _fetch(url, part, progress, waits)
            break
        except _Stopped as stopped:
            fails = 0 if _size(part) - before >= waits.slow_bytes else fails + 1
            if fails >= _TRIES:
                raise MissingError(
                    f"{url} stopped after {_size(part)} bytes ({stopped}); what has come is kept, "
                    "give the same command to go on"
                ) from None
            time.sleep(waits.between_s * fails)
    digest = _checked(url, part, target.parent / RECORD, sha256, progress)
    with writing_to(target.parent):
        part.replace(target)
        _seen(part).unlink(missing_ok=True)
    return Fetched(url, target, digest, bool(sha256))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _seen(part: Path) -> Path:
    """Where it is noted which state of which file a part is of."""
    return part.with_name(f"{part.name}.json")


def _read(path: Path) -> dict[str, object]:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if not path.is_file():
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else {}
    return {}


def _fetch(url: str, part: Path, progress: Progress | None, waits: Waits) -> None:
    """Append to ``part`` what it lacks. Raises ``_Stopped``, the part being longer or not."""
    headers = {"User-Agent": f"gnnbench/{__version__}", "Accept-Encoding": "identity"}
    have, seen = _size(part), _read(_seen(part))
    if have and seen.get("url") == url and seen.get("state"):
        headers |= {"Range": f"bytes={have}-", "If-Range": str(seen["state"])}
    try:
        reply = _opener().open(
            urllib.request.Request(url, headers=headers), timeout=waits.silence_s
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # there is nothing behind what has come
            if error.headers.get("Content-Range", "") != f"bytes */{have}":
                with writing_to(part.parent):
                    part.unlink(missing_ok=True)
                raise _Stopped("the file is another now") from None
            return
        if error.code in _RETRIED:
            raise _Stopped(f"the server says {error.code}") from None
        reason = " ".join(str(error.reason).split())[:200]  # that of a redirect has several lines
        raise MissingError(
            f"{url} cannot be had (the server says {error.code} {reason}); see whether its "
            "page has another address"
        ) from None
    except _BROKEN as error:
        raise _Stopped(str(getattr(error, "reason", error)) or type(error).__name__) from None
    with reply:
        start, total = _extent(reply.status, reply.headers, have)
        if total - start > free_disk_bytes(part.parent):
            raise UsageError(
                f"{url} has {total - start} bytes more, and {part.parent} has "
                f"{free_disk_bytes(part.parent)} free; free some space or set GNNBENCH_DATA to a "
                "folder on another disk"
            )
        with writing_to(part.parent):
            state = reply.headers.get("ETag") or reply.headers.get("Last-Modified") or ""
            # A weak tag promises no equal bytes.
            write_json(_seen(part), {"url": url, "state": "" if state[:2] == "W/" else state})
            # Without a buffer: a full disk is found at the write, and not again by the closing.
            file = part.open("r+b" if start else "wb", buffering=0)
        with file:
            file.seek(start)
            file.truncate()
            done, since, came = start, time.monotonic(), 0
            while piece := _next_chunk(reply, total - done if total else _PIECE_BYTES):
                if not total:
                    _leave_room(url, part, len(piece))
                with writing_to(part.parent):
                    _write_all(file, piece)
                done, came = done + len(piece), came + len(piece)
                if came >= waits.slow_bytes:
                    since, came = time.monotonic(), 0
                elif time.monotonic() - since > waits.slow_s:
                    raise _Stopped(f"the server sent {came} bytes in {waits.slow_s:g} s")
                if progress is not None:
                    progress(f"download {part.name.removesuffix('.part')}", done, total)
    if done < total:
        raise _Stopped(f"the connection ended at {done} of {total} bytes")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to http, nor to another scheme than these."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """As in ``urllib``. Raises ``MissingError`` for a redirect that is not followed."""
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after not in ("http", "https") or (before == "https" and after != "https"):
            raise MissingError(
                f"{req.full_url} leads to {newurl[:200]}, which is not encrypted and not followed; "
                "see whether its page has another address"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_SafeRedirects)


def _write_all(file: RawIOBase, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[file.write(left) or 0 :]


def _leave_room(url: str, part: Path, size: int) -> None:
    """Stop where a file of unknown size has nearly filled the disk."""
    if free_disk_bytes(part.parent) < size + _SPARE_BYTES:
        raise UsageError(
            f"{url} does not say how large it is, and the disk below {part.parent} is nearly full;"
            f" remove {part.name}, or set GNNBENCH_DATA to a folder on another disk"
        )


def _next_chunk(reply: http.client.HTTPResponse, left: int) -> bytes:
    try:
        return bytes(reply.read1(min(_PIECE_BYTES, left))) if left else b""
    except _BROKEN as error:
        raise _Stopped(str(error) or type(error).__name__) from None


def _extent(status: int, headers: Mapping[str, str], have: int) -> tuple[int, int]:
    """Where the reply begins, and the size of the whole (0: unknown)."""
    if status != 206:  # all of it: the server knows no ranges, or the file has changed
        length = headers.get("Content-Length") or "0"
        if not (length.isascii() and length.isdigit()):
            raise _Stopped(f"the server sent a Content-Length of '{length[:40]}'")
        return 0, int(length)
    extent, _, whole = headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    first = extent.partition("-")[0]
    digits = all(one.isascii() and one.isdigit() for one in (first, whole))
    if not digits or int(first) != have or int(whole) < have:
        raise _Stopped(f"the server sent {extent or 'no range'} where {have}- was asked for")
    return have, int(whole)


def _checked(url: str, part: Path, record: Path, sha256: str, progress: Progress | None) -> str:
    """The SHA-256 of the whole. Raises ``DataError`` where another is known."""
    if progress is not None:
        progress(f"check {part.name.removesuffix('.part')}", 0, 0)
    digest, known = sha256_file(part), _read(record)
    entry = known.get(url)
    recorded = str(entry.get("sha256", "")) if isinstance(entry, dict) else ""
    wanted = sha256 or recorded
    if wanted and digest != wanted:
        part.unlink()
        _seen(part).unlink(missing_ok=True)
        where = "its host publishes" if sha256 else f"{record} has of an earlier download"
        raise DataError(
            f"{url} came with another SHA-256 ({digest[:12]}...) than {where} ({wanted[:12]}...) "
            "and was removed; get it again"
        )
    return digest
