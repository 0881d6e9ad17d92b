"""Optional metadata of a TABLE_MAP: names, signs, charsets and labels from the binlog itself.

MySQL 8.0 and MariaDB 10.5 append it (all of it with binlog_row_metadata=FULL); 5.7 has none. If it
is complete, it describes the columns at exactly that event. Nothing else does, so it takes
precedence over schemas from the server or from DDL.

Layout (libbinlogevents, Table_map_event::Optional_metadata_fields): fields of ``type u8 | length
lenenc | value``. Bitmaps are over the columns of one kind (numeric, character, ENUM and SET), high
bit first; character sets are collation ids; labels are in the column's own character set::

    1 signedness: bitmap over the numeric columns, 1 = UNSIGNED
    2 default charset: collation, then (index among the character columns, collation) of the others
    3 column charsets: a collation for each character column
    4 column names        5 SET labels: count, labels      6 ENUM labels: count, labels
    7 geometry types      8 primary key: column indexes    9 the same with (index, prefix length)
    10 and 11 as 2 and 3, over the ENUM and SET columns    12 visibility (not needed)

MariaDB counts YEAR among the numeric columns, with a bit that is always set, and so does MySQL at
least from 8.0.23 on (its sources; measured on 9.7.4), which also added visibility. Earlier versions
do not count YEAR. If neither the number of bits nor the bits of the YEARs show which rule applies,
the presence of field 12 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark_mysqlbinlog.charsets import MAX_BYTES_PER_CHARACTER, charset_of_collation
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType, real_string
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.sql.definitions.column_types import MARIADB_TYPES
from pyspark_mysqlbinlog.decoder.values.charsets import text_decoder
from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.wire import Reader
from pyspark_mysqlbinlog.tables import BLOB_TYPES, ColumnSchema, TableSchema

__all__ = ["Metadata", "described_schema", "usable_schema"]

_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME = 1, 2, 3, 4
_SET_LABELS, _ENUM_LABELS, _GEOMETRY_TYPE = 5, 6, 7
_SIMPLE_PRIMARY_KEY, _PRIMARY_KEY_WITH_PREFIX = 8, 9
_LABEL_DEFAULT_CHARSET, _LABEL_COLUMN_CHARSET = 10, 11
_VISIBILITY = 12

_INTEGERS: dict[int, str] = {
    FieldType.TINY: "tinyint",
    FieldType.SHORT: "smallint",
    FieldType.INT24: "mediumint",
    FieldType.LONG: "int",
    FieldType.LONGLONG: "bigint",
}
_NUMERIC = frozenset({*_INTEGERS, FieldType.FLOAT, FieldType.DOUBLE, FieldType.NEWDECIMAL})
_CHARACTER = frozenset(
    {
        FieldType.VARCHAR,
        FieldType.VAR_STRING,
        FieldType.STRING,
        FieldType.BLOB,
        FieldType.VECTOR,  # with the collation binary: measured on 9.7.4
    }
)
_LABELLED = (FieldType.ENUM, FieldType.SET)
_PLAIN: dict[int, str] = {
    FieldType.FLOAT: "float",
    FieldType.DOUBLE: "double",
    FieldType.YEAR: "year",
    FieldType.DATE: "date",
    FieldType.NEWDATE: "date",
    FieldType.JSON: "json",
    FieldType.VECTOR: "vector",
}
_TEMPORAL: dict[int, str] = {
    FieldType.TIME: "time",
    FieldType.TIME2: "time",
    FieldType.DATETIME: "datetime",
    FieldType.DATETIME2: "datetime",
    FieldType.TIMESTAMP: "timestamp",
    FieldType.TIMESTAMP2: "timestamp",
}
_BLOB_SIZES = ("tiny", "", "medium", "long")
_GEOMETRIES = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
)


def described_schema(
    table_map: TableMap, known: TableSchema | None = None, *, is_mariadb: bool = False
) -> TableSchema | None:
    """Return the schema in a table map's optional metadata; None if it is not complete.

    is_mariadb : MariaDB counts geometries among the character columns; MySQL does not.
    known : the schema known from elsewhere, for facts that metadata does not contain: that a column
        is TINYINT(1) or YEAR(2), if the known column of that name has the same type; that it
        is MariaDB's UUID, INET4 or INET6, which the binlog has as BINARY; that it is virtual or
        generated; and that it is NOT NULL, if the table map has all columns as nullable.

    Raises MalformedEventError for metadata that does not fit its own columns, UnknownSchemaError
    for an unknown collation.
    """
    if not table_map.optional:
        return None
    metadata = Metadata(table_map, is_mariadb=is_mariadb)
    return metadata.schema(known) if metadata.has_names else None


def usable_schema(
    table_map: TableMap, known: TableSchema | None, *, is_mariadb: bool
) -> TableSchema | None:
    """Return `described_schema`; None for a table of MariaDB if `known` is None.

    MariaDB's metadata does not distinguish system-versioned tables, whose history is logged as
    rows, sequences, and tables with the hidden column of a hashed key (measured on 11.8.9).
    """
    if is_mariadb and known is None:
        return None
    return described_schema(table_map, known, is_mariadb=is_mariadb)


def _fields(table_map: TableMap) -> dict[int, bytes]:
    reader = Reader(table_map.optional, "TABLE_MAP optional metadata")
    fields: dict[int, bytes] = {}
    while reader.remaining:
        code = reader.u8()
        fields[code] = reader.lenenc_bytes()
    return fields


def _real_type(code: int, metadata: int) -> int:
    """Return the type, with ENUM and SET distinguished from STRING."""
    return real_string(metadata)[0] if code == FieldType.STRING else code


class Metadata:
    """The metadata of one table, parsed by kind and returned by column."""

    def __init__(self, table_map: TableMap, *, is_mariadb: bool) -> None:
        self._table_map = table_map
        self._is_mariadb = is_mariadb
        # Measured on MariaDB 10.11; MySQL's own sources exclude them.
        self._character = _CHARACTER | {FieldType.GEOMETRY} if is_mariadb else _CHARACTER
        self._fields = _fields(table_map)
        self._types = [
            _real_type(code, metadata)
            for code, metadata in zip(table_map.types, table_map.metadata, strict=True)
        ]

    def _columns_of(self, kinds: Sequence[int] | frozenset[int]) -> list[int]:
        return [index for index, code in enumerate(self._types) if code in kinds]

    def _reader(self, code: int) -> Reader:
        """Return a reader of a field's value; empty if it was not sent."""
        return Reader(self._fields.get(code, b""), f"TABLE_MAP optional metadata field {code}")

    def schema(self, known: TableSchema | None) -> TableSchema | None:
        names = self.names()
        unsigned = self.unsigned()
        charsets = self.charsets()
        if unsigned is None or any(
            index not in charsets for index in self._columns_of((*_CHARACTER, *_LABELLED))
        ):
            return None
        labels = self.labels(charsets)
        geometries = self._geometries()
        columns = []
        for index, name in enumerate(names):
            column = self._column(index, name, charsets.get(index), geometries.get(index))
            if column is None or (column.type in ("enum", "set") and index not in labels):
                return None
            columns.append(
                replace(
                    column,
                    unsigned=index in unsigned,
                    labels=labels.get(index, ()),
                    nullable=self._table_map.nullable(index),
                )
            )
        table_map = self._table_map
        return TableSchema(
            table_map.database,
            table_map.table,
            self._with_what_is_known(columns, known),
            self._primary_key(names),
            known.charset if known is not None else None,
        )

    @property
    def has_names(self) -> bool:
        return _COLUMN_NAME in self._fields

    def names(self) -> list[str]:
        """Return the columns' names, if they were sent."""
        reader = self._reader(_COLUMN_NAME)
        names = []
        for _ in self._types:
            raw = reader.lenenc_bytes()
            try:
                names.append(raw.decode("utf-8"))
            except UnicodeDecodeError:
                raise MalformedEventError(
                    f"TABLE_MAP has a column name that is not UTF-8: 0x{raw.hex()}"
                ) from None
        reader.check_end()
        return names

    def unnamed_columns(self, names: Sequence[str]) -> list[ColumnSchema | None]:
        """Return the column at each index, under given names; None where metadata is incomplete.

        Without the columns' names, the rest of the metadata (binlog_row_metadata=MINIMAL) has the
        signs, and the charsets of all but ENUM and SET.
        """
        unsigned, charsets = self.unsigned(), self.charsets()
        geometries = self._geometries()
        columns: list[ColumnSchema | None] = []
        for index, name in enumerate(names):
            code = self._types[index]
            is_known = (
                unsigned is not None
                if code in _NUMERIC
                else code not in _LABELLED and (code not in _CHARACTER or index in charsets)
            )
            column = self._column(index, name, charsets.get(index), geometries.get(index))
            if column is not None and is_known:
                is_unsigned = index in (unsigned or ())
                nullable = self._table_map.nullable(index)
                columns.append(replace(column, unsigned=is_unsigned, nullable=nullable))
            else:
                columns.append(None)
        return columns

    def unsigned(self) -> set[int] | None:
        """Return the unsigned columns; None if signs were not sent, or are ambiguous."""
        numeric = self._columns_of(_NUMERIC)
        with_years = self._columns_of(_NUMERIC | {FieldType.YEAR})
        if not with_years or (not numeric and not self._is_mariadb):
            return set()
        if _SIGNEDNESS not in self._fields:
            return None if numeric else set()
        bits = self._fields[_SIGNEDNESS]
        counted = self._unsigned_of(with_years, bits)
        if self._is_mariadb or numeric == with_years:
            without = counted
        else:
            without = self._unsigned_of(numeric, bits)
        if counted is None and without is None:
            raise MalformedEventError(
                f"TABLE_MAP optional metadata field {_SIGNEDNESS} has the bits 0x{bits.hex()} for"
                f" {len(with_years)} numeric columns"
            )
        if counted is None or without is None or counted == without:
            return without if counted is None else counted
        return counted if _VISIBILITY in self._fields else None

    def _unsigned_of(self, columns: list[int], bits: bytes) -> set[int] | None:
        """Return the unsigned columns if the bits are of these columns; None if they can't be."""
        if len(bits) != (len(columns) + 7) // 8:
            return None
        is_set = [bool(bits[at >> 3] << (at & 7) & 0x80) for at in range(8 * len(bits))]
        found = {index for at, index in enumerate(columns) if is_set[at]}
        years = set(self._columns_of((FieldType.YEAR,))) & set(columns)
        if any(is_set[len(columns) :]) or not years <= found:
            return None
        return found - years

    def charsets(self) -> dict[int, str]:
        """Return the charset of each column for which one was sent."""
        collations = self._collations(
            _DEFAULT_CHARSET, _COLUMN_CHARSET, self._columns_of(self._character)
        ) | self._collations(
            _LABEL_DEFAULT_CHARSET, _LABEL_COLUMN_CHARSET, self._columns_of(_LABELLED)
        )
        return {index: charset_of_collation(collation) for index, collation in collations.items()}

    def _collations(self, default: int, each: int, columns: list[int]) -> dict[int, int]:
        """Return the collation of each of these columns; {} if they were not sent."""
        collations: list[int]
        if each in self._fields:
            reader = self._reader(each)
            collations = [reader.lenenc_int() for _ in columns]
            reader.check_end()
        elif default in self._fields:
            reader = self._reader(default)
            collations = [reader.lenenc_int()] * len(columns)
            while reader.remaining:
                at, collation = reader.lenenc_int(), reader.lenenc_int()
                if at >= len(columns):
                    raise MalformedEventError(
                        f"{reader.what} gives a charset to column {at} of {len(columns)}"
                    )
                collations[at] = collation
        else:
            return {}
        return dict(zip(columns, collations, strict=True))

    def labels(self, charsets: dict[int, str]) -> dict[int, tuple[str, ...]]:
        """Return the labels of each column for which they were sent; needs its charset."""
        return {
            **self._labels(_ENUM_LABELS, FieldType.ENUM, charsets),
            **self._labels(_SET_LABELS, FieldType.SET, charsets),
        }

    def _labels(
        self, field: int, kind: FieldType, charsets: dict[int, str]
    ) -> dict[int, tuple[str, ...]]:
        if field not in self._fields:
            return {}
        reader = self._reader(field)
        labels = {}
        for index in self._columns_of((kind,)):
            charset = charsets[index]
            # SELECT returns a label in the binary charset as bytes; as in DDL, it is read as UTF-8.
            decode = text_decoder(
                f"{reader.what} of column {index + 1}",
                "utf8mb4" if charset == "binary" else charset,
            )
            labels[index] = tuple(decode(reader.lenenc_bytes()) for _ in range(reader.lenenc_int()))
        reader.check_end()
        return labels

    def _geometries(self) -> dict[int, str]:
        reader = self._reader(_GEOMETRY_TYPE)
        found = {}
        for index in self._columns_of((FieldType.GEOMETRY,)):
            kind = reader.lenenc_int() if reader.remaining else 0
            if kind >= len(_GEOMETRIES):
                raise MalformedEventError(f"{reader.what} has the geometry type {kind}")
            found[index] = _GEOMETRIES[kind]
        reader.check_end()
        return found

    def _primary_key(self, names: list[str]) -> tuple[str, ...]:
        has_prefix = _PRIMARY_KEY_WITH_PREFIX in self._fields
        reader = self._reader(_PRIMARY_KEY_WITH_PREFIX if has_prefix else _SIMPLE_PRIMARY_KEY)
        key = []
        while reader.remaining:
            index = reader.lenenc_int()
            if has_prefix:
                reader.lenenc_int()
            if index >= len(names):
                raise MalformedEventError(
                    f"{reader.what} has column {index} of {len(names)} in the primary key"
                )
            key.append(names[index])
        return tuple(key)

    def _with_what_is_known(
        self, columns: list[ColumnSchema], known: TableSchema | None
    ) -> tuple[ColumnSchema, ...]:
        """Add facts that no metadata contains, from the known columns of the same names."""
        by_name = {} if known is None else {column.name: column for column in known.columns}
        if self._table_map.is_all_nullable:
            columns = [
                replace(column, nullable=by_name[column.name].nullable)
                if column.name in by_name
                else column
                for column in columns
            ]
        return tuple(
            _completed(column, by_name.get(column.name), self._is_mariadb) for column in columns
        )

    def _column(
        self, index: int, name: str, charset: str | None, geometry: str | None
    ) -> ColumnSchema | None:
        """Type and lengths; None for a type that this version does not support."""
        code, metadata = self._types[index], self._table_map.metadata[index]
        text_charset = None if charset == "binary" else charset
        if code in _INTEGERS:
            return ColumnSchema(name, _INTEGERS[code])
        if code in _PLAIN:
            return ColumnSchema(name, _PLAIN[code])
        if code in _TEMPORAL:
            return ColumnSchema(name, _TEMPORAL[code], metadata)
        if code == FieldType.NEWDECIMAL:
            return ColumnSchema(name, "decimal", metadata >> 8, metadata & 0xFF)
        if code == FieldType.BIT:
            return ColumnSchema(name, "bit", (metadata >> 8) * 8 + (metadata & 0xFF))
        if code in _LABELLED:
            return ColumnSchema(name, "enum" if code == FieldType.ENUM else "set", charset=charset)
        if code == FieldType.GEOMETRY:
            return ColumnSchema(name, geometry or "geometry")
        if code == FieldType.BLOB:
            if not 1 <= metadata <= 4:
                return None
            kind = "blob" if text_charset is None else "text"
            return ColumnSchema(name, _BLOB_SIZES[metadata - 1] + kind, charset=text_charset)
        if code in (FieldType.VARCHAR, FieldType.VAR_STRING, FieldType.STRING):
            length = real_string(metadata)[1] if code == FieldType.STRING else metadata
            kind = "char" if code == FieldType.STRING else "varchar"
            if text_charset is None:
                kind = "binary" if code == FieldType.STRING else "varbinary"
            characters = length // MAX_BYTES_PER_CHARACTER.get(text_charset or "binary", 1)
            return ColumnSchema(name, kind, characters, charset=text_charset)
        return None


def _completed(column: ColumnSchema, known: ColumnSchema | None, is_mariadb: bool) -> ColumnSchema:
    if known is not None and known.generated:
        column = replace(column, generated=True)
    if column.type in BLOB_TYPES and not is_mariadb:
        is_same = known is not None and known.type == column.type
        return replace(column, virtual=known.virtual if known and is_same else None)
    if known is None:
        return column
    if column.type == known.type and column.type in ("tinyint", "year"):
        return replace(column, length=known.length)
    if column.type == "binary" and known.type in MARIADB_TYPES:
        return replace(column, type=known.type, length=None)
    return column
