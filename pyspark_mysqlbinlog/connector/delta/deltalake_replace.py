"""A few rows of a Delta table replaced by their keys: the same as a merge of them, and quicker.

For a merge delta-rs joins all rows of the files that it writes anew. Here it leaves out those that
have one of the keys, and writes the new ones beside the rest, in one commit, too. Three such writes
side by side take three quarters of the time of three merges (400 rows each, into a million).

A merge compares each row's `seq` with that of the row that is there. Here that is asked before:
where any of them is newer than the oldest of the new ones it takes a merge.
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

__all__ = ["MOST_ROWS", "replace_rows", "replaced_rows"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute

# delta-rs takes as long to understand the keys of some 2,000 as it saves.
MOST_ROWS = 1_000
_CHANGE_DATA = "delta.enableChangeDataFeed"


def replaced_rows(table: DeltaTable, states: pa.Table, key: Sequence[str]) -> str | None:
    """The condition of the rows that these take the place of; None where it takes a merge.

    states : of each key the last, with `SEQ`.
    """
    if len(key) != 1 or not 0 < states.num_rows <= MOST_ROWS:
        return None
    ends = integer_bounds(states, key).get(key[0])
    metadata = table.metadata()
    if ends is None or metadata.partition_columns:
        return None
    if metadata.configuration.get(_CHANGE_DATA, "").lower() == "true":
        # The feed would tell of an update as of a delete and an insert.
        return None
    name, (least, greatest) = quoted(key[0]), ends
    keys = ", ".join(map(str, states.column(key[0]).to_pylist()))
    # By the ends files are left out.
    its = f"{name} >= {least} AND {name} <= {greatest} AND {name} IN ({keys})"
    seqs: list[Any] = states.column(SEQ).to_pylist()
    oldest = min(seqs, key=lambda seq: (*seq.values(),))
    return None if has_rows(table, f"{its} AND NOT {is_before(oldest)}") else its


def replace_rows(
    table: DeltaTable,
    replaced: str,
    states: pa.Table,
    properties: CommitProperties,
    *,
    with_gone: bool,
) -> None:
    """Write states in the place of the rows that they replace.

    replaced : as `replaced_rows` gives it.
    with_gone : rows that are gone stay, with the values that these have.
    """
    rows = states if with_gone else states.filter(pc.invert(states.column(GONE)))
    held = [field.name for field in table.schema().fields]
    write_deltalake(
        table,
        rows.select(held),
        mode="overwrite",
        predicate=replaced,
        commit_properties=properties,
    )
