"""JSON documents as SQL expressions: (document, expression)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pyspark_mysqlbinlog.connector.flashback.json_expressions import json_expression
from pyspark_mysqlbinlog.decoder.values.json_binary import (
    JsonDate,
    JsonDateTime,
    JsonOpaque,
    JsonTime,
    JsonTree,
)
from pyspark_mysqlbinlog.errors import UndoError


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (None, "CAST('null' AS JSON)"),
        (True, "CAST('true' AS JSON)"),
        ({"a": [1, "b"]}, """CAST('{"a":[1,"b"]}' AS JSON)"""),
        ("it's", """CAST('"it''s"' AS JSON)"""),
        ("é", "CAST(_utf8mb4 x'225c753030653922' AS JSON)"),
        (1.0, "CAST(1.0e0 AS JSON)"),
        (-0.0, "CAST(-0.0e0 AS JSON)"),
        ([1e300], "JSON_ARRAY(1e+300)"),
        (
            {"k'": 0.5, "é": False},
            """JSON_OBJECT('k''', 0.5e0, _utf8mb4 x'c3a9', CAST('false' AS JSON))""",
        ),
        (Decimal("1.10"), "CAST(CAST(1.10 AS DECIMAL(3,2)) AS JSON)"),
        (Decimal(7), "CAST(CAST(7 AS DECIMAL(1,0)) AS JSON)"),
        ([JsonDate(2026, 2, 0)], "JSON_ARRAY(CAST('2026-02-00' AS DATE))"),
        ([JsonTime(-1)], "JSON_ARRAY(CAST('-00:00:00.000001' AS TIME(6)))"),
        (
            [JsonDateTime(JsonDate(2026, 1, 2), 1)],
            "JSON_ARRAY(CAST('2026-01-02 00:00:00.000001' AS DATETIME(6)))",
        ),
    ],
)
def test_json_document_is_rendered_as_an_sql_expression(tree: JsonTree, expected: str) -> None:
    assert json_expression(tree, "j") == expected


def test_json_document_with_a_binary_value_raises_undo_error() -> None:
    with pytest.raises(UndoError, match="column `j` has a JSON document with a binary value"):
        json_expression({"a": JsonOpaque(252, b"\x00")}, "j")
