"""Which feature rows a cache holds, and what it would have hit: policies, traces, simulations."""
