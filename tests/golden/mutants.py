"""Plant each fault of ``mutants.toml`` in a copy and run the tests that must find it.

    python tests/golden/mutants.py [--check] [NAME ...]

Prints one line for each mutant, and writes the table of ``mutants.md`` where all were run.
``--check`` only looks whether each ``old`` occurs once in the package.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COPIED = ("gnnbench", "tests", "experiments", "datasets")
LINKED = ("results", "docs", "native", "README.md", "CHANGELOG.md", "pyproject.toml")
# The copy comes before the installed package, whose import hook goes first otherwise.
SITE = """\
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
"""
LIMIT_S = 900.0
MOST_FAILURES = 4
TABLE = "mutants.md"


@dataclass(frozen=True)
class Mutant:
    """One fault, and parts of the names of the test files that must fail."""

    name: str
    area: str
    old: str
    new: str
    tests: list[str]


def mutants() -> list[Mutant]:
    """All planted faults."""
    return [Mutant(**one) for one in tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]]


def place(mutant: Mutant, package: Path) -> Path:
    """The file with the mutant's text. Raises ``LookupError`` unless it occurs just once."""
    counts = {p: p.read_text().count(mutant.old) for p in sorted(package.rglob("*.py"))}
    times = sum(counts.values())
    if times != 1:
        where = ", ".join(str(p.relative_to(package)) for p, count in counts.items() if count)
        raise LookupError(f"{mutant.name}: its text occurs {times} times {where}".rstrip())
    return next(path for path, count in counts.items() if count)


def copy(folder: Path) -> None:
    """The project without its history and its build."""
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in LINKED:
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SITE)


def files(mutant: Mutant, folder: Path) -> list[str]:
    """Test files by the parts of their names, in that order."""
    known = sorted(p.relative_to(folder).as_posix() for p in (folder / "tests").rglob("test_*.py"))
    matching = [f for part in mutant.tests for f in known if part in f.removesuffix(".py")]
    exact = [f for part in mutant.tests for f in known if f.removesuffix(".py").endswith(part)]
    return list(dict.fromkeys(exact or matching))


def caught_by(mutant: Mutant, folder: Path) -> str:
    """The test that fails, ``""`` where none does. Raises ``LookupError`` for a stale mutant."""
    path = place(mutant, folder / "gnnbench")
    before = path.read_text()
    chosen = files(mutant, folder)
    if not chosen:
        raise LookupError(f"{mutant.name}: no test file has such a name: {mutant.tests}")
    for file in chosen:
        path.write_text(before.replace(mutant.old, mutant.new))
        try:
            failed = _failures([file], folder)
        finally:
            path.write_text(before)
        # What fails without the mutant says nothing of it.
        if failed and (new := [one for one in failed if one not in _failures(failed, folder)]):
            return new[0]
    return ""


def _failures(tests: list[str], folder: Path) -> list[str]:
    """The first few tests that fail among files or tests."""
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'site'}:{folder}"}
    command = ["-m", "pytest", "-q", f"--maxfail={MOST_FAILURES}", "-n0", "-rfE", *tests]
    try:
        ended = subprocess.run(
            [sys.executable, *command, "-p", "no:cacheprovider"], cwd=folder, env=environment,
            capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return tests
    if ended.returncode == 0:
        return []
    lines = [x for x in ended.stdout.splitlines() if x.startswith(("FAILED ", "ERROR "))]
    if not lines:
        raise RuntimeError(f"{tests}: {ended.stdout[-500:]}{ended.stderr[-500:]}")
    return [line.split(" ", 1)[1].partition(" - ")[0] for line in lines]


def write_table(results: dict[str, str]) -> None:
    """``mutants.md``; ``results`` has the failing test by mutant, "" of one that is missed."""
    known = [m for m in mutants() if m.name in results]
    caught = sum(bool(results[m.name]) for m in known)
    lines = [
        "# Planted faults", "",
        f"{caught} of {len(known)} found; written by `python tests/golden/mutants.py`.", "",
        "| mutant | area | first test that fails |", "|---|---|---|",
    ]  # fmt: skip
    lines += [f"| {m.name} | {m.area} | {results[m.name] or '**missed**'} |" for m in known]
    (HERE / TABLE).write_text("\n".join(lines) + "\n")


def main() -> int:
    """Run the chosen mutants; 1 where one is missed or stale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    chosen = [m for m in mutants() if not given.names or m.name in given.names]
    results: dict[str, str] = {}
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = ROOT if given.check else Path(name)
        if not given.check:
            copy(folder)
        for mutant in chosen:
            try:
                if given.check:
                    place(mutant, folder / "gnnbench")
                    continue
                results[mutant.name] = caught_by(mutant, folder)
            except LookupError as error:
                print(f"stale {error}", flush=True)
                wrong += 1
                continue
            test = results[mutant.name]
            wrong += not test
            print(f"{'caught' if test else 'MISSED'} {mutant.name} {test}", flush=True)
    if not given.check and not given.names:
        write_table(results)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
