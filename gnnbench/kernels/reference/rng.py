"""Philox4x32-10 in plain Python integers and, for many counters at once, in numpy.

Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11. The vectors are the published
known answers of Random123 (``kat_vectors``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_U32 = 0xFFFFFFFF

# (counter, key, answer), words from the lowest.
KNOWN_ANSWERS: tuple[tuple[tuple[int, ...], tuple[int, int], tuple[int, ...]], ...] = (
    (
        (0x00000000, 0x00000000, 0x00000000, 0x00000000),
        (0x00000000, 0x00000000),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


def philox(key: int, counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """One block: four 32-bit words from a 64-bit key and a counter of four 32-bit words."""
    x, y, z, w = counter
    k0, k1 = key & _U32, (key >> 32) & _U32
    for _ in range(10):
        p0, p1 = _M0 * x, _M1 * z
        x, y, z, w = (p1 >> 32) ^ y ^ k0, p1 & _U32, (p0 >> 32) ^ w ^ k1, p0 & _U32
        k0, k1 = (k0 + _W0) & _U32, (k1 + _W1) & _U32
    return x, y, z, w


def philox_many(key: int, counters: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """:func:`philox` for rows of counters, uint64 ``[..., 4]`` of 32-bit words; same shape."""
    x, y, z, w = (counters[..., i].astype(np.uint64) for i in range(4))
    low, half = np.uint64(_U32), np.uint64(32)
    k0, k1 = key & _U32, (key >> 32) & _U32
    for _ in range(10):
        p0, p1 = np.uint64(_M0) * x, np.uint64(_M1) * z
        x, y = (p1 >> half) ^ y ^ np.uint64(k0), p1 & low
        z, w = (p0 >> half) ^ w ^ np.uint64(k1), p0 & low
        k0, k1 = (k0 + _W0) & _U32, (k1 + _W1) & _U32
    return np.stack([x, y, z, w], axis=-1)


def draws(
    key: int, vertices: npt.NDArray[np.int64], hop: int, batch: int, count: int
) -> npt.NDArray[np.uint64]:
    """The first ``count`` draws of each vertex at a hop of a batch: 32-bit words ``[n, count]``.

    Counter: (draw / 4, vertex low, vertex high | hop << 16, batch); draw i is word i mod 4.
    """
    blocks = (count + 3) // 4
    v = vertices.astype(np.uint64)[:, None]
    c = np.zeros((len(vertices), blocks, 4), dtype=np.uint64)
    c[..., 0] = np.arange(blocks, dtype=np.uint64)
    c[..., 1] = v & np.uint64(_U32)
    c[..., 2] = ((v >> np.uint64(32)) & np.uint64(0xFFFF)) | np.uint64(hop << 16)
    c[..., 3] = np.uint64(batch)
    return philox_many(key, c).reshape(len(vertices), 4 * blocks)[:, :count]


def bounded(draw: int, n: int) -> int:
    """Uniform integer in [0, n) from a 32-bit draw, by multiply and shift."""
    return (draw * n) >> 32


def permutation(n: int, key: int) -> npt.NDArray[np.int64]:
    """``range(n)`` sorted, stably, by 63 bits of the block of each element."""
    i = np.arange(n, dtype=np.uint64)
    c = np.zeros((n, 4), dtype=np.uint64)
    c[:, 0], c[:, 1], c[:, 3] = i & np.uint64(_U32), i >> np.uint64(32), _U32
    words = philox_many(key, c)
    return np.argsort((words[:, 0] << np.uint64(31)) | (words[:, 1] >> np.uint64(1)), kind="stable")
