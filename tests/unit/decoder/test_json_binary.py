"""Binary JSON: whole documents, cut ones, and ones that no server wrote."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.decoder.values.json_binary import (
    JsonDate,
    JsonDateTime,
    JsonOpaque,
    JsonTime,
    json_text,
    parse_json,
)
from pyspark_mysqlbinlog.errors import MalformedEventError

# Documents by hand, as json_binary.h draws them: (bytes in hexadecimal, tree, JSON text).
DOCUMENTS: list[tuple[str, Any, str]] = [
    ("", None, "null"),
    ("0400", None, "null"),
    ("0401", True, "true"),
    ("0402", False, "false"),
    ("050080", -32768, "-32768"),
    ("06ffff", 65535, "65535"),
    ("0700000080", -2147483648, "-2147483648"),
    ("08ffffffff", 4294967295, "4294967295"),
    ("090000000000000080", -9223372036854775808, "-9223372036854775808"),
    ("0affffffffffffffff", 18446744073709551615, "18446744073709551615"),
    ("0b9a9999999999b93f", 0.1, "0.1"),
    ("0b0000000000000080", -0.0, "-0.0"),
    ("0b9c7500883ce4377e", 1e300, "1e+300"),
    ("0c00", "", '""'),
    ("0c03c3a922", 'é"', r'"é\""'),
    ("0c8101" + "78" * 129, "x" * 129, '"' + "x" * 129 + '"'),
    ("0000000400", {}, "{}"),
    ("0200000400", [], "[]"),
    ("0100000000" + "08000000", {}, "{}"),
    # {"a": 1, "b": "x"}: entries of keys at 4, of values at 12, keys at 18, "x" at 20.
    ("0002001600" + "12000100" + "13000100" + "050100" + "0c1400" + "6162" + "0178",
     {"a": 1, "b": "x"}, '{"a":1,"b":"x"}'),
    # [null, [true]]
    ("0202001100" + "040000" + "020a00" + "01000700" + "040100", [None, [True]], "[null,[true]]"),
    # A large array: int32 stands in its entry.
    ("0301000000" + "0d000000" + "0780969800", [10000000], "[10000000]"),
    ("0ff60403028132"[:12] + "8132"[:0] + "", None, ""),
]
