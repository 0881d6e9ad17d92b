"""Packets hold what was put in, and only a stream of JSON gives them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from pyspark_mysqlbinlog.connector.columns import arrow_schema, envelope
from pyspark_mysqlbinlog.connector.datasource import MySQLBinlogDataSource
from pyspark_mysqlbinlog.connector.packets import PACKETS, packets, unpacked
from pyspark_mysqlbinlog.connector.refused_stream_reader import RefusedStreamReader
from pyspark_mysqlbinlog.connector.stream_reader import MySQLBinlogStreamReader

_SCHEMA = arrow_schema(envelope(StringType()))


def _batch(*texts: str | None) -> pa.RecordBatch:
    seq = {"epoch": 0, "file": 1, "pos": 4}
    rows: list[dict[str, Any]] = [
        {
            "op": "c",
            "after": text,
            "seq": {**seq, "row": number},
            "source": {"row": number, "absent": [], "query": None},
        }
        for number, text in enumerate(texts)
    ]
    return pa.RecordBatch.from_pylist(rows, _SCHEMA)


@pytest.mark.parametrize(
    "batches",
    [
        [],
        [_batch()],
        [_batch("{}", None)],
        [_batch("a" * 100_000, "é漢😀"), _batch(), _batch(None)],
    ],
    ids=["none", "empty", "one", "some"],
)
def test_what_was_put_in(batches: list[pa.RecordBatch]) -> None:
    frame = pa.Table.from_batches(packets(iter(batches)), arrow_schema(PACKETS))
    assert frame.num_rows == len(batches)
    assert unpacked(frame) == pa.Table.from_batches(batches, _SCHEMA)


def _reader(payload: str) -> object:
    options = {"host": "h", "user": "u", "payload": payload, "tables": "a.b"}
    return MySQLBinlogDataSource(options).streamReader(PACKETS)


def test_a_stream_of_json_gives_packets() -> None:
    assert isinstance(_reader("json"), MySQLBinlogStreamReader)


@pytest.mark.parametrize("payload", ["struct", "variant"])
def test_other_payloads_are_refused(payload: str) -> None:
    reader = _reader(payload)
    assert isinstance(reader, RefusedStreamReader)
    assert "packets hold payload=json" in str(reader._error)
