"""A parsed ALTER TABLE, the result of `clauses`."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_mysqlbinlog.decoder.sql.definitions.column_definition import ColumnDefinition
from pyspark_mysqlbinlog.tables import UniqueKey

__all__ = ["DEFAULT", "FIRST", "AlterTable", "ColumnChange"]

# ColumnChange.after: before all others.
FIRST = ""
# CHARACTER SET DEFAULT: of a database; which one depends on the clause and the server.
DEFAULT = ""


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """ADD, CHANGE or MODIFY of one column.

    Attributes
    ----------
    old : the column that CHANGE and MODIFY redefine; None for ADD.
    after : the column that it follows, ``""`` for FIRST; None for its current position or the end.
    conditional : IF EXISTS, IF NOT EXISTS.
    """

    definition: ColumnDefinition
    old: str | None = None
    after: str | None = None
    conditional: bool = False


@dataclass(slots=True)
class AlterTable:
    """The parts of an ALTER TABLE that concern columns and rows.

    Attributes
    ----------
    drops : columns, and whether IF EXISTS.
    renames : RENAME COLUMN, (old, new).
    key : the new primary key; None if there is none. `key_is_conditional`: IF NOT EXISTS.
    convert_to : CONVERT TO CHARACTER SET; ``""`` for DEFAULT.
    charset : [DEFAULT] CHARACTER SET or COLLATE; ``""`` for DEFAULT.
    converts_last : no CHARACTER SET follows CONVERT TO.
    ignore : ALTER IGNORE: rows that violate a new unique key are deleted.
    loses_rows, changes_rows : a clause does so itself: partitions, tablespaces.
    recomputes : a clause makes the server compute generated columns again, or changes a default,
        which they may contain.
    clauses : number of clauses except CONVERT TO and LOCK, and ALGORITHM other than COPY.
    drops_index : includes the primary key; one that is added again may be the same.
    unique_keys : those that it adds, without those of added columns.
    lost_indexes : names that no index has afterwards, unless it adds one of that name.
    """

    changes: list[ColumnChange] = field(default_factory=list)
    drops: list[tuple[str, bool]] = field(default_factory=list)
    renames: list[tuple[str, str]] = field(default_factory=list)
    key: tuple[str, ...] | None = None
    key_is_conditional: bool = False
    drops_key: bool = False
    convert_to: str | None = None
    charset: str | None = None
    converts_last: bool = False
    ignore: bool = False
    loses_rows: bool = False
    changes_rows: bool = False
    recomputes: bool = False
    clauses: int = 0
    drops_index: bool = False
    unique_keys: list[UniqueKey] = field(default_factory=list)
    lost_indexes: list[str] = field(default_factory=list)

    @property
    def touches_schema(self) -> bool:
        """Whether columns, the primary key or a character set may change."""
        return bool(
            self.changes
            or self.drops
            or self.renames
            or self.drops_key
            or self.key is not None
            or self.convert_to is not None
            or self.charset is not None
        )
