"""Columns of a table as rows have them: without the excluded ones, and some of them masked.

An ALTER TABLE can rename a column over the border that `excludeColumns` and `maskColumns` draw. The
binlog has no old values of a column that was excluded before, and a value that was masked cannot be
unmasked: then the rows are unknown, as after a statement that rewrites them. The source and the
mirror must decide this in the same way, from the columns of the binlog, because a masked column is
always a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter
from pyspark_mysqlbinlog.decoder.sql.column_changes import CannotFollowError, renamed
from pyspark_mysqlbinlog.decoder.transforms.transforms import Transforms
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["DeliveredColumns"]


@dataclass(frozen=True, slots=True)
class DeliveredColumns:
    """The delivered columns of any table; made by `of`."""

    _columns: ColumnFilter
    _transforms: Transforms | None

    @classmethod
    def of(cls, options: Options, *, case_sensitive: bool) -> Self:
        """Read the options.

        case_sensitive : whether the server's table names are case-sensitive.
        """
        return cls(options.column_filter(case_sensitive), options.transforms(case_sensitive))

    def excludes(self, table: TableSchema, column: str) -> bool:
        """Return whether a column is left out."""
        return self._columns.excludes(table.database, table.table, column)

    def masked(self, table: TableSchema) -> TableSchema:
        """Return a table with its masked columns as texts; raises as `Transforms.masks`."""
        return table if self._transforms is None else self._transforms.masked(table)

    def renamed(
        self, before: TableSchema, after: TableSchema, statement: str | None
    ) -> Mapping[str, str]:
        """Return the new name of each column that remains, as `column_changes.renamed`.

        before, after : with all columns, unmasked.

        Raises CannotFollowError also if a renamed column is now excluded, masked, or neither.
        """
        names = {}
        for old, new in renamed(before, after, statement).items():
            if self.excludes(after, new):
                continue
            if self._delivery(before, old) != self._delivery(after, new):
                raise CannotFollowError(
                    f"column `{old}` was renamed to `{new}`, which excludeColumns or maskColumns"
                    " treats differently"
                )
            names[old] = new
        return names

    def _delivery(self, table: TableSchema, column: str) -> str:
        """Return how a column is delivered."""
        if self.excludes(table, column):
            return "excluded"
        transforms = self._transforms
        mask = transforms and transforms.mask_of(table.database, table.table, column)
        return "" if mask is None else str(mask)
