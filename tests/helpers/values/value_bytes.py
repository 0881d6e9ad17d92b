"""Values as bytes of a row image with their JSON text, and invalid bytes with their error.

Both implementations must agree with them.
"""

from __future__ import annotations

from typing import Any

from pyspark_mysqlbinlog.decoder.schemas.table_map_check import expected_fields
from pyspark_mysqlbinlog.errors import (
    MalformedEventError,
    MySQLBinlogError,
    SchemaMismatchError,
)
from pyspark_mysqlbinlog.tables import ColumnSchema

__all__ = ["BAD_VALUES", "L300", "S64", "VALUES", "column", "field_of", "text"]


def column(kind: str, *sizes: int, **rest: Any) -> ColumnSchema:
    length, scale = (*sizes, None, None)[:2]
    return ColumnSchema("c", kind, length, scale, **rest)


def text(kind: str, length: int | None = None, charset: str = "utf8mb4") -> ColumnSchema:
    return ColumnSchema("c", kind, length, charset=charset)


ABC = ("a", "b,c", 'é"')
L300 = tuple(f"l{number}" for number in range(300))
S64 = tuple(f"s{number}" for number in range(64))

# (column, old layout?, bytes in hexadecimal, JSON)
VALUES: list[tuple[ColumnSchema, int, str, str]] = [
    (column("tinyint"), 0, "80", "-128"),
    (column("tinyint", unsigned=True), 0, "80", "128"),
    (column("tinyint", 1), 0, "01", "1"),
    (column("smallint"), 0, "ffff", "-1"),
    (column("smallint", unsigned=True), 0, "ffff", "65535"),
    (column("mediumint"), 0, "000080", "-8388608"),
    (column("mediumint"), 0, "ffff7f", "8388607"),
    (column("mediumint"), 0, "ffffff", "-1"),
    (column("mediumint", unsigned=True), 0, "ffffff", "16777215"),
    (column("int"), 0, "00000080", "-2147483648"),
    (column("int", unsigned=True), 0, "feffffff", "4294967294"),
    (column("bigint"), 0, "0000000000000080", "-9223372036854775808"),
    (column("bigint", unsigned=True), 0, "ffffffffffffffff", "18446744073709551615"),
    (column("float"), 0, "cdcccc3d", "0.1"),
    (column("float"), 0, "abaaaa3e", "0.33333334"),
    (column("float"), 0, "ffff7f7f", "3.4028235e+38"),
    (column("float"), 0, "01000000", "1e-45"),
    (column("float"), 0, "00004040", "3"),
    (column("float"), 0, "00000080", "-0.0"),
    (column("double"), 0, "9a9999999999b93f", "0.1"),
    (column("double"), 0, "0000000000000840", "3"),
    (column("double"), 0, "0000000000000080", "-0.0"),
    (column("double"), 0, "ffffffffffffef7f", "1.7976931348623157e+308"),
    (column("decimal", 14, 4), 0, "810dfb38d204d2", "1234567890.1234"),
    (column("decimal", 14, 4), 0, "7ef204c72dfb2d", "-1234567890.1234"),
    (column("decimal", 5, 5), 0, "800001", "0.00001"),
    (column("decimal", 9, 0), 0, "80000000", "0"),
    (column("decimal", 9, 0), 0, "7fffffff", "0"),
    (column("decimal", 9, 0), 0, "7ffffffe", "-1"),
    (column("decimal", 10, 2), 0, "8000000763", "7.99"),
    (column("bit", 1), 0, "01", "true"),
    (column("bit", 1), 0, "00", "false"),
    (column("bit", 9), 0, "0102", "258"),
    (column("bit", 64), 0, "ffffffffffffffff", "18446744073709551615"),
    (text("char", 10), 0, "03c3a961", '"éa"'),
    (text("char", 10), 0, "00", '""'),
    (text("char", 255), 0, "02006162", '"ab"'),
    (text("varchar", 63), 0, "0461220a5c", r'"a\"\n\\"'),
    (text("varchar", 64), 0, "0400f09f9880", '"😀"'),
    (text("varchar", 255, "latin1"), 0, "0580818d9d9f", '"€\u0081\u008d\u009dŸ"'),
    (text("varchar", 256, "latin1"), 0, "0100e9", '"é"'),
    (text("varchar", 10, "ascii"), 0, "017e", '"~"'),
    (text("varchar", 10, "utf8"), 0, "03e6bca2", '"漢"'),
    (text("varchar", 10, "utf8mb3"), 0, "03e6bca2", '"漢"'),
    (text("varchar", 1), 0, "0101", r'"\u0001"'),
    (text("varchar", 10, "ascii"), 0, "0261e9", '"a?"'),
    (text("varchar", 10, "gbk"), 0, "0561c4e3bac3", '"a你好"'),
    (text("varchar", 10, "gbk"), 0, "02a2a1", '"ⅰ"'),
    (text("varchar", 10, "gbk"), 0, "02aaa1", '"?"'),  # in the user-defined area: not a character
    (text("varchar", 10, "gb18030"), 0, "049439fc36", '"😀"'),
    (text("varchar", 10, "big5"), 0, "02ba7e", '"漢"'),
    (text("varchar", 10, "sjis"), 0, "02815f", r'"\\"'),  # U+005C, not U+FF3C as in cp932
    (text("varchar", 10, "cp932"), 0, "02815f", '"＼"'),
    (text("varchar", 10, "cp932"), 0, "03b1fa40", '"ｱⅰ"'),
    (text("varchar", 10, "sjis"), 0, "02fa40", '"?"'),
    (text("varchar", 10, "ujis"), 0, "04b4c18eb1", '"漢ｱ"'),
    (text("varchar", 10, "eucjpms"), 0, "038ff3f3", '"ⅰ"'),
    (text("varchar", 10, "swe7"), 0, "035b5c5d", '"ÄÖÅ"'),
    (text("varchar", 10, "koi8r"), 0, "02f0d2", '"Пр"'),
    (text("varchar", 10, "ucs2"), 0, "046f225b57", '"漢字"'),
    (text("varchar", 10, "utf16"), 0, "04d83dde00", '"😀"'),
    (text("varchar", 10, "utf16le"), 0, "043dd800de", '"😀"'),
    (text("varchar", 10, "utf32"), 0, "040001f600", '"😀"'),
    (
        column("point"),  # POINT(1 2), SRID 4326
        0,
        "19000000e61000000101000000000000000000f03f0000000000000040",
        '{"srid":4326,"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA"}',
    ),
    (column("geometry"), 0, "00000000", '{"srid":null,"wkb":""}'),
    # Shorter than an SRID: 5.6 stores such values from a BLOB.
    (column("point"), 0, "020000003132", '{"srid":null,"wkb":"MTI="}'),
    (column("point"), 0, "03000000000000", '{"srid":null,"wkb":"AAAA"}'),
    (column("json"), 0, "00000000", "null"),
    (column("json"), 0, "040000000c02c3a9", '"é"'),
    (text("tinytext"), 0, "0178", '"x"'),
    (text("text"), 0, "010078", '"x"'),
    (text("mediumtext"), 0, "01000078", '"x"'),
    (text("longtext"), 0, "0100000078", '"x"'),
    (column("binary", 4), 0, "0141", '"QQAAAA=="'),
    (column("binary", 4), 0, "00", '"AAAAAA=="'),
    (column("varbinary", 4), 0, "0141", '"QQ=="'),
    (column("blob"), 0, "020000ff", '"AP8="'),
    (column("enum", labels=ABC, charset="utf8mb4"), 0, "00", '""'),
    (column("enum", labels=ABC, charset="utf8mb4"), 0, "03", r'"é\""'),
    (column("enum", labels=L300, charset="utf8mb4"), 0, "2c01", '"l299"'),
    (column("set", labels=ABC, charset="utf8mb4"), 0, "00", '""'),
    (column("set", labels=ABC, charset="utf8mb4"), 0, "05", r'"a,é\""'),
    (column("set", labels=S64, charset="utf8mb4"), 0, "0100000000000080", '"s0,s63"'),
    (column("year"), 0, "00", "0"),
    (column("year"), 0, "70", "2012"),
    (column("year"), 0, "ff", "2155"),
    (column("date"), 0, "21b70f", '"2011-09-01"'),
    (column("date"), 0, "000000", '"0000-00-00"'),
    (column("date"), 0, "00c80f", '"2020-00-00"'),
    (column("time", 0), 1, "3ad501", '"12:01:22"'),
    (column("time", 0), 1, "c62afe", '"-12:01:22"'),
    (column("datetime", 0), 1, "9e03b66a4a120000", '"2011-08-27T19:32:46"'),
    (column("datetime", 0), 1, "0000000000000000", '"0000-00-00 00:00:00"'),
    (column("timestamp", 0), 1, "b61e1c5a", '"2017-11-27T14:18:30Z"'),
    (column("timestamp", 0), 1, "00000000", '"0000-00-00 00:00:00"'),
    (column("time", 0), 0, "800000", '"00:00:00"'),
    (column("time", 0), 0, "b46efb", '"838:59:59"'),
    (column("time", 0), 0, "4b9105", '"-838:59:59"'),
    (column("time", 1), 0, "7ffffece", '"-00:00:01.5"'),
    (column("time", 3), 0, "7ffffeec78", '"-00:00:01.500"'),
    (column("time", 6), 0, "7fffffffffff", '"-00:00:00.000001"'),
    (column("time", 6), 0, "8000010f423f", '"00:00:01.999999"'),
    (column("datetime", 0), 0, "8000000000", '"0000-00-00 00:00:00"'),
    (column("datetime", 2), 0, "800000000000", '"0000-00-00 00:00:00.00"'),
    (column("datetime", 0), 0, "99bb68a000", '"2026-11-20T10:00:00"'),
    (column("datetime", 3), 0, "99bb68a00004ce", '"2026-11-20T10:00:00.123"'),
    (column("datetime", 0), 0, "99b9800000", '"2026-04-00 00:00:00"'),
    (column("timestamp", 0), 0, "5a1c1eb6", '"2017-11-27T14:18:30Z"'),
    (column("timestamp", 6), 0, "5a1c1eb601e240", '"2017-11-27T14:18:30.123456Z"'),
    (column("timestamp", 2), 0, "0000000000", '"0000-00-00 00:00:00.00"'),
    (column("timestamp", 0), 0, "ffffffff", '"2106-02-07T06:28:15Z"'),
]


BAD_VALUES: list[tuple[ColumnSchema, int, str, type[MySQLBinlogError]]] = [
    (column("decimal", 9, 0), 0, "bb9aca00", MalformedEventError),  # a group of 10^9
    (column("decimal", 10, 2), 0, "8000000064", MalformedEventError),  # .100 in two digits
    (column("bit", 9), 0, "0300", MalformedEventError),
    (text("varchar", 10), 0, "01e9", MalformedEventError),
    (text("varchar", 10, "gbk"), 0, "0181", MalformedEventError),  # half a character
    (text("varchar", 10, "gbk"), 0, "03c4e3ff", MalformedEventError),
    (text("varchar", 10, "ujis"), 0, "028fa1", MalformedEventError),
    (text("varchar", 10, "gb18030"), 0, "03813081", MalformedEventError),
    (text("varchar", 10, "ucs2"), 0, "04d83dde00", MalformedEventError),  # a pair of surrogates
    (text("varchar", 10, "utf16"), 0, "02d83d", MalformedEventError),
    (text("varchar", 10, "utf32"), 0, "0400110000", MalformedEventError),
    (column("binary", 2), 0, "03616263", MalformedEventError),
    (column("enum", labels=ABC, charset="utf8mb4"), 0, "04", SchemaMismatchError),
    (column("set", labels=ABC, charset="utf8mb4"), 0, "08", SchemaMismatchError),
    (column("float"), 0, "0000c07f", MalformedEventError),  # NaN
    (column("double"), 0, "000000000000f07f", MalformedEventError),  # infinity
    (column("date"), 0, "a1c90f", MalformedEventError),  # month 13
    (column("time", 0), 0, "80003c", MalformedEventError),  # second 60
    (column("time", 2), 0, "80000064", MalformedEventError),  # 100 hundredths
    (column("datetime", 0), 0, "1924000000", MalformedEventError),  # sign bit
    (column("datetime", 0), 0, "99bb698000", MalformedEventError),  # hour 24
    (column("timestamp", 2), 0, "5a1c1eb664", MalformedEventError),
    (column("time", 0), 1, "3d0000", MalformedEventError),  # second 61
]


def field_of(described: ColumnSchema, old: int) -> tuple[int, int]:
    return list(expected_fields(described))[old]
