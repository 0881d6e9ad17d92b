"""Equal rows in a Delta table by Spark: how many there are, and one MERGE that makes it others.

The source of the MERGE has two kinds of rows, as in `deltars.multiset`: those of which all copies
go, which match on every column, and those that come, which match nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import GONE, SEQ
from pyspark_mysqlbinlog.connector.delta.rows.row_bytes import canonical_row_bytes
from pyspark_mysqlbinlog.connector.delta.store.predicates import bounds
from pyspark_mysqlbinlog.connector.delta.store.spark.sql import quoted

__all__ = ["count_equal_rows", "equality_conditions", "multiset_merge_sql"]


def equality_conditions(rows: pa.Table) -> list[str]:
    """Conditions by which a row ``t`` is the row ``s`` of these in every column."""
    return [*_equal(rows), *bounds(rows, _columns(rows), quoted)]


def _equal(rows: pa.Table) -> Iterator[str]:
    for name in _columns(rows):
        ours, theirs = f"s.{quoted(name)}", f"t.{quoted(name)}"
        yield f"{theirs} <=> {ours}"
        if pa.types.is_floating(rows.column(name).type):
            # To a join, 0 and -0 are one.
            yield f"CAST({theirs} AS STRING) <=> CAST({ours} AS STRING)"


def _columns(rows: pa.Table) -> list[str]:
    return [name for name in rows.column_names if name not in {SEQ, GONE}]


def count_equal_rows(found: DataFrame, rows: pa.Table) -> list[int]:
    """How many of the rows that were found there are of each of these, which differ."""
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
    """Remove all copies of the rows that go, and write those that come.

    into : the table, `t` in the conditions.
    states : the view of both, `s` in the conditions, with the table's columns and `GONE`.
    names : the table's columns.
    conditions : when a row is a copy.
    """
    columns = ", ".join(quoted(name) for name in names)
    values = ", ".join(f"s.{quoted(name)}" for name in names)
    return " ".join(
        [
            f"MERGE INTO {into} t USING {states} s ON {' AND '.join([f's.{GONE}', *conditions])}",
            "WHEN MATCHED THEN DELETE",
            f"WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT",
            f"({columns}) VALUES ({values})",
        ]
    )
