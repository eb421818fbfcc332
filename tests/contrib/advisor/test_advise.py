"""The command ``gnnbench advise`` on a small graph, and its errors."""

import json
import shlex
import subprocess

import pytest

from gnnbench.contrib.advisor.advice import Setting, checked
from gnnbench.core.errors import (
    DataError,
    GpuMemoryError,
    HostMemoryError,
    MissingError,
    UsageError,
)

SMALL = ["products~twin@0.005", "--batch-size", "200", "--fanouts", "4,3", "--device", "cpu"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def advise(monkeypatch, store, capsys):
    """Standard output of the command."""
    monkeypatch.setenv("GNNBENCH_DATA", str(store))

    def call(*words):
        from gnnbench.cli import app

        app(["advise", *words], standalone_mode=False)
        return capsys.readouterr().out

    return call


def test_estimates_can_be_recomputed_from_the_report(advise):
    report = json.loads(advise(*SMALL, "--json"))
    facts, rates = report["facts"], report["rates"]
    assert report["setting"]["device"] == "cpu" and facts["ratio"] == 0
    assert len(report["ranking"]) == 24
    times = [one["epoch_s"] for one in report["ranking"]]
    assert times == sorted(times) and times[0] > 0
    for one in report["ranking"]:
        for phase, spent in one["phases_s"].items():
            of = [t["amount"] / t["rate"] for t in one["terms"] if t["phase"] == phase]
            assert spent == pytest.approx(sum(of))
        if one["settings"]["schedule"] == "serial":
            assert one["batch_s"] == pytest.approx(sum(one["phases_s"].values()))
            assert one["epoch_s"] == pytest.approx(facts["batches"] * one["batch_s"])
        sampling = next(t for t in one["terms"] if t["phase"] == "sample")
        assert sampling["rate"] == rates["sample"][one["settings"]["sampler"]]
    assert all(r > 0 for name, r in rates.items() if name != "sample")


@pytest.fixture(scope="module")
def printed():
    return []


@pytest.fixture
def text(advise, printed):
    """The printed advice, computed once per module."""
    if not printed:
        printed.append(advise(*SMALL))
    return printed[0]


def test_advice_prints_facts_and_rates(text):
    assert "advised for system 'best'; estimated epoch:" in text
    for words in (
        "in-degree: mean, most, none", "mean batch", "match degree, all pairs",
        "hits of degree at 0.1", "hits of presc#1 at 0.5", "rows read from memory",
        "random 4-byte reads", "rows fetched", "sampling, fastsample", "serial phases",
        "next of 24 choices",
    ):  # fmt: skip
        assert words in text, words
    command = next(line for line in text.splitlines() if line.startswith("gnnbench run"))
    assert "-o best.sampler=" in command and "--datasets 'products~twin@0.005'" in command


def test_printed_command_can_be_planned(text, tmp_path):
    from gnnbench.config.overrides import Overrides
    from gnnbench.harness.launch import make_request

    words = next(line for line in text.splitlines() if line.startswith("gnnbench run"))
    words = shlex.split(words)
    options = tuple(words[n + 1] for n, word in enumerate(words) if word == "-o")
    over = Overrides(
        systems=("baseline", "best"), datasets=("products~twin@0.005",), models=("gcn",),
        device="cpu", options=options,
    )  # fmt: skip
    cells = make_request(words[2], over, tmp_path).plan.cells
    assert [c.system for c in cells] == ["baseline", "best"]
    assert {(c.batch_size, c.fanouts, c.hidden) for c in cells} == {(200, (4, 3), 64)}


def test_missing_graph_is_refused(advise, monkeypatch, tmp_path):
    with pytest.raises(UsageError, match="products"):
        advise("produkts")
    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(tmp_path))
    with pytest.raises(MissingError, match="'reddit' is not on this machine; get it with"):
        advise("reddit", "--device", "cpu")


def test_missing_device_is_refused(monkeypatch):
    from gnnbench.contrib.advisor import advice
    from gnnbench.core.missing import Missing

    absent = Missing("there is no CUDA device", "run on a machine with a GPU")
    monkeypatch.setattr(advice, "native_missing", lambda d: absent if d == "cuda" else None)
    with pytest.raises(MissingError, match="on 'cuda': there is no CUDA device; run on a machine"):
        checked(Setting("g", device="cuda"))
    monkeypatch.setattr(advice.machine, "gpus", lambda: [{"name": "x"}])
    assert checked(Setting("g")).device == "cpu"  # auto ignores an unusable GPU


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"device": "tpu"}, "there is no device 'tpu'; give cpu, cuda or auto"),
        ({"model": "lstm"}, "there is no model 'lstm'; it is gcn"),
        ({"fanouts": ()}, "fanouts are numbers from 1"),
        ({"fanouts": (3, 0)}, "fanouts are numbers from 1"),
        ({"fanouts": (3, 1 << 31)}, "fanouts are numbers from 1"),
        ({"threads": 100_000}, "threads=100000 is more than the"),
        ({"cache_gib": 1.0}, "a cache is of a GPU's memory"),
    ],
)
def test_invalid_settings_are_refused(changed, message):
    with pytest.raises(UsageError, match=message):
        checked(Setting("g", **{"device": "cpu", **changed}))


def test_device_and_model_ignore_case():
    setting = checked(Setting("g", device="CPU", model="GraphSAGE"))
    assert (setting.device, setting.model) == ("cpu", "graphsage")


def test_too_large_model_is_a_memory_error(advise):
    with pytest.raises(HostMemoryError, match="memory is too small; use a smaller batch_size"):
        advise("rmat@6", "--device", "cpu", "--hidden", str(10**15))


def test_table_without_edges_is_refused(advise):
    with pytest.raises(DataError, match="has no edges to sample; give another"):
        advise("rows@1kx16", "--device", "cpu")


def test_invalid_fanouts_are_refused(advise):
    with pytest.raises(UsageError, match="fanouts are numbers from 1"):
        advise("products~twin@0.005", "--fanouts", "a,b")


@pytest.mark.parametrize(
    ("code", "out", "error", "message"),
    [
        (
            0,
            '{"error": "too large; take less", "kind": "GpuMemoryError"}',
            GpuMemoryError,
            "too la",
        ),
        (-9, "", HostMemoryError, "was killed; free memory, or use smaller batches"),
        (3, "", RuntimeError, "ended with exit code 3"),
    ],
)
def test_failed_measuring_process_is_an_error(code, out, error, message, monkeypatch):
    from gnnbench.contrib.advisor import advice

    def run(*_, **__):
        return subprocess.CompletedProcess([], code, out)

    monkeypatch.setattr(advice.subprocess, "run", run)
    with pytest.raises(error, match=message):
        advice._measured(Setting("g", device="cpu"))
