"""Transport of downloads from a local server: resumption, retries and checksums."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from file_server import Server

from gnnbench.core.errors import DataError, MissingError, UsageError
from gnnbench.datasets import transport
from gnnbench.datasets.transport import RECORD, Waits, download

NO_WAIT = Waits(silence_s=20, between_s=0)
BODY = np.random.default_rng(1).bytes(5_000_000)


def test_download_is_written_and_recorded(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = BODY
    target, steps = tmp_path / "raw" / "a.bin", []
    fetched = download(server.url + "/a.bin", target, progress=lambda *step: steps.append(step))
    assert target.read_bytes() == BODY
    assert ("download a.bin", len(BODY), len(BODY)) in steps
    done = [done for text, done, _ in steps if text.startswith("download")]
    assert done == sorted(done) and len(done) > 2
    assert not (target.parent / RECORD).exists()  # its content is not verified yet
    fetched.record()
    record = json.loads((target.parent / RECORD).read_text())
    assert record == {
        server.url + "/a.bin": {
            "sha256": hashlib.sha256(BODY).hexdigest(),
            "published": False,
            "file": "a.bin",
        }
    }
    assert sorted(p.name for p in target.parent.iterdir()) == ["a.bin", RECORD]
    assert download(server.url + "/a.bin", target) is None
    assert len(server.requests) == 1


def test_interrupted_download_resumes(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = BODY
    target = tmp_path / "a.bin"

    def interrupt(text: str, done: int, total: int) -> None:
        if done > 1_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(server.url + "/a.bin", target, progress=interrupt)
    assert not target.exists()
    partial_bytes = (tmp_path / "a.bin.part").stat().st_size
    assert 1_000_000 < partial_bytes < len(BODY)
    download(server.url + "/a.bin", target)
    assert target.read_bytes() == BODY
    assert server.requests == [("/a.bin", ""), ("/a.bin", f"bytes={partial_bytes}-")]


def test_broken_connection_is_resumed(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = BODY
    server.cuts = [2_000_000, 7]
    server.codes = [503]
    download(server.url + "/a.bin", tmp_path / "a.bin", waits=NO_WAIT)
    assert (tmp_path / "a.bin").read_bytes() == BODY
    assert [byte_range for _, byte_range in server.requests] == [
        "", "", "bytes=2000000-", "bytes=2000007-",
    ]  # fmt: skip


def test_server_without_ranges_restarts_the_download(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = BODY
    server.ranges, server.cuts = False, [3_000_000]
    download(server.url + "/a.bin", tmp_path / "a.bin", waits=NO_WAIT)
    assert (tmp_path / "a.bin").read_bytes() == BODY
    assert [byte_range for _, byte_range in server.requests] == ["", "bytes=3000000-"]


def test_changed_file_restarts_the_download(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = BODY
    server.cuts = [3_000_000, 0, 0, 0, 0, 0]
    with pytest.raises(MissingError, match=r"stopped after 3000000 bytes .* same command"):
        download(server.url + "/a.bin", tmp_path / "a.bin", waits=NO_WAIT)
    server.files["/a.bin"], server.etags["/a.bin"], server.cuts = BODY[::-1], '"2"', []
    download(server.url + "/a.bin", tmp_path / "a.bin", waits=NO_WAIT)
    assert (tmp_path / "a.bin").read_bytes() == BODY[::-1]


def test_complete_partial_file_is_accepted(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = BODY
    (tmp_path / "a.bin.part").write_bytes(BODY)
    note = {"url": server.url + "/a.bin", "state": '"1"'}
    (tmp_path / "a.bin.part.json").write_text(json.dumps(note))
    download(server.url + "/a.bin", tmp_path / "a.bin", waits=NO_WAIT)
    assert (tmp_path / "a.bin").read_bytes() == BODY
    assert server.requests == [("/a.bin", f"bytes={len(BODY)}-")]


def test_partial_file_without_a_note_is_discarded(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = BODY
    (tmp_path / "a.bin.part").write_bytes(b"something else")
    download(server.url + "/a.bin", tmp_path / "a.bin", waits=NO_WAIT)
    assert (tmp_path / "a.bin").read_bytes() == BODY


def test_wrong_checksum_is_refused_and_removed(server: Server, tmp_path: Path) -> None:
    server.files["/a.bin"] = BODY
    target, url = tmp_path / "a.bin", server.url + "/a.bin"
    with pytest.raises(DataError, match=r"another SHA-256 .* than its host publishes \(0000"):
        download(url, target, sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []
    download(url, target, sha256=hashlib.sha256(BODY).hexdigest()).record()
    assert json.loads((tmp_path / RECORD).read_text())[url]["published"] is True

    target.unlink()
    server.files["/a.bin"] = BODY[:-1] + b"!"
    with pytest.raises(DataError, match=r"downloads.json has of an earlier download"):
        download(url, target)
    assert [p.name for p in tmp_path.iterdir()] == [RECORD]


def test_missing_file_refused_connection_and_full_disk(
    server: Server, tmp_path: Path, monkeypatch
) -> None:
    with pytest.raises(MissingError, match=r"the server says 404"):
        download(server.url + "/none", tmp_path / "a", waits=NO_WAIT)
    assert len(server.requests) == 1
    with pytest.raises(MissingError, match=r"stopped after 0 bytes .*refused"):
        download("http://127.0.0.1:9/a", tmp_path / "a", waits=NO_WAIT)
    server.files["/a.bin"] = BODY
    monkeypatch.setattr(transport, "free_disk_bytes", lambda _: 1000)
    with pytest.raises(UsageError, match=r"has 5000000 bytes more, and .* has 1000 free"):
        download(server.url + "/a.bin", tmp_path / "a", waits=NO_WAIT)


def test_wait_between_retries_grows(server: Server, tmp_path: Path, monkeypatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(transport, "time", SimpleNamespace(sleep=slept.append))
    server.codes = [500] * 9
    with pytest.raises(MissingError, match=r"the server says 500"):
        download(server.url + "/a.bin", tmp_path / "a.bin")
    assert slept == [1, 2, 3, 4]
