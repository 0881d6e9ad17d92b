"""Precomputes states of a sub-batch when it is read, while the previous sub-batch is merged.

A merge leaves some of the processors idle, and most of the work before a merge depends only on the
changes and their table. The result is what `TableBatchWriter` computes for the same changes. If it
handles other changes, or another version of the table, it computes its own.
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
    """Final states of one table's changes in a sub-batch; see `final_states`.

    Attributes
    ----------
    schema : the table's version with which the changes were read.
    last_values : whether tombstones have the values of their rows.
    count : number of the changes, which are all of the table in the sub-batch.
    states : the last state of each key.
    """

    schema: TableSchema
    last_values: bool
    count: int
    states: pa.Table

    def of(self, changes: pa.Table, schema: TableSchema, *, last_values: bool) -> pa.Table | None:
        """Return the states of these changes; None if others were precomputed.

        changes : some of the table's changes in the sub-batch, in order. So the same count means
            the same changes.
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
    """Compute the states of each table that has a key, and one version in the batch.

    parts : each table's changes in the sub-batch.
    images : the typed images that they refer to.
    schemas : of the tables that have one version.
    last_values : tombstones need the values of their rows.
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
            # `TableBatchWriter` gets the same error, and stops the table or the query.
            _LOG.debug("%s.%s: states not precomputed: %s", *name, error)
            continue
        found[name] = PrecomputedStates(schema, last_values, changes.num_rows, states)
    return found
