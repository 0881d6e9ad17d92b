"""Table schemas: the columns' names, types, signedness, charsets and labels.

MySQL 5.7's binlog contains only the type bytes. The rest comes from the server's
information_schema or from the DDL in the binlog. Plain values, shared by all packages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "BLOB_TYPES",
    "INTEGER_TYPES",
    "SPATIAL_TYPES",
    "ColumnSchema",
    "TableSchema",
    "UniqueKey",
    "row_keys",
]

INTEGER_TYPES = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
SPATIAL_TYPES = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
    }
)
# Types whose row images hold a length and bytes that the server stores outside its records.
BLOB_TYPES = SPATIAL_TYPES | {
    "tinytext",
    "text",
    "mediumtext",
    "longtext",
    "tinyblob",
    "blob",
    "mediumblob",
    "longblob",
    "json",
    "vector",
}


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """One column, as SHOW CREATE TABLE describes it.

    Attributes
    ----------
    name : as SELECT shows it.
    type : MySQL's base type in lower case, synonyms resolved: tinyint smallint mediumint int bigint
        float double decimal bit char varchar binary varbinary tinytext text mediumtext longtext
        tinyblob blob mediumblob longblob enum set json vector date time datetime timestamp year, or
        one of SPATIAL_TYPES. BOOL is tinyint with length 1.
    length : characters (char, varchar), bytes (binary, varbinary), bits (bit), precision (decimal),
        fraction digits (time, datetime, timestamp), display width 1 (tinyint(1) only) or 2
        (year(2) only, which is not supported); else None.
    scale : decimal only.
    unsigned : integers, floats and decimals (ZEROFILL implies it).
    charset : MySQL's name (utf8mb4, latin1, …) for char, varchar, texts, enum and set; else None.
    labels : enum and set, as SELECT shows them.
    virtual : generated, and computed on read (VIRTUAL, not STORED); None if unknown, for
        BLOB_TYPES only. False on MariaDB, where it makes no difference to the binlog.
    generated : computed from other columns, VIRTUAL or STORED, on any server.
    """

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    charset: str | None = None
    labels: tuple[str, ...] = ()
    nullable: bool = True
    virtual: bool | None = False
    generated: bool = False

    @property
    def before_image_unreliable(self) -> bool:
        """Whether the before image of an UPDATE may contain another value in the binlog.

        The server keeps the old value of a virtual column of these types in a buffer. It may reuse
        the buffer before it writes the binlog, for example if the table has a trigger or an ON
        UPDATE column. The binlog does not show whether it did (5.7.41:
        Field_blob::keep_old_value; other versions are not measured).
        """
        return self.virtual is not False and self.type in BLOB_TYPES


# A unique key: index name and columns. MySQL names an index that was created without a name after
# its first column, and may append a number: `a`, `a_2`.
UniqueKey = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table at one position.

    Attributes
    ----------
    columns : in the order of the row image, generated columns (virtual ones too) included.
    primary_key : column names in key order; empty if there is none.
    charset : the table's default charset, if known: a later ADD COLUMN inherits it.
    unique_keys : of a table without a primary key, the ones that identify its rows, sorted by name;
        see `row_keys`. After ALTERs some may be missing, but every key listed exists.
    """

    database: str
    table: str
    columns: tuple[ColumnSchema, ...]
    primary_key: tuple[str, ...] = ()
    charset: str | None = None
    unique_keys: tuple[UniqueKey, ...] = ()

    @property
    def full_name(self) -> str:
        """``database.table``, for messages."""
        return f"{self.database}.{self.table}"

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify a row: those of the primary key, or else of a unique key.

        Empty if the table has neither.
        """
        return self.primary_key or next((columns for _, columns in self.unique_keys), ())


def row_keys(
    columns: Iterable[ColumnSchema], primary_key: tuple[str, ...], keys: Iterable[UniqueKey]
) -> tuple[UniqueKey, ...]:
    """Return `TableSchema.unique_keys` of a table with these unique keys.

    Only keys whose columns are NOT NULL and have reliable before images count. A table with a
    primary key needs none.
    """
    if primary_key:
        return ()
    telling = {
        column.name for column in columns if not (column.nullable or column.before_image_unreliable)
    }
    kept = [key for key in dict.fromkeys(keys) if key[1] and telling.issuperset(key[1])]
    return tuple(sorted(kept))
