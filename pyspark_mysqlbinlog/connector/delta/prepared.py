"""States of a step that are made as it is read, while the step before it is merged.

A merge leaves a part of the processors idle, and most of what comes in front of one depends on
nothing but the changes and their table. What is made here is what `Walk` makes of the same changes;
where it looks at others of them, or at another version of the table, it makes its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.apply import in_order, key_of, states_of
from pyspark_mysqlbinlog.connector.delta.typed_images import TypedImages
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["PreparedStates", "prepared_states"]


@dataclass(frozen=True, slots=True)
class PreparedStates:
    """What the changes of one table in a step leave; see `states_of`.

    Attributes
    ----------
    schema : the version of the table with which they were read.
    count : how many changes these are: all that the step has of the table.
    states : of each key the last.
    """

    schema: TableSchema
    count: int
    states: pa.Table

    def of(self, changes: pa.Table, schema: TableSchema) -> pa.Table | None:
        """The states of changes of the step, if they are all of the table's, read with a version.

        changes : in order.
        """
        return self.states if changes.num_rows == self.count and schema == self.schema else None


def prepared_states(
    parts: Mapping[Table, pa.Table],
    images: TypedImages,
    *,
    schemas: Mapping[Table, TableSchema],
    keeps_deleted: bool,
) -> dict[Table, PreparedStates]:
    """The states of each table that has a key, and one version in the batch.

    parts : each table's changes of the step.
    images : the typed images that they refer to.
    schemas : of the tables that have one version.
    keeps_deleted : rows that are gone are wanted with all their values.
    """
    found = {}
    for name, changes in parts.items():
        schema = schemas.get(name)
        if schema is None or not schema.row_key:
            continue
        key, ordered = key_of(schema), in_order(changes)
        # What goes wrong is left to the walk, which says for which table, and on what version.
        with suppress(Exception):
            states = states_of(ordered, schema, key, last_values=keeps_deleted, images=images)
            found[name] = PreparedStates(schema, changes.num_rows, states)
    return found
