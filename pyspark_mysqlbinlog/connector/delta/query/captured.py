"""Captured tables and columns of a mirror: its options, with names compared as the server does.

The source asks the server whether table names are case-sensitive. The mirror must decide every name
as the source does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter
from pyspark_mysqlbinlog.connector.schemas.delivered_columns import DeliveredColumns
from pyspark_mysqlbinlog.decoder.transforms.transforms import Transforms
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table, fold, folding
from pyspark_mysqlbinlog.tables import TableSchema, row_keys

__all__ = ["CapturedTables"]


@dataclass(frozen=True, slots=True)
class CapturedTables:
    """The captured tables and columns; made by `of`.

    Attributes
    ----------
    delivered : the delivered columns.
    """

    delivered: DeliveredColumns
    _tables: TableFilter
    _transforms: Transforms | None
    _transforms_hash: str
    _partition_by: Mapping[str, Sequence[str]]

    @classmethod
    def of(
        cls, options: Options, partition_by: Mapping[str, Sequence[str]], *, case_sensitive: bool
    ) -> Self:
        """Read the options; OptionError if two names of `partition_by` mean one table.

        partition_by : ``database.table`` -> the partition columns of its Delta table.
        case_sensitive : whether the server's table names are case-sensitive.
        """
        folded = folding(case_sensitive)
        by_name: dict[str, Sequence[str]] = {}
        for name, columns in partition_by.items():
            if by_name.setdefault(folded(name), columns) is not columns:
                raise OptionError(
                    f"partition_by: expected each table once, found {folded(name)!r} twice"
                )
        return cls(
            DeliveredColumns.of(options, case_sensitive=case_sensitive),
            options.table_filter(case_sensitive),
            options.transforms(case_sensitive),
            options.transforms_hash,
            by_name,
        )

    def captures(self, table: Table) -> bool:
        """Return whether a table is captured."""
        return self._tables.captures(*table)

    def as_delivered(self, version: Version) -> Version:
        """Return a version of a table without excluded columns, and with masked ones as texts.

        Raises OptionError if the masks do not fit the table.
        """
        start, what = version
        if not isinstance(what, TableSchema):
            return version
        what = self.delivered.masked(what)
        kept = tuple(
            column for column in what.columns if not self.delivered.excludes(what, column.name)
        )
        keys = row_keys(kept, what.primary_key, what.unique_keys)
        return start, replace(what, columns=kept, unique_keys=keys)

    def transforms_hash(self, versions: TableVersions) -> str:
        """Return a hash of the masks and the row filter; empty if a table has none of them."""
        transforms = self._transforms
        is_changed = transforms is not None and any(
            transforms.changes(what)
            for _, what in versions.versions
            if isinstance(what, TableSchema)
        )
        return self._transforms_hash if is_changed else ""

    def partition_columns(self, table: Table, schemas: Iterable[TableSchema]) -> list[str]:
        """Return the columns that partition a table's Delta table when it is created.

        schemas : the table's; the Delta table is created with one of them. The case of a column's
            name is ignored, and may differ between them.
        """
        given = [*map(fold, self._given_columns(table))]
        names = {column.name for schema in schemas for column in schema.columns}
        return sorted((name for name in names if fold(name) in given), key=_order_of(given))

    def check_partition_columns(self, table: Table, schemas: Iterable[TableSchema]) -> None:
        """OptionError if a table lacks one of its partition columns."""
        for schema in schemas:
            names = {fold(column.name) for column in schema.columns}
            for column in self._given_columns(table):
                if fold(column) not in names:
                    raise OptionError(f"partition_by: {'.'.join(table)} has no column {column!r}")

    def check_partitioned_tables(self, there: Iterable[Table]) -> None:
        """OptionError if `partition_by` names a table that does not exist or is not captured.

        there : the captured tables of the server.
        """
        folded = folding(self._tables.case_sensitive)
        unknown = self._partition_by.keys() - {folded(".".join(table)) for table in there}
        if unknown:
            raise OptionError(
                "partition_by: expected existing captured tables as database.table, found"
                f" {min(unknown)!r}; correct its name or leave it out"
            )

    def _given_columns(self, table: Table) -> Sequence[str]:
        return self._partition_by.get(folding(self._tables.case_sensitive)(".".join(table)), ())


def _order_of(given: Sequence[str]) -> Callable[[str], tuple[int, str]]:
    return lambda name: (given.index(fold(name)), name)
