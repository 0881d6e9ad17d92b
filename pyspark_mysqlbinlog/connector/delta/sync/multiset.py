"""A table without a key: equal rows are counted.

No row of such a table can be told from one that is equal, so it does not matter which of them a
change means: an insert makes one more of a row, a delete one less, an update one less of the old
and one more of the new. The Delta table holds each copy as a row of its own, as SELECT shows them.
A batch comes down to a number for each row that it touches: so many more, or so many less. Where
there are less, all copies go and those that are left are written again, in one commit with all that
is new.

Rows are equal here where each of their values is, NULL to NULL, byte by byte, whatever a collation
says: the log has the very values that a row had. -0 is not 0. So a row that is to go is there, as
often as it has to be. Where it is not, the Delta table is not what the server had: then the table
is stopped, and nothing else is taken away in its place.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.versions import Version
from pyspark_mysqlbinlog.connector.delta.rows.columns import GONE, SEQ
from pyspark_mysqlbinlog.connector.delta.rows.row_bytes import (
    MultiplicityChange,
    canonical_row_bytes,
    net_changes,
)
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import Mark
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["apply_multiset", "check_multiset_supported", "log_row_identity"]

_LOG = logging.getLogger(__name__)


def log_row_identity(table: Table, versions: Iterable[Version]) -> None:
    """Log how a table without a primary key is kept in step."""
    *_, schema = (what for _, what in versions)
    if not isinstance(schema, TableSchema) or schema.primary_key:
        return
    if schema.row_key:
        by = f"a unique key of ({', '.join(schema.row_key)})"
    else:
        by = "counting equal rows, of which updates and deletes are looked for by all columns"
    _LOG.info("%s.%s has no primary key: it is kept in step by %s", *table, by)


def check_multiset_supported(schema: TableSchema, *, soft_deletes: bool) -> None:
    """MirrorError where equal rows can't be counted."""
    if soft_deletes:
        raise MirrorError(
            "the table has no key, and deleted rows are kept by key: give it a primary key, or"
            " mirror it without soft_delete",
            table=schema.full_name,
        )
    doubtful = [column.name for column in schema.columns if column.before_image_unreliable]
    if doubtful:
        raise MirrorError(
            f"the table has no key, and the log does not tell what the virtual column"
            f" {doubtful[0]!r} was before an update: leave it out with excludeColumns",
            table=schema.full_name,
        )


def apply_multiset(target: DeltaTarget, states: pa.Table, mark: Mark, table: str) -> None:
    """Bring rows that go and come, in order, into a Delta table that has their columns.

    states : what `states.all_states` gives.

    Raises MirrorError, and changes nothing, where a row that goes is not there as often.
    """
    names = [name for name in states.column_names if name not in {SEQ, GONE}]
    texts: list[Any] = canonical_row_bytes(states.select(names)).to_pylist()
    gone: list[Any] = states.column(GONE).to_pylist()
    net = net_changes(texts, gone)
    taken = [each for each in net if each.least < 0]
    held = target.copies(_at(states, taken).select(names)) if taken else []
    for each, count in zip(taken, held, strict=True):
        if count + each.least < 0:
            raise _not_equal(states, each, count, table)
    left = {each.last: count + each.change for each, count in zip(taken, held, strict=True)}
    fewer = [each for each in net if each.change < 0]
    more = [each for each in net if each.change > 0]
    if not fewer and not more:
        return
    again = [each.last for each in fewer for _ in range(left[each.last])]
    again += [each.last for each in more for _ in range(each.change)]
    removed = target.rewrite_equal_rows(
        _at(states, fewer).drop([GONE]),
        states.take(pa.array(again, pa.int64())).drop([GONE]),
        mark,
    )
    expected = sum(left[each.last] - each.change for each in fewer)
    if removed != expected:
        raise MirrorError(
            f"{removed} rows were removed from the Delta table, expected {expected}: it does not"
            " compare values as they are; load the table anew",
            table=table,
        )


def _at(states: pa.Table, changes: Sequence[MultiplicityChange]) -> pa.Table:
    return states.take(pa.array([each.last for each in changes], pa.int64()))


def _not_equal(states: pa.Table, change: MultiplicityChange, held: int, table: str) -> MirrorError:
    seq = states.column(SEQ)[change.last].as_py()
    return MirrorError(
        f"by position {seq['pos']} of binlog file number {seq['file']} the log has taken away"
        f" {-change.least} of a row of which the Delta table had {held}: it is not what the server"
        " had there; load the table anew",
        table=table,
    )
