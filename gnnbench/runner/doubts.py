"""What makes a cell's times in one comparison doubtful, from within."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnnbench.runner import audit, clocks, isolation

if TYPE_CHECKING:
    from gnnbench.cell import Cell
    from gnnbench.runner.ledger import Ledger
    from gnnbench.runner.plan import Pair


def own_doubts(cell: Cell, pair: Pair | None, ledger: Ledger) -> list[str]:
    """Doubts of how a cell behaved in the lives of one comparison that count, or in all."""
    own = ledger.measured(cell, pair)
    found = [
        audit.first_epoch_doubt(ledger.warm_ups(cell, pair), own),
        audit.clock_doubt(own),
        clocks.parent_doubt(own),
        isolation.rest_doubt(own),
        audit.idle_doubt(cell, own),
        audit.after_doubt(own),
    ]
    return [text for text in found if text]
