"""An aggregation that is correct inside a model and wrong as a separate kernel."""

from dataclasses import dataclass
from typing import ClassVar

from gnnbench.models.aggregation import Csr


@dataclass(frozen=True)
class Skimped(Csr):
    """Run as a separate kernel, it skips the last destination."""

    name: ClassVar[str] = "skimped"

    def build(self):
        framework = super().build()
        correct = framework.aggregation

        def skimped(mode, weighted):
            run = correct(mode, weighted)

            def short(block, x, weights):
                out = run(block, x, weights).clone()
                out[-1] = 0
                return out

            return short

        framework.aggregation = skimped
        return framework
