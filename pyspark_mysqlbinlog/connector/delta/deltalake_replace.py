"""A few rows of a Delta table replaced by their keys: the same as a merge of them, and quicker.

For a merge delta-rs joins all rows of the files that it writes anew. Here it leaves out those that
have one of the keys, and writes the new ones beside the rest, in one commit, too. Three such writes
side by side take three quarters of the time of three merges (400 rows each, into a million).

A merge compares the `seq` of each row with that of the row that is there. Here that is asked
before: where a row with one of the keys is not older than all of the new ones, it takes a merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyarrow import compute

from pyspark_mysqlbinlog.connector.delta.apply import GONE, SEQ
from pyspark_mysqlbinlog.connector.delta.deltalake_sql import has_rows, quoted
from pyspark_mysqlbinlog.connector.delta.predicates import integer_bounds, is_before

__all__ = ["MOST_ROWS", "replace_rows", "replaced_condition", "without_gone"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute

# From some 2,000 keys on delta-rs takes as long to parse the condition as it saves.
MOST_ROWS = 1_000
# Properties of Delta tables that make a difference: a change data feed would tell of an update as
# of a delete and an insert, and where rows are only appended nothing is replaced, not even no row.
_TAKES_MERGES = ("delta.enableChangeDataFeed", "delta.appendOnly")


def replaced_condition(table: DeltaTable, states: pa.Table, key: Sequence[str]) -> str | None:
    """Which rows the states take the place of, as SQL; None where it takes a merge.

    states : of each key the last, with `SEQ`.
    """
    if len(key) != 1 or not 0 < states.num_rows <= MOST_ROWS:
        return None
    bounds = integer_bounds(states, key).get(key[0])
    values = states.column(key[0]).to_pylist()
    # A merge refuses keys that are there twice.
    if bounds is None or len({*values}) < len(values):
        return None
    metadata = table.metadata()
    given = (metadata.configuration.get(name, "") for name in _TAKES_MERGES)
    if metadata.partition_columns or any(value.lower() == "true" for value in given):
        return None
    name, (least, greatest) = quoted(key[0]), bounds
    # By these delta-rs leaves out files.
    within = f"{name} >= {least} AND {name} <= {greatest}"
    if not has_rows(table, within):
        # Mostly these are behind all that are there, and a merge reads no file.
        return None
    condition = f"{within} AND {name} IN ({', '.join(map(str, values))})"
    seqs: list[Any] = states.column(SEQ).to_pylist()
    oldest = min(seqs, key=lambda seq: (*seq.values(),))
    return None if has_rows(table, f"{condition} AND NOT {is_before(oldest)}") else condition


def without_gone(states: pa.Table) -> pa.Table:
    """The states of rows that are there."""
    return states.filter(pc.invert(states.column(GONE)))


def replace_rows(
    table: DeltaTable, condition: str, rows: pa.Table, properties: CommitProperties
) -> None:
    """Write rows in the place of those that meet a condition, which these meet, too.

    rows : the columns of the table, and maybe more.
    """
    held = [field.name for field in table.schema().fields]
    write_deltalake(
        table,
        rows.select(held),
        mode="overwrite",
        predicate=condition,
        commit_properties=properties,
    )
