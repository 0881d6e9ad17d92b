"""Rows of a Delta table that a snapshot's condition (`snapshotWhere`) excluded.

The condition limits the snapshot but not the binlog, which may have changes of any row. When a
snapshot ends, the rows that it did not write are those that the server no longer has, and those
that the condition excluded. The latter must be neither removed nor kept as they were. So all of
them are read from the server by key. Rows that the server still has become snapshot rows; the
others are older than the snapshot and are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.columns import delta_name
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, ColumnSchema, TableSchema

__all__ = ["RowsWhere", "conditions_of"]

# Reads a table's rows that meet one of several SQL conditions, as snapshot rows, in parts.
RowsWhere = Callable[[Table, Iterator[str]], Generator[tuple[pa.Table, ImageStore]]]

# Limits of one SELECT. MySQL 5.7.9 to 5.7.11 has 1.5 MB for the range optimizer.
_MAX_KEYS = 1_000
_MAX_CHARACTERS = 256 << 10
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


def conditions_of(schema: TableSchema, keys: pa.Table) -> Iterator[str]:
    """Yield SQL conditions for the rows with these keys, with a limited number of keys each.

    keys : the columns of the table's key, as in Delta.
    """
    described = {column.name: column for column in schema.columns}
    columns = [described[name] for name in schema.row_key]
    values = keys.select([delta_name(column.name) for column in columns])
    piece: list[str] = []
    size = 0
    for row in (row for batch in values.to_batches(_MAX_KEYS) for row in batch.to_pylist()):
        piece.append(_equal(columns, [*row.values()]))
        size += len(piece[-1])
        if len(piece) == _MAX_KEYS or size > _MAX_CHARACTERS:
            yield " OR ".join(piece)
            piece, size = [], 0
    if piece:
        yield " OR ".join(piece)


def _equal(columns: Sequence[ColumnSchema], values: Sequence[Any]) -> str:
    compared = zip(columns, values, strict=True)
    return f"({' AND '.join(f'{quoted(each.name)} = {_literal(each, v)}' for each, v in compared)})"


def _literal(column: ColumnSchema, value: Any) -> str:
    """Return a Delta value as a literal that the column compares with exactly.

    A text takes the column's character set and collation, as literals do.
    """
    kind = column.type
    if kind in INTEGER_TYPES or kind in ("bit", "year"):
        return str(int(value))
    if kind == "decimal":
        return str(value)
    if kind in ("float", "double"):
        number = repr(float(value))
        # Without an exponent it would be a DECIMAL.
        return number if "e" in number else f"{number}e0"
    if kind in _BYTES:
        return f"X'{value.hex()}'"
    if kind == "timestamp":
        value = value.astimezone(UTC).replace(tzinfo=None)
    return f"_utf8mb4 X'{str(value).encode().hex()}'"
