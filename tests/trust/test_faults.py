"""A full disk, a worker that eats all memory, a worker that hangs: each has its own status."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kills import Quiet, make_request, state

from gnnbench.config.overrides import Overrides
from gnnbench.core import files
from gnnbench.core.errors import UsageError
from gnnbench.harness import campaign

SYSTEMS = ("fake", "slow")


@pytest.fixture
def known(monkeypatch):
    """The fakes of the runner's tests, in this process too."""
    from gnnbench.core import registry
    from gnnbench.harness import available, environment
    from gnnbench.measure import machine

    fakes = Path(__file__).parents[1] / "harness"
    sys.path.insert(0, str(fakes))
    from fakes import fake_environment

    for key, value in fake_environment().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    for cache in (registry.entries, available.availability, environment.dataset_state):
        cache.cache_clear()


def run(out, resume=False, repeats=2, systems=SYSTEMS, options=("rounds=4",)):
    over = Overrides("smoke", systems, repeats=repeats, options=("reference=fake", *options))
    return campaign.run(make_request("breakdown", over, out, resume), Quiet())


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 40 KiB, and a way to make it larger."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield (
        folder,
        lambda: subprocess.run(["mount", "-o", "remount,size=16m", str(folder)], check=True),
    )
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_a_run_with_a_sentence_and_loses_nothing(known, small_disk):
    out, enlarge = small_disk
    with pytest.raises(UsageError, match=r"no space left on device.*--resume"):
        run(out)
    before = state(out)
    assert before["samples"].count(b"\n") > 3
    assert before["torn"] == 0
    enlarge()
    outcome = run(out, resume=True)
    assert outcome.exit_code == 0
    after = state(out)
    assert after["samples"].startswith(before["samples"])
    assert {r["status"] for r in outcome.rows} == {"ok"}
    assert all(r["rounds"] == 8 for r in outcome.rows if r["system"] != "fake")
    assert not list(out.rglob(".tmp-*"))


def test_a_limit_on_the_size_of_files_ends_a_run_likewise(known, tmp_path):
    out = tmp_path / "results"
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, old[1]))
    try:
        with pytest.raises(UsageError, match=r"file too large.*--resume"):
            run(out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    before = state(out)
    assert before["torn"] == 0 and before["samples"].count(b"\n") > 3
    outcome = run(out, resume=True)
    assert outcome.exit_code == 0
    assert state(out)["samples"].startswith(before["samples"])


def test_a_journal_takes_back_a_line_that_did_not_fit(tmp_path, monkeypatch):
    path = tmp_path / "samples.jsonl"
    journal = files.Journal(path)
    journal.append({"a": 1})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        journal.append({"a": 2})
    monkeypatch.undo()
    journal.append({"a": 3})
    journal.close()
    assert path.read_text() == '{"a": 1}\n{"a": 3}\n'


def test_memory_time_and_crash_have_own_statuses_and_the_run_goes_on(known, cold, tmp_path):
    systems = ("fake", "greedy-real", "hang", "crash", "slow")
    outcome = run(
        tmp_path, repeats=2, systems=systems, options=("cell_timeout_s=2", "memory_limit_gib=0.4")
    )
    assert {r["system"]: r["status"] for r in outcome.rows} == {
        "fake": "ok", "greedy-real": "oom_host", "hang": "timeout", "crash": "crash", "slow": "ok",
    }  # fmt: skip
    assert outcome.exit_code == 3


def test_a_campaign_killed_while_its_folder_is_made_leaves_none(known, tmp_path):
    """What a kill leaves behind at that instant is swept by the next run."""
    left = tmp_path / "breakdown" / ".tmp-killed"
    left.mkdir(parents=True)
    (left / "run.json").write_text("{")
    outcome = run(tmp_path, repeats=1, systems=("fake",))
    assert [p.name for p in (tmp_path / "breakdown").iterdir()] == [outcome.folder.name]
    (outcome.folder / ".tmp-table.csv").write_text("half")
    run(tmp_path, resume=True, repeats=1, systems=("fake",))
    assert not list(tmp_path.rglob(".tmp-*"))
    assert json.loads((outcome.folder / "run.json").read_text())["finished"] is True
