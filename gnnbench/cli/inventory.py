"""``gnnbench list`` and ``gnnbench doctor``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from gnnbench.cli import completing
from gnnbench.cli.common import with_units
from gnnbench.cli.completing import KINDS
from gnnbench.cli.formats import FORMAT, print_tables
from gnnbench.cli.overview import print_checks, print_overview
from gnnbench.core.console import COLUMNS, print_json, print_table
from gnnbench.core.errors import UsageError

# Columns of long texts. The last ones move below a table first.
INFO = (
    "title", "paper", "summary", "description", "profiles", "missing", "stand-in", "get",
    "settings", "runs", "claims",
)  # fmt: skip


def list_(
    name: Annotated[
        str,
        typer.Argument(
            autocompletion=completing.listed,
            help="One experiment (its profiles, axes, systems, figures), one system (its settings),"
            " one figure of a paper (fastgl/table8: its runs), or systems, models, datasets,"
            " experiments, figures: one kind.",
        ),
    ] = "",
    profile: Annotated[str, typer.Option(help="Profile whose axis values are shown.")] = "",
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
) -> None:
    """List experiments, systems, models and datasets, what is missing, and how to get it.

    'gnnbench list breakdown' shows an experiment's profiles, axes and systems. 'gnnbench list
    baseline' shows a system's settings with their legal values. 'gnnbench list systems' (or models,
    datasets, experiments) lists one kind. 'gnnbench list figures' lists the papers' tables and
    figures that 'gnnbench run' accepts by name, whether they run here, and the time.
    """
    from gnnbench.reproduction import figures

    name = _spelled(name)
    if name == "figures" or figures.is_one(name):
        _figures(name, profile, format)
        return
    kind = name if name in KINDS else ""
    system = bool(name) and not kind and _means_system(name)
    if name and not kind and not system:
        _one(name, profile, format)
        return
    if profile:
        raise UsageError("--profile belongs to an experiment; name one, or leave it out")
    if system:
        _system(name, format)
        return
    from gnnbench.harness import doctor as machine

    kinds = ("experiments", "systems", "models", "datasets")
    if format == "csv" and not kind:
        raise UsageError(f"CSV holds one table; name one of {', '.join(kinds)}")
    tables = {key: getattr(machine, key)() for key in ([kind] if kind else kinds)}
    if format == "json":
        print_json(tables)
        return
    if format == "table" and not kind:
        print_overview(tables)
        return
    shown = tables if format == "csv" else {kind: with_units(rows) for kind, rows in tables.items()}
    print_tables(shown, format, INFO)


def _figures(name: str, profile: str, format: str) -> None:
    """Print the papers' figures, or the runs of one figure, and whether they run here."""
    if profile:
        raise UsageError("--profile belongs to an experiment; name one, or leave it out")
    if name == "figures":
        _all_figures(format)
    else:
        _figure(name, format)


def _all_figures(format: str) -> None:
    """Print all figures: what each shows, whether it runs here or why not, and the time."""
    from gnnbench.reproduction import figure_plans, figures

    rows: list[dict[str, object]] = []
    by_reason: dict[str, list[dict[str, object]]] = {}
    for figure in figures.figures().values():
        plan = figure_plans.first_plan(figure)
        reason = "" if plan else figure_plans.why_none(figure)
        row: dict[str, object] = {
            "figure": figure.name, "title": figure.title, "time_s": plan.seconds if plan else None,
        }  # fmt: skip
        by_reason.setdefault(reason, []).append(row)
        rows.append({
            **row, "source": figure.source, "profile": plan.run.profile if plan else "",
            "missing": reason,
            "claims": list(figure.claims) if format == "json" else len(figure.claims),
            "runs": [f"{r.experiment} --profile {r.profile}" for r in figure.runs],
        })  # fmt: skip
    if format == "json":
        print_json({"figures": rows})
    elif format != "table":
        print_tables({"figures": rows if format == "csv" else with_units(rows)}, format)
    else:
        for reason, group in sorted(by_reason.items()):
            title = f"not run here: {reason}" if reason else "run here (gnnbench run FIGURE)"
            print_table(title, with_units(group), ("title",))
        print("time: a rough estimate on two idle cores, of the first profile that runs here")


def _figure(name: str, format: str) -> None:
    """Print the profiles that measure a figure, whether each runs here, and its claims."""
    from gnnbench.reproduction import figure_plans, figures

    figure = figures.find(name)
    rows = [
        {
            "profile": profile, "experiment": plan.run.experiment, "time_s": plan.seconds,
            "missing": plan.reason, "description": plan.run.description,
        }
        for profile, plan in zip(figure.profiles, figure_plans.plans(figure), strict=True)
    ]  # fmt: skip
    if format == "json":
        print_json({"figure": name, "title": figure.title, "source": figure.source,
                    "claims": list(figure.claims), "profiles": rows})  # fmt: skip
        return
    if format != "table":
        shown = rows if format == "csv" else with_units(rows)
        print_tables({f"profiles of {name}": shown}, format)
        return
    _wrapped(f"{name}: {figure.source}, {figure.title}\n")
    print_table(f"profiles (gnnbench run {name} --profile NAME)", with_units(rows), INFO)
    _wrapped(f"claims: {', '.join(figure.claims)}")


def _spelled(name: str) -> str:
    """Correct the capitals of a kind or a system; the name of a definition is unchanged."""
    from gnnbench.config import experiment
    from gnnbench.core import names, registry

    if not name or name in KINDS or experiment.is_one(name):
        return name
    return names.known_spelling(name, [*KINDS, "figures", *registry.known(registry.SYSTEM)])


def _means_system(name: str) -> bool:
    """Whether the name is of a system and not of a definition; ``UsageError`` if of neither."""
    from gnnbench.config import experiment
    from gnnbench.core import names, registry

    if experiment.is_one(name):
        return False
    systems = registry.known(registry.SYSTEM)
    names.check("experiment or system", name, [*systems, *experiment.shipped(), *KINDS])
    return name in systems


def _system(name: str, format: str) -> None:
    """Print one system and all its settings, within 80 columns."""
    from gnnbench.core.option import plain_text
    from gnnbench.harness.doctor import system

    entry = system(name)
    if format == "json":
        print_json(entry)
        return
    if format != "table":
        settings = [{"setting": path, **known} for path, known in entry["settings"].items()]
        print_tables({f"settings of {name}": settings}, format)
        return
    _wrapped(f"{name}: {entry['summary']}" if entry["summary"] else name)
    _wrapped(f"runs here on: {', '.join(entry['runs on']) or 'nothing'}")
    if entry["missing"]:
        _wrapped(entry["missing"])
    if not entry["settings"]:
        return
    print(f"\nsettings: -o {name}.SETTING=VALUE\n")
    for path, known in entry["settings"].items():
        default = "none" if known["default"] is None else plain_text(known["default"])
        print(f"{path} (default: {default or 'empty'})")
        _wrapped(known["help"], 2)
        _wrapped(f"values: {known['legal']}", 2)
    print("\nAnother stage has settings of its own: docs/reference.md names those of all.")


def _wrapped(text: str, indent: int = 0) -> None:
    """Print a text in lines of at most 80 columns."""
    from textwrap import fill

    margin = " " * indent
    print(
        fill(
            text, COLUMNS, initial_indent=margin, subsequent_indent=margin,
            break_long_words=False, break_on_hyphens=False,
        )
    )  # fmt: skip


def _one(experiment: str, profile: str, format: str) -> None:
    from gnnbench.cli.about import about
    from gnnbench.core.option import plain_text

    described = about(experiment, profile)
    if format == "json":
        print_json(described)
        return
    if format != "table":
        print_tables(
            {
                "profiles": described["profiles"],
                "axes": described["axes"],
                "systems": described["systems"],
            },
            format,
        )
        return
    print(f"{described['name']}: {described['title']}\n")
    print_table("profiles (--profile NAME)", described["profiles"], ("description",))
    axes = [
        {**axis, "values": ", ".join(plain_text(v) for v in axis["values"])}
        for axis in described["axes"]
    ]
    of = f" of profile {described['profile']}" if described["profile"] else ""
    print_table(f"axes (-o AXIS=VALUE), values{of}", axes, ("values", "legal", "meaning"))
    title = "systems (--systems NAME), settings (-o SYSTEM.SETTING=VALUE)"
    print_table(title, described["systems"], INFO)
    if described["others"]:
        _wrapped(f"other systems: {', '.join(described['others'])}")
        print()
    print(f"figures: {', '.join(described['figures'])}")
    if described["sources"]:
        print(f"after: {', '.join(described['sources'])}")


def doctor(
    format: Annotated[Literal["table", "json", "markdown", "latex"], FORMAT] = "table",
) -> None:
    """Check what this machine can run. Prints the reason and the fix for everything it cannot."""
    from gnnbench.harness.doctor import examine

    report = examine()
    if format == "json":
        print_json(report)
        return
    if format == "table":
        print_checks(report["checks"], report["systems"])
        return
    print_tables({"checks": report["checks"]}, format, ("fix", "found"))
    print_tables({"systems": report["systems"]}, format, INFO)
