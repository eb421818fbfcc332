"""A sealed graph is not read whole again, as long as its files are those that were checked."""

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
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Folders that are read whole, in order."""
    found: list[str] = []
    known = reader.verify
    monkeypatch.setattr(reader, "verify", lambda path: found.append(path.name) or known(path))
    return found


def test_what_the_store_wrote_is_sealed(folder: Path, looked: list[str]) -> None:
    assert prepare_verified(NAME) == (folder, sealed_stamp(folder))
    assert looked == []


def test_an_edit_that_hides_its_time_breaks_the_seal(folder: Path, looked: list[str]) -> None:
    """As many bytes, and the time of the last change put back: the file system knows better."""
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
    for _ in range(2):  # what is damaged gets no seal
        with pytest.raises(DataError, match=r"labels\.bin changed"):
            prepare_verified(NAME)
    assert looked == [NAME, NAME] and not (folder / SEAL).exists()


def test_a_file_that_is_touched_is_read_and_sealed_anew(folder: Path, looked: list[str]) -> None:
    (folder / "labels.bin").touch()
    assert sealed_stamp(folder) is None
    for _ in range(2):
        assert prepare_verified(NAME)[1] == sealed_stamp(folder)
    assert looked == [NAME]


def test_a_truncated_file(folder: Path) -> None:
    path = str(folder)  # by its path nothing is made anew
    os.truncate(folder / "labels.bin", 8)
    assert sealed_stamp(folder) is None
    with pytest.raises(DataError, match=r"labels\.bin is 8 bytes long"):
        prepare_verified(path)


def test_an_edited_meta_with_a_right_digest_of_its_own(folder: Path, looked: list[str]) -> None:
    from gnnbench.datasets.store import layout

    meta = layout.read_meta(folder)
    (folder / "meta.json").write_text(layout.meta_text({**meta, "seed": 1}))
    assert sealed_stamp(folder) is None
    prepare_verified(str(folder))
    assert looked == [NAME]


def test_a_copy_is_read_and_a_folder_that_is_moved_is_not(
    folder: Path, looked: list[str], tmp_path: Path
) -> None:
    """A copy's files are others, whatever their times say; those that are moved are the same."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert (copy / SEAL).is_file() and sealed_stamp(copy) is None
    prepare_verified(str(copy))
    assert looked == ["copy"] and sealed_stamp(copy) is not None
    moved = folder.rename(tmp_path / "moved")
    prepare_verified(str(moved))
    assert looked == ["copy"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\x00", b"[" * 100_000, b'{"version": 1}']
)
def test_a_garbled_seal_is_none(folder: Path, looked: list[str], content: bytes) -> None:
    (folder / SEAL).write_bytes(content)
    for _ in range(2):
        prepare_verified(NAME)
    assert looked == [NAME] and sealed_stamp(folder) is not None


def test_a_seal_of_another_version_is_none(folder: Path) -> None:
    found = json.loads((folder / SEAL).read_text())
    (folder / SEAL).write_text(json.dumps({**found, "version": 0}))
    assert sealed_stamp(folder) is None
    (folder / SEAL).write_text(json.dumps(found))
    assert sealed_stamp(folder) is not None


def test_a_store_that_cannot_be_written_is_read_by_every_run(
    folder: Path, looked: list[str]
) -> None:
    """Root may write anywhere, so a folder stands where the seal would."""
    (folder / SEAL).unlink()
    (folder / SEAL).mkdir()
    for _ in range(2):
        prepare_verified(NAME)
    assert looked == [NAME, NAME]
    report = reader.verify(folder)
    assert report.ok and "all checksums agree; not sealed (" in report.message


def test_the_command_reads_every_byte_and_renews_the_seal(
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
    # What changes no time (here: a seal that was forged) is what the forced pass is for.
    from gnnbench.datasets.store.seal import seal, stamp

    with (folder / "labels.bin").open("r+b") as opened:
        opened.write(b"\xff")
    assert seal(folder, stamp(folder)) == "" and sealed_stamp(folder) is not None
    assert call()[0] == DataError.exit_code and sealed_stamp(folder) is None
