"""What a worker imports runs on Python 3.10 with numpy and torch alone, for ``run --env``."""

import ast
import json
import subprocess
import sys
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

from gnnbench.config.overrides import Overrides
from gnnbench.core import registry
from gnnbench.harness.interpreter import OLDEST
from gnnbench.harness.launch import make_request
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.harness.startup import FRAMEWORKS

ROOT = Path(__file__).parents[2]
# Reached from a worker's module, but done by the run's own helpers alone.
OWN_ENVIRONMENT = (
    "gnnbench.datasets.prepare", "gnnbench.datasets.generators.generated_features",
    "gnnbench.datasets.shared_memory",
    "gnnbench.measure.throttle",
)  # fmt: skip
# New in the standard library after OLDEST, of what a worker might want.
NEWER = {
    "tomllib", "typing.Self", "typing.Never", "typing.LiteralString", "typing.Required",
    "typing.NotRequired", "typing.Unpack", "typing.TypeVarTuple", "typing.assert_never",
    "typing.assert_type", "typing.reveal_type", "typing.dataclass_transform", "typing.override",
    "typing.TypeAliasType", "enum.StrEnum", "enum.ReprEnum", "enum.verify", "enum.member",
    "enum.nonmember", "datetime.UTC", "hashlib.file_digest", "contextlib.chdir",
    "itertools.batched", "math.cbrt", "math.exp2", "math.sumprod", "asyncio.TaskGroup",
    "asyncio.timeout", "asyncio.Runner", "operator.call", "sys.exception", "sys.monitoring",
    "inspect.getmembers_static", "os.process_cpu_count", "warnings.deprecated", "copy.replace",
    "random.binomialvariate", "collections.abc.Buffer", "types.get_original_bases",
    "ExceptionGroup", "BaseExceptionGroup",
}  # fmt: skip
NEWER_ATTRIBUTES = {name.rpartition(".")[2] for name in NEWER}
NEWER_METHODS = {"add_note", "is_junction", "walk_up", "full_match"}


def path_of(module):
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def exists(module):
    return module.partition(".")[0] == "gnnbench" and path_of(module).is_file()


def is_for_typing(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def nodes(tree):
    """(node, whether it stands in a function) of what runs."""
    todo = [(tree, False)]
    while todo:
        parent, inside = todo.pop()
        inside = inside or isinstance(parent, ast.FunctionDef | ast.Lambda)
        children = [(n, inside) for n in ast.iter_child_nodes(parent) if not is_for_typing(n)]
        yield from children
        todo += children


def imported(node):
    """Modules, and names taken out of modules, that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


@cache
def closure():
    """Modules of ours that a worker of another environment may import, with their trees."""
    ours = {
        value.partition(":")[0] for kind in registry.KINDS for value in registry.OURS[kind].values()
    }
    todo = ["gnnbench.harness.worker", "gnnbench.harness.remote_answers", *ours]
    found = {}
    while todo:
        module = todo.pop()
        if module in found or module in OWN_ENVIRONMENT:
            continue
        source = path_of(module).read_text()
        found[module] = ast.parse(source, str(path_of(module)), feature_version=OLDEST)
        for node, _ in nodes(found[module]):
            for name in imported(node):
                parts = name.split(".")
                names = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
                todo += [n for n in names if exists(n)]
    return found


def test_a_worker_s_modules_are_of_the_oldest_python_and_need_numpy_and_torch_alone():
    trees = closure()
    assert {"gnnbench.systems.runtime.runner", "gnnbench.sampling.pyg"} <= trees.keys()
    faults = []
    for module, tree in trees.items():
        for node, inside in nodes(tree):
            where = f"{module}:{getattr(node, 'lineno', 0)}"
            names = imported(node)
            if isinstance(node, ast.Attribute):
                names = [ast.unparse(node)] if node.attr in NEWER_ATTRIBUTES else []
                if node.attr in NEWER_METHODS:
                    faults.append(f"{where}: {node.attr}")
            if isinstance(node, ast.Name):
                names = [node.id]
            faults += [f"{where}: {name}" for name in names if name in NEWER]
            for name in imported(node) if not inside else ():
                top = name.partition(".")[0]
                known = top in sys.stdlib_module_names or top in ("gnnbench", "numpy", "torch")
                if not known and top not in FRAMEWORKS:
                    faults.append(f"{where}: {name}")
    assert not faults


REFUSE = """
import json, sys
class Refuse:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ImportError(f"{name} is not there in another environment")
REFUSED = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Refuse)
from gnnbench.harness.remote_answers import ANSWERS
from gnnbench.harness.worker_commands import SystemCommands
ANSWERS["describe"]()
for opened in json.load(sys.stdin):
    w = SystemCommands(lambda: None)
    assert ANSWERS["state"](opened["cell"]).failure is None
    w.open(**opened)
    w.setup()
    assert w.check()["ok"]
    for epoch in (1, 2):
        w.epoch(epoch)
        assert w.audit(epoch)["ok"]
    assert w.verify(3)["ok"]
    assert not w.glance()["reason"] and not w.probe([4])["reason"]
    assert not w.recheck(5, False)["reason"]
    w.profile(6)
    w.close()
print(*sys.modules)
"""


def test_a_worker_needs_none_of_our_other_packages(tmp_path):
    """Of an experiment that only samples and one that trains."""
    over = Overrides(
        profile="smoke", systems=("baseline",), datasets=("products~twin@0.001",),
        options=("batch_size=64", "fanouts=[3,2]"),
    )  # fmt: skip
    cache, opened = SharedMemoryCache(tmp_path, 60.0), []
    for name, until in (("sampling", "sample"), ("breakdown", "compute")):
        (cell, *_) = make_request(name, over, tmp_path).plan.cells
        assert cell.until == until
        assert cache.prepare(cell) is None
        opened.append({"cell": asdict(replace(cell, threads=1)), "graph": cache.graph(cell)})
    refused = {"psutil", "pydantic", "pydantic_core", "typer", "rich", "pandas", "scipy",
               "matplotlib", "tomllib", "ogb", "dgl", "torch_geometric"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", REFUSE, ",".join(refused)], input=json.dumps(opened), text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = {m for m in done.stdout.split() if m.startswith("gnnbench.")}
    assert "gnnbench.systems.runtime.runner" in seen
    assert seen <= closure().keys()
