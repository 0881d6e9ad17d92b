"""One column's values, read by both implementations and compared."""

from __future__ import annotations

from typing import Any

from helpers.parity.require_kernel import values as kernel
from helpers.values.value_bytes import field_of, text
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.values.codec import Codec
from pyspark_mysqlbinlog.decoder.values.days import day_number
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.tables import SPATIAL_TYPES, ColumnSchema

__all__ = ["Parity", "kernel", "long", "varchar"]


class Parity:
    """One column, read by both implementations."""

    def __init__(self, described: ColumnSchema, field: tuple[int, int], codec: Codec) -> None:
        self.described = described
        self.field = field
        self.codec = codec
        self.program = kernel.column_program(*field, described)
        assert self.program is not None, (described, field)

    @classmethod
    def of(cls, described: ColumnSchema, old: int = 0) -> Parity:
        field = field_of(described, old)
        return cls(described, field, codec_for(*field, described))

    def agree(self, data: bytes, pos: int = 0) -> bool:
        """Compare JSON text, skip and read of a value; return whether it is valid."""
        shown = self.refused_as_none(self.codec.read_json, data, pos)
        expected = None if shown is None else (shown[0].encode(), shown[1])
        found = kernel.json_text(self.program, data, pos)
        assert found == expected, self.message(data, pos)
        skipped = self.refused_as_none(self.codec.skip, data, pos)
        assert kernel.skip(self.program, data, pos) == skipped, self.message(data, pos)
        if self.described.type != "json" and self.described.type not in SPATIAL_TYPES:
            value = self.refused_as_none(self.codec.read, data, pos)
            expected_value = None if value is None else (self._kernels(value[0]), value[1])
            # Compared by `repr`: -0.0 differs from 0.0, and NaN equals NaN.
            assert repr(kernel.read(self.program, data, pos)) == repr(expected_value), self.message(
                data, pos
            )
        return shown is not None

    def message(self, data: bytes, pos: int) -> str:
        return f"{self.described} {self.field}: 0x{data[pos:].hex()}"

    @staticmethod
    def refused_as_none(call: Any, data: bytes, pos: int) -> Any:
        try:
            return call(data, pos)
        except MySQLBinlogError:
            return None

    def _kernels(self, value: Any) -> Any:
        """Return the codec's value in the form of the kernel's."""
        match self.described.type:
            case "decimal" if (self.described.length or 0) <= 38:
                return int(value.replace(".", ""))
            case "bit":
                return int(value)
            case "date":
                return value, day_number(value)
            case "datetime":
                return (value[0], day_number(value[0])), value[1]
        return value


def varchar(charset: str) -> Parity:
    """Return a VARCHAR column whose values have two length bytes."""
    described = text("varchar", 20_000, charset)
    return Parity(described, (F.VARCHAR, 65_000), codec_for(F.VARCHAR, 65_000, described))


def long(raw: bytes) -> bytes:
    return len(raw).to_bytes(2, "little") + raw
