"""Multiset rows in a Delta table with delta-rs: counts equal rows, and rewrites them in one commit.

The commit is a merge whose source has two kinds of rows: removed rows, which match all of their
copies on every column, and new rows, which match nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyarrow import dataset

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc, with_tombstone
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.rows.row_bytes import canonical_row_bytes
from pyspark_mysqlbinlog.connector.delta.store.deltars.sql import quoted
from pyspark_mysqlbinlog.connector.delta.store.deltars.stats import wide_decimal_columns
from pyspark_mysqlbinlog.connector.delta.store.predicates import integer_bounds, pruning_conditions

__all__ = ["count_equal_rows", "rewrite_equal_rows"]


def count_equal_rows(table: DeltaTable, rows: pa.Table) -> list[int]:
    """Return the number of copies of each of these rows, which are distinct.

    Memory does not grow with the table.
    """
    names = rows.column_names
    wanted = canonical_row_bytes(rows)
    counts = [0] * rows.num_rows
    scanner = table.to_pyarrow_dataset().scanner(columns=names, filter=_within(rows))
    for batch in scanner.to_batches():
        held = _candidates(pa.Table.from_batches([batch]).cast(rows.schema), rows)
        places = pc.index_in(canonical_row_bytes(held), value_set=wanted).drop_null()
        for found in pc.value_counts(places).to_pylist():
            counts[found["values"]] += found["counts"]
    return counts


def _candidates(held: pa.Table, rows: pa.Table) -> pa.Table:
    """Drop rows with a value that no searched row has: comparing whole rows takes longer."""
    for name in rows.column_names:
        kind = rows.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_timestamp(kind):
            values: Any = pc.unique(rows.column(name))
            # This includes NULL.
            held = held.filter(pc.is_in(held.column(name), value_set=values))
    return held


def _within(rows: pa.Table) -> Any:
    """Return a condition that all of these rows meet, to skip files that have none of them."""
    condition: Any = pc.scalar(True)
    for name, ends in integer_bounds(rows, rows.column_names).items():
        field: Any = dataset.field(name)
        # pyarrow does not compare a decimal with a number of another type.
        least, greatest = pa.array([*map(Decimal, ends)]).cast(rows.schema.field(name).type)
        condition = condition & (field >= least) & (field <= greatest)
    return condition


def rewrite_equal_rows(
    table: DeltaTable, distinct: pa.Table, rows: pa.Table, properties: CommitProperties
) -> int:
    """Remove all copies of distinct rows, and write others; returns how many were removed."""
    held = [field.name for field in table.schema().fields]
    if not distinct.num_rows:
        write_deltalake(table, rows.select(held), mode="append", commit_properties=properties)
        return 0
    source = pa.concat_tables(
        [
            with_tombstone(distinct.select(held), is_tombstone=True),
            with_tombstone(rows.select(held), is_tombstone=False),
        ]
    )
    metrics = (
        table.merge(
            source,
            " AND ".join([f"s.{TOMBSTONE}", *_equal(distinct)]),
            source_alias="s",
            target_alias="t",
            streamed_exec=bool(wide_decimal_columns(distinct)),
            commit_properties=properties,
        )
        .when_matched_delete()
        .when_not_matched_insert_all(f"NOT s.{TOMBSTONE}", except_cols=[TOMBSTONE])
        .execute()
    )
    return int(metrics["num_target_rows_deleted"])


def _equal(distinct: pa.Table) -> Iterator[str]:
    """Yield conditions for a row to equal one of these in every column."""
    names = [name for name in distinct.column_names if name != SEQ]
    for name in names:
        source, target = f"s.{quoted(name)}", f"t.{quoted(name)}"
        yield f"({target} IS NOT DISTINCT FROM {source})"
        if pa.types.is_floating(distinct.column(name).type):
            # The join treats 0 and -0 as equal.
            yield f"(CAST({target} AS VARCHAR) IS NOT DISTINCT FROM CAST({source} AS VARCHAR))"
    yield from pruning_conditions(distinct, names, quoted)
