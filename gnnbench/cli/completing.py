"""What a shell offers after TAB: names of experiments, systems, datasets, models and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

KINDS = ("experiments", "systems", "models", "datasets", "figures")  # of ``gnnbench list``


def _by_commas(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """The names that go on a list separated by commas; one that is on it is not offered again."""
    head, comma, last = incomplete.rpartition(",")
    chosen = head.split(",")
    return [
        f"{head}{comma}{name}" for name in names() if name.startswith(last) and name not in chosen
    ]


def _systems() -> list[str]:
    from gnnbench.core import registry

    return sorted(registry.known(registry.SYSTEM))


def _models() -> list[str]:
    from gnnbench.harness.doctor import models

    return [row["name"] for row in models()]


def _datasets() -> list[str]:
    from gnnbench.core.errors import GnnbenchError
    from gnnbench.harness.doctor import datasets

    try:
        return [row["name"] for row in datasets()]
    except GnnbenchError:  # the command itself says what is wrong with the store
        return []


def _experiments() -> list[str]:
    from gnnbench.config import experiment

    return list(experiment.shipped())


def experiments(incomplete: str) -> list[str]:
    """Experiments, and the papers' figures once a paper is named."""
    from gnnbench.reproduction import figures

    known = [*_experiments(), *(figures.figures() if "/" in incomplete else ())]
    return [name for name in known if name.startswith(incomplete)]


def listed(incomplete: str) -> list[str]:
    """What ``gnnbench list`` takes: experiments, systems, kinds, figures."""
    rest = [name for name in (*_systems(), *KINDS) if name.startswith(incomplete)]
    return [*experiments(incomplete), *rest]


def runs(incomplete: str) -> list[str]:
    """``latest`` and the experiments with a run in ``results``."""
    from pathlib import Path

    from gnnbench.schema import reader

    names = [path.parent.name for path in reader.run_folders(Path("results"))]
    known = dict.fromkeys(["latest", *sorted(names)])
    return [name for name in known if name.startswith(incomplete)]


def systems(incomplete: str) -> list[str]:
    """Systems, separated by commas."""
    return _by_commas(_systems, incomplete)


def models(incomplete: str) -> list[str]:
    """Models, separated by commas."""
    return _by_commas(_models, incomplete)


def datasets(incomplete: str) -> list[str]:
    """Datasets, separated by commas."""
    return _by_commas(_datasets, incomplete)


def dataset(incomplete: str) -> list[str]:
    """One dataset."""
    return [name for name in _datasets() if name.startswith(incomplete)]


def downloads(incomplete: str) -> list[str]:
    """A dataset that can be downloaded."""
    from gnnbench.datasets.download_sources import downloads as known

    return [name for name in known() if name.startswith(incomplete)]
