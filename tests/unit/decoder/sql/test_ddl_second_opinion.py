"""The package's DDL parser compared with sqlglot: columns, their order, and primary keys.

The package does not use sqlglot, which skips executable comments with their content (UNSIGNED,
whole types), reads REAL as FLOAT, and rejects BYTE, ASCII, NCHAR and more. For the statements that
it parses, sqlglot is an independent check.
"""

from __future__ import annotations

import logging

import pytest
import sqlglot
from sqlglot import expressions as exp

from helpers.parity.decoding import CAPTURED
from helpers.schemas.ddl_cases import TYPES, logged_statements
from pyspark_mysqlbinlog.decoder.sql.definitions.create import parse_create_table
from pyspark_mysqlbinlog.errors import UnknownSchemaError

_CAPTURED = sorted(
    {
        sql
        for file in CAPTURED.glob("*.binlog")
        for sql in logged_statements(
            file.read_bytes(), checksums=not file.name.startswith("gtid_no_checksum")
        )
        if sql.lower().startswith("create table")
    }
)


def _witness(sql: str) -> list[str] | None:
    """Return the column names according to sqlglot, or None if it cannot parse the statement."""
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        tree = sqlglot.parse_one(sql, read="mysql")
    except sqlglot.ParseError:
        return None
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        return None
    return [each.name for each in tree.this.expressions if isinstance(each, exp.ColumnDef)]


def _compared(statements: list[str]) -> int:
    """Check that both parsers find the same columns; return how many statements both parsed."""
    compared = 0
    for sql in statements:
        expected = _witness(sql)
        if expected is None:
            continue
        try:
            found = parse_create_table(sql, "d", "utf8mb4")
        except UnknownSchemaError as error:
            assert "SELECT" in error.message  # noqa: PT017 (columns of a SELECT have no definition)
            continue
        assert [column.name for column in found.columns] == expected, sql
        compared += 1
    return compared


def test_captured_create_tables_parse_to_the_columns_of_sqlglot() -> None:
    assert _compared(_CAPTURED) > 0.8 * len(_CAPTURED) > 30


def test_create_tables_of_all_types_parse_to_the_columns_of_sqlglot() -> None:
    statements = [f"create table t ({definition})" for definition, _ in TYPES]
    assert _compared(statements) > 0.7 * len(statements)


@pytest.mark.parametrize("key", [("a",), ("b", "a")])
def test_primary_key_of_create_table_parses_as_in_sqlglot(key: tuple[str, ...]) -> None:
    sql = f"create table t (a int, b varchar(9), c int, primary key ({', '.join(key)}))"
    tree = sqlglot.parse_one(sql, read="mysql").find(exp.PrimaryKey)
    assert tree is not None
    assert tuple(each.name for each in tree.expressions) == key
    assert parse_create_table(sql, "d", "utf8mb4").primary_key == key
