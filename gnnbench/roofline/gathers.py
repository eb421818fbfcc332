"""Hardware counters of gathers from host memory, next to the models of their addresses.

``python -m gnnbench.roofline.gathers --row-bytes 480 1028`` runs itself under ``ncu`` and prints a
line of JSON for each width and kind of access: requests, sectors and bytes of the link per row.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from gnnbench.kernels.access import ACCESSES, ALIGNED, NAIVE, PLAIN, SHIFTED
from gnnbench.kernels.features import gather_zero_copy
from gnnbench.kernels.reference.zero_copy import lines, requests, row_requests
from gnnbench.roofline import ncu
from gnnbench.roofline.counters import run_marked
from gnnbench.roofline.kernels import Kernel
from gnnbench.roofline.perf import NoCounters
from gnnbench.roofline.work import ELEMENT, Work, gather_work

GIB = 1 << 30
MODEL_ROWS = 1 << 14  # of a gather, which the models count


def random_ids(row_bytes: int, rows: int, table_bytes: int) -> Tensor:
    """Distinct random rows of a table, int64 ``[rows]``; equal for equal arguments.

    Raises ``ValueError`` if the table has fewer rows.
    """
    if table_bytes // row_bytes < rows:
        raise ValueError(f"a table of {table_bytes} bytes has fewer than {rows} rows; give fewer")
    draws = torch.Generator().manual_seed(row_bytes)
    drawn = torch.empty(0, dtype=torch.int64)
    while drawn.numel() < rows:
        more = torch.randint(0, table_bytes // row_bytes, (2 * rows,), generator=draws)
        drawn = torch.cat([drawn, more]).unique()
    return drawn[torch.randperm(drawn.numel(), generator=draws)[:rows]]


def modelled(access: str, ids: Tensor, row_bytes: int) -> float | None:
    """Requests per row by the model of the kernel's addresses; None for ``page-ordered``.

    Raises ``ValueError`` for rows that are no multiple of 4 bytes.
    """
    if row_bytes % ELEMENT:
        raise ValueError(f"the models need rows of a multiple of {ELEMENT} bytes, not {row_bytes}")
    if access in (PLAIN, SHIFTED):
        return requests(ids.numpy(), row_bytes // ELEMENT, access == SHIFTED) / ids.numel()
    if access in (NAIVE, ALIGNED):
        return row_requests(ids.numpy(), row_bytes, access == ALIGNED) / ids.numel()
    return None


def kernels(
    accesses: Sequence[str], widths: Sequence[int], rows: int, table_bytes: int
) -> list[Kernel]:
    """A gather for each width in bytes and kind of access, from one locked table of zeros."""
    table = torch.zeros(table_bytes // ELEMENT, dtype=torch.float32, pin_memory=True)
    gathers = []
    for row_bytes, access in itertools.product(widths, accesses):
        width, ids = row_bytes // ELEMENT, random_ids(row_bytes, rows, table_bytes)
        view = table[: table.numel() // width * width].view(-1, width)
        gathers.append(_kernel(view, ids.cuda(), access, gather_work(ids, row_bytes)))
    return gathers


def _kernel(table: Tensor, ids: Tensor, access: str, work: Work) -> Kernel:
    return Kernel(
        "gather", access, 0, "", table.shape[1], 0, work,
        lambda: lambda: gather_zero_copy(table, ids, access),
    )  # fmt: skip


def counted(
    accesses: Sequence[str],
    widths: Sequence[int],
    rows: int,
    table_bytes: int,
    timeout_s: float = ncu.TIMEOUT_S,
) -> list[dict[str, float | str]]:
    """Modelled requests and hardware counters per row, for each width and kind of access.

    Counters that this GPU does not have are left out. Raises ``NoCounters``.
    """
    metrics = ncu.available(ncu.HOST_METRICS)
    program = [
        sys.executable, "-m", "gnnbench.roofline.gathers", "--marked", "--rows", str(rows),
        "--table-bytes", str(table_bytes), "--access", *accesses, "--row-bytes", *map(str, widths),
    ]  # fmt: skip
    counts = ncu.counted(program, timeout_s, metrics)
    gathers = list(itertools.product(widths, accesses))
    if len(counts) != len(gathers):
        raise NoCounters(f"'ncu' saw {len(counts)} gathers of {len(gathers)}")
    results: list[dict[str, float | str]] = []
    for (row_bytes, access), one in zip(gathers, counts, strict=True):
        ids = random_ids(row_bytes, rows, table_bytes)[:MODEL_ROWS]
        result: dict[str, float | str] = {"access": access, "row_bytes": row_bytes}
        model = modelled(access, ids, row_bytes)
        if model is not None:
            result["model_requests"] = model
        result["lines"] = lines(ids.numpy(), row_bytes // ELEMENT) / ids.numel()
        results.append(result | {name: value / rows for name, value in one.items()})
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counters of each gather, or run the gathers between marks (``--marked``)."""
    parser = argparse.ArgumentParser(prog="python -m gnnbench.roofline.gathers")
    parser.add_argument("--access", nargs="+", choices=ACCESSES, default=list(ACCESSES))
    parser.add_argument("--row-bytes", nargs="+", type=int, default=[480, 1024, 1028])
    parser.add_argument("--rows", type=int, default=200_000, help="random rows of a gather")
    parser.add_argument("--table-bytes", type=int, default=4 * GIB, help="host memory of the table")
    parser.add_argument("--marked", action="store_true", help="run each once, for a profiler")
    options = parser.parse_args(arguments)
    if any(width < ELEMENT or width % ELEMENT for width in options.row_bytes):
        parser.error(f"--row-bytes must be multiples of {ELEMENT}")
    given = options.access, options.row_bytes, options.rows, options.table_bytes
    try:
        if options.marked:
            run_marked(kernels(*given), torch.device("cuda"))
        else:
            for result in counted(*given):
                print(json.dumps(result))
    except (NoCounters, ValueError) as error:
        parser.exit(1, f"{error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
