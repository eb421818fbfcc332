"""Checks before a run that its datasets fit into memory and on disk."""

import shutil

import pytest
from fakes import by_system

from gnnbench.config.overrides import Overrides
from gnnbench.core import host_memory
from gnnbench.core.errors import EXIT_CELLS_FAILED, EXIT_MISSING, HostMemoryError, UsageError
from gnnbench.datasets import paths
from gnnbench.datasets.prepare import check_room
from gnnbench.harness import campaign, environment
from gnnbench.harness.launch import make_request
from gnnbench.harness.worker_datasets import prepare

BIG = "products~twin@2"


@pytest.fixture
def real_check_room(monkeypatch):
    monkeypatch.setattr("gnnbench.datasets.prepare.check_room", check_room)
    environment.dataset_state.cache_clear()
    yield
    environment.dataset_state.cache_clear()


def limit_free(monkeypatch, resource, free):
    if resource == "memory":
        monkeypatch.setattr(host_memory, "free_memory_bytes", lambda: free)
    else:
        usage = shutil.disk_usage("/")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))


@pytest.mark.parametrize(
    ("resource", "status", "code"),
    [("memory", "oom_host", EXIT_CELLS_FAILED), ("disk", "missing_data", EXIT_MISSING)],
)
def test_dataset_that_does_not_fit_is_a_row(
    launch, real_check_room, monkeypatch, resource, status, code
):
    limit_free(monkeypatch, resource, 1 << 30)
    monkeypatch.setattr(
        "gnnbench.harness.shared_cache.SharedMemoryCache.prepare", None
    )  # preparation must not start
    outcome = launch("fake", datasets=(BIG,))
    row = by_system(outcome)["fake"]
    assert (row["status"], outcome.exit_code) == (status, code)
    assert row["reason"].startswith(f"preparing '{BIG}' takes about ")


def test_datasets_that_do_not_fit_together_stop_the_run(
    fakes, real_check_room, monkeypatch, tmp_path, observer
):
    """There is room for one of two datasets of 1.5 GB."""
    monkeypatch.setattr("gnnbench.harness.shared_cache.SharedMemoryCache.prepare", None)
    limit_free(monkeypatch, "disk", 2 << 30)
    both = ("products~twin", "products~twin@0.99")
    over = Overrides(profile="smoke", systems=("baseline",), datasets=both)
    request = make_request("breakdown", over, tmp_path / "results")
    assert request.plan.failures == {}
    with pytest.raises(UsageError, match=r"products~twin, products~twin@0\.99 takes about 2\.8 "):
        campaign.run(request, observer)
    assert any(n.startswith("products~twin is to be prepared first: about") for n in observer.notes)


def test_host_memory_error_while_preparing_is_not_missing_data(monkeypatch):
    def prepare_verified(name):
        raise HostMemoryError("too large; take a smaller one")

    monkeypatch.setattr("gnnbench.datasets.prepare.prepare_verified", prepare_verified)
    with pytest.raises(HostMemoryError):
        prepare(BIG)


def test_import_failure_for_lack_of_memory_is_oom_host(fakes, monkeypatch):
    from gnnbench.harness import available

    def find(name):
        raise ImportError("libx.so: failed to map segment from shared object")

    monkeypatch.setattr(available, "find", find)
    assert available.system("fake").status == "oom_host"


def test_data_prepare_states_its_size_and_refuses_if_it_does_not_fit(
    real_check_room, monkeypatch, tmp_path, capsys
):
    from gnnbench import cli

    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def call(*words):
        monkeypatch.setattr("sys.argv", ["gnnbench", "data", "prepare", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    code, out, err = call("rmat@6")
    assert code == 0 and out.strip() == str(paths.data_root() / "rmat@6")
    assert err.startswith("rmat@6 is to be prepared: about ") and "of disk" in err
    assert call("rmat@6")[2] == ""  # already prepared
    limit_free(monkeypatch, "memory", 64 << 20)
    code, out, err = call("-q", BIG)
    assert (code, out, err.count("\n")) == (EXIT_CELLS_FAILED, "", 1)
