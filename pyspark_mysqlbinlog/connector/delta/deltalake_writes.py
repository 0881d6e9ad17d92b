"""Rows that a Delta table gets without a merge: the same as by one, and quicker.

Where no row lies between the least and the greatest of the new keys they are appended, which takes
three quarters of a merge's time: so it is with most rows of a first load, and with INSERTs into a
table whose keys are counted up.

A few rows take the places of those with their keys. For a merge delta-rs joins all rows of the
files that it writes anew. Here it leaves out those that have one of the keys, and writes the new
ones beside the rest, in one commit, too. Three such writes side by side take three quarters of the
time of three merges (400 rows each, into a million).

A merge compares the `seq` of each row with that of the row that is there. Here that is asked
before: where a row with one of the keys is not older than all of the new ones, it takes a merge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyarrow import compute

from pyspark_mysqlbinlog.connector.delta.apply import GONE, SEQ
from pyspark_mysqlbinlog.connector.delta.deltalake_sql import has_rows, quoted
from pyspark_mysqlbinlog.connector.delta.predicates import integer_bounds, is_before

__all__ = ["MOST_REPLACED", "write_without_merge"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute

# From some 2,000 keys on delta-rs takes as long to parse the condition as it saves.
MOST_REPLACED = 1_000
# Properties of Delta tables that make a difference: a change data feed would tell of an update as
# of a delete and an insert, and where rows are only appended nothing is replaced, not even no row.
_TAKES_MERGES = ("delta.enableChangeDataFeed", "delta.appendOnly")


def write_without_merge(
    table: DeltaTable,
    states: pa.Table,
    key: Sequence[str],
    properties: CommitProperties,
    *,
    keeps_deleted: bool,
) -> bool:
    """Write what states leave, in one commit; False where it takes a merge, and nothing is written.

    table : is written as it is at its version: what was asked of it holds for no other.
    states : of each key the last, with `SEQ` and `GONE`, and all columns of the table.
    keeps_deleted : rows that are gone stay, as the states have them.
    """
    bounds = integer_bounds(states, key)
    if not bounds:
        return False
    rows = states if keeps_deleted else states.filter(pc.invert(states.column(GONE)))
    rows = rows.select([field.name for field in table.schema().fields])
    # By these delta-rs leaves out files.
    within = " AND ".join(
        f"{quoted(name)} >= {least} AND {quoted(name)} <= {greatest}"
        for name, (least, greatest) in bounds.items()
    )
    if not has_rows(table, within):
        if not rows.num_rows:
            return False  # a merge has nothing to write, and makes no commit
        write_deltalake(table, rows, mode="append", commit_properties=properties)
        return True
    if not _may_be_replaced(table, states, key):
        return False
    values = ", ".join(map(str, states.column(key[0]).to_pylist()))
    condition = f"{within} AND {quoted(key[0])} IN ({values})"
    if has_rows(table, f"{condition} AND NOT {is_before(_oldest(states))}"):
        return False
    write_deltalake(
        table, rows, mode="overwrite", predicate=condition, commit_properties=properties
    )
    return True


def _may_be_replaced(table: DeltaTable, states: pa.Table, key: Sequence[str]) -> bool:
    """Whether rows may take the places of others by this key, as far as the table goes."""
    if len(key) != 1 or states.num_rows > MOST_REPLACED:
        return False
    # A merge refuses keys that are there twice.
    if pc.count_distinct(states.column(key[0])).as_py() < states.num_rows:
        return False
    metadata = table.metadata()
    given = (metadata.configuration.get(name, "") for name in _TAKES_MERGES)
    return not metadata.partition_columns and all(value.lower() != "true" for value in given)


def _oldest(states: pa.Table) -> Mapping[str, int]:
    """The least `seq` of states."""
    seqs: list[Any] = states.column(SEQ).to_pylist()
    return min(seqs, key=lambda seq: (*seq.values(),))
