"""The kernel's CRC32, by the processor's instructions and by tables, compared with zlib's."""

from __future__ import annotations

import random
import zlib

import pytest

from helpers.parity.require_kernel import scan as kernel


@pytest.mark.parametrize("function", ["crc32", "crc32_by_tables"])
def test_kernel_checksums_of_short_data_equal_zlib(function: str) -> None:
    crc32 = getattr(kernel, function)
    data = random.Random(1).randbytes(1200)
    for at in range(64):
        for length in range(1101):
            part = memoryview(data)[at : at + length]
            assert crc32(part) == zlib.crc32(part), (at, length)


@pytest.mark.parametrize("size", [1 << 16, 1_000_003, (8 << 20) + 5])
def test_kernel_checksums_of_large_data_equal_zlib(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert kernel.crc32(data) == kernel.crc32_by_tables(data) == zlib.crc32(data)
    cut = size // 3
    before = kernel.crc32(data[:cut])
    assert kernel.crc32(data[cut:], before) == zlib.crc32(data)
