"""Damaged and too large definitions are refused in one sentence that names the place."""

import random
import re

import pytest

from gnnbench.config import experiment, limits
from gnnbench.core.errors import GnnbenchError, UsageError

HEAD = 'schema_version = 2\n[axes]\nsystem = ["baseline"]\ndataset = ["cora"]\n'


def load(tmp_path, content):
    path = tmp_path / "mine.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return experiment.load(str(path))


def test_byte_order_mark_is_ignored(tmp_path):
    bare = load(tmp_path, HEAD)
    assert load(tmp_path, b"\xef\xbb\xbf" + HEAD.encode()) == bare


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEAD.encode("utf-16"), "is UTF-16; save it as UTF-8"),
        (HEAD.encode() + b"# caf\xe9\n", "byte 0xe9 in line 5 is not UTF-8"),
        (HEAD.encode() + b"# \x00\n", "NUL byte in line 5"),
        (b"", "no schema_version"),
        (HEAD + "a = " + "[" * 5000, "nests lists or tables too deeply"),
        (HEAD + "[systems.x]\n" + ".".join("a" * 40) + " = 1\n", "more than 16 tables"),
        (HEAD + f"seed = [{'9' * 6000}]\n", "is not TOML"),
        (HEAD + f"seed = [{10**30}]\n", "'axes.seed.0' is a whole number of 100 bits"),
        (HEAD + "learning_rate = [inf]\n", "'axes.learning_rate.0' is inf; give a finite number"),
        (HEAD + "[measure]\ntime_budget_s = nan\n", "'measure.time_budget_s' is nan"),
        (HEAD + "[systems.x]\na = 1979-05-27\n", "'systems.x.a' is a date (1979-05-27)"),
        (HEAD + "seed = [1]\nseed = [2]\n", "is not TOML"),
        ("extends = 3\n" + HEAD, "'extends' in 'mine.toml' must be a name or a path"),
        ('extends = "mine.toml"\n' + HEAD, "extends itself"),
        ('extends = "../nosuch.toml"\n' + HEAD, "no definition '../nosuch.toml'"),
        ('extends = "a\\u0000.toml"\n' + HEAD, "no definition"),
        (f'extends = "{"x" * 5000}.toml"\n' + HEAD, "no definition"),
        ('extends = "sampling"\nschema_version = 2\ndefault_profile = []\n', "default_profile"),
        (HEAD.replace("= 2", "= true"), "schema_version cannot be True; it is 2"),
        (HEAD + "fanouts = [[2147483648]]\n", "axis 'fanouts' cannot be [2147483648]"),
        (HEAD + "threads = [100000]\n", "'threads' cannot be 100000; it is a whole number from 0"),
        ('name = "größe"\n' + HEAD, "made of up to 100 letters a to z, digits and _.+~@-"),
        (f'name = "{"n" * 101}"\n' + HEAD, "of up to 100 letters a to z"),
    ],
)
def test_invalid_definitions_are_refused(content, message, tmp_path):
    with pytest.raises(UsageError, match=re.escape(message)):
        load(tmp_path, content)


def test_combinations_are_counted_without_being_built(tmp_path):
    numbers = ", ".join(map(str, range(2000)))
    text = HEAD + f"seed = [{numbers}]\nthreads = [{numbers}]\nbatch_size = [1, 2]\n"
    loaded = load(tmp_path, text)
    with pytest.raises(UsageError) as refused:
        experiment.resolve(loaded)
    assert "8,000,000 combinations" in str(refused.value)
    assert "seed 2,000 x threads 2,000 x batch_size 2" in str(refused.value)


def test_combinations_up_to_the_limit_are_accepted():
    limits.check_combinations({"seed": [0] * 100}, {"threads": [0] * 50}, {"s": {"a": [0]}})
    with pytest.raises(UsageError, match="10,100 combinations"):
        limits.check_combinations({"seed": [0] * 101}, {"threads": [0] * 50}, {"s": {"a": [0]}})


VALUES = ("nan", "inf", "-1", "[]", "{}", '""', "true", "[[[1]]]", "1979-05-27", '"x"', "0")
KEYS = ("extends", "name", "axes", "zip", "sweeps", "measure", "profiles", "constraints", "compare",
        "default_profile", "figures", "schema_version", "systems", "references")  # fmt: skip


def mutated(text, rng):
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[at:]
    elif kind == 1 and "=" in lines[at]:
        lines[at] = lines[at].split("=")[0] + "= " + rng.choice(VALUES)
    elif kind == 2:
        lines.insert(at, f"{rng.choice(KEYS)} = {rng.choice(VALUES)}")
    elif kind == 3:
        lines.insert(at, f"[{rng.choice(KEYS)}]")
    else:
        del lines[at]
    return "\n".join(lines)


def test_damaged_definitions_are_loaded_or_refused(tmp_path):
    rng = random.Random(33)
    sources = [path.read_text() for path in experiment.shipped().values()]
    sources = sorted(sources, key=len)[:4]
    for _ in range(60):
        try:
            experiment.resolve(load(tmp_path, mutated(rng.choice(sources), rng))).to_toml()
        except GnnbenchError as refused:
            assert str(refused) and len(str(refused)) < 1500


@pytest.mark.parametrize("table", ["batch_size = []", "[zip]\nbatch_size = []\nhidden = []"])
def test_axis_without_values_is_refused(table, tmp_path):
    with pytest.raises(UsageError, match=r"the axis 'batch_size.* has no values; give one"):
        experiment.resolve(load(tmp_path, HEAD + table))


def test_file_of_a_graph_is_no_definition(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("0,1\n")
    with pytest.raises(UsageError, match=r"is no definition \(.toml\); for a graph, 'gnn"):
        experiment.load(str(path))
