"""The Python examples of docs/ work as described."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from compose import make, run

import gnnbench
from gnnbench.sampling.native import native, spec_of
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.runtime.recipe import Recipe
from gnnbench.systems.runtime.runner import SystemRunner

DOCS = Path(__file__).parents[2] / "docs"


def example(document, nth):
    """The definitions of the n-th Python block of a document."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / document).read_text(), re.S)
    namespace = {"__name__": f"example_{nth}"}
    exec(compile(blocks[nth], f"{document}[{nth}]", "exec"), namespace)
    return namespace


def make_system(recipe, graph):
    """A system of a recipe, with the baseline's cell."""
    system = SystemRunner(make(graph, setup=False).cell, graph, recipe.resolved("cpu"))
    system.setup()
    return system


def test_custom_recipe_is_verified(small_graph, one_thread):
    pytest.importorskip("dgl")
    mine = example("add-a-system.md", 0)["MINE"]
    assert isinstance(mine, Recipe)
    system = make_system(mine, small_graph)
    report = system.check()
    assert report.ok and report.verified, report.reason
    assert run(system).ok


def test_custom_store_is_correct(small_graph, one_thread):
    spec = example("add-a-system.md", 1)["MappedSpec"]
    assert spec(order="sorted").plain() == {"name": "mapped", "order": "sorted"}
    system = make_system(replace(BASELINE, features=spec()), small_graph)
    assert system.check().ok and run(system).ok


def test_custom_sampler_equals_the_built_in_one(small_graph):
    sampler = example("add-a-sampler.md", 0)["Halved"]
    assert issubclass(sampler, gnnbench.Sampler)
    assert spec_of("halved", sampler)(verbose=True).own() == {"verbose": True}
    indptr, indices = small_graph.indptr, small_graph.indices
    ours = gnnbench.build_sampler("hop-by-hop", (indptr, indices), [3, 2], seed=1)
    setting = ours.setting
    drawn = sampler(setting).sample(torch.arange(8, dtype=indices.dtype))
    assert drawn.sampled_edges == ours.sample(torch.arange(8, dtype=indices.dtype)).sampled_edges


def test_custom_sampler_with_other_random_numbers(small_graph, one_thread, monkeypatch, capsys):
    namespace = example("own-sampler.md", 0)
    sampler = namespace["MySampler"]
    for frontier in ("cumulative", "new"):
        recipe = replace(BASELINE, sampler=native(sampler, frontier=frontier))
        assert gnnbench.check_system(recipe, small_graph, [4, 3], batch_size=64) == ""
    monkeypatch.setitem(sys.modules, "my_sampler", SimpleNamespace(MySampler=sampler))
    monkeypatch.setattr(gnnbench, "load_dataset", lambda name: small_graph)
    example("own-sampler.md", 1)
    assert capsys.readouterr().out == "nothing is wrong\n"
