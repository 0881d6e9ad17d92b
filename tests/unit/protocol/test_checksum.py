"""CRC32 of whole events."""

from __future__ import annotations

import pytest

from helpers.logs.events import raw_event
from helpers.parity.decoding import CAPTURED, raws_in
from pyspark_mysqlbinlog.errors import ChecksumError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm, checksum_algorithm, verify
from pyspark_mysqlbinlog.protocol.events import EventType


def test_checksum_codes_give_their_algorithm_and_unknown_ones_are_rejected() -> None:
    assert checksum_algorithm(0) is ChecksumAlgorithm.OFF
    assert checksum_algorithm(1) is ChecksumAlgorithm.CRC32
    assert checksum_algorithm(255) is ChecksumAlgorithm.OFF
    for code in (2, 3, 254):
        with pytest.raises(UnsupportedEventError, match=f"checksum algorithm {code}"):
            checksum_algorithm(code)


def test_recorded_events_have_valid_checksums() -> None:
    for raw in raws_in(CAPTURED / "transactions.001.binlog"):
        verify(raw)


def test_every_flipped_bit_raises_checksum_error() -> None:
    raw = raw_event(EventType.XID_EVENT, b"12345678", log_pos=100)
    verify(raw)
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit >> 3] ^= 1 << (bit & 7)
        with pytest.raises(ChecksumError, match=r"expected CRC32 0x[0-9a-f]{8}, found 0x"):
            verify(bytes(damaged))


def test_checksum_error_names_event_type_and_length() -> None:
    raw = raw_event(EventType.XID_EVENT, b"12345678", log_pos=100)
    with pytest.raises(ChecksumError, match=r"XID_EVENT of 31 bytes .* found 0x00000000"):
        verify(raw[:-4] + bytes(4))
