"""The transformations of each table's rows: the masks of its columns, and its row filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark_mysqlbinlog.decoder.transforms.conditions import Condition
from pyspark_mysqlbinlog.decoder.transforms.masks import Mask, check_mask, masked_column
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.names import Table, fold
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["Transforms"]


@dataclass(frozen=True, slots=True)
class Transforms:
    """The transformations of a query's rows.

    Attributes
    ----------
    mask_of : (database, table, column) -> the column's mask; None if it has none.
    named_columns : (database, table) -> columns that masks name without a pattern.
    named_tables : the tables that masks or conditions name, as the server compares names.
    condition_of : (database, table) -> the condition that its rows must meet; None for all rows.
    secret : the key of hashes.
    """

    mask_of: Callable[[str, str, str], Mask | None]
    named_columns: Callable[[str, str], frozenset[str]]
    named_tables: frozenset[Table]
    condition_of: Callable[[str, str], Condition | None]
    secret: bytes = field(repr=False)

    def masks(self, schema: TableSchema) -> dict[str, Mask]:
        """Return the masks of a table's columns, by name.

        Raises
        ------
        OptionError : a column that the option names does not exist, so its values may be in another
            one; or a mask does not suit the column's type; or a mask other than ``hash`` is on a
            column of a key.
        """
        database, table = schema.database, schema.table
        names = {fold(column.name) for column in schema.columns}
        for name in sorted(self.named_columns(database, table)):
            if fold(name) not in names:
                raise OptionError(
                    f"option maskColumns: the table has no column `{name}`; check the spelling, or"
                    " whether it was renamed or dropped: then name its new column, or remove it"
                    " from the option, and set acceptChangedTransforms=true",
                    table=schema.full_name,
                )
        masks = {
            column.name: mask
            for column in schema.columns
            if (mask := self.mask_of(database, table, column.name)) is not None
        }
        keys = {*schema.primary_key}.union(*(columns for _, columns in schema.unique_keys))
        for column in schema.columns:
            mask = masks.get(column.name)
            if mask is None:
                continue
            check_mask(column, mask)
            if column.name in keys and mask.kind != "hash":
                raise OptionError(
                    f"option maskColumns: column `{column.name}` is in a key that identifies rows,"
                    f" and with {mask} several rows would have one key; set hash",
                    table=schema.full_name,
                )
        return masks

    def masked(self, schema: TableSchema) -> TableSchema:
        """Return a table's schema as its rows leave the decoder; raises as `masks`."""
        masks = self.masks(schema)
        if not masks:
            return schema
        columns = tuple(
            masked_column(column) if column.name in masks else column for column in schema.columns
        )
        return replace(schema, columns=columns)

    def changes(self, schema: TableSchema) -> bool:
        """Whether rows of a table are filtered, or have masked columns."""
        return any(self.hides(schema, column.name) for column in schema.columns)

    def hides(self, schema: TableSchema, column: str) -> bool:
        """Whether values of a column may not leave the server unmasked.

        Masked columns may not, and no column of a table whose rows are filtered.
        """
        database, table = schema.database, schema.table
        return (
            self.condition_of(database, table) is not None
            or self.mask_of(database, table, column) is not None
        )
