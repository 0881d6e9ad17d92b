"""Multiset rows in a Delta table with Spark: counts equal rows, and rewrites them in one MERGE.

As in `deltars.multiset`, the source of the MERGE has two kinds of rows: removed rows, which match
all of their copies on every column, and new rows, which match nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.rows.row_bytes import canonical_row_bytes
from pyspark_mysqlbinlog.connector.delta.store.predicates import pruning_conditions
from pyspark_mysqlbinlog.connector.delta.store.spark.sql import quoted

__all__ = ["count_equal_rows", "equality_conditions", "multiset_merge_sql"]


def equality_conditions(rows: pa.Table) -> list[str]:
    """Return conditions for a row ``t`` to equal the row ``s`` in every column."""
    return [*_equal(rows), *pruning_conditions(rows, _columns(rows), quoted)]


def _equal(rows: pa.Table) -> Iterator[str]:
    for name in _columns(rows):
        source, target = f"s.{quoted(name)}", f"t.{quoted(name)}"
        yield f"{target} <=> {source}"
        if pa.types.is_floating(rows.column(name).type):
            # A join treats 0 and -0 as equal.
            yield f"CAST({target} AS STRING) <=> CAST({source} AS STRING)"


def _columns(rows: pa.Table) -> list[str]:
    return [name for name in rows.column_names if name not in {SEQ, TOMBSTONE}]


def count_equal_rows(found: DataFrame, rows: pa.Table) -> list[int]:
    """Return the number of copies of each of these rows, which are distinct, in the found rows."""
    wanted = canonical_row_bytes(rows)
    counts = [0] * rows.num_rows
    held = found.toArrow().select(rows.column_names).cast(rows.schema)
    places = pc.index_in(canonical_row_bytes(held), value_set=wanted).drop_null()
    for each in pc.value_counts(places).to_pylist():
        counts[each["values"]] += each["counts"]
    return counts


def multiset_merge_sql(
    into: str, states: str, names: Sequence[str], conditions: Sequence[str]
) -> str:
    """Return the MERGE that removes all copies of removed rows, and writes new rows.

    into : the table, `t` in the conditions.
    states : the view of both, `s` in the conditions, with the table's columns and `TOMBSTONE`.
    names : the table's columns.
    conditions : when a row is a copy.
    """
    columns = ", ".join(quoted(name) for name in names)
    values = ", ".join(f"s.{quoted(name)}" for name in names)
    condition = " AND ".join([f"s.{TOMBSTONE}", *conditions])
    return " ".join(
        [
            f"MERGE INTO {into} t USING {states} s ON {condition}",
            "WHEN MATCHED THEN DELETE",
            f"WHEN NOT MATCHED AND NOT s.{TOMBSTONE} THEN INSERT",
            f"({columns}) VALUES ({values})",
        ]
    )
