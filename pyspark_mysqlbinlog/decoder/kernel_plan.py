"""What the compiled decode loop must know, made from what the Python twin knows.

The codes of Arrow types and of the envelope's fields are those of kernel/output_column.hpp and
kernel/envelope.hpp. Whatever has no code here is the pure-Python twin's: a plan that can't be made
is None, and raises nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.envelope import RESCUED
from pyspark_mysqlbinlog.decoder.kernel import _values
from pyspark_mysqlbinlog.decoder.kernel._decode import DecodeLoop
from pyspark_mysqlbinlog.decoder.payload import JsonPayload, PayloadBuilder
from pyspark_mysqlbinlog.decoder.struct_payload import StructPayload
from pyspark_mysqlbinlog.decoder.struct_types import GEOMETRY, VARIANT, arrow_type
from pyspark_mysqlbinlog.decoder.variant_payload import VariantPayload
from pyspark_mysqlbinlog.errors import MySQLBinlogError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.decoder.kernel._decode import Step, TablePlan
    from pyspark_mysqlbinlog.decoder.plan import ColumnPlan, RowPlan

__all__ = ["decode_loop", "table_plan"]

_JSON, _STRUCT, _VARIANT = range(3)
_OPERATIONS = {"insert": 1, "update": 2, "delete": 4}

# Arrow types with one code; `_out_code` adds those that have parameters.
_OUT: dict[pa.DataType, int] = {
    pa.bool_(): 0,
    pa.int8(): 1,
    pa.int16(): 2,
    pa.int32(): 3,
    pa.int64(): 4,
    pa.float32(): 5,
    pa.float64(): 6,
    pa.date32(): 8,
    pa.duration("us"): 10,
    pa.string(): 11,
    pa.binary(): 11,
    GEOMETRY: 12,
    VARIANT: 13,
}
_OUT_DECIMAL, _OUT_MICROS = 7, 9

_STRING = pa.string()
_INT, _LONG = pa.int32(), pa.int64()
_NAMES: pa.DataType = pa.list_(pa.field("element", _STRING))
_TS: pa.DataType = pa.timestamp("us", tz="UTC")
_TOP_CODES = {
    "op": 0,
    "ts": 1,
    "database": 2,
    "table": 3,
    "before": 4,
    "after": 5,
    "seq": 6,
    "source": 7,
    RESCUED: 8,
}
_TOP_TYPES: dict[str, pa.DataType] = {
    "op": _STRING,
    "ts": _TS,
    "database": _STRING,
    "table": _STRING,
    RESCUED: _STRING,
}
_SEQ: dict[str, tuple[int, pa.DataType]] = {
    "epoch": (9, _INT),
    "file": (10, _INT),
    "pos": (11, _LONG),
    "row": (12, _INT),
}
_SOURCE: dict[str, tuple[int, pa.DataType]] = {
    "server_id": (13, _LONG),
    "file": (14, _STRING),
    "pos": (11, _LONG),
    "row": (12, _INT),
    "tx_pos": (15, _LONG),
    "thread_id": (16, _LONG),
    "gtid": (17, _STRING),
    "query": (18, _STRING),
    "key": (19, _NAMES),
    "absent": (20, _NAMES),
}
# How a column is read: see kernel/_decode.pyi.
_READ, _SKIP, _RESCUE, _REFUSE = range(4)
_REFUSED: Step = (_REFUSE, 0, False)


def decode_loop(python: Decoder) -> DecodeLoop | None:
    """The loop that makes a decoder's batches; None where their schema is not known to it."""
    schema, epoch, sides = python.arrow_schema, python.epoch, (python.before, python.after)
    codes = _envelope_codes(schema)
    kinds = {_kind(side) for side in sides}
    if codes is None or len(kinds) != 1 or not -(1 << 31) <= epoch < 1 << 31:
        return None
    (kind,) = kinds
    fails = {isinstance(side, StructPayload) and _fails(side) for side in sides}
    if kind is None or len(fails) != 1:
        return None
    wanted = sum(bit for word, bit in _OPERATIONS.items() if word in python.operations)
    loop = DecodeLoop(schema, kind, fails == {True}, wanted, python.batch_rows, python.batch_bytes)
    loop.describe_envelope(epoch, *codes)
    for at, (name, side) in enumerate(zip(("before", "after"), sides, strict=True)):
        type_ = schema.field(name).type
        if kind == _STRUCT:
            if not isinstance(side, StructPayload) or not _describe_struct(loop, at, side, type_):
                return None
        elif type_ != (_STRING if kind == _JSON else VARIANT):
            return None
    return loop


def _kind(side: PayloadBuilder) -> int | None:
    # Of exactly these types: what a subclass does is not known.
    kinds = {JsonPayload: _JSON, StructPayload: _STRUCT, VariantPayload: _VARIANT}
    return kinds.get(type(side))


def _fails(side: StructPayload) -> bool:
    return side.options.zero_dates == "fail"


def _envelope_codes(schema: pa.Schema) -> tuple[bytes, bytes, bytes] | None:
    for field in schema:
        if field.name not in _TOP_CODES or field.type != _TOP_TYPES.get(field.name, field.type):
            return None
        if not field.nullable:
            return None
    seq = _struct_codes(schema.field("seq").type, _SEQ)
    source = _struct_codes(schema.field("source").type, _SOURCE)
    if seq is None or source is None:
        return None
    return bytes(_TOP_CODES[name] for name in schema.names), seq, source


def _struct_codes(type_: pa.DataType, expected: dict[str, tuple[int, pa.DataType]]) -> bytes | None:
    if not isinstance(type_, pa.StructType):
        return None
    codes = []
    for field in type_:
        code, field_type = expected[field.name]
        if field.type != field_type or not field.nullable:
            return None
        codes.append(code)
    return bytes(codes)


def _out_code(type_: pa.DataType) -> tuple[int, int] | None:
    """The code of an Arrow type, and the scale of a decimal."""
    if pa.types.is_decimal128(type_):
        # The stubs don't know that it has one.
        return _OUT_DECIMAL, type_.scale
    if pa.types.is_timestamp(type_):
        return (_OUT_MICROS, 0) if type_.unit == "us" else None
    code = _OUT.get(type_)
    return None if code is None else (code, 0)


def _describe_struct(loop: DecodeLoop, side: int, built: StructPayload, type_: pa.DataType) -> bool:
    if not _is_nullable(type_):
        return False
    for rows in built.tables.values():
        columns = []
        for column in rows.columns:
            out = _out_code(column.type)
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
    """Whether all fields of a struct may be null, however deep; a variant's never are."""
    if not isinstance(type_, pa.StructType) or type_ == VARIANT:
        return True
    return all(field.nullable and _is_nullable(field.type) for field in type_)


def table_plan(
    loop: DecodeLoop, plan: RowPlan, sides: tuple[PayloadBuilder, PayloadBuilder]
) -> TablePlan | None:
    """How the loop reads the rows of a plan; None where they are the Python twin's."""
    table_map = plan.table_map
    programs = []
    for at, column in enumerate(plan.columns):
        code, metadata = table_map.types[at], table_map.metadata[at]
        program = _values.column_program(code, metadata, column.schema, column.codec is None)
        if program is None:
            return None
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
    return loop.table_plan(names[0], names[1], key, programs, rows, steps)


def _whole_steps(plan: RowPlan) -> list[Step]:
    """Payloads json and variant: every column goes into one text."""
    return [(_SKIP if column.codec is None else _READ, 0, False) for column in plan.columns]


def _struct_steps(side: StructPayload, plan: RowPlan) -> tuple[int, list[Step]] | None:
    """Which of the side's tables the rows go to, and each column's place in it."""
    name = (plan.schema.database, plan.schema.table)
    try:
        rows = side.rows_of(name)
    except MySQLBinlogError:
        return None
    taken: set[int] = set()
    steps = []
    for column in plan.columns:
        step = _struct_step(side, name, column)
        if step[0] == _READ:
            if step[1] in taken:
                return None
            taken.add(step[1])
        steps.append(step)
    return list(side.tables.values()).index(rows), steps


def _struct_step(side: StructPayload, table: tuple[str, str], column: ColumnPlan) -> Step:
    if column.codec is None or column.schema is None:
        return _SKIP, 0, False
    rows = side.rows_of(table)
    try:
        placed = side.place(rows, column.name, column.schema)
    except MySQLBinlogError:
        return _REFUSED
    if placed is None:
        return (_SKIP if side.unplaced == "ignore" else _RESCUE), 0, False
    found = arrow_type(column.schema, side.options)
    return _READ, rows.columns.index(placed[0]), found != placed[0].type
