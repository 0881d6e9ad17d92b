"""Key values that may stand for several values on the server are rejected."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_mysqlbinlog.connector.delta.rows.ambiguous_keys import check_keys_unambiguous
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema


def _expect(column: C, *values: Any) -> None:
    schema = TableSchema("d", "t", (column, C("v", "varchar", 9, charset="ascii")), (column.name,))
    # Other columns are not checked.
    states = pa.table({column.name: pa.array(values), "v": pa.array(["?"] * len(values))})
    check_keys_unambiguous(states, schema, [column.name])


def _text(charset: str) -> C:
    return C("k", "varchar", 9, charset=charset)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (C("k", "enum", labels=("", "a"), charset="utf8"), ""),
        (C("k", "enum", labels=("a", "a"), charset="utf8"), "a"),
        (C("k", "set", labels=("", "a"), charset="utf8"), "a"),
        (C("k", "set", labels=("a", "a"), charset="utf8"), ""),
        (_text("cp932"), "x∵"),
        (_text("eucjpms"), "∵"),
        (_text("sjis"), "\\"),
        (_text("big5"), "\ufffd"),
        (_text("ascii"), "a?"),
        (_text("greek"), "?"),
        (_text("gb18030"), "?"),
        (_text("armscii8"), "(a"),
    ],
)
def test_ambiguous_key_value_stops_the_table(column: C, value: str) -> None:
    with pytest.raises(
        MirrorError, match=r"^the key column k .* Delta cannot distinguish .* \(table d\.t\)"
    ) as raised:
        _expect(column, "b", value)
    assert raised.value.table == "d.t"


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (C("k", "enum", labels=("", "a"), charset="utf8"), ["a"]),
        (C("k", "enum", labels=("a", "b"), charset="utf8"), ["", "a", "b"]),
        (C("k", "set", labels=("a", "b"), charset="utf8"), ["", "a", "b", "a,b"]),
        (C("k", "set", labels=("", "a"), charset="utf8"), []),
        (_text("latin1"), ["?", "a", "€"]),
        (_text("utf8mb4"), ["?", "∵", "\ufffd"]),
        (_text("utf16"), ["?"]),
        (_text("cp932"), ["漢", "ア", "(a)"]),
        (_text("gbk"), ["漢"]),
        (_text("ascii"), ["a-b_c.d"]),
        (C("k", "int"), [1, 2]),
        (C("k", "varbinary", 3), [b"?", b"\xff"]),
    ],
)
def test_unambiguous_key_values_are_accepted(column: C, values: list[Any]) -> None:
    _expect(column, *values)
