"""Fake systems for the runner: registered by environment variable, so that workers see them too."""

from contextlib import contextmanager

import pytest
from fakes import FAKES, Quiet, fake_environment


@contextmanager
def registered(monkeypatch):
    """The fakes are known in this process and in workers; the tree may change meanwhile."""
    from gnnbench.core import registry
    from gnnbench.harness import available, environment
    from gnnbench.measure import contention, machine

    for key, value in fake_environment().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    monkeypatch.setattr(machine, "busy_seconds", lambda: 0.0)  # whatever else runs here
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
def fakes_all_along():
    """The same for what a module's tests share."""
    with pytest.MonkeyPatch.context() as patch, registered(patch):
        yield


@pytest.fixture
def observer():
    return Quiet()


@pytest.fixture
def launch(fakes, tmp_path, observer):
    """Run fakes in this process: ``launch("fake,slow", repeats=3, options=(...))`` -> Outcome.

    The option ``speed=...`` goes to each of them.
    """
    from gnnbench.config.overrides import Overrides
    from gnnbench.harness import campaign
    from gnnbench.harness.launch import make_request

    def run(systems, named=True, resume=False, force=False, out=None, more=None, **over):
        mine = [
            f"{system}.{option}" if option.startswith("speed=") else option
            for option in over.pop("options", ())
            for system in (systems.split(",") if option.startswith("speed=") else [""])
        ]
        given = any(option.startswith("reference=") for option in mine)
        options = (*(() if given else ("reference=fake",)), *mine)
        over.setdefault("repeats", 2)
        over.setdefault("profile", "smoke")
        definition = tmp_path / "fakes.toml"
        if not named:
            listed = ", ".join(f'"{s}"' for s in systems.split(","))
            definition.write_text(
                f'schema_version = 2\nextends = "breakdown"\n[axes]\nsystem = [{listed}]\n'
            )
        chosen = tuple(systems.split(",")) if named else ()
        request = make_request(
            "breakdown" if named else str(definition),
            Overrides(systems=chosen, options=options, **over),
            out or tmp_path / "results",
            resume,
            force,
            **(more or {}),
        )
        return campaign.run(request, observer)

    return run
