"""Certificates as tables for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from gnnbench.certification.independence import COPIED
from gnnbench.certification.record import FAILS, Certificate, Entry


def title(certificate: Certificate) -> str:
    """Name, version, device and options in one line."""
    options = ", ".join(f"{k}={_plain(v)}" for k, v in certificate.options.items())
    packages = ", ".join(f"{name} {version}" for name, version in certificate.packages.items())
    chosen = f", {options}" if options else ""
    quick = ", quick" if certificate.quick else ""
    return f"{certificate.name} on {certificate.device}{chosen}{quick} ({packages})"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def rows(certificate: Certificate) -> list[dict[str, str]]:
    """One row per property: verdict, level, draws and the smallest detectable bias."""
    return [
        {
            "property": entry.name,
            "verdict": entry.verdict,
            "level": f"{entry.level:.1g}" if entry.level else "",
            "draws": f"{entry.draws:,}" if entry.draws else "",
            "detects": detects(entry),
        }
        for entry in certificate.entries
    ]


def detects(entry: Entry) -> str:
    """The smallest bias that is detected with 90 % power, as text."""
    if entry.bias is None:
        return ""
    return f"{entry.bias:.1%} copied" if entry.bias_of == COPIED else f"odds {entry.bias:.2f}"


def reasons(certificate: Certificate) -> Iterator[str]:
    """A sentence for every property that fails or is not offered."""
    for entry in certificate.entries:
        if entry.reason and entry.verdict == FAILS:
            yield f"{entry.name} fails: {entry.reason}"
    absent = [e for e in certificate.entries if e.reason and e.verdict != FAILS]
    for entry in absent:
        yield f"{entry.name}: {entry.reason}"
