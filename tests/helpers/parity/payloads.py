"""TRANSACTION_PAYLOAD events made from plain events, as a server with compression writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from helpers.logs.corrupt_logs import RawEvent, from_bytes, to_bytes
from pyspark_mysqlbinlog.protocol.events import HEADER, HEADER_LENGTH, EventType
from pyspark_mysqlbinlog.protocol.messages import Query
from pyspark_mysqlbinlog.protocol.wire import lenenc_int

__all__ = ["compressed", "inner", "payload_body", "repacked"]

_GTIDS = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)


def inner(events: Iterable[RawEvent]) -> bytes:
    """Return events as the stream of a payload contains them: without position and checksum."""
    return b"".join(
        HEADER.pack(
            event.timestamp,
            event.kind,
            event.server_id,
            HEADER_LENGTH + len(event.body),
            0,
            event.flags,
        )
        + event.body
        for event in events
    )


def compressed(stream: bytes) -> bytes:
    return pa.Codec("zstd", compression_level=3).compress(stream, asbytes=True)


def payload_body(
    stream: bytes,
    *,
    data: bytes | None = None,
    size: int | None = None,
    algorithm: int = 0,
    packed_size: int | None = None,
) -> bytes:
    """Return the body of a payload with this stream; the other arguments override parts of it."""
    data = compressed(stream) if data is None else data
    fields = (
        (2, algorithm),
        (3, len(stream) if size is None else size),
        (1, len(data) if packed_size is None else packed_size),
    )
    head = b""
    for field, value in fields:
        number = lenenc_int(value)
        head += bytes((field, len(number))) + number
    return head + b"\x00" + data


def repacked(path: Path, folder: Path) -> Path:
    """Return a copy of a file in which each transaction with a GTID event is a payload."""
    events, checksum = from_bytes(path.read_bytes())
    made: list[RawEvent] = []
    group: list[RawEvent] | None = None
    for event in events:
        text = Query.parse(event.body).sql if event.kind == EventType.QUERY_EVENT else ""
        if group is None:
            if text == "BEGIN" and made[-1].kind in _GTIDS:
                group = [event]
            else:
                made.append(event)
            continue
        group.append(event)
        if event.kind == EventType.XID_EVENT or text in ("COMMIT", "ROLLBACK"):
            body = payload_body(inner(group))
            made.append(replace(event, kind=int(EventType.TRANSACTION_PAYLOAD_EVENT), body=body))
            group = None
    assert group is None
    copy = folder / path.name
    copy.write_bytes(to_bytes(made, checksum=checksum))
    return copy
