"""``gnnbench certify``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gnnbench.cli.common import Json, Quiet, Stop
from gnnbench.core.console import print_json, print_table, say
from gnnbench.core.errors import EXIT_INCORRECT, UsageError


def certify(
    name: Annotated[
        str, typer.Argument(help="A sampler or a system, such as dgl, pyg, fused-map or a plug-in.")
    ],
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Draw a quarter of the rows.")] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", metavar="KEY=VALUE",
            help="An option of the sampler; default: all option sets that are known to matter.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the certificates.")] = Path(
        "results/certificates"
    ),
    json: Json = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Certify what a sampler samples: structure, distribution, independence, determinism.

    Draws from small graphs made by hand and tests every property exactly. A correct sampler fails
    a certificate with a probability below 0.001. A failed property comes with a program for the
    sampler's maintainers, in the certificate and in --json. Takes one or two minutes for each set
    of options, with --quick a quarter. The exit code is 4 if a property fails.
    """
    from gnnbench.certification.isolated import certify_isolated
    from gnnbench.certification.plan import FULL, QUICK
    from gnnbench.certification.subjects import VARIANTS
    from gnnbench.certification.text import reasons, rows, title
    from gnnbench.core.files import check_folder

    check_folder(out)

    if device not in ("cpu", "cuda"):
        raise UsageError(f"--device must be cpu or cuda, not '{device}'")
    chosen = dict(_parsed(text) for text in option or [])
    sets = [chosen] if chosen else [{}, *VARIANTS.get(name, ())]
    if not chosen:
        sets = [one for one in sets if _fits(name, device, one)]
    certificates = []
    for options in sets:

        def show(done: str, subject: str = f"{name} {options or ''}".strip()) -> None:
            if not quiet:
                print(f"{subject}: {done}", file=sys.stderr, flush=True)

        certificate = certify_isolated(name, device, options, QUICK if quick else FULL, show)
        certificates.append(certificate)
        path = certificate.save(out)
        if json:
            continue
        print_table(title(certificate), rows(certificate))
        for text in reasons(certificate):
            say(text)
        print(path)
        print()
    if json:
        print_json([certificate.plain() for certificate in certificates])
    failed = [c for c in certificates if c.failed]
    if failed:
        names = ", ".join(entry.name for entry in failed[0].failed)
        raise Stop(
            f"{len(failed)} of {len(certificates)} certificates fail;"
            f" {failed[0].file_name}: {names}",
            EXIT_INCORRECT,
        )


def _parsed(text: str) -> tuple[str, object]:
    from gnnbench.core.toml_value import parse_value

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--option {text} must be of the form KEY=VALUE")
    return key, parse_value(value)


def _fits(name: str, device: str, options: dict[str, object]) -> bool:
    """Whether a further set of options can run here; the default one must."""
    from gnnbench.certification.subjects import subject_of
    from gnnbench.core.errors import GnnbenchError

    if not options:
        return True
    try:
        subject_of(name, device, options)
    except GnnbenchError:
        return False
    return True
