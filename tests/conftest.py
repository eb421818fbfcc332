"""Fixtures of the whole suite: real graphs and the GPU, skipped visibly where they are not.

Folders run in two processes (``-n0``: in one), a file at a time in either.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path

import pytest
import typer.main
from hypothesis import settings
from warm import Cold, Warm

REAL_DATA = Path(os.environ.get("GNNBENCH_REAL_DATA", "../shared/data"))
# Where a GPU is promised, a skipped GPU test is a failure.
GPU_PROMISED = os.environ.get("GNNBENCH_REQUIRE_GPU") == "1"
PROCESSES = 3
# The files that take longest, first: else one of them is left to a single process at the end.
LONG = tuple(
    f"tests/{name}"
    for name in ("trust", "harness", "systems", "sampling", "models", "distributed", "contrib")
)

# As in workers, and for the same reason: threads of two processes share the cores.
os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}

os.environ["GNNBENCH_NO_WAIT"] = "1"

# Else each of hundreds of processes compiles all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # until all tests are collected: a fifth of that time

# No test asserts a time.
settings.register_profile("gnnbench", deadline=None)
settings.load_profile("gnnbench")

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that: the
# tests of Ctrl-C need it back.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Likewise nohup, for the tests of a terminal that is gone.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _gpu_missing(wanted: int) -> str | None:
    import torch

    if not torch.cuda.is_available():
        return "no CUDA device"
    shared = (
        os.environ.get("GNNBENCH_RANKS_SHARE_GPUS") == "1"
    )  # by Gloo: what ranks do, not how fast
    if torch.cuda.device_count() < wanted and not shared:
        return f"needs {wanted} GPUs"
    from gnnbench.kernels.library import has_cuda_library

    return None if has_cuda_library() else "the CUDA library is not built"


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share folders among processes, where pytest-xdist is there and no GPU to be shared."""
    options = config.option
    said = getattr(options, "numprocesses", 0) is not None  # by -n; 0 without the plugin
    watched = options.usepdb or options.capture == "no"
    folders = all(Path(word).is_dir() for word in config.args)
    if said or watched or GPU_PROMISED or not folders or hasattr(config, "workerinput"):
        return
    from gnnbench.measure import machine

    if not machine.gpus():
        options.numprocesses, options.dist = PROCESSES, "loadfile"
        options.loadscopereorder = False


def pytest_collection_finish() -> None:
    """Collect garbage again, except modules and tests: each full collection would visit them."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    last = len(LONG)
    items.sort(key=lambda i: next((n for n, f in enumerate(LONG) if i.nodeid.startswith(f)), last))
    by_count: dict[int, list[pytest.Item]] = {}
    dropped: set[pytest.Item] = set()
    for item in items:
        if count := _gpus_of(item):
            by_count.setdefault(count, []).append(item)
    for count, some in by_count.items():
        reason = _gpu_missing(count)
        if reason is None:
            continue
        if GPU_PROMISED and count == 1:
            raise pytest.UsageError(f"GNNBENCH_REQUIRE_GPU=1, but GPU tests cannot run: {reason}")
        dropped.update(_skipped_once(some, reason))
    if dropped:
        items[:] = [item for item in items if item not in dropped]


def _skipped_once(items: list[pytest.Item], reason: str) -> list[pytest.Item]:
    """Skip the first case of each test; returns the others, which thousands of reports cost."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for first, *others in cases.values():
        number = f" ({len(others) + 1} cases)" if others else ""
        first.add_marker(pytest.mark.skip(reason=f"gpu: {reason}{number}"))
    return [item for _, *others in cases.values() for item in others]


def _gpus_of(item: pytest.Item) -> int:
    """How many GPUs a test needs: ``gpu`` is one, ``gpu(count=2)`` two; 0 of any other."""
    marker = item.get_closest_marker("gpu")
    return 0 if marker is None else marker.kwargs.get("count", 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    is_skipped = report.skipped and not hasattr(report, "wasxfail")
    if GPU_PROMISED and is_skipped and _gpus_of(item) == 1:  # one is what is promised
        report.outcome = "failed"
        report.longrepr = f"GNNBENCH_REQUIRE_GPU=1, but a GPU test was skipped: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if "gpu: " in str(r.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} GPU tests skipped: they need a GPU machine")
    for report in terminalreporter.stats.get("passed", []):
        for failed in (n for name, n in report.user_properties if name == "failed_before"):
            terminalreporter.write_line(f"{report.nodeid} failed {failed} times, then passed")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real graphs."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"real graphs not found in {REAL_DATA}; set GNNBENCH_REAL_DATA")
    return REAL_DATA.resolve()


@pytest.fixture(scope="session")
def rank_pool() -> Generator[object]:
    """Processes for the ranks of systems, started once and used again."""
    from rank_pool import Pool

    pool = Pool()
    yield pool
    pool.close()


@pytest.fixture(autouse=True, scope="session")
def _own_store(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests never write to the user's store."""
    os.environ["GNNBENCH_DATA"] = str(tmp_path_factory.mktemp("store"))


@pytest.fixture(autouse=True, scope="session")
def _room_for_all() -> Generator[None]:
    """Plans do not depend on what the machine has free; tests of that look at it themselves."""
    from gnnbench.datasets import prepare

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "check_room", lambda name, **_: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_settling() -> Generator[None]:
    """Threads do not spin here, so that nothing is waited for between epochs."""
    from gnnbench.harness import alternating_epochs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alternating_epochs, "SETTLE_S", 0.0)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_fsync() -> Generator[None]:
    """No file of a test must survive a power failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _warm() -> Generator[None]:
    """Processes of ours are forked from one that has imported torch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Warm)
        yield


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes start as they do for a user."""
    monkeypatch.setattr(subprocess, "Popen", Cold)


_parser = cache(typer.main.get_command)  # built once: it takes 0.1 s


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process, in an empty folder: code, standard output and error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(typer.main, "get_command", _parser)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def call(*words: str) -> tuple[int, str, str]:
        from gnnbench import cli

        monkeypatch.setattr(sys, "argv", ["gnnbench", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return call


@pytest.fixture
def one_thread() -> Generator[None]:
    """For graphs too small to be worth sharing between threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_graph():
    """400 nodes, skewed degrees, isolated nodes, a self-loop and parallel edges."""
    import numpy as np
    import torch

    from gnnbench.datasets.graph import Graph

    rng = np.random.default_rng(7)
    n, dim, classes = 400, 24, 4
    degree = np.minimum(rng.zipf(1.6, n), 90) * (rng.random(n) > 0.1)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    indices = rng.integers(0, n, indptr[-1]).astype(np.int32)
    first = int(np.flatnonzero(degree >= 2)[0])
    indices[indptr[first]] = first
    indices[indptr[first] + 1] = first
    labels = rng.integers(0, classes, n)
    features = rng.normal(size=(n, dim)).astype(np.float32)
    features[np.arange(n), labels] += 2
    order = rng.permutation(n)
    return Graph(
        name="small",
        indptr=torch.from_numpy(indptr.astype(np.int64)),
        indices=torch.from_numpy(indices),
        features=torch.from_numpy(features),
        labels=torch.from_numpy(labels.astype(np.int64)),
        train_idx=torch.from_numpy(np.sort(order[:200])),
        val_idx=torch.from_numpy(np.sort(order[200:300])),
        test_idx=torch.from_numpy(np.sort(order[300:])),
        num_classes=classes,
    )
