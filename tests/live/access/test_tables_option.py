"""Tables that a query did not capture from its start: a growing `tables`, and `schemaDdl`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.servers import Server
from helpers.streams.stream_query import THREE_DDLS, Query, images, run
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.connector.schemas import baseline
from pyspark_mysqlbinlog.connector.schemas import tracker as schema_tracker
from pyspark_mysqlbinlog.errors import (
    OptionError,
    UnknownSchemaError,
    UnknownTableError,
)

pytestmark = pytest.mark.one_server


@pytest.fixture(params=["remembers", "forgets"])
def forgetful(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether the stream forgets uncaptured tables, because its limit for them is zero."""
    if request.param == "forgets":
        for module in (baseline, schema_tracker):
            monkeypatch.setattr(module, "MAX_UNCAPTURED_COLUMNS", 0)
    return bool(request.param == "forgets")


@pytest.mark.usefixtures("forgetful")
def test_tables_option_can_add_and_remove_tables(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    database = table.partition(".")[0]
    any_server.execute(f"CREATE TABLE {database}.u (id INT, x INT UNSIGNED)")
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    run(any_server, table, "INSERT INTO {t} VALUES (1, 2, 3)")
    assert len(query.rows()) == 1
    query.stop()
    any_server.execute(f"INSERT INTO {database}.u VALUES (1, 4294967295)")
    query.texts["tables"] = f"{table}, {database}.u"
    rows = query.start().rows()
    assert images(rows) == ['{"id":1,"x":4294967295}']
    query.stop()
    query.texts["tables"] = f"{database}.u"
    run(any_server, table, "ALTER TABLE {t} CHANGE a b INT, CHANGE b a INT")
    run(any_server, table, "INSERT INTO {t} VALUES (2, 3, 4)")
    any_server.execute(f"DELETE FROM {database}.u", f"ALTER TABLE {database}.u CHANGE x y INT")
    any_server.execute(f"INSERT INTO {database}.u VALUES (2, -1)")
    assert images(query.start().rows()) == [None, '{"id":2,"y":-1}']
    query.stop()
    run(any_server, table, "INSERT INTO {t} VALUES (3, 4, 5)")
    query.texts["tables"] = f"{table}, {database}.u"
    assert images(query.start().rows()) == ['{"id":3,"b":4,"a":5}']


@pytest.fixture
def other(any_server: Server, table: str) -> str:
    """Return a table of the same database that the query does not capture at first."""
    name = f"{table.partition('.')[0]}.u"
    any_server.execute(f"CREATE TABLE {name} (id INT, x INT UNSIGNED)")
    return name


@pytest.mark.usefixtures("forgetful")
def test_replay_with_added_table_includes_its_rows(
    any_server: Server, table: str, other: str, queries: list[Query]
) -> None:
    """The batch was planned and not committed when the query stopped; it must miss no row."""
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    run(any_server, table, "INSERT INTO {t} VALUES (1, 2, 3)")
    any_server.execute(f"INSERT INTO {other} VALUES (1, 4294967295)")
    run(any_server, table, "INSERT INTO {t} VALUES (2, 3, 4)")
    assert len(query.rows()) == 2
    query.texts["tables"] = f"{table}, {other}"
    ((_, rows),) = query.replayed()
    assert images(rows) == [
        '{"id":1,"a":2,"b":3}',
        '{"id":1,"x":4294967295}',
        '{"id":2,"a":3,"b":4}',
    ]
    query.stop()
    query.texts["tables"] = f"{table}, {other}_misspelt"
    with pytest.raises(UnknownTableError, match="misspelt"):
        query.start().rows()


@pytest.mark.usefixtures("forgetful")
def test_create_if_not_exists_does_not_change_columns_of_added_table(
    any_server: Server, table: str, other: str, queries: list[Query]
) -> None:
    """The statement had no effect, so the columns must not be taken from it."""
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    query.stop()
    any_server.execute(
        f"CREATE TABLE IF NOT EXISTS {other} (x INT, id INT)",
        f"INSERT INTO {other} VALUES (1, 4294967295)",
    )
    query.texts["tables"] = f"{table}, {other}"
    assert images(query.start().rows()) == ['{"id":1,"x":4294967295}']


@pytest.mark.parametrize("how", ["fail", "positional"])
def test_table_added_after_its_alter_obeys_on_unknown_schema(
    how: str, forgetful: bool, any_server: Server, table: str, queries: list[Query]
) -> None:
    """The columns before the ALTER are unknown: the rows stop the stream or come without names."""
    database = table.partition(".")[0]
    any_server.execute(
        f"CREATE TABLE {database}.u (x INT UNSIGNED, e ENUM('a', 'b'), v VARCHAR(9), n INT)"
    )
    query = Query(any_server, table, payload="json", onUnknownSchema=how).start()
    queries.append(query)
    query.stop()
    run(any_server, table, "INSERT INTO {t} VALUES (1, 2, 3)")
    any_server.execute(
        f"INSERT INTO {database}.u VALUES (4294967295, 'b', 'hi', NULL)",
        f"ALTER TABLE {database}.u DROP e",
        f"INSERT INTO {database}.u VALUES (4294967295, 'hi', NULL)",
    )
    query.texts["tables"] = f"{table}, {database}.u"
    query.start()
    if not forgetful:
        assert images(query.rows())[1:] == [
            '{"x":4294967295,"e":"b","v":"hi","n":null}',
            '{"x":4294967295,"v":"hi","n":null}',
        ]
    elif how == "fail":
        with pytest.raises(UnknownSchemaError) as caught:
            query.rows()
        text = str(caught.value)
        assert "found 4 without names in the table map (LONG, ENUM of 1 bytes, VARCHAR of" in text
        for way in ("start from a position", "schemaDdl", "onUnknownSchema=positional"):
            assert way in text
        assert f"table {database}.u" in text
        assert caught.value.file is not None
        assert images([row for *_, rows in query.batches for row in rows]) == [
            '{"id":1,"a":2,"b":3}'
        ]
    else:
        rows = query.rows()
        assert images(rows)[1:] == [
            '{"@1":-1,"@2":2,"@3":"aGk=","@4":null}',
            '{"x":4294967295,"v":"hi","n":null}',
        ]
        assert rows[1]["source"]["key"] is None


def test_schema_ddl_option_supplies_the_columns_at_the_start(
    any_server: Server, table: str, queries: list[Query], tmp_path: Path
) -> None:
    (shown,) = any_server.execute(f"SHOW CREATE TABLE {table}")
    file, pos = any_server.position()
    run(any_server, table, *THREE_DDLS)
    database, name = table.split(".")
    ddl = tmp_path / "schema.sql"
    ddl.write_text(f"-- a dump\nUSE `{database}`;\n{shown[1]};\n", encoding="utf-8")
    options = {"payload": "json", "startingOffset": f"{file}:{pos}"}
    unknown = Query(any_server, table, **options).start()
    queries.append(unknown)
    with pytest.raises(UnknownSchemaError, match="schemaDdl"):
        unknown.rows()
    query = Query(any_server, table, **options, schemaDdl=str(ddl)).start()
    queries.append(query)
    assert [json.loads(text) for text in images(query.rows())] == [
        {"id": 1, "a": 10, "b": 100},
        {"id": 2, "a": 20, "b": 200, "c": 2000},
        {"id": 3, "b": 300, "c": 3000},
        {"id": 4, "d": 400, "c": 4000},
    ]
    ddl.write_text(f"CREATE TABLE {name} (id INT)", encoding="utf-8")
    with pytest.raises(OptionError, match="has no database for"):
        Query(any_server, table, **options, schemaDdl=str(ddl)).start()


def test_schema_change_after_the_target_does_not_fail_available_now(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table).start()
    queries.append(query)
    spark, start = query.spark, query.checkpoint
    assert spark is not None
    assert start is not None
    run(any_server, table, *THREE_DDLS[:1])
    spark.reader.prepareForTriggerAvailableNow()
    end = spark.latest(start)
    assert len(spark.rows(start, end)) == 1
    run(any_server, table, *THREE_DDLS[1:3])
    wait_until(lambda: spark.reader.tail and spark.reader.tail.buffer.error, "an error comes")
    while (end := spark.latest(start)) != start:
        start = end
