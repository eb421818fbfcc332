"""The folder of a run: create, lock and continue it; check what must not change between the
parts.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import textwrap
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from gnnbench.config.experiment import Experiment
from gnnbench.config.merge import flattened
from gnnbench.core import registry
from gnnbench.core.cell import Cell, flat
from gnnbench.core.errors import UsageError
from gnnbench.core.files import TEMPORARY, ensure_folder, sweep, write_json, write_text
from gnnbench.core.option import plain_text
from gnnbench.harness.worker_environment import WORKER_ENVIRONMENT, overridden_environment
from gnnbench.measure import machine
from gnnbench.schema.reader import read_json_record, run_folders
from gnnbench.schema.run_json import IdentityJson, PluginJson, RunJson

SHOWN = 3  # differences between two definitions


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Lock ``out`` against other runs, which would disturb timing and files."""
    ensure_folder(out)
    handle = os.open(out, os.O_RDONLY | os.O_DIRECTORY)  # the folder itself: no file is left behind
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(
            f"another run is writing to '{out}'; wait for it or give another folder with --out"
        ) from None
    finally:
        os.close(handle)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Lock a run's folder while it is written, so that readers see that the run is active."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def identity() -> IdentityJson:
    """Return code and machine of this process, as ``run.json`` records them."""
    machine_record = machine.record()
    return {
        "revision": machine.revision(),
        "versions": machine.versions(),
        "machine": machine_record,
        "machine_id": machine.fingerprint(machine_record),
        "worker_environment": WORKER_ENVIRONMENT,
        "overridden_environment": overridden_environment(),
    }


def plugins(cells: Collection[Cell]) -> dict[str, PluginJson]:
    """Return the package of each third-party system and stage that cells name, and a digest of
    its sources.
    """
    used = {(registry.SYSTEM, cell.system) for cell in cells}
    for cell in cells:
        paths = flat(cell.recipe)
        used |= {(kind, str(paths[kind])) for kind in registry.KINDS if kind in paths}
    digests = {f"{kind} {name}": registry.source_digest(kind, name) for kind, name in sorted(used)}
    return {
        key: {"package": one[0], "source_digest": one[1]}
        for key, one in digests.items()
        if one is not None
    }


def create(out: Path, experiment: Experiment, record: RunJson) -> Path:
    """Create a run folder with the resolved definition; it appears complete or not at all."""
    parent = out / experiment.name
    ensure_folder(parent)
    sweep(parent)
    stamp = utc_stamp()
    new = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=parent))
    new.chmod(0o755)
    for sub in ("logs", "figures"):
        (new / sub).mkdir()
    write_text(new / "definition.toml", experiment.to_toml())
    write_json(new / "run.json", {**record, "started": stamp, "finished": False})
    name = f"run-{stamp}-{experiment.hash[:8]}"
    for attempt in range(100):
        folder = parent / (f"{name}-{attempt}" if attempt else name)
        if not folder.exists():  # nobody else writes here: ``out`` is locked
            return new.rename(folder)
    raise UsageError(f"too many runs named '{name}' in '{parent}'; remove some")


def reopen(folder: Path, record: RunJson) -> RunJson:
    """Record in ``run.json`` that a run continues; returns the record of its start."""
    sweep(folder)
    before = read_json_record(folder)
    now = {
        "at": utc_stamp(),
        "revision": record["revision"],
        "versions": record["versions"],
        "environments": record["environments"],
        "machine_id": record["machine_id"],
        "load_before": record["load_before"],
        "plugins": record["plugins"],
    }
    before["resumed"] = [*before.get("resumed", []), now]
    write_json(folder / "run.json", {**before, "finished": False})
    return before


def _differences(then: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Return the first three of the differences between two definitions, in words."""
    missing = "nothing"
    changed = [
        f"{key} was {_short(then.get(key, missing))} and is {_short(now.get(key, missing))}"
        for key in dict.fromkeys([*then, *now])
        if then.get(key, missing) != now.get(key, missing)
    ]
    more = len(changed) - SHOWN
    return ", ".join(changed[:SHOWN]) + (f", and {more} more" if more > 0 else "")


def _short(value: object) -> str:
    return textwrap.shorten(plain_text(value), 80, placeholder=" ...")


def utc_stamp() -> str:
    """Return the present time in the format of run folders' names."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def nothing_there(out: Path, experiment: Experiment) -> UsageError:
    """Return the error for a run to continue that does not exist."""
    return UsageError(
        f"there is no run of '{experiment.name}' in '{out}' to go on with; begin one with neither"
        " --resume nor --only-failed, or name the folder of its results with --out"
    )


def find_to_resume(
    out: Path, experiment: Experiment, record: RunJson, force: bool, repairs: bool = False
) -> Path:
    """The latest run of this definition.

    ``repairs``: only failed cells are measured again, so packages may be new: no measured cell used
    them. Raises ``UsageError`` when the definition, the machine or a package's version changed;
    and, unless ``force``, when the code or a plug-in changed.
    """
    folders = [f for f in run_folders(out, experiment.name) if (f / "run.json").exists()]
    if not folders:
        raise nothing_there(out, experiment)
    plain_now = experiment.model_dump(mode="json")
    for folder in reversed(folders):
        before = read_json_record(folder)
        if before["definition_hash"] == experiment.hash:
            break
    else:
        then, now = (
            flattened({**e}) for e in (read_json_record(folders[-1])["experiment"], plain_now)
        )
        raise UsageError(
            f"the last run, '{folders[-1].name}', is another one: {_differences(then, now)}; give"
            " the same options as then, or start anew with --fresh"
        )
    known, given = (r.get("environments", {}) for r in (before, record))
    if known.keys() != given.keys():
        again = " ".join(f"--env {name}=PATH" for name in known) or "no --env"
        raise UsageError(
            f"'{folder.name}' was begun with other environments; go on with {again}, or start anew"
            " with --fresh"
        )
    conditions = _changed(
        ("the machine", before["machine_id"], record["machine_id"]),
        ("a package's version", before["versions"], _without_new(before, record, repairs)),
        *((f"environment '{name}'", known[name], given[name]) for name in known),
    )
    if conditions:
        raise UsageError(
            f"{' and '.join(conditions)} changed since '{folder.name}' was begun, and its times"
            " cannot be pooled with new ones; start anew with --fresh"
        )
    sources = _changed(
        ("the code", before["revision"]["source_digest"], record["revision"]["source_digest"]),
        *_brought(before.get("plugins", {}), record.get("plugins", {})),
    )
    if sources and not force:
        raise UsageError(
            f"{' and '.join(sources)} changed since '{folder.name}' was begun; start anew with"
            " --fresh, or mix the two with --resume --force"
        )
    return folder


def _without_new(before: RunJson, record: RunJson, repairs: bool) -> dict[str, str | None]:
    """Return today's versions; of a repair, without packages that were not installed then."""
    then = before["versions"]
    return {
        name: None if repairs and name in then and then[name] is None else version
        for name, version in record["versions"].items()
    }


def _changed(*values: tuple[str, object, object]) -> list[str]:
    """Names of the values that differ."""
    return [name for name, then, now in values if then != now]


def _brought(
    then: dict[str, PluginJson], now: dict[str, PluginJson]
) -> list[tuple[str, object, object]]:
    """Return each third-party package that the runs use: its name, its sources then and now."""
    brings = {key: one["package"] for key, one in {**then, **now}.items()}

    def sources(run: dict[str, PluginJson], who: str) -> dict[str, str]:
        return {key: run[key]["source_digest"] for key in run if brings[key] == who}

    return [(who, sources(then, who), sources(now, who)) for who in dict.fromkeys(brings.values())]
