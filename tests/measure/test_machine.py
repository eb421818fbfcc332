import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from gnnbench.core.errors import UsageError
from gnnbench.measure import machine


def test_record_is_json_without_private_data():
    text = json.dumps([machine.record(), machine.versions(), machine.revision(), machine.load()])
    assert str(Path.cwd()) not in text
    assert str(Path.home()) not in text.replace('"/"', "")
    assert socket.gethostname() not in text


def test_zero_threads_means_all_usable_cores():
    assert machine.resolve_threads(0) == len(os.sched_getaffinity(0))
    assert machine.resolve_threads(3) == 3


def test_fingerprint_depends_on_hardware_only():
    record = machine.record()
    assert machine.fingerprint(record) == machine.fingerprint({**record, "frequency_mhz": 1})
    assert machine.fingerprint(record) != machine.fingerprint({**record, "cpu": "another"})
    assert machine.fingerprint(record) != machine.fingerprint({**record, "gpus": [{"name": "G"}]})


def test_absent_nvml_is_null(monkeypatch):
    import pynvml

    def fail():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    assert machine.gpus() is None


def test_versions_include_absent_packages():
    versions = machine.versions()
    assert versions["python"]
    assert set(machine.PACKAGES) < set(versions)


def test_source_digest_depends_on_native_libraries(tmp_path, monkeypatch):
    (tmp_path / "libx.so").write_bytes(b"1")
    monkeypatch.setenv("GNNBENCH_NATIVE_DIR", str(tmp_path))
    first = machine.source_digest()
    (tmp_path / "libx.so").write_bytes(b"2")
    assert machine.source_digest() != first


def git(folder, *words):
    command = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x", *words]
    subprocess.run(command, check=True)


def commit_all(folder):
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")


def test_copy_without_git_has_its_written_revision(tmp_path, monkeypatch):
    package = tmp_path / "gnnbench"
    (package / "measure").mkdir(parents=True)
    (package / "x.py").write_text("1")
    monkeypatch.setattr(machine, "__file__", str(package / "measure" / "machine.py"))
    assert machine.revision()["git_revision"] is None
    with pytest.raises(UsageError, match="no git checkout"):
        machine.write_revision()
    commit_all(tmp_path)
    written = machine.revision()
    machine.write_revision()
    (tmp_path / ".git").rename(tmp_path / "elsewhere")
    assert machine.revision() == written and len(written["git_revision"]) == 40
    (package / "x.py").write_text("2")  # the code changed since the revision was written
    assert machine.revision()["git_revision"] is None


def test_copy_over_an_older_checkout_has_its_written_revision(tmp_path, monkeypatch):
    package, libraries = tmp_path / "gnnbench", tmp_path / "libraries"
    (package / "measure").mkdir(parents=True)
    libraries.mkdir()
    monkeypatch.setenv("GNNBENCH_NATIVE_DIR", str(libraries))
    monkeypatch.setattr(machine, "__file__", str(package / "measure" / "machine.py"))
    for text in "12":
        (package / "x.py").write_text(text)
        commit_all(tmp_path)
    written = machine.revision()
    machine.write_revision()
    git(tmp_path, "reset", "-q", "--soft", "HEAD~1")
    assert machine.revision() == written and written["git_dirty"] is False
    (libraries / "libx.so").write_bytes(b"1")  # an additional library
    assert machine.revision()["git_dirty"] is True


def test_oom_kills_are_counted():
    assert machine.oom_kills() >= 0
