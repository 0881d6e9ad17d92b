"""TRANSACTION_PAYLOAD (40): the events of a whole transaction but its GTID, compressed with zstd.

A server writes it with binlog_transaction_compression (8.0.20 and later). Layout (libbinlogevents,
codecs/binary.cpp): fields, then the compressed data::

    field lenenc | length lenenc | value lenenc …  | 0x00 | data
    field: 1 bytes of data, 2 algorithm, 3 decompressed bytes

The decompressed stream has events back to back. They have no checksum, and a log_pos of 0 (measured
on 9.7.4). The stream may be larger than memory, so it is read in pieces, as a file is. Nothing in
the payload is trusted: the stream must have exactly the size in the header, and contain only events
that are part of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import pyarrow as pa

from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    MySQLBinlogError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.checksum import event_checksum
from pyspark_mysqlbinlog.protocol.events import (
    HEADER,
    HEADER_LENGTH,
    ROWS_EVENT_TYPES,
    Event,
    EventType,
    type_name,
)
from pyspark_mysqlbinlog.protocol.receive_buffer import CAPACITY, ReceiveBuffer
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = ["ReadsInto", "TransactionPayloadReader", "parse_payload", "zstd_stream"]

_NAME = "TRANSACTION_PAYLOAD"
_SIZE, _ALGORITHM, _DECOMPRESSED_SIZE = 1, 2, 3
_END = 0
_ZSTD = 0

# The parts of a transaction. Others, such as a payload in a payload, are never compressed.
_TYPES = frozenset(map(int, ROWS_EVENT_TYPES)) | frozenset(
    map(
        int,
        (
            EventType.QUERY_EVENT,
            EventType.XID_EVENT,
            EventType.TABLE_MAP_EVENT,
            EventType.ROWS_QUERY_LOG_EVENT,
            EventType.XA_PREPARE_LOG_EVENT,
            EventType.IGNORABLE_LOG_EVENT,
        ),
    )
)
# The largest max_allowed_packet: no server sends a larger event.
_LONGEST_EVENT = 1 << 30
# zstd needs at least one byte for 64 KiB, so a payload has more bytes than the stream has GiB.
_MOST_FOR_A_BYTE = 1 << 17


class ReadsInto(Protocol):
    """A stream of bytes; OSError if it is damaged."""

    def readinto(self, memory: memoryview, /) -> int:
        """Write the next bytes; return their number, 0 at the end."""
        ...


def zstd_stream(data: pa.Buffer) -> ReadsInto:
    """Return the content of zstd frames."""
    return pa.CompressedInputStream(pa.BufferReader(data), "zstd")


class TransactionPayloadReader:
    """The events of one payload, as an `EventStream` and its `EventReader` in one.

    Parameters
    ----------
    decompress : returns a stream of the content of zstd frames.

    Attributes
    ----------
    file, start, end : of the payload event.
    size : bytes of the decompressed stream.
    pos : offset of the next event in it.
    """

    packets = False
    has_checksums = False
    may_lack_positions = False
    shift = 0
    has_format = True

    def __init__(
        self, event: Event, decompress: Callable[[pa.Buffer], ReadsInto] | None = None
    ) -> None:
        self._event = event
        self.file, self.start, self.end = event.file, event.start, event.end
        self.pos = 0
        try:
            self.size, data = parse_payload(event.body)
        except MySQLBinlogError as error:
            raise error.with_location(event.file, event.start) from None
        self._received = 0
        if self.size <= CAPACITY and _content_size(data) == self.size:
            self._buffer = ReceiveBuffer.holding(self._whole(data))
        else:
            self._source = (decompress or zstd_stream)(data)
            self._buffer = ReceiveBuffer(self._receive, CAPACITY)
        self.view = self._buffer.view
        self.fill = self._buffer.fill

    def __iter__(self) -> Iterator[Event]:
        while (raw := self.next_event()) is not None:
            yield self.feed(raw)

    @property
    def checksum(self) -> int:
        """The CRC32 of the payload event."""
        return event_checksum(self._event)

    def consume(self, size: int) -> None:
        self._buffer.consume(size)

    def advance(self, pos: int) -> None:
        """Skip to `pos`: the compiled scan has read the events up to it, by the rules of `feed`."""
        self.pos = pos

    def skip_to(self, pos: int) -> None:
        """Continue at the event at a later offset."""
        if not self.pos <= pos < self.size:
            raise self._located(
                InvalidPositionError(
                    f"no event begins at offset {pos} of this {_NAME}: it decompresses to"
                    f" {self.size} bytes"
                )
            )
        while self.pos < pos:
            if not self.view():
                self.fill()
            part = min(len(self.view()), pos - self.pos)
            if not part:
                raise self._located(self._too_short())
            self.consume(part)
            self.pos += part

    def next_event(self) -> bytes | None:
        """Return the next event, which must be complete; None after the last one."""
        left = self.size - self.pos
        if not left:
            return None
        try:
            if left < HEADER_LENGTH:
                raise MalformedEventError(
                    f"{_NAME} ends with {left} bytes, expected an event header of {HEADER_LENGTH}"
                )
            header = self._buffer.take(HEADER_LENGTH)
            if len(header) < HEADER_LENGTH:
                raise self._too_short()
            length = int.from_bytes(header[9:13], "little")
            if not HEADER_LENGTH <= length <= min(left, _LONGEST_EVENT):
                raise MalformedEventError(
                    f"{type_name(header[4])} at offset {self.pos} of a {_NAME} has a length of"
                    f" {length} bytes, expected {HEADER_LENGTH} to {min(left, _LONGEST_EVENT)}"
                )
            if header[4] not in _TYPES:
                raise MalformedEventError(
                    f"{type_name(header[4])} at offset {self.pos} of a {_NAME}, expected an event"
                    " of a transaction"
                )
            rest = self._buffer.take(length - HEADER_LENGTH)
            if len(rest) < length - HEADER_LENGTH:
                raise self._too_short()
        except MySQLBinlogError as error:
            raise self._located(error) from None
        return header + rest

    def feed(self, raw: bytes) -> Event:
        """Return the event in the bytes that `next_event` returned."""
        self.pos += len(raw)
        return self.event_at(self.pos, raw)

    def event_at(self, end: int, raw: bytes) -> Event:
        """Return one event from its header and body, and the offset after it."""
        timestamp, kind, server_id, _, _, flags = HEADER.unpack_from(raw)
        begin, body = end - len(raw), raw[HEADER_LENGTH:]
        if end == self.size:
            place, checksum = self.end, self.checksum
        else:
            place, checksum = self.start, None
        return Event(
            self.file, self.start, place, timestamp, kind, server_id, flags, body, begin, checksum
        )

    def _whole(self, data: pa.Buffer) -> memoryview:
        """Decompress a small stream at once.

        This is faster, but pyarrow does not return how many bytes were decompressed. Therefore, the
        frame's header must contain the content size, which zstd compares with the actual size.
        """
        try:
            content = _CODEC.decompress(data, self.size)
        except (pa.ArrowException, OSError):
            raise self._damaged() from None
        self._received = self.size
        return memoryview(content).toreadonly()

    def _receive(self, memory: memoryview) -> int:
        received = self._read(memory[: self.size - self._received])
        self._received += received
        # Checked before the last event is returned, because a batch may end with that event.
        if self._received == self.size and self._read(memoryview(bytearray(1))):
            raise self._located(
                MalformedEventError(
                    f"{_NAME} decompresses to more than the {self.size} bytes in its header"
                )
            )
        return received

    def _read(self, memory: memoryview) -> int:
        if not memory:
            return 0
        try:
            return self._source.readinto(memory)
        except (pa.ArrowException, OSError):
            raise self._damaged() from None

    def _damaged(self) -> MySQLBinlogError:
        return self._located(
            MalformedEventError(f"{_NAME} cannot be decompressed: its zstd data is damaged")
        )

    def _too_short(self) -> MalformedEventError:
        return MalformedEventError(
            f"{_NAME} decompresses to {self._received} bytes, expected the {self.size} in its"
            " header"
        )

    def _located(self, error: MySQLBinlogError) -> MySQLBinlogError:
        return error.with_location(self.file, self.start)


_CODEC = pa.Codec("zstd")
_MAGIC = b"\x28\xb5\x2f\xfd"


def _content_size(data: pa.Buffer) -> int | None:
    """Return the size of the content in the header of a zstd frame; None without one (RFC 8878).

    magic u32 | descriptor u8: s s w . . . d d | window u8 unless w | dictionary | size
    """
    head = data[:18].to_pybytes()
    if len(head) < 5 or head[:4] != _MAGIC:
        return None
    descriptor = head[4]
    is_single, size_code, dictionary = descriptor >> 5 & 1, descriptor >> 6, descriptor & 3
    if dictionary or not (size_code or is_single):
        return None
    at = 5 if is_single else 6
    size = int.from_bytes(head[at : at + (1 << size_code)], "little")
    return size + 256 if size_code == 1 else size


def parse_payload(body: bytes) -> tuple[int, pa.Buffer]:
    """Return the decompressed size and the compressed data of an event's body.

    Raises
    ------
    MalformedEventError : a field is wrong, or does not fit the body.
    UnsupportedEventError : it is not compressed by zstd.
    """
    reader = Reader(body[:_LONGEST_HEADER], _NAME)
    fields: dict[int, int] = {}
    while (field := reader.lenenc_int()) != _END:
        end = reader.lenenc_int() + reader.pos
        if field in (_SIZE, _ALGORITHM, _DECOMPRESSED_SIZE):
            fields[field] = reader.lenenc_int()
            if reader.pos != end:
                raise MalformedEventError(
                    f"{_NAME} has a field {field} that ends at offset {reader.pos}, expected {end}"
                )
        else:
            # Later servers may add fields, which can be ignored.
            reader.take(end - reader.pos)
    if fields.get(_ALGORITHM) != _ZSTD:
        raise UnsupportedEventError(
            f"{_NAME} is compressed with algorithm {fields.get(_ALGORITHM)}, expected {_ZSTD}"
            " (zstd)"
        )
    found = len(body) - reader.pos
    size = fields.get(_DECOMPRESSED_SIZE, 0)
    if fields.get(_SIZE) != found:
        raise MalformedEventError(
            f"{_NAME} has {found} compressed bytes, expected the {fields.get(_SIZE)} in its header"
        )
    if not 0 < size <= found * _MOST_FOR_A_BYTE:
        raise MalformedEventError(
            f"{_NAME} of {found} compressed bytes has a decompressed size of {size} bytes, expected"
            f" 1 to {found * _MOST_FOR_A_BYTE}"
        )
    return size, pa.py_buffer(body).slice(reader.pos)


# More than any header: its fields are small.
_LONGEST_HEADER = 1 << 10
