"""Every CPU operator with random arguments: valid calls give the correct result, others an error.

``GNNBENCH_FUZZ_CALLS`` is the number of calls of each operator and ``GNNBENCH_FUZZ_SEED`` the first
seed; ``make test-sanitize`` runs many, over a library that is built with sanitizers.
"""

from __future__ import annotations

import faulthandler
import os
import random
from contextlib import suppress

import pytest
import torch
from fuzz_call import Call
from hostile_calls import hostile, wild
from operator_calls import CALLS

from gnnbench.kernels.library import load_native

COUNT = int(os.environ.get("GNNBENCH_FUZZ_CALLS", "10"))
FIRST = int(os.environ.get("GNNBENCH_FUZZ_SEED", "0"))
KINDS = ("valid", "hostile", "valid", "hostile", "wild")
HANG_S = 120  # a call that takes longer ends the process with a stack trace

REFUSALS = (RuntimeError, NotImplementedError, TypeError, MemoryError, ValueError, IndexError)


@pytest.fixture(scope="module", autouse=True)
def native():
    load_native()
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_every_operator_has_calls():
    registrations = torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
    ours = {
        name.removeprefix("gnnbench::") for name in registrations if name.startswith("gnnbench::")
    }
    assert ours == set(CALLS)


def run(name: str, seed: int) -> str:
    """Make one call; return its kind, or ``none`` if there is no hostile form of it."""
    r = random.Random(f"{name} {seed}")
    operator = getattr(torch.ops.gnnbench, name)
    call: Call = CALLS[name](r)
    kind = KINDS[seed % len(KINDS)]
    if kind == "valid":
        try:
            result = operator(*call.args)
        except RuntimeError as error:
            if call.facts.get("may_fail", "\0") not in str(error):
                raise
            return kind
        call.check(result)
        return kind
    args = hostile(r, name, call) if kind == "hostile" else wild(r, call)
    if args is None:
        return "none"
    if kind == "hostile":
        with pytest.raises(REFUSALS):
            operator(*args)
        return kind
    with suppress(*REFUSALS):
        operator(*args)
    return kind


@pytest.mark.parametrize("name", CALLS)
def test_random_calls_are_correct_or_refused(name, record_property):
    counts = dict.fromkeys(("valid", "hostile", "wild", "none"), 0)
    threads = random.Random(f"{name} {FIRST}").choice([1, 2])
    torch.set_num_threads(threads)
    for seed in range(FIRST, FIRST + COUNT):
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        try:
            counts[run(name, seed)] += 1
        except BaseException as error:
            error.add_note(f"operator {name}, seed {seed}, {threads} threads")
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
    record_property("calls", counts)
    assert counts["valid"] > 0 or len(KINDS) > COUNT
