"""Helpers of the decoder's tests: files to events, events to rows, bytes of table maps and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from helpers.parity.implementations import DecodesEvents, make_decoder
from pyspark_mysqlbinlog.decoder.events.field_types import METADATA_LENGTHS, FieldType
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap, parse_table_name
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import expected_fields
from pyspark_mysqlbinlog.protocol.binlog_files.files import FileStream
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import (
    HEADER,
    ROWS_EVENT_TYPES,
    Event,
    EventType,
)
from pyspark_mysqlbinlog.protocol.wire import lenenc_int
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

CAPTURED = Path(__file__).resolve().parents[2] / "data" / "binlogs57"
ALL_OPERATIONS = frozenset({"insert", "update", "delete", "truncate"})

_STRINGS: pa.DataType = pa.list_(pa.field("element", pa.string()))
_SEQ = {"epoch": pa.int32(), "file": pa.int32(), "pos": pa.int64(), "row": pa.int32()}
_SOURCE: dict[str, pa.DataType] = {
    "server_id": pa.int64(),
    "file": pa.string(),
    "pos": pa.int64(),
    "row": pa.int32(),
    "tx_pos": pa.int64(),
    "thread_id": pa.int64(),
    "gtid": pa.string(),
    "query": pa.string(),
    "key": _STRINGS,
    "missing": _STRINGS,
    "invalid_dates": _STRINGS,
}
_COLUMNS: dict[str, pa.DataType] = {
    "op": pa.string(),
    "ts": pa.timestamp("us", tz="UTC"),
    "database": pa.string(),
    "table": pa.string(),
    "before": pa.string(),
    "after": pa.string(),
    "seq": pa.struct(list(_SEQ.items())),
    "source": pa.struct(list(_SOURCE.items())),
}
# As pyspark's to_arrow_schema returns it with time zone UTC.
ARROW_SCHEMA = pa.schema(list(_COLUMNS.items()))


class StaticSchemas:
    """A schema lookup whose tables are the same at every position."""

    def __init__(self, schemas: Iterable[TableSchema]) -> None:
        self._schemas = {(schema.database, schema.table): schema for schema in schemas}

    def at(self, file: str, pos: int, database: str, table: str) -> TableSchema | None:
        assert file
        assert pos >= 4
        return self._schemas.get((database, table))

    def reason(self, file: str, pos: int, database: str, table: str) -> str:
        return "no schema was given"

    def is_known_later(self, file: str, pos: int, database: str, table: str) -> bool:
        return False

    def span(self, file: str, pos: int, database: str, table: str) -> tuple[int, int | None]:
        return 0, None


class ByPosition:
    """A schema lookup of one table that changes at a position, as an ALTER changes it.

    asked : the positions that were looked up.
    """

    def __init__(self, before: TableSchema, change: int, after: TableSchema) -> None:
        assert before.full_name == after.full_name
        self._before, self._change, self._after = before, change, after
        self.asked: set[int] = set()

    def at(self, file: str, pos: int, database: str, table: str) -> TableSchema | None:
        assert file
        assert (database, table) == (self._before.database, self._before.table)
        self.asked.add(pos)
        return self._before if pos < self._change else self._after

    def reason(self, file: str, pos: int, database: str, table: str) -> str:
        raise AssertionError("it is known")

    def is_known_later(self, file: str, pos: int, database: str, table: str) -> bool:
        return False

    def span(self, file: str, pos: int, database: str, table: str) -> tuple[int, int | None]:
        return (0, self._change) if pos < self._change else (self._change, None)


def read_log(path: Path) -> Iterator[Event]:
    """Yield the events of one file."""
    data = path.read_bytes()
    walker = EventReader(path.name, 4)
    pos = 4
    while pos < len(data):
        length = HEADER.unpack_from(data, pos)[3]
        event = walker.feed(data[pos : pos + length])
        if event is not None:
            yield event
        pos += length


def wanted(events: Iterable[Event], tables: set[tuple[str, str]]) -> Iterator[Event]:
    """Yield the table maps and rows events of these tables, and all other events."""
    ids: set[int] = set()
    for event in events:
        if event.type == EventType.TABLE_MAP_EVENT:
            table_id, database, table = parse_table_name(event.body)
            ids.discard(table_id)
            if (database, table) in tables:
                ids.add(table_id)
                yield event
        elif event.type not in ROWS_EVENT_TYPES or int.from_bytes(event.body[:6], "little") in ids:
            yield event


def captured_ordinal(name: str) -> int:
    """Return the file's number, 2 for ``rotations.002.binlog``."""
    return int(name.split(".")[1])


def decoder(schemas: Iterable[TableSchema], **options: Any) -> DecodesEvents:
    """Return a decoder of the implementation under test, for these tables and all operations."""
    settings = {
        "epoch": 0,
        "operations": ALL_OPERATIONS,
        **options,
    }
    return make_decoder(StaticSchemas(schemas), ARROW_SCHEMA, **settings)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of batches; each batch must have exactly `ARROW_SCHEMA`."""
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(ARROW_SCHEMA, check_metadata=True)
        yield from batch.to_pylist()


def table_map_body(
    fields: list[tuple[int, int]], nullable: list[bool], name: str = "t", table_id: int = 7
) -> bytes:
    """Return a TABLE_MAP's body; `fields` are (type, metadata as in `TableMap.metadata`)."""
    metadata = b""
    for code, value in fields:
        big = code in (FieldType.STRING, FieldType.NEWDECIMAL)
        metadata += value.to_bytes(METADATA_LENGTHS[code], "big" if big else "little")
    bits = sum(1 << at for at, is_nullable in enumerate(nullable) if is_nullable)
    return b"".join(
        [
            table_id.to_bytes(6, "little"),
            b"\x01\x00\x01d\x00",
            bytes([len(name)]),
            name.encode(),
            b"\x00",
            lenenc_int(len(fields)),
            bytes(code for code, _ in fields),
            lenenc_int(len(metadata)),
            metadata,
            bits.to_bytes((len(fields) + 7) // 8, "little"),
        ]
    )


def raws_in(path: Path) -> list[bytes]:
    """Return a file's raw events."""
    with FileStream(path) as stream:
        return list(iter(stream.next_event, None))


def make_event(
    kind: EventType, body: bytes, start: int = 1000, file: str = "mysql-bin.000003"
) -> Event:
    """Return an event at an arbitrary position."""
    return Event(file, start, start + 19 + len(body), 1_600_000_000, int(kind), 5, 0, body)


def table_map_for(schema: TableSchema, table_id: int = 7) -> TableMap:
    """Return a table map that fits a schema."""
    return TableMap.parse(table_map_body_for(schema, table_id))


def table_map_body_for(schema: TableSchema, table_id: int = 7) -> bytes:
    """Return the body of a table map that fits a schema."""
    fields = [next(expected_fields(column)) for column in schema.columns]
    nullable = [column.nullable for column in schema.columns]
    return table_map_body(fields, nullable, schema.table, table_id)


def simple_schema(*columns: ColumnSchema, key: tuple[str, ...] = ()) -> TableSchema:
    """Return the schema of a table d.t."""
    return TableSchema("d", "t", columns, key)
