"""Snapshot of a table without a key at an exact binlog position (option `snapshotExactKeyless`).

Otherwise the snapshot's rows and the changes of the binlog overlap, and the newer one of a key
wins. Rows that no key identifies are counted, so each must be either in the snapshot or in the
binlog after it. So the rows of such a table are those at one binlog position, with everything
before it and nothing after it (see `VisibilityChecker.begin_at_exact_position`).

A row with `op` ``t`` precedes them: at its position the table has exactly the rows that follow. So
a table without rows has a position, too. A try that was interrupted has left rows; those of the
next try have a `row` in `seq` that is smaller by two. If the account lacks LOCK TABLES, a row with
`op` ``ddl`` reports that instead.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.snapshot.visibility.watermark import Watermark
from pyspark_mysqlbinlog.decoder.payloads.envelope import Envelope, Run
from pyspark_mysqlbinlog.names import Table

__all__ = ["data_row_number", "marker_row", "marker_row_number"]


def marker_row_number(attempt: int) -> int:
    """Return the `row` in `seq` of the row before the rows of a try; the first try is 1."""
    return -2 * attempt


def data_row_number(attempt: int) -> int:
    """Return the `row` in `seq` of the rows of a try."""
    return marker_row_number(attempt) + 1


def marker_row(
    schema: pa.Schema,
    table: Table,
    watermark: Watermark,
    *,
    epoch: int,
    attempt: int,
    problem: str | None = None,
) -> pa.RecordBatch:
    """Return the row before a table's rows, or one that reports why there are none."""
    place = watermark.position
    run = Run(
        op="t" if problem is None else "ddl",
        ts=watermark.time * 1_000_000,
        database=table[0],
        table=table[1],
        epoch=epoch,
        ordinal=place.number,
        pos=place.pos,
        source_pos=place.pos,
        server_id=watermark.server_id,
        file=place.file,
        tx_pos=None,
        thread_id=None,
        gtid=None,
        query=problem,
        key=None,
        missing=None,
        invalid_dates=None,
    )
    envelope = Envelope(schema)
    envelope.add(run, marker_row_number(attempt), 1)
    before, after = (_nothing(schema, name) for name in ("before", "after"))
    return envelope.finish(before, after, {})


def _nothing(schema: pa.Schema, name: str) -> pa.Array[Any]:
    nulls: pa.Array[Any] = pa.nulls(1, schema.field(name).type)
    return nulls
