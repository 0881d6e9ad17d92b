"""The columns around the row images: op, ts, names, seq, source.

All rows of one rows event have the same values except their row number. Therefore, the envelope
keeps one `Run` per event, and expands the runs to their rows by Arrow's take when the batch is
finished: the cost per row is two list entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from pyspark_mysqlbinlog.errors import SchemaError

__all__ = ["RESCUED", "Envelope", "Run", "StatementRow"]


class Run(NamedTuple):
    """The values that the rows of one rows event (or one statement) share.

    ts is in microseconds since 1970 UTC; ordinal and pos are those of `seq`. Those of a prepared XA
    transaction are at its XA COMMIT, and file and source_pos where its event is.
    """

    op: str
    ts: int
    database: str
    table: str
    epoch: int
    ordinal: int
    pos: int
    source_pos: int
    server_id: int
    file: str
    tx_pos: int | None
    thread_id: int | None
    gtid: str | None
    query: str | None
    key: tuple[str, ...] | None
    missing: tuple[str, ...] | None
    invalid_dates: tuple[str, ...] | None


class StatementRow(NamedTuple):
    """A row without images, made by a statement: a truncate, or DDL.

    key : the primary key's columns; None if they are unknown.
    """

    op: str
    database: str
    table: str
    query: str
    key: tuple[str, ...] | None


_TOP = ("op", "ts", "database", "table", "before", "after", "seq", "source")
# Values without a field in a struct; only some schemas have this column.
RESCUED = "_rescued_data"
# Sources of the fields of a struct: a field of Run, or None for the row's number.
_SEQ = {"epoch": "epoch", "file": "ordinal", "pos": "pos", "row": None}
_SOURCE = {
    "server_id": "server_id",
    "file": "file",
    "pos": "source_pos",
    "row": None,
    "tx_pos": "tx_pos",
    "thread_id": "thread_id",
    "gtid": "gtid",
    "query": "query",
    "key": "key",
    "missing": "missing",
    "invalid_dates": "invalid_dates",
}


class Envelope:
    """Builds batches of exactly `schema` from runs and two columns of row images."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.has_rescued = RESCUED in schema.names
        top = (*_TOP, RESCUED) if self.has_rescued else _TOP
        _check_names("the Arrow schema", schema.names, top)
        self._seq = _struct(schema, "seq", _SEQ)
        self._source = _struct(schema, "source", _SOURCE)
        self._runs: list[Run] = []
        self._run_of_row: list[int] = []
        self._rows: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, run: Run, first_row: int, rows: int) -> None:
        """Add rows `first_row` .. `first_row + rows` of a run."""
        self._run_of_row += [len(self._runs)] * rows
        self._runs.append(run)
        self._rows += range(first_row, first_row + rows)

    def finish(
        self, before: pa.Array[Any], after: pa.Array[Any], rescued: Mapping[int, str]
    ) -> pa.RecordBatch:
        """Return the batch of the rows added since the last finish; the envelope is then empty.

        rescued : by the number of the row in the batch.
        """
        fields = dict(zip(Run._fields, zip(*self._runs, strict=True), strict=True))
        spread = None
        if len(self._runs) < len(self._rows):
            spread = pa.array(self._run_of_row, type=pa.int32())

        def column(name: str, arrow_type: pa.DataType) -> pa.Array[Any]:
            array: pa.Array[Any] = pa.array(fields[name], type=arrow_type)
            return array if spread is None else array.take(spread)

        def struct(struct_type: pa.StructType, origin: dict[str, str | None]) -> pa.Array[Any]:
            children = []
            for field in struct_type:
                name = origin[field.name]
                children.append(
                    pa.array(self._rows, type=field.type)
                    if name is None
                    else column(name, field.type)
                )
            return pa.StructArray.from_arrays(children, fields=list(struct_type))

        columns: dict[str, pa.Array[Any]] = {
            "before": before,
            "after": after,
            "seq": struct(self._seq, _SEQ),
            "source": struct(self._source, _SOURCE),
        }
        if self.has_rescued:
            texts = list(map(rescued.get, range(len(self._rows)))) if rescued else None
            columns[RESCUED] = (
                pa.nulls(len(self._rows), pa.string())
                if texts is None
                else pa.array(texts, type=pa.string())
            )
        arrays = [
            columns[field.name] if field.name in columns else column(field.name, field.type)
            for field in self._schema
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._runs, self._run_of_row, self._rows = [], [], []
        return batch


def _struct(schema: pa.Schema, name: str, origin: dict[str, str | None]) -> pa.StructType:
    struct_type = schema.field(name).type
    if not isinstance(struct_type, pa.StructType):
        raise SchemaError(f"the Arrow schema has {name} as {struct_type}, expected a struct")
    _check_names(name, [field.name for field in struct_type], tuple(origin))
    return struct_type


def _check_names(what: str, found: list[str], expected: tuple[str, ...]) -> None:
    if sorted(found) != sorted(expected):
        raise SchemaError(f"{what} has {', '.join(found)}, expected {', '.join(expected)}")
