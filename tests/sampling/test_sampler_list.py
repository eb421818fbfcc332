"""The list of samplers, and a third party's sampler."""

import importlib
import pickle
import subprocess
import sys

import pytest

import gnnbench
from gnnbench.core import registry
from gnnbench.core.errors import UsageError
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.registry import sampler_names

STRANGER = """
from gnnbench.core.option import Option
from gnnbench.sampling.hop_by_hop import HopByHop

class Stranger(HopByHop):
    name = "stranger"
    summary = "a stranger's"
    devices = ("cpu",)
    options = {"depth": Option("depth", 1, "how deep", range(1, 4))}

    def __init__(self, setting, depth=1):
        super().__init__(setting)
        self.depth = depth
"""


def test_ours_are_told_with_what_they_do():
    infos = {info.name: info for info in gnnbench.samplers()}
    assert list(infos) == sampler_names()
    assert set(infos) < set(registry.OURS["sampler"])
    for info in infos.values():
        assert info.summary and info.devices and not info.problem
        assert set(info.picks) == set(info.devices)
        assert all(set(picks) <= set(PICKS) and picks for picks in info.picks.values())
        assert info.frontiers[0] == "cumulative"
    assert infos["hop-by-hop"].picks["cpu"][0] == "floyd"
    assert infos["hop-by-hop"].picks["cuda"][0] == "reservoir"
    assert infos["pgsampler"].picks["cpu"][0] == "reservoir"
    assert infos["fused-map"].picks["cpu"][0] == infos["fastsample"].picks["cpu"][0] == "floyd"
    assert infos["dgl-fusion"].devices == ("cuda",)
    assert "unsafe" in infos["pgsampler-as-printed"].options


@pytest.fixture
def extra(monkeypatch):
    def name(text: str) -> None:
        monkeypatch.setenv(registry.extra_variable("sampler"), text)
        registry.entries.cache_clear()

    yield name
    monkeypatch.undo()
    registry.entries.cache_clear()


def test_a_strangers_sampler_is_built_like_ours(tmp_path, monkeypatch, extra, small_graph):
    (tmp_path / "stranger_module.py").write_text(STRANGER)
    monkeypatch.syspath_prepend(str(tmp_path))
    extra("stranger=stranger_module:Stranger, broken=no_such_module:Sampler")
    infos = {info.name: info for info in gnnbench.samplers()}
    assert infos["stranger"].summary == "a stranger's"
    assert "no_such_module" in infos["broken"].problem and infos["broken"].picks == {}
    sampler = gnnbench.build_sampler("stranger", small_graph, [3], depth=2)
    assert sampler.depth == 2 and sampler.sample([1]).seeds.tolist() == [1]
    with pytest.raises(UsageError, match="did you mean 'depth'"):
        gnnbench.build_sampler("stranger", small_graph, [3], dpeth=2)
    assert pickle.loads(pickle.dumps(sampler)).depth == 2


def test_an_earlier_name_is_answered_with_todays(small_graph):
    with pytest.raises(UsageError, match="sampler 'baseline' is called 'hop-by-hop' now"):
        gnnbench.build_sampler("baseline", small_graph, [3])


def test_an_extra_of_another_form_is_an_error(extra):
    extra("stranger")
    with pytest.raises(UsageError, match="not of the form name=module:object"):
        gnnbench.samplers()


def test_importing_gnnbench_imports_nothing_large():
    code = (
        "import sys, gnnbench; large = {'torch', 'numpy', 'dgl', 'torch_geometric', 'pandas'};"
        "assert not large & set(sys.modules), large & set(sys.modules);"
        "assert {'samplers', 'build_sampler', 'load_dataset'} <= set(dir(gnnbench))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    importlib.import_module("gnnbench.sampling.registry")
    assert callable(gnnbench.samplers)  # not hidden by a module
    with pytest.raises(AttributeError, match="no attribute 'sampler'"):
        gnnbench.sampler  # noqa: B018
