"""Choose feature stores by the sizes of datasets and of the GPU's memory, before a run."""

from __future__ import annotations

from gnnbench.config.experiment import Experiment
from gnnbench.core import registry
from gnnbench.core.nvml import gpu_memory_bytes
from gnnbench.core.option import plain_text
from gnnbench.core.units import binary
from gnnbench.features.fit import Settings, Sizes
from gnnbench.harness import available
from gnnbench.harness.estimate import dataset_size
from gnnbench.harness.failures import Failure
from gnnbench.systems.runtime.recipe import Recipe


def choose(experiment: Experiment) -> tuple[Experiment, list[str]]:
    """Return a resolved definition with ``fitted`` settings, and a note on each choice.

    Only for systems of gnnbench whose feature store the definition does not set, and where NVML
    reports the GPU's memory. A definition that has ``fitted`` stays as it is.
    """
    gpu_bytes = gpu_memory_bytes() if "cuda" in experiment.names("device") else 0
    fitted = dict(experiment.fitted)
    notes: list[str] = []
    for system in experiment.names("system"):
        if not gpu_bytes or system in fitted or _sets_features(experiment, system):
            continue
        for dataset in experiment.names("dataset"):
            if settings := _fit(system, dataset, gpu_bytes):
                fitted.setdefault(system, {})[dataset] = dict(settings)
                said = ", ".join(f"{k}={plain_text(v)}" for k, v in settings.items())
                notes.append(
                    f"{system} chose {said} for {dataset}, on a GPU of {binary(gpu_bytes)};"
                    f" -o {system}.features=... overrides it"
                )
    return experiment.model_copy(update={"fitted": fitted}), notes


def _sets_features(experiment: Experiment, system: str) -> bool:
    paths = [*experiment.systems.get(system, {})]
    prefix = f"{system}."
    paths += [axis.removeprefix(prefix) for axis in experiment.paths() if axis.startswith(prefix)]
    return any(path.partition(".")[0] == registry.FEATURES for path in paths)


def _fit(system: str, dataset: str, gpu_bytes: int) -> Settings:
    """Return what a system sets for a dataset; empty where it chooses nothing."""
    if registry.has_plugin(system, {}):
        return {}
    named = available.system(system)
    recipe = None if isinstance(named, Failure) else named.definition
    size = dataset_size(dataset)
    if not isinstance(recipe, Recipe) or recipe.fit is None or size is None:
        return {}
    return recipe.fit(
        Sizes(table=4 * size.nodes * size.width, topology=8 * size.nodes + 4 * size.edges,
              gpu=gpu_bytes)
    )  # fmt: skip
