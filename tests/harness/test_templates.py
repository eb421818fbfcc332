"""Workers that a template process forks."""

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from warm import Cold

from gnnbench.config.overrides import Overrides
from gnnbench.harness import stray_processes, template, template_pool
from gnnbench.harness.interpreter import HERE
from gnnbench.harness.launch import make_request
from gnnbench.harness.process import WorkerFailed, WorkerProcess
from gnnbench.harness.protocol import EPOCH, SETUP
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.template_pool import TEMPLATES, Template, TemplateFailed, TemplatePool

DATASET = "products~twin@0.001"


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    over = Overrides(profile="smoke", systems=("baseline", "pgsampler"), datasets=(DATASET,))
    return make_request("breakdown", over, tmp_path_factory.mktemp("plan")).plan.cells


@pytest.fixture(scope="module")
def pool(cells):
    """A pool of one template, started as users start it."""
    made = TemplatePool(HERE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Cold)
        made.get(cells[0], 0)
    yield made
    made.close()


@pytest.fixture
def worker(cells, pool, tmp_path):
    with WorkerProcess(cells[0], tmp_path / "log", 60.0, template=pool.get(cells[0], 0)) as started:
        yield started


def test_a_forked_worker_is_a_child_of_the_harness_with_a_session_of_its_own(worker):
    process = psutil.Process(worker.pid)
    assert worker.is_forked and process.ppid() == os.getpid()
    assert os.getsid(worker.pid) == worker.pid != os.getsid(0)
    assert stray_processes.find_strays([worker.pid], 0.0) == []


def test_a_forked_worker_and_its_children_show_its_mark(worker):
    process = psutil.Process(worker.pid)
    worker.open()
    assert stray_processes.mark_of(process) == worker.mark
    assert process.environ()["OMP_WAIT_POLICY"] == "PASSIVE"


def test_a_forked_worker_has_its_streams_alone(worker):
    worker.open()
    links = {p.name: str(p.readlink()) for p in Path(f"/proc/{worker.pid}/fd").iterdir()}
    assert not [link for link in links.values() if link.startswith("socket:")]
    assert [link for link in links.values() if link.startswith("pipe:")] == [
        links["0"], links["3"],
    ]  # fmt: skip


def test_a_forked_worker_measures_as_a_new_process_does(cells, pool, cold, tmp_path):
    cache = SharedMemoryCache(tmp_path, 60.0)
    assert cache.prepare(cells[0]) is None
    reports = []
    for made in (pool.get(cells[0], 0), None):
        with WorkerProcess(cells[0], tmp_path / "log", 60.0, template=made) as started:
            opened = started.open(cache.graph(cells[0]))
            assert opened["open_s"] > 0.1  # with the imports, also those of the template
            started.call(SETUP)
            check = started.call("check")
            started.timed(EPOCH, epoch=5)
            audit = started.call("audit", epoch=5)
            reports.append((check["digest"], audit["digest"], audit["loss"], opened["facts"]))
    assert reports[0] == reports[1]


def test_trials_take_turns_at_several_templates(cells, monkeypatch):
    monkeypatch.setattr(template_pool, "Template", lambda *arguments: object())
    pool = TemplatePool(HERE)
    made = [pool.get(cells[0], trial) for trial in range(2 * TEMPLATES)]
    assert len(set(map(id, made))) == TEMPLATES
    assert made[:TEMPLATES] == made[TEMPLATES:]
    assert pool.get(cells[1], 0) is made[0]  # both sides of a trial have one
    assert pool.get(replace(cells[0], threads=cells[0].threads + 1), 0) is not made[0]


def test_systems_that_need_no_torch_and_fresh_starts_have_no_template(cells, monkeypatch):
    pool = TemplatePool(HERE)
    assert pool.get(replace(cells[0], composed=False), 0) is None
    monkeypatch.setenv("GNNBENCH_START", "fresh")
    assert pool.get(cells[0], 0) is None


def test_both_sides_start_alike(cells, tmp_path):
    cache = SharedMemoryCache(tmp_path, 60.0)
    assert cache.templates([cells[0], replace(cells[1], composed=False)], 0) == [None, None]
    cache.close()


def test_a_worker_whose_template_has_ended_is_a_new_process(cells, tmp_path):
    ended = Template(HERE, "", 1, ())
    ended.close()
    with WorkerProcess(cells[0], tmp_path / "log", 60.0, template=ended) as started:
        assert not started.is_forked and started.open()["facts"]["nodes"] > 0


def test_a_template_that_has_opened_a_gpu_forks_no_worker(monkeypatch, tmp_path):
    assert not template.has_opened_gpu()
    links = tmp_path / "fd"
    links.mkdir()
    (links / "5").symlink_to("/dev/nvidiactl")
    monkeypatch.setattr(template, "DESCRIPTORS", links)
    assert template.has_opened_gpu()


@pytest.fixture
def adopting():
    stray_processes.adopt_orphans()
    yield
    stray_processes.adopt_orphans(False)


def test_a_missing_framework_fails_in_the_worker_and_not_in_the_template(tmp_path, adopting):
    made = Template(HERE, "", 1, ("nowhere_at_all", "nowhere.at_all:call"))
    with (tmp_path / "log").open("ab") as log:
        forked = made.fork("1" * 16, 0.0, log)
    assert psutil.Process(forked.pid).ppid() == os.getpid()
    forked.stdin.close()
    assert forked.wait(30.0) == 0 and forked.poll() == 0
    forked.stdout.close()
    made.close()
    with pytest.raises(TemplateFailed), (tmp_path / "log").open("ab") as log:
        made.fork("1" * 16, 0.0, log)


def test_the_death_of_a_forked_worker_is_classified(worker):
    worker.open()
    os.kill(worker.pid, signal.SIGSEGV)
    with pytest.raises(WorkerFailed) as raised:
        worker.call(SETUP)
    assert "died by SIGSEGV" in raised.value.failure.reason and not worker.alive


def test_a_wait_for_a_forked_worker_ends_in_time(worker):
    with pytest.raises(subprocess.TimeoutExpired):
        worker._process.wait(0.05)
    worker.kill()
    assert worker._process.wait() == -signal.SIGKILL


def test_a_worker_that_the_harness_does_not_adopt_ends(tmp_path):
    made = Template(HERE, "", 1, ())
    with (tmp_path / "log").open("ab") as log:
        forked = made.fork("1" * 16, 0.0, log)
    assert forked.stdout.read() == b""  # its end of the pipe is closed
    assert _has_ended(forked.pid)
    for stream in (forked.stdin, forked.stdout):
        stream.close()
    made.close()


def _has_ended(pid: int) -> bool:
    """Whether process `pid` ends within 10 s. A process closes its pipes shortly before it ends."""
    try:
        psutil.Process(pid).wait(10.0)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True
