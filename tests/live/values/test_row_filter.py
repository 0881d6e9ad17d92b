"""Filtered rows of live servers: inserts and deletes where a row enters or leaves the filter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helpers.servers import Server
from helpers.streams.stream_query import Query
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError

CREATE = "CREATE TABLE {t} (id INT PRIMARY KEY, country CHAR(2), deleted TINYINT, v INT)"
GERMAN = "country = 'DE' AND NOT deleted"


def options(table: str, condition: str, **more: str) -> dict[str, str]:
    return {"rowFilter": json.dumps({table: condition})} | more


def changes(rows: list[dict[str, Any]], payload: str) -> list[tuple[str, Any, Any]]:
    def ids(image: Any) -> Any:
        if image is None:
            return None
        held = json.loads(image) if payload == "json" else image
        return held["id"], held["v"]

    return [(row["op"], ids(row["before"]), ids(row["after"])) for row in rows]


@pytest.mark.parametrize("implementation", ["c", "python"])
@pytest.mark.parametrize("payload", ["json", "struct"])
def test_row_entering_the_row_filter_is_an_insert_and_leaving_it_a_delete(
    any_server: Server,
    any_database: str,
    queries: list[Query],
    payload: str,
    implementation: Implementation,
) -> None:
    table = f"{any_database}.t"
    any_server.execute(CREATE.format(t=table))
    query = Query(any_server, table, payload=payload, **options(table, GERMAN))
    queries.append(query)
    with using(implementation):
        query.start()
        any_server.execute(
            f"INSERT INTO {table} VALUES (1, 'DE', 0, 1), (2, 'FR', 0, 1), (3, NULL, 0, 1),"
            " (4, 'DE', 1, 1), (5, 'DE', NULL, 1), (6, 'DE', 0, 1)",
            f"UPDATE {table} SET v = 2",  # both images pass the filter, or neither does
            f"UPDATE {table} SET country = IF(id = 1, 'FR', 'DE'), deleted = 0, v = 3",
            f"DELETE FROM {table} WHERE id < 3",
            f"UPDATE {table} SET id = id + 100, country = 'FR' WHERE id = 3",
            f"UPDATE {table} SET id = id + 100 WHERE id = 4",
        )
        rows = query.rows()
    assert changes(rows, payload) == [
        ("c", None, (1, 1)),
        ("c", None, (6, 1)),
        ("u", (1, 1), (1, 2)),
        ("u", (6, 1), (6, 2)),
        ("d", (1, 2), None),
        *(("c", None, (number, 3)) for number in (2, 3, 4, 5)),
        ("u", (6, 2), (6, 3)),
        ("d", (2, 3), None),
        ("d", (3, 3), None),
        ("u", (4, 3), (104, 3)),
    ]
    keys = [(row["seq"]["file"], row["seq"]["pos"], row["seq"]["row"]) for row in rows]
    assert keys == sorted(set(keys)), "a row has the seq of another"


# The filter's condition, and SELECT's: with BINARY, because the filter compares texts exactly.
CONDITIONS = [
    ("i = 2", "i = 2"),
    ("i <> 2 or i is null", "i <> 2 OR i IS NULL"),
    ("not (i > 1 and d < 2.5)", "NOT (i > 1 AND d < 2.5)"),
    ("i IN (1, 3, NULL)", "i IN (1, 3, NULL)"),
    ("i NOT IN (1, 3)", "i NOT IN (1, 3)"),
    ("i NOT IN (1, NULL)", "i NOT IN (1, NULL)"),
    ("i BETWEEN 2 AND 3", "i BETWEEN 2 AND 3"),
    ("i NOT BETWEEN 2 AND 3", "i NOT BETWEEN 2 AND 3"),
    ("i <=> NULL", "i <=> NULL"),
    ("NOT i <=> 2", "NOT i <=> 2"),
    ("u >= 18446744073709551615", "u >= 18446744073709551615"),
    ("d = 2.50", "d = 2.50"),
    ("d > -1", "d > -1"),
    ("s = 'ab'", "s = BINARY 'ab'"),
    ("s <> 'ab'", "s <> BINARY 'ab'"),
    ("s >= 'B' AND s < 'c'", "s >= BINARY 'B' AND s < BINARY 'c'"),
    ("s = 'it''s'", "s = BINARY 'it''s'"),
    ("e = 'x'", "e = 'x'"),
    ("e IN ('x', 'z')", "e IN ('x', 'z')"),
    ("day >= '2026-01-02'", "day >= '2026-01-02'"),
    ("seen < '2026-01-02 03:04:05.5'", "seen < '2026-01-02 03:04:05.5'"),
    ("seen >= '2026-01-02'", "seen >= '2026-01-02'"),
    ("touched > '2026-01-02 03:04:05'", "touched > '2026-01-02 03:04:05'"),
    ("raw = X'0041'", "raw = X'0041'"),
    ("bits = 5", "bits = 5"),
    ("made > 1999", "made > 1999"),
    ("flag", "flag"),
    ("NOT flag", "NOT flag"),
    ("f IS NULL", "f IS NULL"),
]


def test_row_filter_conditions_select_the_rows_of_select(
    any_server: Server, any_database: str, queries: list[Query]
) -> None:
    any_server.execute(
        f"CREATE TABLE {any_database}.source (id INT PRIMARY KEY, i INT, u BIGINT UNSIGNED,"
        " d DECIMAL(9,2), s VARCHAR(9) CHARACTER SET utf8mb4, e ENUM('z','x'), day DATE,"
        " seen DATETIME(1), touched TIMESTAMP NULL, raw VARBINARY(4), bits BIT(4), made YEAR,"
        " flag TINYINT(1), f FLOAT)",
        "SET time_zone = '+00:00'",
        f"INSERT INTO {any_database}.source VALUES"
        " (1, 1, 18446744073709551615, 2.50, 'ab', 'x', '2026-01-01', '2026-01-02 03:04:05.4',"
        "  '2026-01-02 03:04:05', X'0041', 5, 1999, 1, 1),"
        " (2, 2, 18446744073709551614, -1, 'AB', 'z', '2026-01-02', '2026-01-02 03:04:05.5',"
        "  '2026-01-02 03:04:06', X'41', 6, 2000, 0, NULL),"
        " (3, 3, 0, 0.01, 'it''s', NULL, '2026-01-03', '2026-01-01 00:00:00', NULL, X'004100', 0,"
        "  0, 2, 0),"
        " (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    tables = [f"{any_database}.t{number}" for number in range(len(CONDITIONS))]
    filters = {table: given for table, (given, _) in zip(tables, CONDITIONS, strict=True)}
    for table in tables:
        any_server.execute(f"CREATE TABLE {table} LIKE {any_database}.source")
    query = Query(any_server, f"{any_database}.t*", payload="json", rowFilter=json.dumps(filters))
    queries.append(query)
    query.start()
    for table in tables:
        any_server.execute(f"INSERT INTO {table} SELECT * FROM {any_database}.source")
    found: dict[str, list[int]] = {table: [] for table in tables}
    for row in query.rows():
        found[f"{row['database']}.{row['table']}"].append(json.loads(row["after"])["id"])
    shown = {}
    for table, (_, condition) in zip(tables, CONDITIONS, strict=True):
        rows = any_server.execute(
            "SET time_zone = '+00:00'", f"SELECT id FROM {table} WHERE {condition} ORDER BY id"
        )
        shown[table] = [number for (number,) in rows]
    assert {filters[table]: ids for table, ids in found.items()} == {
        filters[table]: ids for table, ids in shown.items()
    }
    assert any(shown.values())


@pytest.mark.parametrize("start", ["before", "meanwhile"])
def test_row_filter_on_dropped_column_raises_option_error(
    any_server: Server, any_database: str, queries: list[Query], start: str
) -> None:
    table = f"{any_database}.t"
    any_server.execute(CREATE.format(t=table))
    query = Query(any_server, table, payload="json", **options(table, GERMAN))
    queries.append(query)
    drop = f"ALTER TABLE {table} DROP deleted"
    if start == "before":
        any_server.execute(drop)
        with pytest.raises(OptionError, match=r"option rowFilter.* no column `deleted`"):
            query.start()
        return
    query.start()
    any_server.execute(
        f"INSERT INTO {table} VALUES (1, 'DE', 0, 1)",
        drop,
        f"INSERT INTO {table} VALUES (2, 'DE', 2)",
    )
    with pytest.raises(OptionError, match=r"option rowFilter.* no column `deleted`"):
        query.rows()


def test_partial_row_image_without_row_filter_column_raises_an_error(
    any_server: Server, any_database: str, queries: list[Query]
) -> None:
    table = f"{any_database}.t"
    any_server.execute(CREATE.format(t=table), f"INSERT INTO {table} VALUES (1, 'DE', 0, 1)")
    query = Query(any_server, table, payload="json", **options(table, GERMAN))
    queries.append(query)
    query.start()
    any_server.execute(
        "SET SESSION binlog_row_image = MINIMAL", f"UPDATE {table} SET v = 2 WHERE id = 1"
    )
    with pytest.raises(MySQLBinlogError, match=r"lacks column `country`.*=FULL"):
        query.rows()


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("nothing = 1", "no column `nothing`"),
        ("v = '1'", "column `v` is a int: expected a number"),
        ("country = 1", "column `country` is a char: expected a text"),
        ("country", "needs a comparison"),
        ("t.v = 1", "a column is one name"),
        ("v + 1 = 2", "expected a comparison"),
        ("v LIKE 'x'", "expected a comparison"),
        ("v = 1 &&", "expected AND, OR or the end"),
        ("(v = 1", r"expected \)"),
        ("v = country", "expected a text, a number"),
        ("lower(country) = 'de'", "functions do not exist"),
    ],
)
def test_row_filter_that_cannot_be_evaluated_is_rejected_at_start(
    any_server: Server, any_database: str, queries: list[Query], condition: str, error: str
) -> None:
    table = f"{any_database}.t"
    any_server.execute(CREATE.format(t=table))
    query = Query(any_server, table, payload="json", **options(table, condition))
    queries.append(query)
    with pytest.raises(OptionError, match=f"option rowFilter.*{error}"):
        query.start()
