"""Translates the Python decoder's plans for the compiled decode loop.

Types and fields have the kernel's names. If a type or field has no such name, the plan is None, no
error is raised, and Python decodes the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.kernel import _values
from pyspark_mysqlbinlog.decoder.kernel._decode import (
    DecodeLoop,
    Fate,
    Field,
    Operation,
    Out,
    Payload,
)
from pyspark_mysqlbinlog.decoder.payloads.envelope import RESCUED
from pyspark_mysqlbinlog.decoder.payloads.payload import JsonPayload, JsonWithTexts, PayloadBuilder
from pyspark_mysqlbinlog.decoder.payloads.struct_payload import StructPayload
from pyspark_mysqlbinlog.decoder.payloads.variant_payload import VariantPayload
from pyspark_mysqlbinlog.decoder.schemas.struct_types import GEOMETRY, VARIANT, arrow_type
from pyspark_mysqlbinlog.errors import MySQLBinlogError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.decoder.kernel._decode import Step, TablePlan
    from pyspark_mysqlbinlog.decoder.payloads.plan import ColumnPlan, RowPlan
    from pyspark_mysqlbinlog.decoder.payloads.struct_payload import TableRows

__all__ = ["decode_loop", "table_plan"]

_OPERATIONS = {
    "insert": Operation.Insert,
    "update": Operation.Update,
    "delete": Operation.Delete,
}

# Arrow types without parameters; `_out` adds the others.
_OUT: dict[pa.DataType, Out] = {
    pa.bool_(): Out.Bool,
    pa.int8(): Out.Int8,
    pa.int16(): Out.Int16,
    pa.int32(): Out.Int32,
    pa.int64(): Out.Int64,
    pa.float32(): Out.Float,
    pa.float64(): Out.Double,
    pa.date32(): Out.Date,
    pa.duration("us"): Out.Duration,
    pa.string(): Out.Text,
    pa.binary(): Out.Text,
    GEOMETRY: Out.Geometry,
    VARIANT: Out.Variant,
}

_STRING = pa.string()
_INT, _LONG = pa.int32(), pa.int64()
_NAMES: pa.DataType = pa.list_(pa.field("element", _STRING))
_TS: pa.DataType = pa.timestamp("us", tz="UTC")
_TOP: dict[str, Field] = {
    "op": Field.Op,
    "ts": Field.Ts,
    "database": Field.Database,
    "table": Field.Table,
    "before": Field.Before,
    "after": Field.After,
    "seq": Field.Seq,
    "source": Field.Source,
    RESCUED: Field.Rescued,
}
_TOP_TYPES: dict[str, pa.DataType] = {
    "op": _STRING,
    "ts": _TS,
    "database": _STRING,
    "table": _STRING,
    RESCUED: _STRING,
}
_SEQ: dict[str, tuple[Field, pa.DataType]] = {
    "epoch": (Field.Epoch, _INT),
    "file": (Field.Ordinal, _INT),
    "pos": (Field.Pos, _LONG),
    "row": (Field.Row, _INT),
}
_SOURCE: dict[str, tuple[Field, pa.DataType]] = {
    "server_id": (Field.ServerId, _LONG),
    "file": (Field.File, _STRING),
    "pos": (Field.SourcePos, _LONG),
    "row": (Field.Row, _INT),
    "tx_pos": (Field.TxPos, _LONG),
    "thread_id": (Field.ThreadId, _LONG),
    "gtid": (Field.Gtid, _STRING),
    "query": (Field.Query, _STRING),
    "key": (Field.Key, _NAMES),
    "missing": (Field.Missing, _NAMES),
    "invalid_dates": (Field.InvalidDates, _NAMES),
}
_REFUSED: Step = (Fate.Refuse, 0, False)


def decode_loop(python: Decoder) -> DecodeLoop | None:
    """Return the loop that makes a decoder's batches; None if it does not support their schema."""
    schema, epoch, sides = python.arrow_schema, python.epoch, (python.before, python.after)
    fields = _envelope_fields(schema)
    kinds = {_kind(side) for side in sides}
    if fields is None or len(kinds) != 1 or not -(1 << 31) <= epoch < 1 << 31:
        return None
    (kind,) = kinds
    fails = {isinstance(side, StructPayload) and _fails(side) for side in sides}
    if kind is None or len(fails) != 1:
        return None
    wanted = sum(bit for word, bit in _OPERATIONS.items() if word in python.operations)
    loop = DecodeLoop(schema, kind, fails == {True}, wanted, python.batch_rows, python.batch_bytes)
    loop.describe_envelope(epoch, *fields)
    for at, (name, side) in enumerate(zip(("before", "after"), sides, strict=True)):
        type_ = schema.field(name).type
        if kind == Payload.Struct:
            if not isinstance(side, StructPayload) or not _describe_struct(loop, at, side, type_):
                return None
        elif type_ != (VARIANT if kind == Payload.Variant else _STRING):
            return None
    return loop


def _kind(side: PayloadBuilder) -> Payload | None:
    # Exactly these types: the behavior of a subclass is unknown.
    kinds: dict[type, Payload] = {
        JsonPayload: Payload.Json,
        JsonWithTexts: Payload.JsonWithTexts,
        StructPayload: Payload.Struct,
        VariantPayload: Payload.Variant,
    }
    return kinds.get(type(side))


def _fails(side: StructPayload) -> bool:
    return side.options.zero_dates == "fail"


def _envelope_fields(schema: pa.Schema) -> tuple[bytes, bytes, bytes] | None:
    for field in schema:
        if field.name not in _TOP or field.type != _TOP_TYPES.get(field.name, field.type):
            return None
        if not field.nullable:
            return None
    seq = _struct_fields(schema.field("seq").type, _SEQ)
    source = _struct_fields(schema.field("source").type, _SOURCE)
    if seq is None or source is None:
        return None
    return bytes(_TOP[name] for name in schema.names), seq, source


def _struct_fields(
    type_: pa.DataType, expected: dict[str, tuple[Field, pa.DataType]]
) -> bytes | None:
    if not isinstance(type_, pa.StructType):
        return None
    codes: list[Field] = []
    for field in type_:
        code, field_type = expected[field.name]
        if field.type != field_type or not field.nullable:
            return None
        codes.append(code)
    return bytes(codes)


def _out(type_: pa.DataType) -> tuple[Out, int] | None:
    """Return the kernel's type for a column of an Arrow type, and the scale of a decimal."""
    if pa.types.is_decimal128(type_):
        # The stubs omit this attribute.
        return Out.Decimal, type_.scale
    if pa.types.is_timestamp(type_):
        return (Out.Micros, 0) if type_.unit == "us" else None
    out = _OUT.get(type_)
    return None if out is None else (out, 0)


def _describe_struct(loop: DecodeLoop, side: int, built: StructPayload, type_: pa.DataType) -> bool:
    if not _is_nullable(type_):
        return False
    for rows in built.tables.values():
        columns = []
        for column in rows.columns:
            out = _out(column.type)
            if out is None:
                return False
            columns.append((column.name, *out))
        loop.add_table(side, columns)
    if built.nested:
        first = 0
        assert isinstance(type_, pa.StructType)
        for database in type_:
            assert isinstance(database.type, pa.StructType)
            loop.add_database(side, first, database.type.num_fields)
            first += database.type.num_fields
    return True


def _is_nullable(type_: pa.DataType) -> bool:
    """Whether all fields of a struct are nullable, at every level; a variant's never are."""
    if not isinstance(type_, pa.StructType) or type_ == VARIANT:
        return True
    return all(field.nullable and _is_nullable(field.type) for field in type_)


def table_plan(
    loop: DecodeLoop, plan: RowPlan, sides: tuple[PayloadBuilder, PayloadBuilder]
) -> TablePlan | None:
    """Return the loop's plan for reading the rows of a plan; None if Python must read them."""
    if plan.row_filter is not None:
        return None
    table_map = plan.table_map
    programs = []
    for at, column in enumerate(plan.columns):
        code, metadata = table_map.types[at], table_map.metadata[at]
        mask = column.masking
        schema = column.schema if mask is None else mask.column
        program = _values.column_program(code, metadata, schema, column.codec is None)
        if program is None:
            return None
        if mask is not None and column.codec is not None:
            kind = mask.mask.kind
            program = _values.masked_program(
                program, kind[0].upper() + kind[1:], mask.mask.length, mask.secret
            )
        programs.append(program)
    rows = []
    steps = []
    for side in sides:
        placed = _struct_steps(side, plan) if isinstance(side, StructPayload) else None
        if isinstance(side, StructPayload) and placed is None:
            return None
        rows.append(0 if placed is None else placed[0])
        steps.append(_whole_steps(plan) if placed is None else placed[1])
    try:
        names = [name.encode() for name in (table_map.database, table_map.table)]
        key = None if plan.key is None else [name.encode() for name in plan.key]
    except UnicodeEncodeError:
        return None
    doubtful = [column.before_image_unreliable for column in plan.columns]
    return loop.table_plan(names[0], names[1], key, programs, rows, steps, doubtful)


def _whole_steps(plan: RowPlan) -> list[Step]:
    """Payloads json and variant: every column is written to one text."""
    return [(Fate.Skip if column.codec is None else Fate.Read, 0, False) for column in plan.columns]


def _struct_steps(side: StructPayload, plan: RowPlan) -> tuple[int, list[Step]] | None:
    """Return the index of the side's table for the rows, and each column's step."""
    name = (plan.schema.database, plan.schema.table)
    try:
        rows = side.rows_of(name)
    except MySQLBinlogError:
        return None
    taken: set[int] = set()
    steps: list[Step] = []
    for column in plan.columns:
        step = _struct_step(side, rows, column)
        if step[0] == Fate.Read:
            if step[1] in taken:
                return None
            taken.add(step[1])
        steps.append(step)
    return list(side.tables.values()).index(rows), steps


def _struct_step(side: StructPayload, rows: TableRows, column: ColumnPlan) -> Step:
    if column.codec is None or column.schema is None:
        return Fate.Skip, 0, False
    try:
        placed = side.place(rows, column.name, column.schema)
    except MySQLBinlogError:
        return _REFUSED
    if placed is None:
        return (Fate.Skip if side.unplaced == "ignore" else Fate.Rescue), 0, False
    found = arrow_type(column.schema, side.options)
    return Fate.Read, rows.columns.index(placed[0]), found != placed[0].type
