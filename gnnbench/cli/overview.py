"""Short texts of ``gnnbench list`` and ``gnnbench doctor``: a line for each entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill, shorten

from gnnbench.core.console import room, say

Entry = Mapping[str, object]
MOST_NAMES = 6  # of datasets
FIX = " " * 6  # indents how to repair what a check found


def print_overview(tables: Mapping[str, Sequence[Entry]]) -> None:
    """Print experiments and systems with their summaries, models and datasets by name."""
    _print_lines(
        "experiments (gnnbench run NAME; gnnbench list NAME has profiles and axes)",
        [(str(e["name"]), str(e["title"])) for e in tables["experiments"]],
    )
    systems = tables["systems"]
    _print_lines(
        "systems that run here (--systems NAME; gnnbench list NAME has settings)",
        [(str(s["name"]), str(s["summary"])) for s in systems if s["runs on"]],
    )
    if missing := [str(s["name"]) for s in systems if not s["runs on"]]:
        say(f"systems that cannot run here: {', '.join(missing)} (gnnbench doctor says why)")
    say(f"models (--models NAME): {', '.join(str(m['name']) for m in tables['models'])}")
    datasets = tables["datasets"]
    ready = [str(d["name"]) for d in datasets if d["state"] in ("prepared", "generated")]
    shown = ", ".join([name for name in ready if "/" not in name][:MOST_NAMES])
    say(f"datasets (--datasets NAME): {shown} ...; gnnbench list datasets has all {len(datasets)}")


def print_checks(checks: Sequence[Entry], systems: Sequence[Entry]) -> None:
    """Print what was found, a line for each check, and the fix of what is missing."""
    width = max(len(str(check["what"])) for check in checks)
    for check in checks:
        state = "ok" if check["ok"] else "no"
        line = f"{state}  {check['what']!s:{width}}  {check['found']}"
        print(line if len(line) <= room() else line[: room() - 4].rsplit(" ", 1)[0] + " ...")
        if check.get("fix") and not check["ok"]:
            print(fill(str(check["fix"]), room(), initial_indent=FIX, subsequent_indent=FIX,
                       break_long_words=False, break_on_hyphens=False))  # fmt: skip
    print()
    say(f"systems that run here: {', '.join(str(s['name']) for s in systems if s['runs on'])}")
    for system in systems:
        if not system["runs on"]:
            say(f"no  {system['name']}: {system['missing']}")


def _print_lines(title: str, lines: Sequence[tuple[str, str]]) -> None:
    """Print names with texts, each cut to a line."""
    say(title)
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        print(f"  {name:{width}}  {shorten(text, max(room() - width - 4, 20), placeholder=' ...')}")
    print()
