"""One rank of the test of ranks: ``python -m gnnbench.certification.rank NAME DEVICE OPTIONS RANK
BATCHES PAIRS`` prints its picks as JSON."""

from __future__ import annotations

import json
import sys

if __name__ == "__main__":
    from gnnbench.certification.independence import rank_draws
    from gnnbench.certification.subjects import subject_of

    name, device, options, rank, batches, pairs = sys.argv[1:7]
    subject = subject_of(name, device, json.loads(options))
    print(json.dumps(rank_draws(subject, int(rank), int(batches), int(pairs))))
