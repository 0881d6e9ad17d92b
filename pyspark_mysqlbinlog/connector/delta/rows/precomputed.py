"""States of a step that are made as it is read, while the step before it is merged.

A merge leaves a part of the processors idle, and most of what comes in front of one depends on
nothing but the changes and their table. What is made here is what `Walk` makes of the same changes;
where it looks at others of them, or at another version of the table, it makes its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.columns import delta_name
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.states import final_states, key_of, sorted_by_seq
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["PrecomputedStates", "precompute_states"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PrecomputedStates:
    """What the changes of one table in a step leave; see `final_states`.

    Attributes
    ----------
    schema : the version of the table with which they were read.
    last_values : whether rows that are gone have the values that they had.
    count : how many changes these are: all that the step has of the table.
    states : of each key the last.
    """

    schema: TableSchema
    last_values: bool
    count: int
    states: pa.Table

    def of(self, changes: pa.Table, schema: TableSchema, *, last_values: bool) -> pa.Table | None:
        """What these changes leave; None where that is not what was made.

        changes : some that the step has of the table, in order. So as many are the same.
        """
        is_made = (
            changes.num_rows == self.count
            and schema == self.schema
            and last_values == self.last_values
        )
        return self.states if is_made else None


def precompute_states(
    parts: Mapping[Table, pa.Table],
    images: ImageStore,
    *,
    schemas: Mapping[Table, TableSchema],
    last_values: bool,
) -> dict[Table, PrecomputedStates]:
    """The states of each table that has a key, and one version in the batch.

    parts : each table's changes of the step.
    images : the typed images that they refer to.
    schemas : of the tables that have one version.
    last_values : rows that are gone are wanted with the values that they had.
    """
    found = {}
    for name, changes in parts.items():
        schema = schemas.get(name)
        if schema is None or not schema.row_key:
            continue
        key, ordered = key_of(schema), sorted_by_seq(changes)
        if not {*key} <= {delta_name(column.name) for column in schema.columns}:
            continue
        try:
            states = final_states(ordered, schema, key, last_values=last_values, images=images)
        except (MySQLBinlogError, pa.ArrowInvalid) as error:
            # The walk comes to it again, and stops the table or the query.
            _LOG.debug("%s.%s: its states are not made ahead: %s", *name, error)
            continue
        found[name] = PrecomputedStates(schema, last_values, changes.num_rows, states)
    return found
