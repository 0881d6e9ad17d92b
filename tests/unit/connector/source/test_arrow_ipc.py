"""Rows packed as Arrow IPC messages, which only streams with payload=json support."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from pyspark_mysqlbinlog.connector.ranges.typed_rows import typed_schema
from pyspark_mysqlbinlog.connector.source.arrow_ipc import (
    IPC_ROWS,
    SLIM_IPC_ROWS,
    packets,
    unpacked,
    without_source,
)
from pyspark_mysqlbinlog.connector.source.datasource import MySQLBinlogDataSource
from pyspark_mysqlbinlog.connector.source.failing_stream_reader import FailingStreamReader
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema, output_schema
from pyspark_mysqlbinlog.connector.source.stream_reader import MySQLBinlogStreamReader
from pyspark_mysqlbinlog.errors import SchemaError
from pyspark_mysqlbinlog.tables import ColumnSchema

_SCHEMA = arrow_schema(output_schema(StringType()))


def _batch(*texts: str | None) -> pa.RecordBatch:
    seq = {"epoch": 0, "file": 1, "pos": 4}
    rows: list[dict[str, Any]] = [
        {
            "op": "c",
            "after": text,
            "seq": {**seq, "row": number},
            "source": {"row": number, "missing": [], "query": None},
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
def test_unpacked_ipc_rows_equal_the_packed_batches(batches: list[pa.RecordBatch]) -> None:
    frame = pa.Table.from_batches(packets(iter(batches)), arrow_schema(IPC_ROWS))
    assert frame.num_rows == len(batches)
    assert unpacked(frame) == [pa.Table.from_batches(batches, _SCHEMA)]


def _reader(payload: str) -> object:
    options = {"host": "h", "user": "u", "payload": payload, "tables": "a.b"}
    return MySQLBinlogDataSource(options).streamReader(IPC_ROWS)


def test_packed_rows_stream_is_supported_for_json_payload() -> None:
    assert isinstance(_reader("json"), MySQLBinlogStreamReader)


@pytest.mark.parametrize("payload", ["struct", "variant"])
def test_packed_rows_are_rejected_for_struct_and_variant_payloads(payload: str) -> None:
    reader = _reader(payload)
    assert isinstance(reader, FailingStreamReader)
    assert "packed rows require payload=json" in str(reader._error)


def test_packed_batches_of_several_schemas_are_unpacked_by_schema() -> None:
    columns = [ColumnSchema("a", "int"), ColumnSchema("d", "datetime", 3)]
    typed = typed_schema(_SCHEMA, columns)
    assert typed.field("after").type == pa.struct([("a", pa.int32()), ("d", pa.timestamp("us"))])
    row = {"op": "r", "after": {"a": 1, "d": None}, "source": {"row": 0}}
    loaded = pa.RecordBatch.from_pylist([row], typed)
    batches = [_batch("{}"), loaded, _batch(None), loaded]
    made = packets(iter(batches), SLIM_IPC_ROWS)
    frame = pa.Table.from_batches(made, arrow_schema(SLIM_IPC_ROWS))
    assert unpacked(frame) == [
        without_source(pa.Table.from_batches([batches[0], batches[2]])),
        without_source(pa.Table.from_batches([loaded, loaded])),
    ]
    nothing = unpacked(frame.slice(0, 0))
    assert nothing == [without_source(pa.Table.from_batches([], _SCHEMA))]
    assert nothing[0].column_names[-2:] == ["query", "missing"]


def test_typed_schema_with_an_unknown_column_type_raises_schema_error() -> None:
    with pytest.raises(SchemaError, match="a struct does not support"):
        typed_schema(_SCHEMA, [ColumnSchema("a", "hyperloglog")])
