"""What a table looks like: the columns' names, types, signs, charsets and labels.

MySQL 5.7's log has none of these beyond the type bytes, so they come from the server's
information_schema or from the DDL in the log. Plain values, shared by every room.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["INTEGER_TYPES", "SPATIAL_TYPES", "ColumnSchema", "TableSchema"]

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


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """One column, as SHOW CREATE TABLE would describe it.

    Attributes
    ----------
    name : as SELECT shows it.
    type : MySQL's base type in lower case, synonyms resolved: tinyint smallint mediumint int bigint
        float double decimal bit char varchar binary varbinary tinytext text mediumtext longtext
        tinyblob blob mediumblob longblob enum set json date time datetime timestamp year, or one of
        SPATIAL_TYPES. BOOL is tinyint with length 1.
    length : characters (char, varchar), bytes (binary, varbinary), bits (bit), precision (decimal),
        fraction digits (time, datetime, timestamp), display width 1 (tinyint(1) only); else None.
    scale : decimal only.
    unsigned : integers, floats and decimals (ZEROFILL implies it).
    charset : MySQL's name (utf8mb4, latin1, …) for char, varchar, texts, enum and set; else None.
    labels : enum and set, as SELECT shows them.
    """

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    charset: str | None = None
    labels: tuple[str, ...] = ()
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table at one moment.

    Attributes
    ----------
    columns : in the order of the row image, generated columns (virtual ones too) included.
    primary_key : column names in key order; empty when there is none.
    charset : the table's default charset, where known: a later ADD COLUMN inherits it.
    """

    database: str
    table: str
    columns: tuple[ColumnSchema, ...]
    primary_key: tuple[str, ...] = ()
    charset: str | None = None

    @property
    def full_name(self) -> str:
        """``database.table``, for messages."""
        return f"{self.database}.{self.table}"
