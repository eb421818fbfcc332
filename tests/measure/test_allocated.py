"""Memory that torch allocates in a span, and resident memory of mappings."""

import numpy as np
import pytest
import torch

from gnnbench.measure.allocated import (
    PAGE,
    allocating,
    forget_peak,
    resident_bytes,
    resident_of,
    resident_peak_bytes,
)

CPU = torch.device("cpu")
MIB = 1 << 20


def test_span_has_remaining_and_peak_memory():
    with allocating(CPU) as span:
        remaining = torch.empty(MIB, dtype=torch.uint8)
        torch.empty(4 * MIB, dtype=torch.uint8)
    assert (span.net, span.peak) == (MIB, 5 * MIB)
    with allocating(CPU) as span:
        del remaining
    assert (span.net, span.peak) == (-MIB, 0)
    with allocating(CPU) as span:
        pass
    assert (span.net, span.peak) == (0, 0)


def test_touched_pages_of_a_mapped_file_are_resident(tmp_path):
    pages = 64
    path = tmp_path / "array"
    np.zeros(pages * PAGE, np.uint8).tofile(path)
    # Copy on write: a written page is resident; a read may make its neighbours resident.
    mapped = torch.from_file(str(path), shared=False, size=pages * PAGE, dtype=torch.uint8)
    assert resident_of([mapped]) == 0
    mapped[0] = mapped[10 * PAGE] = 1
    assert 2 * PAGE <= resident_of([mapped]) <= pages * PAGE
    mapped.fill_(1)
    assert resident_of([mapped]) == pages * PAGE
    assert resident_of([mapped[5:17]]) == 12  # its own bytes only
    assert resident_of([mapped[:0], torch.empty(0)]) == 0


@pytest.mark.skipif(resident_peak_bytes() == 0, reason="the kernel reports no peak")
def test_forget_peak_resets_the_resident_peak():
    size = 64 * MIB
    before = resident_bytes()
    torch.ones(size, dtype=torch.uint8).sum()
    assert resident_peak_bytes() >= before + size // 2
    forget_peak()
    assert resident_peak_bytes() < before + size // 2
