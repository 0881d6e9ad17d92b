"""Applies changes to a keyless table as a multiset: equal rows are counted.

Equal rows of such a table cannot be distinguished, so it does not matter which of them a change
means: an insert adds one copy of a row, a delete removes one, an update removes one copy of the old
row and adds one of the new. The Delta table stores each copy as its own row, as SELECT returns
them. A batch becomes a net number for each row that it changes. If a number is negative, all copies
are removed and the remaining ones are written again, in one commit with all new rows.

Rows are equal here if all of their values are, NULL to NULL, byte by byte, independent of
collations: the binlog has the exact values of a row. -0 is not 0. So a row that is to be removed
exists as often as necessary. If it does not, the Delta table differs from the server. Then the
table is stopped, and no other row is removed instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.rows.row_bytes import (
    MultiplicityChange,
    canonical_row_bytes,
    net_changes,
)
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["apply_multiset", "check_multiset_supported", "log_row_identity"]

_LOG = logging.getLogger(__name__)


def log_row_identity(table: Table, versions: Iterable[Version]) -> None:
    """Log how rows of a table without a primary key are identified."""
    *_, schema = (what for _, what in versions)
    if not isinstance(schema, TableSchema) or schema.primary_key:
        return
    if schema.row_key:
        by = f"a unique key ({', '.join(schema.row_key)})"
    else:
        by = "all columns, as a multiset"
    _LOG.info("%s.%s has no primary key: rows are identified by %s", *table, by)


def check_multiset_supported(schema: TableSchema, *, soft_deletes: bool) -> None:
    """MirrorError if equal rows cannot be counted."""
    if soft_deletes:
        raise MirrorError(
            "the table has no key, and soft_delete needs one: add a primary key, or mirror it"
            " without soft_delete",
            table=schema.full_name,
        )
    doubtful = [column.name for column in schema.columns if column.before_image_unreliable]
    if doubtful:
        raise MirrorError(
            "the table has no key, and the binlog may lack the old value of the virtual column"
            f" {doubtful[0]!r} in updates: exclude it with excludeColumns",
            table=schema.full_name,
        )


def apply_multiset(target: DeltaTarget, states: pa.Table, marker: CommitMarker, table: str) -> None:
    """Apply removed and added rows, in order, to a Delta table that has their columns.

    states : from `states.all_states`.

    Raises MirrorError, and changes nothing, if a removed row does not exist often enough.
    """
    names = [name for name in states.column_names if name not in {SEQ, TOMBSTONE}]
    texts: list[Any] = canonical_row_bytes(states.select(names)).to_pylist()
    flags: list[Any] = states.column(TOMBSTONE).to_pylist()
    net = net_changes(texts, flags)
    taken = [each for each in net if each.minimum < 0]
    held = target.count_equal_rows(_at(states, taken).select(names)) if taken else []
    for each, count in zip(taken, held, strict=True):
        if count + each.minimum < 0:
            raise _not_equal(states, each, count, table)
    left = {each.last: count + each.net for each, count in zip(taken, held, strict=True)}
    fewer = [each for each in net if each.net < 0]
    more = [each for each in net if each.net > 0]
    if not fewer and not more:
        return
    again = [each.last for each in fewer for _ in range(left[each.last])]
    again += [each.last for each in more for _ in range(each.net)]
    removed = target.rewrite_equal_rows(
        _at(states, fewer).drop([TOMBSTONE]),
        states.take(pa.array(again, pa.int64())).drop([TOMBSTONE]),
        marker,
    )
    expected = sum(left[each.last] - each.net for each in fewer)
    if removed != expected:
        raise MirrorError(
            f"{removed} rows were removed from the Delta table, expected {expected}: its comparison"
            " of values is not exact; reload the table",
            table=table,
        )


def _at(states: pa.Table, changes: Sequence[MultiplicityChange]) -> pa.Table:
    return states.take(pa.array([each.last for each in changes], pa.int64()))


def _not_equal(states: pa.Table, change: MultiplicityChange, held: int, table: str) -> MirrorError:
    seq = states.column(SEQ)[change.last].as_py()
    return MirrorError(
        f"up to position {seq['pos']} of binlog file number {seq['file']} the binlog removes"
        f" {-change.minimum} copies of a row, but the Delta table has {held}: it differs from the"
        " server; reload the table",
        table=table,
    )
