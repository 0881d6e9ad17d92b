"""A table without a key, loaded at an exact place in the log (the option `snapshotExactKeyless`).

Elsewhere a load's rows and the changes of the log overlap, and the newer one of a key wins. Rows
that no key tells apart are counted, so each must be either loaded or logged behind the load. Hence
the rows of such a table are those at one place in the log, with all before it and nothing behind it
(see `VisibilityChecker.begin_at_exact_position`).

A row with `op` ``t`` comes in front of them: at its place the table has the rows that follow, and
no others. So a table without rows has a place, too. A try that broke off in the middle has left
rows; those of the next one have a `row` in `seq` that is smaller by two. Where the account must not
lock tables, a row with `op` ``ddl`` says so in place of all that.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.connector.snapshot.visibility.watermark import Watermark
from pyspark_mysqlbinlog.decoder.payloads.envelope import Envelope, Run
from pyspark_mysqlbinlog.names import Table

__all__ = ["data_row_number", "marker_row", "marker_row_number"]


def marker_row_number(attempt: int) -> int:
    """The `row` in `seq` of what comes in front of the rows of a try; the first try is 1."""
    return -2 * attempt


def data_row_number(attempt: int) -> int:
    """The `row` in `seq` of the rows of a try."""
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
    """The row in front of a table's rows, or one that says why there are none."""
    place = watermark.position
    run = Run(
        op="t" if problem is None else "ddl",
        ts=watermark.time * 1_000_000,
        database=table[0],
        table=table[1],
        epoch=epoch,
        ordinal=place.number,
        pos=place.pos,
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
