"""The SELECT list of a table, chosen so that row images can be made from the rows.

Most columns are selected unchanged: the binary protocol returns the stored number, and texts in the
column's own character set if the session has no ``character_set_results``. ENUM and SET are read
as numbers, because their labels may be anything. An excluded column is selected as NULL, which the
decoder skips. The table map before the images is made from the schema, as
`schemas/table_map_check.py` expects it.

For a JSON column, the types of some of its numbers may be selected, in an extra column before it
(see `json_types`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from pyspark_mysqlbinlog.charsets import canonical_charset, charset_of_collation
from pyspark_mysqlbinlog.decoder.events.field_types import (
    METADATA_LENGTHS,
    FieldType,
    field_type_name,
)
from pyspark_mysqlbinlog.decoder.result_rows.json_text import JsonPath
from pyspark_mysqlbinlog.decoder.result_rows.json_types import NumberTypeQuery
from pyspark_mysqlbinlog.decoder.schemas.table_map_check import expected_fields
from pyspark_mysqlbinlog.decoder.values.select_codec import check_year
from pyspark_mysqlbinlog.decoder.values.sizes import stored_size
from pyspark_mysqlbinlog.errors import SchemaMismatchError
from pyspark_mysqlbinlog.names import quoted
from pyspark_mysqlbinlog.protocol.server.result_set import ResultColumn
from pyspark_mysqlbinlog.protocol.wire import lenenc_int
from pyspark_mysqlbinlog.tables import (
    BLOB_TYPES,
    INTEGER_TYPES,
    SPATIAL_TYPES,
    ColumnSchema,
    TableSchema,
)

__all__ = ["TABLE_ID", "Kind", "ResultPlan", "SelectedColumn"]

# Of the table map and of the rows events after it; any id except those of "no table".
TABLE_ID = 1

_TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext"})
_BLOBS = frozenset({"tinyblob", "blob", "mediumblob", "longblob"})
_BLOB_CODES = frozenset(
    {FieldType.TINY_BLOB, FieldType.BLOB, FieldType.MEDIUM_BLOB, FieldType.LONG_BLOB}
)
# By the column's type: the types of its values in a result.
_COMES_AS: dict[str, frozenset[int]] = {
    "tinyint": frozenset({FieldType.TINY}),
    "smallint": frozenset({FieldType.SHORT}),
    "mediumint": frozenset({FieldType.INT24}),
    "int": frozenset({FieldType.LONG}),
    "bigint": frozenset({FieldType.LONGLONG}),
    "float": frozenset({FieldType.FLOAT}),
    "double": frozenset({FieldType.DOUBLE}),
    "decimal": frozenset({FieldType.NEWDECIMAL}),
    "bit": frozenset({FieldType.BIT}),
    "year": frozenset({FieldType.YEAR}),
    "date": frozenset({FieldType.DATE, FieldType.NEWDATE}),
    "time": frozenset({FieldType.TIME}),
    "datetime": frozenset({FieldType.DATETIME}),
    "timestamp": frozenset({FieldType.TIMESTAMP}),
    "char": frozenset({FieldType.STRING}),
    "binary": frozenset({FieldType.STRING}),
    "varchar": frozenset({FieldType.VAR_STRING}),
    "varbinary": frozenset({FieldType.VAR_STRING}),
    "enum": frozenset({FieldType.LONGLONG}),
    "set": frozenset({FieldType.LONGLONG}),
    "json": frozenset({FieldType.JSON}),
    "vector": frozenset({FieldType.VECTOR}),
    **dict.fromkeys(_TEXTS | _BLOBS, _BLOB_CODES),
    **dict.fromkeys(SPATIAL_TYPES, frozenset({FieldType.GEOMETRY})),
}
_NOTHING_ASKED = NumberTypeQuery()


class Kind(IntEnum):
    """The conversion of a result's values to those of the row image.

    The kernel uses the same numbers.
    """

    # Only NULL is valid.
    EXCLUDED = 0
    # Little-endian bytes, stored unchanged: integers, FLOAT, DOUBLE.
    FIXED = 1
    # MEDIUMINT: four bytes, three of them stored.
    INT24 = 2
    # ENUM and SET: eight bytes, fewer of them stored.
    LABELS = 3
    YEAR = 4
    DATE = 5
    TIME = 6
    DATETIME = 7
    TIMESTAMP = 8
    # Text, stored as packed digits.
    DECIMAL = 9
    BIT = 10
    # A length and bytes in both.
    BYTES = 11
    # BINARY(n): without trailing zeros.
    BINARY = 12
    JSON = 13


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """One column of the SELECT.

    Attributes
    ----------
    schema : the table's column.
    expression : the selected expression.
    kind : conversion of its values to those of the image.
    code, metadata : of the column in the table map.
    size : bytes of a stored value, or of the length before it.
    numbers : of a JSON column: the number types to select with it.
    typed : of a JSON column: whether the types of all its numbers matter.
    doubles_have_points : of a JSON column: whether a DOUBLE without a fraction is shown as 5.0.
    """

    schema: ColumnSchema
    expression: str
    kind: Kind
    code: int
    metadata: int
    size: int
    numbers: NumberTypeQuery = _NOTHING_ASKED
    typed: bool = False
    doubles_have_points: bool = False

    @property
    def what(self) -> str:
        """The column, for messages."""
        return f"column `{self.schema.name}` ({self.schema.type})"

    @classmethod
    def of(
        cls, column: ColumnSchema, *, excluded: bool, typed: bool, doubles_have_points: bool
    ) -> SelectedColumn:
        """Plan the column's part of the SELECT.

        Raises SchemaMismatchError for an unknown type, SchemaError for a YEAR(2).
        """
        if not excluded:
            check_year(column)
        code, metadata = next(expected_fields(column))
        name = quoted(column.name)
        # MariaDB returns a CAST in as few bytes as it may need, but the result of `|` in eight.
        labels = f"CAST({name} AS UNSIGNED) | 0"
        expression = labels if column.type in ("enum", "set") else name
        return cls(
            column,
            "NULL" if excluded else expression,
            Kind.EXCLUDED if excluded else _kind(column),
            code,
            metadata,
            stored_size(code, metadata).size,
            typed=typed,
            doubles_have_points=doubles_have_points,
        )

    @property
    def number_types(self) -> str | None:
        """The expression selected before a JSON column, for the types of its numbers."""
        if self.kind != Kind.JSON:
            return None
        return self.numbers.expression(self.expression)

    def check(self, found: ResultColumn, table: str) -> None:
        """Raise SchemaMismatchError if the result has a different column at its position."""
        if self.kind == Kind.EXCLUDED:
            return
        expected = _COMES_AS[self.schema.type]
        if found.type not in expected:
            raise SchemaMismatchError(
                f"{self.what}: expected {field_type_name(min(expected))} from SELECT, found"
                f" {field_type_name(found.type)}; the table was altered meanwhile: restart with the"
                " same checkpoint",
                table=table,
            )
        if self.schema.charset is None or self.schema.type in ("enum", "set"):
            return
        charset = canonical_charset(charset_of_collation(found.collation))
        if charset != self.schema.charset:
            raise SchemaMismatchError(
                f"{self.what}: expected texts in {self.schema.charset} from SELECT, found"
                f" {charset}; the table was altered meanwhile: restart with the same"
                " checkpoint",
                table=table,
            )


def _kind(column: ColumnSchema) -> Kind:
    name = column.type
    if name == "mediumint":
        return Kind.INT24
    if name in INTEGER_TYPES or name in ("float", "double"):
        return Kind.FIXED
    if name in ("enum", "set"):
        return Kind.LABELS
    if name in BLOB_TYPES - {"json"} or name in ("char", "varchar", "varbinary"):
        return Kind.BYTES
    return Kind[name.upper()]


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """The SELECT of one table's rows, and their table map.

    Attributes
    ----------
    columns : all columns of the table, in its order.
    table_map : the body of the TABLE_MAP event before the images.
    """

    schema: TableSchema
    columns: tuple[SelectedColumn, ...]
    table_map: bytes

    @classmethod
    def make(
        cls,
        schema: TableSchema,
        excluded: Callable[[str, str, str], bool] | None = None,
        *,
        typed_json: bool = False,
        doubles_have_points: bool = False,
    ) -> ResultPlan:
        """Plan a table.

        excluded : (database, table, column) -> whether the column is excluded.
        typed_json : whether JSON documents become VARIANTs, in which numbers have types.
        doubles_have_points : whether documents are shown as MySQL 8.0 and later do (see json_text).

        Raises SchemaMismatchError for an unknown type, SchemaError for a YEAR(2).
        """
        name = (schema.database, schema.table)
        columns = tuple(
            SelectedColumn.of(
                column,
                excluded=bool(excluded and excluded(*name, column.name)),
                typed=typed_json,
                doubles_have_points=doubles_have_points,
            )
            for column in schema.columns
        )
        return cls(schema, columns, _table_map(schema, columns))

    @property
    def select_list(self) -> str:
        """The expressions between SELECT and FROM."""
        selected = (
            each for column in self.columns for each in (column.number_types, column.expression)
        )
        return ", ".join(each for each in selected if each is not None)

    @property
    def has_additional_columns(self) -> bool:
        """Whether the result has columns that are not the table's."""
        return any(column.number_types is not None for column in self.columns)

    @property
    def selects_sizes(self) -> bool:
        """Whether it uses JSON_STORAGE_SIZE, which servers before 5.7.22 lack."""
        return any(column.number_types and column.numbers.has_size for column in self.columns)

    def without_sizes(self) -> ResultPlan:
        """Return the plan without JSON_STORAGE_SIZE."""
        columns = (
            replace(column, numbers=replace(column.numbers, has_size=False))
            for column in self.columns
        )
        return replace(self, columns=tuple(columns))

    def selecting_number_types(self, paths: Mapping[str, Collection[JsonPath]]) -> ResultPlan:
        """Return the plan that also selects the types of these numbers, by column name."""
        return replace(
            self,
            columns=tuple(
                replace(column, numbers=column.numbers.more(paths[column.schema.name]))
                if column.schema.name in paths
                else column
                for column in self.columns
            ),
        )

    @property
    def source(self) -> str:
        """The table's name, quoted."""
        return f"{quoted(self.schema.database, self.schema.table)}"

    def check(self, found: Sequence[ResultColumn]) -> None:
        """Raise SchemaMismatchError unless a result has the selected columns."""
        table = self.schema.full_name
        expected: list[SelectedColumn | None] = []
        for column in self.columns:
            expected += [column] if column.number_types is None else [None, column]
        if len(found) != len(expected):
            raise SchemaMismatchError(
                f"expected {len(expected)} columns from SELECT, found {len(found)}", table=table
            )
        for each, selected in zip(found, expected, strict=True):
            if selected is not None:
                selected.check(each, table)


def _table_map(schema: TableSchema, columns: Sequence[SelectedColumn]) -> bytes:
    """See `events/table_map.py` for the layout."""
    metadata = b"".join(
        column.metadata.to_bytes(
            METADATA_LENGTHS[column.code],
            "big" if column.code in (FieldType.STRING, FieldType.NEWDECIMAL) else "little",
        )
        for column in columns
    )
    nullable = sum(1 << at for at, column in enumerate(schema.columns) if column.nullable)
    names = (schema.database.encode(), schema.table.encode())
    return b"".join(
        (
            TABLE_ID.to_bytes(6, "little"),
            b"\x01\x00",
            *(bytes((len(name),)) + name + b"\x00" for name in names),
            lenenc_int(len(columns)),
            bytes(column.code for column in columns),
            lenenc_int(len(metadata)),
            metadata,
            nullable.to_bytes((len(columns) + 7) // 8, "little"),
        )
    )
