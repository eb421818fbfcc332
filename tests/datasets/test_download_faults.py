"""Slow servers, wrong lengths, unsafe redirects, and tables that leave the store."""

from __future__ import annotations

import errno
import io
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from gnnbench.core.errors import MissingError, UsageError
from gnnbench.datasets import transport
from gnnbench.datasets.download_sources import read_table
from gnnbench.datasets.transport import Waits, download

NO_WAIT = Waits(silence_s=20, between_s=0)


def replies(monkeypatch, opened) -> None:
    """Make ``opened`` reply to every request."""
    monkeypatch.setattr(transport, "_opener", lambda: SimpleNamespace(open=opened))


@pytest.mark.parametrize("length", ["many", "-5", "1e6", "\u0663"])
def test_invalid_content_length_is_refused(tmp_path: Path, monkeypatch, length: str) -> None:
    headers = {"Content-Length": length}
    replies(monkeypatch, lambda *_, **__: FakeReply([b"x"], headers))
    with pytest.raises(MissingError, match="Content-Length of"):
        download("http://here/a", tmp_path / "a", waits=NO_WAIT)


class FakeReply(io.BytesIO):
    """A server's reply: pieces of its body, and its headers."""

    status = 200

    def __init__(self, pieces: list[bytes], headers: dict[str, str]) -> None:
        super().__init__()
        self.headers, self._pieces = headers, iter(pieces)

    def read1(self, size: int = -1) -> bytes:
        return next(self._pieces, b"")


def test_too_slow_server_is_abandoned(tmp_path: Path, monkeypatch) -> None:
    """One byte every 20 s never triggers a read timeout of 60 s."""
    clock = iter(range(0, 10**6, 20))
    monkeypatch.setattr(
        transport, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda s: None)
    )
    requests = []

    def opened(*_: object, **__: object) -> FakeReply:
        requests.append(1)
        return FakeReply([b"x"] * 1000, {"Content-Length": "1000000"})

    replies(monkeypatch, opened)
    with pytest.raises(MissingError, match="the server sent 4 bytes in 60 s"):
        download("http://here/a", tmp_path / "a", waits=Waits())
    assert len(requests) == 5


def test_file_of_unknown_size_is_refused_on_a_nearly_full_disk(tmp_path: Path, monkeypatch) -> None:
    reply = FakeReply([b"x" * 100] * 1000, {})
    replies(monkeypatch, lambda *_, **__: reply)
    monkeypatch.setattr(transport, "free_disk_bytes", lambda folder: 1 << 20)
    with pytest.raises(UsageError, match="does not say how large it is"):
        download("http://here/a", tmp_path / "a", waits=NO_WAIT)


@pytest.mark.parametrize(
    "wrong", [{"to": "../.."}, {"to": "/etc"}, {"to": "a/../../b"}, {"url": "http://x/"}]
)
def test_table_with_a_path_outside_the_store_is_refused(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    entry = {"name": "a", "url": "http://x/a.zip", "host": "h", "licence": "l", **wrong}
    path = tmp_path / "t.toml"
    path.write_text("[[download]]\n" + "".join(f"{k} = '{v}'\n" for k, v in entry.items()))
    with pytest.raises(UsageError, match=r"leaves the folder of raw files|names no file"):
        read_table(path)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("https://here/a", "http://here/a"),
        ("https://here/a", "ftp://here/a"),
        ("http://here/a", "ftp://here/a"),
        ("http://here/a", "file:///etc/hostname"),
    ],
)
def test_unsafe_redirects_are_refused(start: str, end: str) -> None:
    request = urllib.request.Request(start)
    with pytest.raises(MissingError, match=f"{start} leads to {end}, which is not encrypted"):
        transport._SafeRedirects().redirect_request(request, None, 302, "Found", {}, end)


@pytest.mark.parametrize("end", ["https://there/b", "https://here/b"])
def test_safe_redirects_are_followed(end: str) -> None:
    for start in ("http://here/a", "https://here/a"):
        request = urllib.request.Request(start, headers={"Range": "bytes=5-"})
        redirected = transport._SafeRedirects().redirect_request(
            request, None, 302, "Found", {}, end
        )
        assert (
            redirected is not None
            and redirected.full_url == end
            and redirected.get_header("Range") == "bytes=5-"
        )


@pytest.mark.parametrize("extent", ["10-4/5", "10-9/9", "3-9/10", "10-19/*", "10-19/x", ""])
def test_wrong_content_ranges_are_refused(extent: str) -> None:
    headers = {"Content-Range": f"bytes {extent}"}
    with pytest.raises(transport._Stopped, match="where 10- was asked for"):
        transport._extent(206, headers, 10)
    assert transport._extent(206, {"Content-Range": "bytes 10-19/20"}, 10) == (10, 20)


class Full(io.RawIOBase):
    """A file on a disk with room for seven bytes; it takes three at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.content = b""

    def writable(self) -> bool:
        return True

    def seek(self, *_: int) -> int:
        return 0

    def truncate(self, size: int | None = None) -> int:
        return 0

    def write(self, data) -> int:
        if len(self.content) >= 7:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.content += bytes(data[:3])
        return min(len(data), 3)


def test_disk_that_fills_up_during_a_download(tmp_path: Path, monkeypatch) -> None:
    full, real = Full(), Path.open

    def opened(path: Path, mode: str = "r", buffering: int = -1, **options):
        if path.name == "a.part":
            return full if buffering == 0 else io.BufferedWriter(full)
        return real(path, mode, buffering, **options)

    monkeypatch.setattr(Path, "open", opened)
    replies(monkeypatch, lambda *_, **__: FakeReply([b"0123456789"], {"Content-Length": "10"}))
    with pytest.raises(UsageError, match=rf"the disk of {tmp_path} is full; free some space"):
        download("http://here/a", tmp_path / "a", waits=NO_WAIT)
    assert full.content == b"012345678" and full.closed
