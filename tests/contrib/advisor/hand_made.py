"""Facts and rates whose estimates can be computed by hand."""

from dataclasses import replace

from gnnbench.contrib.advisor.facts import Curve, Facts
from gnnbench.contrib.advisor.rates import Rates

# A batch has 1000 rows of 100 B and 5000 edges; ten batches an epoch.
FACTS = Facts(
    graph="g", nodes=10_000, edges_of_graph=50_000, mean_degree=5.0, most_degree=90, isolated=0.1,
    row_bytes=100, batches=10.0, looked=10, rows=1000.0, edges=5000.0, footprint=4000,
    match_degree=0.5, kept_drawn=0.4, kept_greedy=0.5, union=0.25,
    curves=(Curve("degree", ((0.1, 0.6),)), Curve("presc#1", ((0.1, 0.8),))),
    ratio=0.0, union_missed=0.5,
)  # fmt: skip
CACHED = replace(FACTS, ratio=0.1)
# 1000 rows: 1 ms to fetch, 0.5 ms to fetch as a union, 0.15 ms to read and write on the device.
# 1000 words: 0.01 ms. A batch: 1 ms to sample, 2 ms to train on.
RATES = Rates(
    there=1e9 / 1.5, words=1e8, fetch=1e8, fetch_union=2e8, order=1e7, step=500.0,
    sample={"hop-by-hop": 2.5e6, "fused-map": 5e6, "fastsample": 4e6},
)  # fmt: skip
