"""Statements without their literals, in several SQL modes, whole and cut at any character."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.decoder.sql.redaction import without_literals
from pyspark_mysqlbinlog.decoder.sql.tokens import DEFAULT_CONTEXT, SqlContext

PLAIN = SqlContext(no_backslash_escapes=True)
ANSI = SqlContext(ansi_quotes=True)


@pytest.mark.parametrize(
    ("sql", "context", "shown"),
    [
        ("UPDATE t SET a = 'x', b = 12", DEFAULT_CONTEXT, "UPDATE t SET a = '?', b = 0"),
        ("SET a = 'it''s', b = 'c'", DEFAULT_CONTEXT, "SET a = '?', b = '?'"),
        (r"SET a = 'it\'s', b = 'c'", DEFAULT_CONTEXT, "SET a = '?', b = '?'"),
        (r"SET a = 'it\', b = 'c'", PLAIN, "SET a = '?', b = '?'"),
        ('SET a = "x"', DEFAULT_CONTEXT, "SET a = '?'"),
        ("SET \"a\" = 'x'", ANSI, "SET \"a\" = '?'"),
        ("SET `a'b` = 'x'", DEFAULT_CONTEXT, "SET `a'b` = '?'"),
        ("SET a = x'41', b = 0x41, c = b'01', d = N'é'", DEFAULT_CONTEXT, None),
        ("SET a = _utf8'x'", DEFAULT_CONTEXT, "SET a = _utf8'?'"),
        ("SET a = -1.5e3 + .5", DEFAULT_CONTEXT, "SET a = -0 + 0"),
        ("UPDATE t1 SET c2 = 3", DEFAULT_CONTEXT, "UPDATE t1 SET c2 = 0"),
        ("ADD a VARCHAR(20) DEFAULT 'x'", DEFAULT_CONTEXT, "ADD a VARCHAR(20) DEFAULT '?'"),
        ("ADD a DECIMAL(9,2) DEFAULT 1.5", DEFAULT_CONTEXT, "ADD a DECIMAL(9,2) DEFAULT 0"),
        ("ADD a INT DEFAULT (5)", DEFAULT_CONTEXT, "ADD a INT DEFAULT (0)"),
        ("VALUES LESS THAN (5)", DEFAULT_CONTEXT, "VALUES LESS THAN (0)"),
        ("ENUM('a','b')", DEFAULT_CONTEXT, "ENUM('?','?')"),
        ("TRUNCATE /* 'x */ t -- y", DEFAULT_CONTEXT, "TRUNCATE   t  "),
        ("a /*!50100 'x' */ b # c", DEFAULT_CONTEXT, "a /*!50100 '?' */ b  "),
        ("SET a = 'cut", DEFAULT_CONTEXT, "SET a = '?'"),
        ("a /* cut", DEFAULT_CONTEXT, "a  "),
        ("SET a = 'x\ny'", DEFAULT_CONTEXT, "SET a = '?'"),
    ],
)
def test_redacted_statement_keeps_its_structure_and_no_literal(
    sql: str, context: SqlContext, shown: str | None
) -> None:
    found = without_literals(sql, context)
    assert found == (shown or "SET a = '?', b = 0, c = '?', d = '?'")


@pytest.mark.parametrize("context", [DEFAULT_CONTEXT, PLAIN, ANSI])
def test_redacted_prefix_of_a_statement_shows_no_literal(context: SqlContext) -> None:
    sql = "INSERT INTO `t` /* SECRET */ VALUES ('SECRET', x'5345', 987654, 'it''s SECRET') # SECRET"
    for end in range(len(sql) + 1):
        shown = without_literals(sql[:end], context)
        assert "SEC" not in shown
        assert "53" not in shown
        assert "9" not in shown
