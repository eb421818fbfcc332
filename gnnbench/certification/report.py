"""Prints the page of certificates: ``python -m gnnbench.certification.report``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gnnbench.certification.experiment import FILE
from gnnbench.certification.lookup import FOLDER
from gnnbench.certification.properties import PROPERTIES
from gnnbench.certification.record import ABSENT, FAILS, PASSES, Certificate, Entry, load_all
from gnnbench.certification.text import detects
from gnnbench.core.errors import UsageError
from gnnbench.core.text import markdown

SIGNS = {PASSES: "+", FAILS: "**fails**", ABSENT: ""}
INTRODUCTION = """\
# Certificates of samplers

```sh
gnnbench certify dgl                              # all option sets that are known to matter
gnnbench certify pyg --option extension=torch-sparse
gnnbench certify fused-map --quick --json
```

Printed by `python -m gnnbench.certification.report > docs/certificates.md`; do not edit by hand.

A certificate says what a sampler samples, property by property. The sampler draws from small
graphs made by hand: stars of degree 1 to 48, hubs of up to 5,000 neighbours, self-loops, parallel
edges, isolated nodes, int32 and int64 ids, ids above 2^24. The exit code is 4 if a property
fails. The certificates below are in `results/certificates`, one file for each version, device and
set of options.

A run looks for the certificate of each sampler: same sampler, options, device and package
versions. Where a property fails that the run uses, the work is `different` and the remark of the
row names the property. A failed law counts for runs with that law, `workers` for runs with loader
processes, `ranks` for runs with several processes, `seed` for none. Otherwise the remark names
the certificate. Such a remark is in rows measured from this version on.

## How a property is tested

- **Structure** is checked batch by batch, on five consecutive calls. Nothing is left to chance.
  Seeds come in the requested order. A sampler that is known to order them itself, as cuGraph
  does, must report a permutation of the requested seeds, and its input nodes begin with it.
- **Distribution**: tables of whole rows, such as all subsets of small rows, are compared with
  their exact probabilities. The evidence is a mixture of Dirichlet-multinomial likelihoods
  divided by the likelihood under the law. Its mean under the law is 1, so a correct sampler
  exceeds 1 / a with a probability of at most a, for any number of draws. Weighted picks without
  replacement have the law of successive sampling; walks have the probabilities of all traces, or
  of all visits.
- **Independence**: pairs of single picks are compared with random tables of equal margins, so
  that an uneven sampler does not fail here.
- **Level**: 2.5e-5 for each of eight tests of distribution and 1e-4 for each of seven of
  independence. They add up to 9e-4: a certificate of a correct sampler fails with at most this
  probability.
- **Smallest bias**: the one that is detected with 90 % power, computed from the draws of the
  certificate. `odds 1.14`: one edge (or one half of a row) is 1.14 times as likely as another.
  `3.6 % copied`: this share of picks repeats the other draw.
"""


def page(certificates: Sequence[Certificate], measured: Mapping[str, object]) -> str:
    """Return the page as Markdown.

    ``measured``: the JSON object of ``gnnbench.certification.experiment``, empty if there is none.
    """
    lines = [INTRODUCTION]
    if certificates:
        lines += ["## Verdicts", "", *_verdicts(certificates), ""]
        lines += ["## Failed properties", "", *_failures(certificates), ""]
        lines += ["## Levels and smallest biases", "", *_biases(certificates), ""]
    if measured:
        lines += ["## Measured false alarms and power", "", *_experiment(measured), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _label(certificate: Certificate) -> str:
    options = "".join(f", {k}={str(v).lower()}" for k, v in certificate.options.items())
    return f"{certificate.name} {certificate.version} {certificate.device}{options}"


def _verdicts(certificates: Sequence[Certificate]) -> Iterator[str]:
    """Property by certificate, a table for each device; columns are numbered: names are long."""
    yield "`+` passes; an empty field: not offered, or not applicable. The columns:"
    for device in sorted({c.device for c in certificates}):
        yield from ("", f"### {device}", "")
        yield from _table([c for c in certificates if c.device == device])


def _table(certificates: Sequence[Certificate]) -> Iterator[str]:
    for number, certificate in enumerate(certificates, start=1):
        packages = ", ".join(f"{name} {version}" for name, version in certificate.packages.items())
        quick = "; quick" if certificate.quick else ""
        yield f"{number}. `{certificate.file_name}`: {_label(certificate)} ({packages}{quick})"
    yield ""
    numbers = range(1, len(certificates) + 1)
    yield f"| property | what holds | {' | '.join(map(str, numbers))} |"
    yield f"|---|---|{'---|' * len(certificates)}"
    for name, (_, holds) in PROPERTIES.items():
        cells = [_sign(certificate, name) for certificate in certificates]
        yield f"| `{name}` | {holds} | {' | '.join(cells)} |"


def _sign(certificate: Certificate, name: str) -> str:
    entries = [entry for entry in certificate.entries if entry.name == name]
    return SIGNS[entries[0].verdict] if entries else ""


def _failures(certificates: Sequence[Certificate]) -> Iterator[str]:
    yield (
        "`program`: a minimal input for the maintainers, which runs without gnnbench for DGL and"
        " PyG. To print it:"
    )
    yield ""
    yield "```sh"
    first = next(((c, e) for c in certificates for e in c.failed if e.snippet), (None, None))
    if first[0] is not None and first[1] is not None:
        words = f"--program {first[0].file_name} {first[1].name}"
        yield f"python -m gnnbench.certification.report {words}"
    yield "```"
    yield ""
    yield "| certificate | property | what was found | program |"
    yield "|---|---|---|---|"
    for certificate in certificates:
        for entry in certificate.failed:
            program = "yes" if entry.snippet else ""
            reason = markdown(entry.reason)
            yield f"| {_label(certificate)} | `{entry.name}` | {reason} | {program} |"


def _biases(certificates: Sequence[Certificate]) -> Iterator[str]:
    """The level, and the smallest bias in all certificates that are not quick, by property."""
    yield "Full certificates; a range where samplers with more picks have more tables or draws."
    yield ""
    yield "| property | level | draws | smallest bias |"
    yield "|---|---|---|---|"
    for name in PROPERTIES:
        entries = [
            e for c in certificates if not c.quick for e in c.entries if e.name == name and e.level
        ]
        if not (known := [e for e in entries if e.bias is not None]):
            continue
        known.sort(key=lambda e: e.bias or 0.0)
        low, high = _text(known[0]), _text(known[-1])
        draws = sorted({e.draws for e in known})
        counts = f"{draws[0]:,}" if len(draws) == 1 else f"{draws[0]:,} to {draws[-1]:,}"
        bias = low if low == high else f"{low} to {high}"
        yield f"| `{name}` | {known[0].level:.1e} | {counts} | {bias} ({known[0].bias_of}) |"


def _text(entry: Entry) -> str:
    return detects(entry)


def _experiment(measured: Mapping[str, object]) -> Iterator[str]:
    yield "```sh"
    yield "python -m gnnbench.certification.experiment"
    yield "```"
    yield ""
    alarms = measured.get("false_alarms")
    if isinstance(alarms, Mapping):
        samplers = " and ".join(f"`{name}`" for name in alarms["samplers"])
        yield (
            f"{alarms['certificates']} certificates of correct samplers ({samplers}, each with"
            f" other seeds; {alarms['tests']:,} tests): {alarms['alarms']} fail. The upper 95 %"
            f" confidence limit of the share of false alarms is {alarms['upper_95']:.2%}"
            " (Clopper-Pearson); the levels allow 0.09 %. Drawn are the properties that leave"
            " something to chance, with a small plan: levels do not depend on the number of draws."
        )
        yield ""
    rows = measured.get("power")
    if isinstance(rows, Sequence):
        yield (
            "Planted samplers (`gnnbench/certification/planted.py`) with 0.5, 1 and 1.5 times the"
            " stated smallest bias, as excess over 1 for odds. The draws are those of a small plan."
        )
        yield ""
        yield "| property | stated bias | draws | detected at 0.5 | at 1 | at 1.5 |"
        yield "|---|---|---|---|---|---|"
        for name in dict.fromkeys(str(row["property"]) for row in rows):
            mine = [row for row in rows if row["property"] == name]
            detected = " | ".join(f"{row['detected']}/{row['runs']}" for row in mine)
            bias = f"{mine[0]['stated']:.3f} ({mine[0]['bias_of']})"
            yield f"| `{name}` | {bias} | {mine[0]['draws']:,} | {detected} |"


def program_of(folder: Path, file: str, name: str) -> str:
    """Return the program of a failed property. Raises ``UsageError`` if there is none."""
    for certificate in load_all(folder):
        for entry in certificate.failed:
            if certificate.file_name == file and entry.name == name and entry.snippet:
                return entry.snippet
    raise UsageError(f"'{file}' of {folder} has no program for '{name}'")


def main() -> None:
    """Print the page, or the program of a failed property."""
    parser = argparse.ArgumentParser(description="Print the page of certificates.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder with certificates")
    parser.add_argument(
        "--program", nargs=2, metavar=("FILE", "PROPERTY"), help="print a minimal input instead"
    )
    given = parser.parse_args()
    if given.program:
        print(program_of(given.folder, *given.program), end="")
        return
    path = given.folder / FILE.relative_to(FOLDER)
    measured = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    print(page(load_all(given.folder), measured), end="")


if __name__ == "__main__":
    main()
