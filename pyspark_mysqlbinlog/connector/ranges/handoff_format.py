"""The bytes of a handoff file: one batch's offsets and inline ranges, as an Arrow IPC stream.

The events are a table with one row per block, in the ranges' order. Everything else is JSON in the
schema's metadata::

    {"version": 3, "first": offset, "last": offset, "blocks": how many rows,
     "ranges": [{"start": [number, pos, file], …}]}

An Arrow stream truncated between two messages is valid, so the number of rows is checked.

The file contains no code. Any other bytes are a HandoffFormatError: the batch is then read
otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.json_values import flag_of, number_of, text_of, texts_of
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.protocol.blocks import EventBlock
from pyspark_mysqlbinlog.protocol.events import CommitPlace

__all__ = ["HandoffFormatError", "pack_handoff", "unpack_handoff"]

_VERSION = 3
_KEY = b"mysqlbinlog"
_FIELDS: list[pa.Field[Any]] = [
    pa.field("range", pa.int32(), nullable=False),
    pa.field("is_prelude", pa.bool_(), nullable=False),
    pa.field("file", pa.string(), nullable=False),
    pa.field("end", pa.int64(), nullable=False),
    pa.field("trailer", pa.int32(), nullable=False),
    pa.field("data", pa.large_binary(), nullable=False),
    pa.field(
        "committed",
        pa.struct(
            [
                pa.field("file", pa.string(), nullable=False),
                pa.field("pos", pa.int64(), nullable=False),
                pa.field("begin", pa.int64(), nullable=False),
            ]
        ),
    ),
]
_BLOCKS = pa.schema(_FIELDS)


class HandoffFormatError(ValueError):
    """The bytes are not a handoff file of this version."""


def pack_handoff(first: Offset, last: Offset, ranges: Sequence[RangePartition]) -> bytes:
    """Return the file of a batch between two offsets; its ranges are inline and of a server."""
    blocks: list[tuple[int, bool, EventBlock]] = []
    for index, part in enumerate(ranges):
        assert part.blocks is not None
        assert part.log is None
        blocks += [(index, True, block) for block in part.prelude]
        blocks += [(index, False, block) for block in part.blocks]
    described = {
        "version": _VERSION,
        "first": first.to_dict(),
        "last": last.to_dict(),
        "blocks": len(blocks),
        "ranges": [_described(part) for part in ranges],
    }
    columns: list[list[Any]] = [
        [index for index, _, _ in blocks],
        [is_prelude for _, is_prelude, _ in blocks],
        *([block[at] for _, _, block in blocks] for at in range(len(EventBlock._fields) - 1)),
        [block.committed and block.committed._asdict() for _, _, block in blocks],
    ]
    schema = _BLOCKS.with_metadata({_KEY: json.dumps(described).encode()})
    table = pa.table(columns, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpack_handoff(data: bytes) -> tuple[Offset, Offset, tuple[RangePartition, ...]]:
    """Return what `pack_handoff` was given; HandoffFormatError for any other bytes."""
    try:
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
        if not table.schema.equals(_BLOCKS):
            raise HandoffFormatError("its columns are others")
        table.validate(full=True)
        described = json.loads((table.schema.metadata or {})[_KEY])
        if described["version"] != _VERSION:
            raise HandoffFormatError(f"its version is {described['version']!r}")
        if described["blocks"] != table.num_rows:
            raise HandoffFormatError(f"it has {table.num_rows} blocks of {described['blocks']}")
        preludes: list[list[EventBlock]] = [[] for _ in described["ranges"]]
        blocks: list[list[EventBlock]] = [[] for _ in described["ranges"]]
        for row in table.to_pylist():
            side = preludes if row["is_prelude"] else blocks
            block = EventBlock(*(row[name] for name in EventBlock._fields))
            if block.committed is not None:
                block = block._replace(committed=CommitPlace(**row["committed"]))
            side[number_of(row["range"])].append(block)
        ranges = tuple(
            _range(part, tuple(blocks[index]), tuple(preludes[index]))
            for index, part in enumerate(described["ranges"])
        )
        return Offset.from_dict(described["first"]), Offset.from_dict(described["last"]), ranges
    except (
        pa.ArrowException,
        OSError,  # a truncated stream
        OffsetError,
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise HandoffFormatError(f"not a handoff file ({type(error).__name__})") from None


def _described(part: RangePartition) -> dict[str, Any]:
    return {
        "start": part.start,
        "end": part.end,
        "schemas": part.schemas,
        "pending_xa": part.pending_xa,
        "case_sensitive": part.case_sensitive,
        "ends_inside": part.ends_inside,
        "server_uuid": part.server_uuid,
        "server_version": part.server_version,
        "epoch": part.epoch,
        "fingerprint": _known(part.fingerprint),
        "end_fingerprint": _known(part.end_fingerprint),
        "offset": part.offset,
        "end_offset": part.end_offset,
    }


def _known(fingerprint: PositionFingerprint | None) -> dict[str, Any] | None:
    return None if fingerprint is None else fingerprint.to_dict()


def _range(
    part: Mapping[str, Any], blocks: tuple[EventBlock, ...], prelude: tuple[EventBlock, ...]
) -> RangePartition:
    return RangePartition(
        start=_position(part["start"]),
        end=_position(part["end"]),
        schemas=text_of(part["schemas"]),
        pending_xa=texts_of(part["pending_xa"]),
        case_sensitive=flag_of(part["case_sensitive"]),
        blocks=blocks,
        prelude=prelude,
        ends_inside=flag_of(part["ends_inside"]),
        server_uuid=text_of(part["server_uuid"]),
        server_version=text_of(part["server_version"]),
        epoch=number_of(part["epoch"]),
        fingerprint=_fingerprint(part["fingerprint"]),
        end_fingerprint=_fingerprint(part["end_fingerprint"]),
        offset=number_of(part["offset"]),
        end_offset=number_of(part["end_offset"]),
    )


def _position(value: Sequence[Any]) -> Position:
    number, pos, file = value
    return Position(number_of(number), number_of(pos), text_of(file))


def _fingerprint(value: Mapping[str, Any] | None) -> PositionFingerprint | None:
    return None if value is None else PositionFingerprint.from_dict(value)
