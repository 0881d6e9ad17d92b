"""Column data for the kernel: the table map's entry and the schema, combined.

The kernel handles only what it fully supports. An unsupported column (an odd width, an unknown
character set) has no spec; Python then decodes its table, or raises the error. This must agree with
`values/select_codec.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark_mysqlbinlog.charsets import canonical_charset
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType, real_string
from pyspark_mysqlbinlog.decoder.values.charsets import decoder_of
from pyspark_mysqlbinlog.decoder.values.codec import quote
from pyspark_mysqlbinlog.decoder.values.sizes import stored_size
from pyspark_mysqlbinlog.errors import UnsupportedEventError
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = ["ColumnSpec", "column_spec"]

_KINDS: dict[int, str] = {
    FieldType.TINY: "Integer",
    FieldType.SHORT: "Integer",
    FieldType.INT24: "Integer",
    FieldType.LONG: "Integer",
    FieldType.LONGLONG: "Integer",
    FieldType.FLOAT: "Float",
    FieldType.DOUBLE: "Double",
    FieldType.NEWDECIMAL: "Decimal",
    FieldType.BIT: "Bit",
    FieldType.YEAR: "Year",
    FieldType.DATE: "Date",
    FieldType.NEWDATE: "Date",
    FieldType.TIME: "TimeOld",
    FieldType.DATETIME: "DatetimeOld",
    FieldType.TIMESTAMP: "TimestampOld",
    FieldType.TIME2: "Time",
    FieldType.DATETIME2: "Datetime",
    FieldType.TIMESTAMP2: "Timestamp",
    FieldType.JSON: "Json",
    FieldType.GEOMETRY: "Geometry",
}
_FRACTIONAL = (FieldType.TIME2, FieldType.DATETIME2, FieldType.TIMESTAMP2)
_MAX_FRACTION_DIGITS = 6
_MAX_DECIMAL_DIGITS = 65
_LARGEST_BINARY = 65_535


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """One column; `Column` in kernel/cpp/arrow/column.hpp describes the fields and the kinds.

    charset : MySQL's name, canonical; of kind Text only.
    labels : by number: ENUM's begin with '', the invalid value.
    """

    kind: str
    size: int
    name: str = ""
    is_unsigned: bool = False
    precision: int = 0
    scale: int = 0
    fsp: int = 0
    bits: int = 0
    padded: int = -1
    charset: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def json_member(self) -> str:
        """The text before a value in a JSON object, except for the first value."""
        return f",{quote(self.name)}:"


def column_spec(
    code: int, metadata: int, schema: ColumnSchema | None, excluded: bool = False
) -> ColumnSpec | None:
    """Return the spec of a column whose type, metadata and schema fit (see table_map_check.py).

    schema : may be None for an excluded column.

    None if the kernel cannot read such a column.
    """
    try:
        stored = stored_size(code, metadata)
        if excluded or schema is None:
            return ColumnSpec("PrefixedSkip" if stored.is_prefix else "FixedSkip", stored.size)
        spec = _shown(code, metadata, stored.size, schema)
        if spec is not None:
            # Surrogates cannot be passed as UTF-8.
            "\0".join((spec.name, *spec.labels)).encode()
    except (UnsupportedEventError, UnicodeEncodeError):
        return None
    return spec


def _shown(code: int, metadata: int, size: int, schema: ColumnSchema) -> ColumnSpec | None:
    name = schema.name
    match code:
        case FieldType.STRING:
            real, _ = real_string(metadata)
            if real != FieldType.STRING:
                return _labels(real, size, schema)
            return _string(size, schema)
        case FieldType.VARCHAR | FieldType.BLOB:
            return _string(size, schema)
    kind = _KINDS.get(code)
    if kind is None:
        return None
    spec = ColumnSpec(kind, size, name, is_unsigned=kind == "Integer" and schema.unsigned)
    if code == FieldType.NEWDECIMAL:
        precision, scale = metadata >> 8, metadata & 0xFF
        is_valid = 0 < precision <= _MAX_DECIMAL_DIGITS
        return replace(spec, precision=precision, scale=scale) if is_valid else None
    if code == FieldType.BIT:
        whole_bytes, rest = metadata >> 8, metadata & 0xFF
        bits = whole_bytes * 8 + rest
        return replace(spec, bits=bits) if rest < 8 and 0 < bits <= 64 else None
    if code in _FRACTIONAL:
        return replace(spec, fsp=metadata) if metadata <= _MAX_FRACTION_DIGITS else None
    return spec


def _string(length_bytes: int, schema: ColumnSchema) -> ColumnSpec | None:
    kind = schema.type
    if kind == "binary":
        padded = -1 if schema.length is None else schema.length
        if padded > _LARGEST_BINARY:
            return None
        return ColumnSpec("Binary", length_bytes, schema.name, padded=padded)
    if kind == "varbinary" or kind.endswith("blob"):
        return ColumnSpec("Binary", length_bytes, schema.name)
    charset = canonical_charset(schema.charset or "")
    if decoder_of(charset) is None:
        return None
    return ColumnSpec("Text", length_bytes, schema.name, charset=charset)


def _labels(real: int, size: int, schema: ColumnSchema) -> ColumnSpec | None:
    if size not in (1, 2, 3, 4, 8):
        return None
    if schema.type == "bigint":
        # Without a schema, labels are numbers (see positional.py).
        return ColumnSpec("Integer", size, schema.name, is_unsigned=True)
    if real == FieldType.ENUM:
        labels = ("", *schema.labels)
        return ColumnSpec("Enum", size, schema.name, labels=labels) if size <= 2 else None
    if len(schema.labels) > 64:
        return None
    return ColumnSpec("Set", size, schema.name, labels=schema.labels)
