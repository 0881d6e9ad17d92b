"""The key by which a snapshot reads a table: its primary key, or else a unique key.

A key is usable if it has each row exactly once, in an order that the server can follow from any of
its values: no NULLs, no prefixes (many rows may share one), no hashes. Primary keys come first,
then the unique keys as the server lists them, because InnoDB stores a table without a primary key
by the first of these. A key that begins with a SET comes last: no server can seek to a value in one
(see `conditions.range_condition`).

A snapshot that resumes later, or in another process, must know whether its bounds still mean the
same rows: after ALTER TABLE the table may have another key, or the same key in another order. The
key's fingerprint shows it; it covers everything that the order depends on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark_mysqlbinlog.names import fold, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import INTEGER_TYPES, ColumnSchema, TableSchema

__all__ = ["ChunkKey", "Hides", "KeyColumn", "choose_key"]

_USABLE = INTEGER_TYPES | {
    "float",
    "double",
    "decimal",
    "bit",
    "char",
    "varchar",
    "binary",
    "varbinary",
    "enum",
    "set",
    "date",
    "time",
    "datetime",
    "timestamp",
    "year",
}
_FINGERPRINT_LENGTH = 16

# Whether values of a table's column may not be stored.
Hides = Callable[[TableSchema, str], bool]


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of a key.

    Attributes
    ----------
    type : MySQL's base type, as in `ColumnSchema`.
    collation : the server's name of it, for char and varchar; else None.
    label_count : of an enum or a set; else 0.
    """

    name: str
    type: str
    collation: str | None = None
    label_count: int = 0

    @property
    def charset(self) -> str | None:
        """The server's name of the character set, with which its collations' names begin."""
        return None if self.collation is None else self.collation.partition("_")[0]


@dataclass(frozen=True, slots=True)
class ChunkKey:
    """A key by which a table can be read.

    Attributes
    ----------
    name : of the index.
    columns : in the key's order.
    fingerprint : equal as long as the key, and the order of its values, are the same.
    """

    name: str
    columns: tuple[KeyColumn, ...]
    fingerprint: str


def choose_key(
    client: ReplicaClient, schema: TableSchema, hides: Hides | None = None
) -> ChunkKey | None:
    """Return the key to read a table by; None if it has none and must be read in one SELECT.

    hides : whether a column's values may not be stored: bounds of chunks are in the checkpoint.

    Raises
    ------
    ServerError : what `ReplicaClient.records` raises; code 1146 if the table does not exist.
    """
    table = quoted(schema.database, schema.table)
    shown = {
        fold(column["Field"]): column
        for column in _records(client, f"SHOW FULL COLUMNS FROM {table}")
    }
    schemas = {fold(column.name): column for column in schema.columns}
    keys = []
    for name, parts in _unique_indexes(_records(client, f"SHOW INDEX FROM {table}")).items():
        columns = [fold(part["Column_name"]) for part in parts if _is_usable_part(part)]
        if (
            len(columns) == len(parts)
            # An index with mixed directions can't be followed without sorting.
            and len({part["Collation"] for part in parts}) == 1
            and all(column in shown and column in schemas for column in columns)
        ):
            described = [(schemas[column], shown[column]) for column in columns]
            is_hidden = hides is not None and any(
                hides(schema, column.name) for column, _ in described
            )
            if not is_hidden and all(_is_usable_column(*column) for column in described):
                keys.append(_load_key(name, described))
    if not client.is_mariadb and client.server_version.startswith(("5.5.", "5.6.")):
        keys = [key for key in keys if not _is_merged_wrongly(key)]
    # Sorting is stable, and False sorts before True.
    keys.sort(key=lambda key: (key.columns[0].type == "set", key.name != "PRIMARY"))
    return keys[0] if keys else None


def _unique_indexes(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    indexes: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if not int(record["Non_unique"]):
            indexes.setdefault(record["Key_name"], []).append(record)
    for parts in indexes.values():
        parts.sort(key=lambda part: int(part["Seq_in_index"]))
    return indexes


def _is_usable_part(part: Mapping[str, Any]) -> bool:
    return (
        part["Index_type"] == "BTREE"
        and part["Column_name"] is not None  # MySQL 8.0: an expression
        and part["Sub_part"] is None
        and part["Null"] != "YES"
        and part["Collation"] is not None
        # Indexes that FORCE INDEX rejects.
        and part.get("Ignored", "NO") == "NO"
        and part.get("Visible", "YES") == "YES"
    )


def _is_usable_column(column: ColumnSchema, shown: Mapping[str, Any]) -> bool:
    if column.type == "char":
        # A CHAR is stored padded with spaces and compared without them. If the collation
        # counts the spaces, "a" is after "a<tab>" in the index and before it in a condition
        # (measured on MariaDB 10.11). MySQL has such collations from 8.0 on.
        return not any(word in shown["Collation"] for word in ("_nopad_", "_0900_"))
    return column.type in _USABLE


def _is_merged_wrongly(key: ChunkKey) -> bool:
    """Whether partitions are not merged in the key's order: its maximum would not be found.

    MySQL before 5.7 compares wrong bytes of the columns after a BIT (measured on 5.6.24).
    """
    return any(column.type == "bit" for column in key.columns[:-1])


def _load_key(name: str, columns: Sequence[tuple[ColumnSchema, Mapping[str, Any]]]) -> ChunkKey:
    marked = [name, *([shown["Field"], shown["Type"], shown["Collation"]] for _, shown in columns)]
    fingerprint = hashlib.sha256(json.dumps(marked).encode()).hexdigest()[:_FINGERPRINT_LENGTH]
    return ChunkKey(name, tuple(_key_column(*column) for column in columns), fingerprint)


def _key_column(column: ColumnSchema, shown: Mapping[str, Any]) -> KeyColumn:
    is_text = column.type in ("char", "varchar")
    return KeyColumn(
        name=shown["Field"],
        type=column.type,
        collation=shown["Collation"] if is_text else None,
        label_count=len(column.labels),
    )


def _records(client: ReplicaClient, statement: str) -> list[dict[str, Any]]:
    """Return a statement's rows, all texts as str: information_schema returns some as bytes."""
    return [
        {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in record.items()
        }
        for record in client.records(statement)
    ]
