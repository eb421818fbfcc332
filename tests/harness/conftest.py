"""Fake systems for the runner: registered by environment variable, so that workers see them too."""

from contextlib import contextmanager

import pytest
from fakes import FAKES, Quiet, fake_environment


@contextmanager
def registered(monkeypatch):
    """Registers the fakes in this process and in workers, and pins the source digest."""
    from gnnbench.core import registry
    from gnnbench.harness import available, environment
    from gnnbench.measure import contention, machine

    for key, value in fake_environment().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    monkeypatch.setattr(machine, "busy_seconds", lambda: 0.0)  # ignore other programs
    monkeypatch.setattr(contention, "stolen_seconds", lambda: 0.0)
    caches = (registry.entries, available.availability, environment.dataset_state)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def fakes(monkeypatch):
    with registered(monkeypatch):
        yield sorted(FAKES)


@pytest.fixture(scope="module")
def module_fakes():
    """Registers the fakes for a whole module."""
    with pytest.MonkeyPatch.context() as patch, registered(patch):
        yield


@pytest.fixture
def observer():
    return Quiet()


@pytest.fixture
def run_inside(fakes, said):
    """Runs a command in this process; returns exit code, standard output and error."""
    return said


@pytest.fixture
def measured(tmp_path, observer):
    """``measured(text)``: the run of a definition."""
    from gnnbench.config.overrides import Overrides
    from gnnbench.harness import campaign
    from gnnbench.harness.launch import make_request
    from gnnbench.schema import reader

    def run(text):
        (tmp_path / "mine.toml").write_text(text)
        request = make_request(str(tmp_path / "mine.toml"), Overrides(), tmp_path / "out")
        return reader.read(campaign.run(request, observer).folder)

    return run


@pytest.fixture
def start_worker(tmp_path):
    """``start_worker("baseline", "schedule=...")``: a worker of a small cell, set up."""
    from gnnbench.config.overrides import Overrides
    from gnnbench.harness.launch import make_request
    from gnnbench.harness.shared_cache import SharedMemoryCache

    cache, workers = SharedMemoryCache(tmp_path, 60.0), []

    def start(system, *options):
        over = Overrides(
            profile="smoke", systems=(system,), datasets=("products~twin@0.001",),
            options=("batch_size=64", "fanouts=[3,2]", *options),
        )  # fmt: skip
        (cell, *_) = make_request("breakdown", over, tmp_path).plan.cells
        assert cache.prepare(cell) is None
        worker = cache.worker(cell)
        workers.append(worker)
        worker.open(cache.graph(cell))
        worker.call("setup")
        return worker

    yield start
    for worker in workers:
        worker.kill()


def launcher(folder, observer):
    """Runs fakes in this process: ``launch("fake,slow", repeats=3, options=(...))`` -> Outcome.

    The option ``speed=...`` is set for each of them.
    """
    from gnnbench.config.overrides import Overrides
    from gnnbench.harness import campaign
    from gnnbench.harness.launch import make_request

    def run(systems, named=True, resume=False, force=False, out=None, more=None, **over):
        system_options = [
            f"{system}.{option}" if option.startswith("speed=") else option
            for option in over.pop("options", ())
            for system in (systems.split(",") if option.startswith("speed=") else [""])
        ]
        has_reference = any(option.startswith("reference=") for option in system_options)
        options = (*(() if has_reference else ("reference=fake",)), *system_options)
        over.setdefault("repeats", 1)
        over.setdefault("profile", "smoke")
        definition = folder / "fakes.toml"
        if not named:
            names = ", ".join(f'"{s}"' for s in systems.split(","))
            definition.write_text(
                f'schema_version = 2\nextends = "breakdown"\n[axes]\nsystem = [{names}]\n'
            )
        chosen = tuple(systems.split(",")) if named else ()
        request = make_request(
            "breakdown" if named else str(definition),
            Overrides(systems=chosen, options=options, **over),
            out or folder / "results",
            resume,
            force,
            **(more or {}),
        )
        return campaign.run(request, observer)

    return run


@pytest.fixture
def launch(fakes, tmp_path, observer):
    return launcher(tmp_path, observer)


@pytest.fixture(scope="module")
def module_launch(module_fakes, tmp_path_factory):
    """``launch`` into one folder of a whole module."""
    return launcher(tmp_path_factory.mktemp("runs"), Quiet())
