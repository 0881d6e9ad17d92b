"""Selects the codec of a column, or its skip.

Skipping requires only the table map; reading also requires the schema (sign, charset, labels). An
excluded column of an unsupported type can therefore still be skipped.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.events.field_types import FieldType, field_type_name, real_string
from pyspark_mysqlbinlog.decoder.values import decimals, numbers, strings, temporals
from pyspark_mysqlbinlog.decoder.values.charsets import text_decoder
from pyspark_mysqlbinlog.decoder.values.codec import Codec, Skip, fixed_skip
from pyspark_mysqlbinlog.decoder.values.geometry import geometry
from pyspark_mysqlbinlog.decoder.values.json_binary import json_document
from pyspark_mysqlbinlog.decoder.values.sizes import stored_size
from pyspark_mysqlbinlog.errors import SchemaError, UnsupportedEventError
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = ["check_year", "codec_for", "skip_for"]


def skip_for(code: int, metadata: int, what: str) -> Skip:
    """Return the skip for values of this type; `what` names the column in errors."""
    try:
        stored = stored_size(code, metadata)
    except UnsupportedEventError as error:
        raise UnsupportedEventError(f"{what} has {error.message}") from None
    if stored.is_prefix:
        return strings.prefixed_skip(what, stored.size)
    return fixed_skip(what, stored.size)


def codec_for(code: int, metadata: int, column: ColumnSchema) -> Codec:
    """Return the codec of a column whose type, metadata and schema fit (see table_map_check.py).

    SchemaError if its type or charset is not supported.
    """
    what = f"column `{column.name}` ({column.type})"
    match code:
        case (
            FieldType.TINY | FieldType.SHORT | FieldType.INT24 | FieldType.LONG | FieldType.LONGLONG
        ):
            return numbers.integer(what, stored_size(code, metadata).size, column.unsigned)
        case FieldType.FLOAT:
            return numbers.float32(what)
        case FieldType.DOUBLE:
            return numbers.double(what)
        case FieldType.NEWDECIMAL:
            return decimals.decimal(what, metadata >> 8, metadata & 0xFF)
        case FieldType.BIT:
            return numbers.bit(what, (metadata >> 8) * 8 + (metadata & 0xFF))
        case FieldType.YEAR:
            check_year(column)
            return numbers.year(what)
        case FieldType.DATE | FieldType.NEWDATE:
            return temporals.date(what)
        case FieldType.TIME:
            return temporals.time_old(what)
        case FieldType.DATETIME:
            return temporals.datetime_old(what)
        case FieldType.TIMESTAMP:
            return temporals.timestamp_old(what)
        case FieldType.TIME2:
            return temporals.time2(what, metadata)
        case FieldType.DATETIME2:
            return temporals.datetime2(what, metadata)
        case FieldType.TIMESTAMP2:
            return temporals.timestamp2(what, metadata)
        case FieldType.VARCHAR:
            return _string(what, stored_size(code, metadata).size, column)
        case FieldType.BLOB:
            return _string(what, metadata, column)
        case FieldType.JSON:
            return json_document(what, metadata)
        case FieldType.GEOMETRY:
            return geometry(what, metadata)
        case FieldType.VECTOR:
            return numbers.vector(what, metadata)
        case FieldType.STRING:
            real, length = real_string(metadata)
            if real == FieldType.ENUM:
                return strings.enum(what, length, column.labels)
            if real == FieldType.SET:
                return strings.label_set(what, length, column.labels)
            return _string(what, stored_size(code, metadata).size, column)
        case _:
            raise SchemaError(
                f"{what} cannot be decoded: {field_type_name(code)} is not supported; exclude the"
                " column or the table"
            )


def check_year(column: ColumnSchema) -> None:
    """Raise SchemaError for a YEAR(2): SELECT shows two digits, and the binlog contains all four.

    MariaDB has it, and MySQL before 5.7 in old tables.
    """
    if column.type == "year" and column.length == 2:
        raise SchemaError(
            f"column `{column.name}` has the type YEAR(2), which is not supported: exclude the"
            " column or the table, or change its type to YEAR"
        )


def _string(what: str, length_bytes: int, column: ColumnSchema) -> Codec:
    if column.type == "binary":
        return strings.binary(what, length_bytes, padded=column.length)
    if column.type == "varbinary" or column.type.endswith("blob"):
        return strings.binary(what, length_bytes)
    return strings.text(what, length_bytes, text_decoder(what, column.charset))
