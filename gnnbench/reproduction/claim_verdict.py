"""The verdict on a claim, with the numbers that it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gnnbench.reproduction.claim import Claim
from gnnbench.reproduction.findings import Finding
from gnnbench.reproduction.twins import fitted_graphs


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim's verdict, the reason, and the numbers that it rests on.

    ``improved`` has the numbers of the improved variant, where the published one is
    contradicted.
    """

    claim: Claim
    verdict: str
    reason: str
    findings: Sequence[Finding] = ()
    improved: Sequence[Finding] = ()

    @property
    def numbers(self) -> list[Finding]:
        """The numbers of the published variant, then those of the improved one."""
        return [*self.findings, *self.improved]

    @property
    def is_computed(self) -> bool:
        """Whether all numbers come from formulas, so that no run was needed."""
        return bool(self.findings) and all(f.evidence is None for f in self.findings)

    @property
    def fitted(self) -> list[str]:
        """Graphs whose twins were fitted to the very number that is judged."""
        return fitted_graphs(self.claim, self.findings) if self.claim.of_graph else []
