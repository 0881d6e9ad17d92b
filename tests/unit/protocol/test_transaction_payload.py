"""TRANSACTION_PAYLOAD events: the events in them, bounded memory, and malformed payloads."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest

from helpers.logs.corrupt_logs import RawEvent
from helpers.logs.events import query_body, rows_body, table_map
from helpers.parity.decoding import make_event
from helpers.parity.payloads import compressed, inner, payload_body
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.checksum import event_checksum
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.transaction_payload import TransactionPayloadReader

BEGIN = RawEvent(EventType.QUERY_EVENT, query_body("BEGIN"))
MAP = RawEvent(EventType.TABLE_MAP_EVENT, table_map(1, "t"))
ROWS = RawEvent(EventType.WRITE_ROWS_EVENT, rows_body(1, 5, 6))
XID = RawEvent(EventType.XID_EVENT, bytes(8))
PARTS = [BEGIN, MAP, ROWS, XID]
STREAM = inner(PARTS)
FRAME = compressed(STREAM)
LARGE = inner([BEGIN, MAP, *[ROWS] * 50_000, XID])


def payload(body: bytes, start: int = 1000) -> Event:
    return make_event(EventType.TRANSACTION_PAYLOAD_EVENT, body, start)


def test_events_of_a_payload_equal_those_packed_into_it() -> None:
    event = payload(payload_body(STREAM))
    found = list(TransactionPayloadReader(event))
    assert [(each.type, each.body) for each in found] == [(each.kind, each.body) for each in PARTS]
    assert [each.start for each in found] == [1000] * 4
    assert [each.end for each in found] == [1000, 1000, 1000, event.end]
    sizes = [19 + len(each.body) for each in PARTS]
    assert [each.offset for each in found] == [sum(sizes[:n]) for n in range(4)]
    assert [each.checksum for each in found] == [None, None, None, event_checksum(event)]


def test_large_transaction_payload_is_read_in_bounded_memory() -> None:
    event = payload(payload_body(LARGE))
    tracemalloc.start()
    count = sum(1 for _ in TransactionPayloadReader(event))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 50_003
    assert peak < 1 << 20 < len(LARGE)


@pytest.mark.parametrize("at", [0, 1, 3, 40_000, 50_002])
def test_reading_of_a_payload_resumes_at_any_event(at: int) -> None:
    event = payload(payload_body(LARGE))
    whole = list(TransactionPayloadReader(event))
    reader = TransactionPayloadReader(event)
    reader.skip_to(whole[at].offset or 0)
    assert list(reader) == whole[at:]


def test_payload_of_two_frames_is_one_stream() -> None:
    data = compressed(STREAM[:100]) + compressed(STREAM[100:])
    assert len(list(TransactionPayloadReader(payload(payload_body(STREAM, data=data))))) == 4


def with_length(events: bytes, length: int) -> bytes:
    """Return the stream with another length in its first event."""
    return events[:9] + length.to_bytes(4, "little") + events[13:]


NESTED = RawEvent(EventType.TRANSACTION_PAYLOAD_EVENT, payload_body(STREAM))
FORMAT = RawEvent(EventType.FORMAT_DESCRIPTION_EVENT, bytes(80))
# (id, body, part of the error message)
BROKEN: list[tuple[str, bytes, str]] = [
    ("no body", b"", "TRANSACTION_PAYLOAD is cut short"),
    ("no end of the fields", payload_body(STREAM)[:9], "TRANSACTION_PAYLOAD"),
    ("another algorithm", payload_body(STREAM, algorithm=255), "algorithm 255, expected 0"),
    ("a field with another length", b"\x02\x02\x00\x00\x00", "ends at offset 3, expected 4"),
    ("fewer bytes than its header says", payload_body(STREAM, packed_size=999), "expected the 999"),
    ("more bytes than its header says", payload_body(STREAM, packed_size=3), "expected the 3"),
    ("no decompressed size", payload_body(STREAM, size=0), "has a decompressed size of 0"),
    ("an impossible size", payload_body(STREAM, size=10**12), "has a decompressed size of 10"),
    ("a size too large", payload_body(STREAM, size=len(STREAM) + 30), "decompresses to"),
    ("a size too small", payload_body(STREAM, size=len(STREAM) - 1), "decompresses to more"),
    ("a size between events", payload_body(STREAM, size=len(STREAM) - 27), "decompresses to more"),
    ("a frame cut short", payload_body(STREAM, data=FRAME[:-5]), "cannot be decompressed"),
    ("garbage after it", payload_body(STREAM, data=FRAME + b"garbage"), "cannot be decompressed"),
    ("another frame after it", payload_body(STREAM, data=FRAME + FRAME), "cannot be decompressed"),
    ("no frame", payload_body(STREAM, data=b"no zstd frame"), "cannot be decompressed"),
    ("no data", payload_body(STREAM, data=b""), "of 0 compressed bytes"),
    ("zeros", payload_body(bytes(1000)), "has a length of 0 bytes, expected 19"),
    ("a length below the header's", payload_body(with_length(STREAM, 18)), "a length of 18 bytes"),
    ("a length beyond the end", payload_body(with_length(STREAM, 999)), "a length of 999 bytes"),
    ("a length of 4 GiB", payload_body(with_length(STREAM, 0xFFFFFFFF)), "of 4294967295 bytes"),
    ("half a header", payload_body(STREAM + b"12345"), "ends with 5 bytes, expected"),
    ("a payload in it", payload_body(inner([NESTED])), "TRANSACTION_PAYLOAD_EVENT at offset 0"),
    ("a new file in it", payload_body(inner([BEGIN, FORMAT])), "FORMAT_DESCRIPTION_EVENT at"),
]


@pytest.mark.parametrize(
    ("body", "message"), [each[1:] for each in BROKEN], ids=[each[0] for each in BROKEN]
)
def test_a_broken_payload_is_an_error_with_its_position(body: bytes, message: str) -> None:
    with pytest.raises((MalformedEventError, UnsupportedEventError)) as caught:
        list(TransactionPayloadReader(payload(body)))
    assert message in caught.value.message
    assert (caught.value.file, caught.value.position) == ("mysql-bin.000003", 1000)


@pytest.mark.parametrize("cut", range(1, len(FRAME)))
def test_payload_with_truncated_frame_raises_malformed_event_error(cut: int) -> None:
    with pytest.raises(MalformedEventError):
        list(TransactionPayloadReader(payload(payload_body(STREAM, data=FRAME[:cut]))))


def test_decompression_bomb_is_rejected_in_bounded_memory() -> None:
    """10 GB of zeros in 300 kB, with a header that declares this size or a smaller one."""
    part = bytes(64 << 20)
    frame = compressed(part)
    data = frame * 160
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    for size in (160 * len(part), 4096):
        with pytest.raises(MalformedEventError):
            list(TransactionPayloadReader(payload(payload_body(b"", data=data, size=size))))
    # The zeros are skipped, to begin after them.
    reader = TransactionPayloadReader(payload(payload_body(b"", data=frame * 2, size=1 << 28)))
    with pytest.raises(MalformedEventError, match="decompresses to 134217728 bytes, expected"):
        reader.skip_to((1 << 28) - 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20
    assert pa.total_allocated_bytes() - before < 8 << 20


def test_start_offset_outside_payload_raises_invalid_position_error() -> None:
    reader = TransactionPayloadReader(payload(payload_body(STREAM)))
    with pytest.raises(InvalidPositionError, match="no event begins at offset 9999"):
        reader.skip_to(9999)


# (offset, `pos` and `row` of `seq`) of an event in a payload at 1000
PLACES: list[tuple[int, tuple[int, int]]] = [
    (0, (1000, 0)),
    (145, (1000, 145)),
    ((1 << 30) - 1, (1000, (1 << 30) - 1)),
    (1 << 30, (1001, 0)),
    ((5 << 30) + 7, (1005, 7)),
]


@pytest.mark.parametrize(("offset", "place"), PLACES)
def test_first_seq_of_payload_event_is_derived_from_its_offset(
    offset: int, place: tuple[int, int]
) -> None:
    event = make_event(EventType.WRITE_ROWS_EVENT, b"", 1000)
    assert event.first_seq == (1000, 0)
    assert event._replace(offset=offset).first_seq == place
