"""The systems' files: short, each with the paper that it is from."""

from pathlib import Path

import pytest

import gnnbench.systems
from gnnbench.core import registry
from gnnbench.systems.runtime.recipe import Recipe

FILES = sorted(Path(gnnbench.systems.__file__).parent.glob("[a-z]*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_system_is_a_short_file_of_its_own(path):
    text = path.read_text()
    assert text.count("\n") < 80
    name = path.stem.replace("_", "-")
    assert text.startswith(f'"""``{name}``: ')
    assert registry.OURS["system"][name] == f"gnnbench.systems.{path.stem}:{path.stem.upper()}"


def test_every_system_has_a_file():
    assert {p.stem.replace("_", "-") for p in FILES} == set(registry.OURS["system"])


@pytest.mark.parametrize("name", registry.OURS["system"])
def test_a_system_names_its_paper_and_says_what_it_is(name):
    recipe = registry.load("system", name)
    assert isinstance(recipe, Recipe) and recipe.name == name
    assert recipe.summary and len(recipe.paper) > 20
    if recipe.stand_in:
        assert recipe.stand_in in registry.OURS["system"]


def test_systems_differ():
    recipes = [registry.load("system", name).plain() for name in registry.OURS["system"]]
    assert all(a != b for i, a in enumerate(recipes) for b in recipes[:i])
