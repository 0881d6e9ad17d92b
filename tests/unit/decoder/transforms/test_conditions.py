"""Conditions in three-valued logic compared with SQLite, for random combinations of predicates."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from pyspark_mysqlbinlog.decoder.transforms.bound_conditions import bind
from pyspark_mysqlbinlog.decoder.transforms.conditions import parse_condition
from pyspark_mysqlbinlog.errors import OptionError, SchemaError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

TABLE = TableSchema(
    "shop",
    "t",
    (
        ColumnSchema("a", "int"),
        ColumnSchema("b", "decimal", 9, 2),
        ColumnSchema("s", "varchar", 9, charset="utf8mb4"),
        ColumnSchema("f", "double"),
    ),
)
VALUES: dict[str, list[Any]] = {
    "a": [None, 0, 1, 5],
    "b": [None, Decimal("-1.50"), Decimal("0.00"), Decimal("5.00")],
    "s": [None, "", "x", "X "],
}
PREDICATES = [
    "a = 1", "a <> 1", "a != 0", "a < 5", "a <= 1", "a > 0", "a >= 5", "a = NULL", "a",
    "a IS NULL", "a IS NOT NULL", "a IN (0, 5)", "a NOT IN (1, NULL)", "a BETWEEN 0 AND 1",
    "a NOT BETWEEN 1 AND 5", "b = -1.5", "b > 0", "b", "s = 'x'", "s <> 'X '", "s < 'x'",
    "s IN ('', 'x')", "s IS NULL", "a = TRUE", "b = FALSE",
]  # fmt: skip


def random_condition(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.3:
        return random.choice(PREDICATES)
    kind = random.choice(["AND", "OR", "NOT", "()"])
    if kind == "NOT":
        return f"NOT ({random_condition(random, depth - 1)})"
    if kind == "()":
        return f"({random_condition(random, depth - 1)})"
    return f"{random_condition(random, depth - 1)} {kind} {random_condition(random, depth - 1)}"


def test_conditions_evaluate_as_in_sqlite() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a INT, b REAL, s TEXT)")
        rows = list(itertools.product(*VALUES.values()))
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?)",
            [(a, None if b is None else float(b), s) for a, b, s in rows],
        )
        random = Random(11)
        texts = PREDICATES + [random_condition(random, 4) for _ in range(400)]
        for text in texts:
            bound = bind(parse_condition(text), TABLE)
            found = [bound.test(dict(zip(VALUES, row, strict=True))) for row in rows]
            shown = [
                value for (value,) in connection.execute(f"SELECT {text} FROM t ORDER BY rowid")
            ]
            assert [None if each is None else int(each) for each in found] == [
                None if each is None else int(bool(each)) for each in shown
            ], text


def test_null_safe_equality_is_never_unknown() -> None:
    bound = bind(parse_condition("a <=> NULL OR a <=> 5"), TABLE)
    assert [bound.test({"a": value}) for value in (None, 0, 5)] == [True, False, True]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "expected a column"),
        ("a =", "found the end"),
        ("a = 1 b", "expected AND, OR or the end"),
        ("a = b", "expected a text, a number"),
        ("1 = a", "expected a column"),
        ("a LIKE 'x'", "expected a comparison"),
        ("a NOT 5", "expected IN or BETWEEN"),
        ("a IN ()", "expected a text"),
        ("a = 'SECRET' x", "expected AND"),
        ("x(a)", "functions do not exist"),
        ("a XOR b", "expected a comparison"),
        ("NOT " * 200 + "a", "more than 100 levels"),
        ("a = 'cut", "that does not end"),
    ],
)
def test_malformed_condition_raises_schema_error_without_literals(text: str, error: str) -> None:
    with pytest.raises(SchemaError, match=error) as caught:
        parse_condition(text)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("z = 1", "no column `z`"),
        ("a = '1'", "expected a number"),
        ("s = 1", "expected a text"),
        ("s", "needs a comparison"),
        ("f > 0", "IS NULL or IS NOT NULL only"),
        ("f", "`f`"),
    ],
)
def test_condition_that_does_not_fit_its_table_raises_option_error(text: str, error: str) -> None:
    with pytest.raises(OptionError, match=error):
        bind(parse_condition(text), TABLE)
