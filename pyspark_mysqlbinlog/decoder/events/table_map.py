"""TABLE_MAP events: the layout of the rows that follow, and the registry of table maps.

A rows event contains only the number of its table; the TABLE_MAP before it gives database, table,
types, metadata and nullability for that number. Ids start again after a server restart (a new
file), and a server that reopens tables uses more and more ids. Therefore, the registry is bounded,
and is cleared when the file changes. A map is parsed once: servers repeat it for every statement,
byte for byte. An equal body gives the same `TableMap` object again, which is the key of plans.

Layout (libbinlogevents, Table_map_event)::

    table_id u48 | flags u16 | database length u8 | database | 0x00 | table length u8 | table | 0x00
    | column count lenenc | types u8[count] | metadata length lenenc | metadata
    | null bitmap u8[(count + 7) / 8] | optional metadata (8.0, MariaDB 10.5)
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from pyspark_mysqlbinlog.decoder.events.field_types import (
    METADATA_LENGTHS,
    FieldType,
    field_type_name,
)
from pyspark_mysqlbinlog.errors import MalformedEventError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = [
    "DUMMY_TABLE_IDS",
    "TABLE_ID_LENGTH",
    "TableMap",
    "TableMapRegistry",
    "parse_table_name",
    "table_id_of",
]

# The id of "no table": 0x00ffffff in MySQL's documentation, all bits set in older servers. Rows
# events with this id only end a statement.
DUMMY_TABLE_IDS = frozenset({0xFFFFFF, 0xFFFFFFFFFFFF})

TABLE_ID_LENGTH = 6

_TWO_SINGLE_BYTES = frozenset(
    {FieldType.NEWDECIMAL, FieldType.STRING, FieldType.ENUM, FieldType.SET, FieldType.VAR_STRING}
)


@dataclass(frozen=True, slots=True, eq=False)
class TableMap:
    """One parsed table map.

    Attributes
    ----------
    types : the type byte of each column, as sent (ENUM and SET are STRING).
    metadata : per column; 0 for a type without. NEWDECIMAL: precision << 8 | scale; STRING: real
        type << 8 | length; BIT: bytes << 8 | bits; VARCHAR: maximum bytes.
    null_bitmap : low bit first, 1 = the column can be NULL.
    optional : the bytes after the null bitmap, unparsed; empty in 5.7.
    """

    table_id: int
    flags: int
    database: str
    table: str
    types: bytes
    metadata: tuple[int, ...]
    null_bitmap: bytes
    optional: bytes = b""

    @classmethod
    def parse(cls, body: bytes) -> TableMap:
        """Parse a whole body. MalformedEventError, or UnsupportedEventError for an unknown type."""
        reader = Reader(body, "TABLE_MAP")
        table_id, database, table = _head(reader)
        flags = int.from_bytes(body[6:8], "little")
        count = reader.lenenc_int()
        types = reader.take(count)
        block = Reader(reader.lenenc_bytes(), "TABLE_MAP metadata")
        metadata = tuple(_metadata(block, code, index) for index, code in enumerate(types))
        block.check_end()
        null_bitmap = reader.take((count + 7) // 8)
        return cls(table_id, flags, database, table, types, metadata, null_bitmap, reader.rest())

    @property
    def column_count(self) -> int:
        return len(self.types)

    @property
    def full_name(self) -> str:
        """``database.table``, for messages."""
        return f"{self.database}.{self.table}"

    def nullable(self, column: int) -> bool:
        """Whether the column of this index can be NULL."""
        return bool(self.null_bitmap[column >> 3] >> (column & 7) & 1)

    @property
    def is_all_nullable(self) -> bool:
        """Whether all columns can be NULL, by their definition or only in the result of a join.

        5.6, 5.7 and MariaDB set all bits for the inner table of an outer join (measured on 5.6.24,
        5.7.41 and 11.8.9; 9.7.4 does not).
        """
        return all(map(self.nullable, range(self.column_count)))


def table_id_of(body: bytes) -> int:
    """Return the id at the start of a TABLE_MAP or rows event; arbitrary if it is cut short."""
    return int.from_bytes(body[:TABLE_ID_LENGTH], "little")


def parse_table_name(body: bytes) -> tuple[int, str, str]:
    """Return (table id, database, table) from the head of a TABLE_MAP body, for filters."""
    return _head(Reader(body, "TABLE_MAP"))


def _head(reader: Reader) -> tuple[int, str, str]:
    table_id = reader.u48()
    reader.u16()
    names = []
    for what in ("database", "table"):
        name = reader.nul_terminated(reader.u8())
        try:
            names.append(name.decode("utf-8"))
        except UnicodeDecodeError:
            raise MalformedEventError(
                f"TABLE_MAP has a {what} name that is not UTF-8: 0x{name.hex()}"
            ) from None
    return table_id, names[0], names[1]


def _metadata(block: Reader, code: int, index: int) -> int:
    length = METADATA_LENGTHS.get(code)
    if length is None:
        # Without the width of this column, the metadata of all later columns is unknown.
        raise UnsupportedEventError(
            f"TABLE_MAP has column {index + 1} of {field_type_name(code)}, which MySQL 5.5 to 5.7"
            " do not have; exclude the table"
        )
    if length == 0:
        return 0
    if code in _TWO_SINGLE_BYTES:
        return block.u8() << 8 | block.u8()
    return block.uint(length)


class TableMapRegistry:
    """The table maps that rows events may refer to: the last `capacity` used ones of one file."""

    __slots__ = ("_bodies", "_capacity", "_file", "_maps")

    def __init__(self, capacity: int = 1024) -> None:
        self._capacity = capacity
        self._file: str | None = None
        self._maps: OrderedDict[int, TableMap] = OrderedDict()
        self._bodies: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._maps)

    def add(self, file: str, body: bytes) -> TableMap:
        """Add a TABLE_MAP; an equal earlier body gives the same object again."""
        if file != self._file:
            self.clear()
            self._file = file
        table_id = table_id_of(body)
        if self._bodies.get(table_id) == body:
            self._maps.move_to_end(table_id)
            return self._maps[table_id]
        table_map = TableMap.parse(body)
        self._maps[table_id] = table_map
        self._bodies[table_id] = body
        self._maps.move_to_end(table_id)
        if len(self._maps) > self._capacity:
            oldest, _ = self._maps.popitem(last=False)
            del self._bodies[oldest]
        return table_map

    def get(self, file: str, table_id: int) -> TableMap | None:
        """Return the map of a rows event; None if this file has none for that id."""
        return self._maps.get(table_id) if file == self._file else None

    def body(self, file: str, table_id: int) -> bytes:
        """Return the body that the map of a rows event was parsed from; empty if there is none."""
        return self._bodies.get(table_id, b"") if file == self._file else b""

    def forget(self, table_id: int) -> None:
        """Remove one map, if it exists."""
        if self._maps.pop(table_id, None) is not None:
            del self._bodies[table_id]

    def clear(self) -> None:
        """Remove all maps, because table ids change with a server restart."""
        self._maps.clear()
        self._bodies.clear()
        self._file = None
