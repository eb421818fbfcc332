"""A sealed graph is not read again unless its files changed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gnnbench import cli
from gnnbench.core.errors import DataError
from gnnbench.datasets.prepare import prepare, prepare_verified
from gnnbench.datasets.store import reader
from gnnbench.datasets.store.seal import SEAL, sealed_stamp

NAME = "rmat@6"


@pytest.fixture
def folder(root: Path) -> Path:
    return prepare(NAME)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of folders that are read completely, in order."""
    names: list[str] = []
    known = reader.verify
    monkeypatch.setattr(reader, "verify", lambda path: names.append(path.name) or known(path))
    return names


def test_written_graph_is_sealed(folder: Path, verified: list[str]) -> None:
    assert prepare_verified(NAME) == (folder, sealed_stamp(folder))
    assert verified == []


def test_edit_with_restored_time_breaks_the_seal(folder: Path, verified: list[str]) -> None:
    """The size and modification time are unchanged, but the change time is not."""
    file = folder / "labels.bin"
    before = file.stat()
    with file.open("r+b") as opened:
        opened.write(b"\x01" if opened.read(1) == b"\0" else b"\0")
    with file.open("r+b") as opened:
        content = bytearray(opened.read())
        content[0] ^= 3
        opened.seek(0)
        opened.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns and file.stat().st_size == before.st_size
    assert sealed_stamp(folder) is None
    for _ in range(2):  # a damaged graph gets no seal
        with pytest.raises(DataError, match=r"labels\.bin changed"):
            prepare_verified(NAME)
    assert verified == [NAME, NAME] and not (folder / SEAL).exists()


def test_touched_file_is_verified_and_sealed_again(folder: Path, verified: list[str]) -> None:
    (folder / "labels.bin").touch()
    assert sealed_stamp(folder) is None
    for _ in range(2):
        assert prepare_verified(NAME)[1] == sealed_stamp(folder)
    assert verified == [NAME]


def test_truncated_file_is_refused(folder: Path) -> None:
    path = str(folder)  # a path is not prepared again
    os.truncate(folder / "labels.bin", 8)
    assert sealed_stamp(folder) is None
    with pytest.raises(DataError, match=r"labels\.bin is 8 bytes long"):
        prepare_verified(path)


def test_edited_meta_with_a_valid_digest_breaks_the_seal(folder: Path, verified: list[str]) -> None:
    from gnnbench.datasets.store import layout

    meta = layout.read_meta(folder)
    (folder / "meta.json").write_text(layout.meta_text({**meta, "seed": 1}))
    assert sealed_stamp(folder) is None
    prepare_verified(str(folder))
    assert verified == [NAME]


def test_copied_folder_is_verified_and_moved_folder_is_not(
    folder: Path, verified: list[str], tmp_path: Path
) -> None:
    """A copy consists of new files, even with equal times; a move keeps the files."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert (copy / SEAL).is_file() and sealed_stamp(copy) is None
    prepare_verified(str(copy))
    assert verified == ["copy"] and sealed_stamp(copy) is not None
    moved = folder.rename(tmp_path / "moved")
    prepare_verified(str(moved))
    assert verified == ["copy"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\x00", b"[" * 100_000, b'{"version": 1}']
)
def test_invalid_seal_is_ignored(folder: Path, verified: list[str], content: bytes) -> None:
    (folder / SEAL).write_bytes(content)
    for _ in range(2):
        prepare_verified(NAME)
    assert verified == [NAME] and sealed_stamp(folder) is not None


def test_seal_of_another_version_is_ignored(folder: Path) -> None:
    record = json.loads((folder / SEAL).read_text())
    (folder / SEAL).write_text(json.dumps({**record, "version": 0}))
    assert sealed_stamp(folder) is None
    (folder / SEAL).write_text(json.dumps(record))
    assert sealed_stamp(folder) is not None


def test_unwritable_store_is_verified_in_every_run(folder: Path, verified: list[str]) -> None:
    """A folder blocks the seal's path, because root may write anywhere."""
    (folder / SEAL).unlink()
    (folder / SEAL).mkdir()
    for _ in range(2):
        prepare_verified(NAME)
    assert verified == [NAME, NAME]
    report = reader.verify(folder)
    assert report.ok and "all checksums agree; not sealed (" in report.message


def test_verify_command_reads_every_byte_and_renews_the_seal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def call() -> tuple[object, str]:
        monkeypatch.setattr("sys.argv", ["gnnbench", "data", "verify", NAME])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, capsys.readouterr().out

    (folder / SEAL).unlink()
    code, out = call()
    assert code == 0 and out.endswith("all checksums agree\n") and sealed_stamp(folder) is not None
    # The command detects changes that the seal does not show, such as those with a forged seal.
    from gnnbench.datasets.store.seal import seal, stamp

    with (folder / "labels.bin").open("r+b") as opened:
        opened.write(b"\xff")
    assert seal(folder, stamp(folder)) == "" and sealed_stamp(folder) is not None
    assert call()[0] == DataError.exit_code and sealed_stamp(folder) is None
