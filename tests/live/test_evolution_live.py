"""Tables that change under a query: the struct's shape, rescued columns, rows of DDL.

The reader is driven as Spark's source runner drives it (see test_offset_rules); each run has the
schema that a load at that moment would give. What is expected is told by SELECT or by the
statements themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_mysqlbinlog.connector import baseline, schema_tracker
from pyspark_mysqlbinlog.connector.columns import envelope
from pyspark_mysqlbinlog.connector.options import Options
from pyspark_mysqlbinlog.connector.stream_reader import MySQLBinlogStreamReader
from pyspark_mysqlbinlog.connector.struct_schema import read_payload_type
from pyspark_mysqlbinlog.errors import (
    OptionError,
    SchemaChangedError,
    UnknownSchemaError,
    UnknownTableError,
)

from servers import Server
from source_runner import Offset, Spark
from waiting import until

Rows = list[dict[str, Any]]


class Query:
    """A query whose checkpoint outlives its runs."""

    def __init__(self, server: Server, tables: str, **options: str) -> None:
        self.server = server
        self.texts = {
            "host": server.host,
            "port": str(server.port),
            "user": server.user,
            "password": server.password,
            "tables": tables,
            "heartbeatInterval": "1s",
        } | options
        self.checkpoint: Offset | None = None
        self.spark: Spark | None = None
        self.batches: list[tuple[Offset, Offset, Rows]] = []

    def start(self, payload: StructType | None = None) -> Query:
        """Load and begin, with the struct of now unless it is given."""
        options = Options.parse(self.texts)
        kind: Any = StringType()
        if options.payload_kind == "struct":
            kind = payload or read_payload_type(options)
        schema = envelope(kind, rescued=options.rescues)
        self.spark = Spark(MySQLBinlogStreamReader(options, schema))
        if self.checkpoint is None:
            self.checkpoint = self.spark.initial()
            assert self.spark.latest(self.checkpoint) == self.checkpoint
        return self

    def rows(self) -> Rows:
        """All up to the log's end, as one run with AvailableNow."""
        assert self.spark is not None
        assert self.checkpoint is not None
        reader = self.spark.reader
        reader.prepareForTriggerAvailableNow()
        found: Rows = []
        while (end := self.spark.latest(self.checkpoint)) != self.checkpoint:
            rows = self.spark.rows(self.checkpoint, end)
            self.batches.append((self.checkpoint, end, rows))
            found += rows
            self.checkpoint = end
        return found

    def stop(self) -> None:
        if self.spark is not None:
            self.spark.reader.stop()

    def restarted_rows(self, payload: StructType | None = None) -> Rows:
        self.stop()
        return self.start(payload).rows()

    def replayed(self) -> Iterator[tuple[Rows, Rows]]:
        """Each batch as it was, and as a reader of now gives it, who pulls it."""
        self.stop()
        self.start()
        assert self.spark is not None
        for start, end, rows in self.batches:
            yield rows, self.spark.rows(start, end)


@pytest.fixture
def queries() -> Iterator[list[Query]]:
    made: list[Query] = []
    yield made
    for query in made:
        query.stop()


@pytest.fixture
def table(any_server: Server, any_database: str) -> str:
    any_server.execute(f"CREATE TABLE `{any_database}`.t (id INT PRIMARY KEY, a INT, b INT)")
    return f"{any_database}.t"


def images(rows: Rows, side: str = "after") -> list[Any]:
    return [row[side] for row in rows]


def rescued(rows: Rows) -> list[Any]:
    texts = [row["_rescued_data"] for row in rows]
    return [None if text is None else json.loads(text) for text in texts]


THREE_DDLS = (
    "INSERT INTO {t} VALUES (1, 10, 100)",
    "ALTER TABLE {t} ADD c INT",
    "INSERT INTO {t} VALUES (2, 20, 200, 2000)",
    "ALTER TABLE {t} DROP a",
    "INSERT INTO {t} VALUES (3, 300, 3000)",
    "ALTER TABLE {t} CHANGE b d INT",
    "INSERT INTO {t} VALUES (4, 400, 4000)",
)


def run(server: Server, table: str, *statements: str) -> None:
    server.execute(*(statement.format(t=table) for statement in statements))


def test_stopped_before_three_ddls(any_server: Server, table: str, queries: list[Query]) -> None:
    """The struct of the restart has c and d; a and b have no place any more."""
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
    assert [row["source"]["absent"] for row in rows] == [
        ["after.d", "after.c"],
        ["after.d"],
        ["after.d"],
        None,
    ]
    assert all(before == after for before, after in query.replayed())


def test_running_through_three_ddls_needs_one_restart(
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


def test_a_column_that_came_and_went_needs_no_restart(
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


def test_json_just_follows(any_server: Server, table: str, queries: list[Query]) -> None:
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    run(any_server, table, *THREE_DDLS)
    assert [json.loads(text) for text in images(query.rows())] == [
        {"id": 1, "a": 10, "b": 100},
        {"id": 2, "a": 20, "b": 200, "c": 2000},
        {"id": 3, "b": 300, "c": 3000},
        {"id": 4, "d": 400, "c": 4000},
    ]


def test_rescue_goes_on(any_server: Server, table: str, queries: list[Query]) -> None:
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


def test_none_passes_over(any_server: Server, table: str, queries: list[Query]) -> None:
    query = Query(any_server, table, schemaEvolutionMode="none").start()
    queries.append(query)
    run(any_server, table, *THREE_DDLS)
    rows = query.rows()
    assert images(rows)[1:3] == [{"id": 2, "a": 20, "b": 200}, {"id": 3, "a": None, "b": 300}]
    assert [row["source"]["absent"] for row in rows] == [
        None,
        None,
        ["after.a"],
        ["after.a", "after.b"],
    ]
    assert all("_rescued_data" not in row for row in rows)


def test_none_stops_in_front_of_another_type(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """A null would be wrong there; what comes before is delivered."""
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


def test_fail_on_new_columns(any_server: Server, table: str, queries: list[Query]) -> None:
    query = Query(any_server, table, schemaEvolutionMode="failOnNewColumns").start()
    queries.append(query)
    run(any_server, table, *THREE_DDLS[:3])
    with pytest.raises(SchemaChangedError, match=r"column `c` \(int\) .*\.schema\("):
        query.rows()
    assert images(query.batches[0][2]) == [{"id": 1, "a": 10, "b": 100}]


# (how the column was, how it is then, a value of each, what the struct of then shows of the first)
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
def test_a_type_that_got_wider(
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
    """Older rows fit the struct of now; newer ones don't fit the struct of then."""
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


def test_a_type_that_got_narrower_is_rescued(
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
    assert [row["source"]["absent"] for row in rows] == [["after.a"], None]


def test_a_given_schema_that_lacks_a_column(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """A restart would not add it by itself: the message says so."""
    query = Query(any_server, table).start(StructType([StructField("id", StringType())]))
    queries.append(query)
    run(any_server, table, "INSERT INTO {t} VALUES (1, 2, 3)")
    with pytest.raises(SchemaChangedError, match=r"given with \.schema"):
        query.rows()


# --- rows of DDL


def test_rows_of_ddl(any_server: Server, table: str, queries: list[Query]) -> None:
    database = table.partition(".")[0]
    query = Query(
        any_server, f"{database}.*", payload="json", operations="insert,update,truncate,ddl"
    ).start()
    queries.append(query)
    statements = [
        (f"ALTER TABLE {table} ADD n INT", None),
        (f"ALTER TABLE {table} COMMENT 'x'", None),
        (f"ALTER TABLE {table} ADD d INT NOT NULL DEFAULT 7", ("t", "data-changing")),
        (f"ALTER TABLE {table} MODIFY a BIGINT UNSIGNED", ("t", "data-changing")),
        (f"ALTER TABLE {table} DROP b", ("t", "data-losing")),
        (f"CREATE TABLE {database}.u (id INT) PARTITION BY HASH (id) PARTITIONS 2", None),
        (f"INSERT INTO {database}.u VALUES (1)", ("u", "c")),
        (f"ALTER TABLE {database}.u TRUNCATE PARTITION p0", ("u", "t")),
        (f"TRUNCATE TABLE {database}.u", ("u", "t")),
        (f"RENAME TABLE {database}.u TO {database}.v", None),
        (f"DROP TABLE {database}.v", ("v", "data-losing")),
        (f"DROP TABLE IF EXISTS {database}.v", None),
    ]
    any_server.execute(*(statement for statement, _ in statements))
    rows = query.rows()
    found = []
    for row in rows:
        text = row["source"]["query"]
        kind = row["op"]
        if kind == "ddl":
            kind, _, text = text.removeprefix("/* ").partition(" */ ")
            assert (row["before"], row["after"]) == (None, None)
        found.append((row["table"], kind))
        assert row["seq"]["row"] == 0
    assert found == [expected for _, expected in statements if expected is not None]
    texts = [row["source"]["query"] for row in rows]
    assert texts[4] == f"ALTER TABLE {database}.u TRUNCATE PARTITION p0"
    assert texts[2].endswith(statements[4][0])
    places = [tuple(row["seq"].values()) for row in rows]
    assert places == sorted(set(places))
    assert all(before == after for before, after in query.replayed())


def test_statements_in_executable_comments(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """Which are text and which are comments hangs on the kind of server and its version."""
    query = Query(any_server, table, payload="json", operations="truncate,ddl").start()
    queries.append(query)
    is_mariadb = any_server.name == "mariadb"
    statements = [
        ("/*!50000 ALTER TABLE {t} DROP a */", True),
        ("ALTER TABLE {t} ADD c INT /*!50600 NOT NULL DEFAULT 7 */", True),
        ("ALTER TABLE {t} ADD d INT /*!50750 NOT NULL DEFAULT 7 */", False),
        ("ALTER TABLE {t} ADD e INT /*M!50600 NOT NULL DEFAULT 7 */", is_mariadb),
        ("/*!50000 TRUNCATE TABLE {t} */", True),
        ("TRUNCATE TABLE {t}", True),
    ]
    if is_mariadb:
        statements[-1] = ("/*M! TRUNCATE TABLE {t} */", True)
        statements.append(("/*!100100 ALTER TABLE {t} DROP b */", True))
    run(any_server, table, *(statement for statement, _ in statements))
    found = [row["source"]["query"] for row in query.rows()]
    expected = [statement.format(t=table) for statement, gives in statements if gives]
    assert [
        text.removeprefix("/* data-losing */ ").removeprefix("/* data-changing */ ")
        for text in found
    ] == expected
    assert all(before == after for before, after in query.replayed())


def test_ddl_gives_no_rows_unless_asked_for(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    run(any_server, table, "ALTER TABLE {t} DROP a", "INSERT INTO {t} VALUES (1, 2)")
    assert [row["op"] for row in query.rows()] == ["c"]


def test_a_dropped_database_and_several_tables_at_once(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    database = table.partition(".")[0]
    any_server.execute(
        f"CREATE TABLE {database}.x (id INT)",
        f"CREATE TABLE {database}.y (id INT)",
        f"CREATE TABLE {database}.z (id INT)",
    )
    query = Query(any_server, f"{database}.*", payload="json", operations="ddl").start()
    queries.append(query)
    any_server.execute(f"DROP TABLE {database}.x, {database}.y", f"DROP DATABASE {database}")
    rows = query.rows()
    assert [(row["table"], row["seq"]["row"]) for row in rows][:2] == [("x", 0), ("y", 1)]
    assert {row["table"] for row in rows[2:]} == {"t", "z"}
    assert len({tuple(row["seq"].values()) for row in rows}) == len(rows)
    any_server.execute(f"CREATE DATABASE {database}")


def test_a_dropped_database_with_a_table_that_nobody_knows(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """It lost its rows, whatever its columns were called."""
    database = table.partition(".")[0]
    query = Query(any_server, f"{database}.*", payload="json", operations="ddl").start()
    queries.append(query)
    any_server.execute(
        "CREATE TABLE u (v VARCHAR(9)) DEFAULT CHARSET latin1",
        "SET sql_mode = 'NO_TABLE_OPTIONS'",
        "CREATE TABLE lost SELECT * FROM u",
        "CREATE TABLE gone SELECT * FROM u",
        "DROP TABLE gone",
        f"DROP DATABASE {database}",
        database=database,
    )
    rows = query.rows()
    assert sorted(row["table"] for row in rows) == ["gone", "lost", "t", "u"]
    assert len({tuple(row["seq"].values()) for row in rows}) == len(rows)
    any_server.execute(f"CREATE DATABASE {database}")


# --- tables that nobody knows


@pytest.fixture(params=["remembers", "forgets"])
def forgetful(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A stream remembers unwanted tables up to a bound; here, of none."""
    if request.param == "forgets":
        for module in (baseline, schema_tracker):
            monkeypatch.setattr(module, "MOST_UNWANTED_COLUMNS", 0)
    return bool(request.param == "forgets")


@pytest.mark.usefixtures("forgetful")
def test_tables_may_grow_and_shrink(any_server: Server, table: str, queries: list[Query]) -> None:
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


@pytest.mark.usefixtures("forgetful")
def test_a_batch_that_is_replayed_with_more_tables(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """It was planned and not committed when the query was stopped; no row of it may be missing."""
    database = table.partition(".")[0]
    any_server.execute(f"CREATE TABLE {database}.u (id INT, x INT UNSIGNED)")
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    run(any_server, table, "INSERT INTO {t} VALUES (1, 2, 3)")
    any_server.execute(f"INSERT INTO {database}.u VALUES (1, 4294967295)")
    run(any_server, table, "INSERT INTO {t} VALUES (2, 3, 4)")
    assert len(query.rows()) == 2
    query.texts["tables"] = f"{table}, {database}.u"
    ((_, rows),) = query.replayed()
    assert images(rows) == [
        '{"id":1,"a":2,"b":3}',
        '{"id":1,"x":4294967295}',
        '{"id":2,"a":3,"b":4}',
    ]
    query.stop()
    query.texts["tables"] = f"{table}, {database}.misspelt"
    with pytest.raises(UnknownTableError, match="misspelt"):
        query.start().rows()


@pytest.mark.usefixtures("forgetful")
def test_a_grown_table_that_was_created_if_not_there(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """The statement did nothing: it must not tell the columns."""
    database = table.partition(".")[0]
    any_server.execute(f"CREATE TABLE {database}.u (id INT, x INT UNSIGNED)")
    query = Query(any_server, table, payload="json").start()
    queries.append(query)
    query.stop()
    any_server.execute(
        f"CREATE TABLE IF NOT EXISTS {database}.u (x INT, id INT)",
        f"INSERT INTO {database}.u VALUES (1, 4294967295)",
    )
    query.texts["tables"] = f"{table}, {database}.u"
    assert images(query.start().rows()) == ['{"id":1,"x":4294967295}']


@pytest.mark.parametrize("how", ["fail", "positional"])
def test_a_grown_table_that_was_altered_since(
    how: str, forgetful: bool, any_server: Server, table: str, queries: list[Query]
) -> None:
    """Nobody knows how it looked: its rows stop the stream, or come without names."""
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


def test_schema_ddl_tells_what_was_there_at_the_start(
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
    with pytest.raises(OptionError, match="does not tell the database"):
        Query(any_server, table, **options, schemaDdl=str(ddl)).start()


def test_what_stops_behind_a_run_is_not_for_it(
    any_server: Server, table: str, queries: list[Query]
) -> None:
    """A run with AvailableNow ends at its target, whatever the tail met since."""
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
    until(lambda: spark.reader._tail and spark.reader._tail.buffer.error, "no error came")
    while (end := spark.latest(start)) != start:
        start = end
