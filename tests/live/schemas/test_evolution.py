"""Tables that change during a query: the struct's shape and rescued columns.

Expected values come from SELECT or from the statements themselves.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from helpers.servers import Server
from helpers.streams.stream_query import THREE_DDLS, Query, images, rescued, run
from pyspark_mysqlbinlog.errors import (
    SchemaChangedError,
)

pytestmark = pytest.mark.one_server


def test_restart_after_ddl_rescues_values_of_dropped_columns(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """The restarted query's struct has c and d; values of a and b are rescued."""
    query = Query(any_server, table).start()
    queries.append(query)
    assert query.rows() == []
    query.stop()
    run(any_server, table, *THREE_DDLS)
    rows = query.start().rows()
    assert images(rows) == [
        {"id": 1, "d": None, "c": None},
        {"id": 2, "d": None, "c": 2000},
        {"id": 3, "d": None, "c": 3000},
        {"id": 4, "d": 400, "c": 4000},
    ]
    assert rescued(rows) == [
        {"after": {"a": 10, "b": 100}},
        {"after": {"a": 20, "b": 200}},
        {"after": {"b": 300}},
        None,
    ]
    assert [row["source"]["missing"] for row in rows] == [
        ["after.d", "after.c"],
        ["after.d"],
        ["after.d"],
        None,
    ]
    assert all(before == after for before, after in query.replayed())


def test_added_column_in_running_stream_requires_one_restart(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table).start()
    queries.append(query)
    run(any_server, table, *THREE_DDLS)
    assert query.spark is not None
    query.spark.reader.prepareForTriggerAvailableNow()
    assert query.checkpoint is not None
    end = query.spark.latest(query.checkpoint)
    first = query.spark.rows(query.checkpoint, end)
    assert images(first) == [{"id": 1, "a": 10, "b": 100}]
    assert rescued(first) == [None]
    with pytest.raises(SchemaChangedError, match=r"column `c` \(int\) is in the table") as caught:
        query.spark.latest(end)
    assert "restart the query" in str(caught.value)
    assert f"table {table}" in str(caught.value)
    query.checkpoint = end
    rows = query.restarted_rows()
    assert [row["after"]["id"] for row in rows] == [2, 3, 4]
    assert [row["after"]["d"] for row in rows] == [None, None, 400]


def test_column_added_and_dropped_while_stopped_is_rescued(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table).start()
    queries.append(query)
    query.stop()
    run(
        any_server,
        table,
        "ALTER TABLE {t} ADD gone DATETIME",
        "INSERT INTO {t} VALUES (1, 2, 3, '2026-11-20 10:00:00'), (2, 3, 4, NULL)",
        "UPDATE {t} SET gone = NULL WHERE id = 1",
        "ALTER TABLE {t} DROP gone",
    )
    rows = query.start().rows()
    assert rescued(rows) == [
        {"after": {"gone": "2026-11-20T10:00:00"}},
        {"after": {"gone": None}},
        {"before": {"gone": "2026-11-20T10:00:00"}, "after": {"gone": None}},
    ]


def test_json_payload_follows_ddl_without_restart(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    run(any_server, table, *THREE_DDLS)
    assert [json.loads(text) for text in images(query.rows())] == [
        {"id": 1, "a": 10, "b": 100},
        {"id": 2, "a": 20, "b": 200, "c": 2000},
        {"id": 3, "b": 300, "c": 3000},
        {"id": 4, "d": 400, "c": 4000},
    ]


def test_rescue_mode_keeps_the_struct_and_rescues_new_columns(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table, schemaEvolutionMode="rescue").start()
    queries.append(query)
    run(any_server, table, *THREE_DDLS)
    rows = query.rows()
    assert images(rows) == [
        {"id": 1, "a": 10, "b": 100},
        {"id": 2, "a": 20, "b": 200},
        {"id": 3, "a": None, "b": 300},
        {"id": 4, "a": None, "b": None},
    ]
    assert rescued(rows) == [
        None,
        {"after": {"c": 2000}},
        {"after": {"c": 3000}},
        {"after": {"d": 400, "c": 4000}},
    ]


def test_none_mode_leaves_out_new_columns(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table, schemaEvolutionMode="none").start()
    queries.append(query)
    run(any_server, table, *THREE_DDLS)
    rows = query.rows()
    assert images(rows)[1:3] == [{"id": 2, "a": 20, "b": 200}, {"id": 3, "a": None, "b": 300}]
    assert [row["source"]["missing"] for row in rows] == [
        None,
        None,
        ["after.a"],
        ["after.a", "after.b"],
    ]
    assert all("_rescued_data" not in row for row in rows)


def test_none_mode_raises_schema_changed_error_on_type_change(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """A null would be wrong in a column of another type; earlier rows are delivered."""
    query = Query(any_server, table, schemaEvolutionMode="none").start()
    queries.append(query)
    run(
        any_server,
        table,
        "INSERT INTO {t} VALUES (1, 10, 100)",
        "ALTER TABLE {t} MODIFY a VARCHAR(9), ADD c INT",
        "INSERT INTO {t} VALUES (2, 'x', 200, 3)",
    )
    with pytest.raises(SchemaChangedError, match=r"column `a` \(varchar\) .* another type"):
        query.rows()
    assert images(query.batches[0][2]) == [{"id": 1, "a": 10, "b": 100}]
    assert images(query.restarted_rows()) == [{"id": 2, "a": "x", "b": 200, "c": 3}]


def test_fail_on_new_columns_mode_raises_schema_changed_error(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table, schemaEvolutionMode="failOnNewColumns").start()
    queries.append(query)
    run(any_server, table, *THREE_DDLS[:3])
    with pytest.raises(SchemaChangedError, match=r"column `c` \(int\) .*\.schema\("):
        query.rows()
    assert images(query.batches[0][2]) == [{"id": 1, "a": 10, "b": 100}]


# (old type, new type, a value of each, what the new struct shows of the first value)
TYPES: list[tuple[str, str, str, str, Any]] = [
    ("INT", "BIGINT", "-5", "5000000000", -5),
    ("TINYINT UNSIGNED", "INT", "255", "-1", 255),
    ("INT", "DECIMAL(12,2)", "7", "1.50", "7.00"),
    ("DECIMAL(5,2)", "DECIMAL(9,4)", "1.25", "1.2345", "1.2500"),
    ("BIGINT UNSIGNED", "DECIMAL(20,0)", "18446744073709551615", "5", "18446744073709551615"),
    ("FLOAT", "DOUBLE", "1.5", "0.1", 1.5),
    ("INT", "VARCHAR(20)", "42", "'x'", "42"),
    ("VARCHAR(5)", "TEXT", "'a'", "'b'", "a"),
]


@pytest.mark.parametrize(("old", "new", "first", "second", "shown"), TYPES)
def test_widened_column_type_keeps_older_values(
    old: str,
    new: str,
    first: str,
    second: str,
    shown: Any,
    *,
    any_server: Server,
    table: str,
    queries: list[Query],
) -> None:
    """Rows of the old type fit the struct of the new type."""
    run(any_server, table, f"ALTER TABLE {{t}} ADD c {old}")
    query = Query(any_server, table).start()
    queries.append(query)
    query.stop()
    run(
        any_server,
        table,
        f"INSERT INTO {{t}} VALUES (1, 1, 1, {first})",
        f"ALTER TABLE {{t}} MODIFY c {new}",
        f"INSERT INTO {{t}} VALUES (2, 2, 2, {second})",
    )
    rows = query.start().rows()
    value = rows[0]["after"]["c"]
    assert (str(value) if isinstance(shown, str) else value) == shown
    assert rescued(rows) == [None, None]


def test_value_too_large_for_narrowed_column_is_rescued(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table).start()
    queries.append(query)
    query.stop()
    run(
        any_server,
        table,
        "INSERT INTO {t} VALUES (1, 1000, 1)",
        "ALTER TABLE {t} MODIFY a SMALLINT",
        "INSERT INTO {t} VALUES (2, 2, 2)",
    )
    rows = query.start().rows()
    assert [row["after"]["a"] for row in rows] == [None, 2]
    assert rescued(rows) == [{"after": {"a": 1000}}, None]
    assert [row["source"]["missing"] for row in rows] == [["after.a"], None]


def test_explicit_schema_without_a_column_raises_schema_changed_error(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """A restart would not add the column, and the error says why."""
    query = Query(any_server, table).start(StructType([StructField("id", StringType())]))
    queries.append(query)
    run(any_server, table, "INSERT INTO {t} VALUES (1, 2, 3)")
    with pytest.raises(SchemaChangedError, match=r"set with \.schema"):
        query.rows()
