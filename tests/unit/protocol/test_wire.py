"""Reads with bounds checks: whole, cut at every byte, and with trailing bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.wire import Reader, lenenc_int

READS: list[tuple[str, str, Callable[[Reader], object], object]] = [
    ("take", "616263", lambda reader: reader.take(3), b"abc"),
    ("take nothing", "", lambda reader: reader.take(0), b""),
    ("u8", "fe", Reader.u8, 254),
    ("u16", "0201", Reader.u16, 0x0102),
    ("u32", "b61e1c5a", Reader.u32, 1511792310),
    ("u48", "d20000000000", Reader.u48, 210),
    ("u64", "ffffffffffffffff", Reader.u64, 2**64 - 1),
    ("lenenc 250", "fa", Reader.lenenc_int, 250),
    ("lenenc 251", "fcfb00", Reader.lenenc_int, 251),
    ("lenenc 2^16-1", "fcffff", Reader.lenenc_int, 2**16 - 1),
    ("lenenc 2^16", "fd000001", Reader.lenenc_int, 2**16),
    ("lenenc 2^24-1", "fdffffff", Reader.lenenc_int, 2**24 - 1),
    ("lenenc 2^24", "fe0000000100000000", Reader.lenenc_int, 2**24),
    ("lenenc 2^64-1", "feffffffffffffffff", Reader.lenenc_int, 2**64 - 1),
    ("lenenc bytes", "03616263", Reader.lenenc_bytes, b"abc"),
    ("nul terminated", "616200", lambda reader: reader.nul_terminated(2), b"ab"),
]


@pytest.mark.parametrize(("data", "read", "expected"), [case[1:] for case in READS])
def test_missing_and_left_over_bytes_of_a_field_are_rejected(
    data: str, read: Callable[[Reader], object], expected: object
) -> None:
    whole = bytes.fromhex(data)
    reader = Reader(whole, "TEST")
    assert read(reader) == expected
    reader.check_end()

    for length in range(len(whole)):
        with pytest.raises(MalformedEventError, match="TEST is cut short: expected"):
            read(Reader(whole[:length], "TEST"))

    reader = Reader(b"\xaa" + whole + b"tail", "TEST", pos=1)
    assert read(reader) == expected
    assert reader.remaining == 4
    with pytest.raises(MalformedEventError, match=f"4 bytes left over after offset {reader.pos}"):
        reader.check_end()
    assert reader.rest() == b"tail"
    reader.check_end()


@pytest.mark.parametrize(("first", "shown"), [(0xFB, "0xfb"), (0xFF, "0xff")])
def test_invalid_first_byte_of_length_encoded_integer_is_rejected(first: int, shown: str) -> None:
    with pytest.raises(MalformedEventError, match=f"TEST has {shown} at offset 0"):
        Reader(bytes([first]) + bytes(8), "TEST").lenenc_int()


def test_name_without_terminating_nul_is_rejected() -> None:
    with pytest.raises(MalformedEventError, match="no 0x00 after its 2 bytes at offset 0"):
        Reader(b"abc", "TEST").nul_terminated(2)


def test_failed_read_does_not_move_the_reader() -> None:
    reader = Reader(b"ab", "TEST")
    with pytest.raises(MalformedEventError, match="expected 3 bytes at offset 0, found 2"):
        reader.take(3)
    assert reader.pos == 0


@given(st.integers(0, 2**64 - 1))
def test_length_encoded_integer_survives_round_trip_in_fewest_bytes(value: int) -> None:
    written = lenenc_int(value)
    reader = Reader(written, "TEST")
    assert reader.lenenc_int() == value
    reader.check_end()
    limits = ((251, 1), (1 << 16, 3), (1 << 24, 4), (1 << 64, 9))
    assert len(written) == next(length for limit, length in limits if value < limit)
