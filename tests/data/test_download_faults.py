"""Servers that drip, lie about lengths or never end, and tables that leave the store."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from gnnbench.data import transport
from gnnbench.data.downloads import read_table
from gnnbench.data.transport import Waits, download
from gnnbench.errors import MissingError, UsageError

NO_WAIT = Waits(silence_s=20, between_s=0)


@pytest.mark.parametrize("length", ["many", "-5", "1e6", "\u0663"])
def test_a_length_that_is_no_number(tmp_path: Path, monkeypatch, length: str) -> None:
    headers = {"Content-Length": length}
    monkeypatch.setattr(
        transport.urllib.request, "urlopen", lambda *_, **__: FakeReply([b"x"], headers)
    )
    with pytest.raises(MissingError, match="Content-Length of"):
        download("http://here/a", tmp_path / "a", waits=NO_WAIT)


class FakeReply(io.BytesIO):
    """A reply of a server: pieces of its body, and its headers."""

    status = 200

    def __init__(self, pieces: list[bytes], headers: dict[str, str]) -> None:
        super().__init__()
        self.headers, self._pieces = headers, iter(pieces)

    def read1(self, size: int = -1) -> bytes:
        return next(self._pieces, b"")


def test_a_server_that_drips_is_given_up(tmp_path: Path, monkeypatch) -> None:
    """A byte every twenty seconds never ends a timeout of sixty."""
    clock = iter(range(0, 10**6, 20))
    monkeypatch.setattr(
        transport, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda s: None)
    )
    asked = []

    def opened(*_: object, **__: object) -> FakeReply:
        asked.append(1)
        return FakeReply([b"x"] * 1000, {"Content-Length": "1000000"})

    monkeypatch.setattr(transport.urllib.request, "urlopen", opened)
    with pytest.raises(MissingError, match="the server sent 4 bytes in 60 s"):
        download("http://here/a", tmp_path / "a", waits=Waits())
    assert len(asked) == 5


def test_a_file_without_a_size_leaves_room_on_the_disk(tmp_path: Path, monkeypatch) -> None:
    reply = FakeReply([b"x" * 100] * 1000, {})
    monkeypatch.setattr(transport.urllib.request, "urlopen", lambda *_, **__: reply)
    monkeypatch.setattr(transport, "free_disk_bytes", lambda folder: 1 << 20)
    with pytest.raises(UsageError, match="does not say how large it is"):
        download("http://here/a", tmp_path / "a", waits=NO_WAIT)


@pytest.mark.parametrize(
    "wrong", [{"to": "../.."}, {"to": "/etc"}, {"to": "a/../../b"}, {"url": "http://x/"}]
)
def test_a_table_that_leaves_the_store_is_refused(tmp_path: Path, wrong: dict[str, str]) -> None:
    entry = {"name": "a", "url": "http://x/a.zip", "host": "h", "licence": "l", **wrong}
    path = tmp_path / "t.toml"
    path.write_text("[[download]]\n" + "".join(f"{k} = '{v}'\n" for k, v in entry.items()))
    with pytest.raises(UsageError, match=r"leaves the folder of raw files|names no file"):
        read_table(path)
