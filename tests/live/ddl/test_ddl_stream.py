"""Random DDL between changes, streamed with restarts: each row image equals SELECT's.

A table never has more than one row, so SELECT before each DELETE and after each INSERT returns the
expected row image with its columns, labels, signs and characters, whatever DDL ran in between.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pymysql
import pytest

from helpers.logs.live_log import new_database, schemas_of, selected
from helpers.replay import Number, payload_token, select_token
from helpers.schemas.random_alters import RandomDdl, drop_hashed_keys
from helpers.schemas.tracker_harness import with_all_keys
from helpers.servers import Server
from helpers.streams.source_runner import Spark, new_reader
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.errors import UnknownSchemaError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

TABLES = ("t", "u", "v", "W w", "漢")
STATEMENTS = 80

Image = list[tuple[str, str | None]]


@dataclass
class Witness:
    """Runs statements and records what SELECT and information_schema return."""

    server: Server
    database: str
    random: Random
    # Expected rows: op, the table at that time, its image. Then, for each DDL, the binlog's end.
    expected: list[tuple[str, TableSchema, Image]] = field(default_factory=list)
    moments: list[tuple[Position, dict[str, TableSchema]]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def tables(self) -> dict[str, TableSchema]:
        return {schema.table: schema for schema in schemas_of(self.server, self.database)}

    def image(self, schema: TableSchema) -> Image | None:
        (rows,) = selected(self.server, schema)
        assert len(rows) <= 1
        return [
            (column.name, select_token(column, text))
            for row in rows
            for column, text in zip(schema.columns, row, strict=True)
        ] or None

    def ddl(self, sql: str) -> bool:
        """Run the statement and return whether the server accepted it."""
        is_pair = "CONVERT TO" in sql and "DROP PRIMARY KEY" in sql
        if is_pair and self.server.version().startswith("5.6."):
            # The table's default is then unknown (see noop_convert.py), and a later column without
            # a character set would stop the stream; test_conversions covers it.
            return False
        if self.server.version()[0] in "89" and self.redefines_converted_text(sql):
            # The column's type is then unknown (see check_no_text_redefined), and later DDL of the
            # table would stop the stream; test_alter covers it.
            return False
        with self.server.connect(database=self.database) as connection:
            cursor = connection.cursor()
            cursor.execute("SET sql_mode = ''")
            try:
                cursor.execute(sql)
            except pymysql.MySQLError:
                return False
            drop_hashed_keys(cursor)
        self.done.append(sql)
        tables = self.tables()
        self.moments.append((Position.of(*self.server.position()), tables))
        if sql.startswith("CREATE TABLE") and " SELECT " in sql:
            name = sql.split("`")[1]
            image = self.image(tables[name])
            if image is not None:
                self.expected.append(("c", tables[name], image))
        return True

    def redefines_converted_text(self, sql: str) -> bool:
        """Whether a statement converts a table and redefines one of its text columns."""
        if "CONVERT TO" not in sql:
            return False
        redefined = set(re.findall(r"\b(?:MODIFY|CHANGE) (?:COLUMN )?(`(?:[^`]|``)+`|\S+)", sql))
        return any(
            {column.name, f"`{column.name.replace('`', '``')}`"} & redefined
            and ("text" in column.type or "TEXT" in sql)
            for schema in self.tables().values()
            for column in schema.columns
        )

    def made_if_missing(self, moment: int, name: str) -> TableSchema | None:
        """Return the table that the next CREATE IF NOT EXISTS creates, if none exists before.

        The binlog does not show whether such a statement found a table. A table that still has the
        statement's columns counts as existing earlier, when it can have had no rows.
        """
        for sql, (_, tables) in zip(self.done[moment:], self.moments[moment:], strict=True):
            if name in tables:
                made = sql.startswith(f"CREATE TABLE IF NOT EXISTS `{name}` ")
                return tables[name] if made else None
        return None

    def last_named(self, name: str) -> int:
        """Return the last moment whose statement names the table."""
        named = (moment for moment, sql in enumerate(self.done) if f"`{name}`" in sql)
        return max(named, default=0)

    def change(self) -> None:
        """Replace the row of a random table."""
        tables = self.tables()
        if not tables:
            return
        name, schema = self.random.choice(sorted(tables.items()))
        image = self.image(schema)
        with self.server.connect(database=self.database) as connection:
            cursor = connection.cursor()
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            if image is not None:
                cursor.execute(f"DELETE FROM `{name}`")
                self.expected.append(("d", schema, image))
            values = ", ".join(self.literal(column) for column in schema.columns)
            with suppress(pymysql.MySQLError):  # a row that would be too long
                cursor.execute(f"INSERT INTO `{name}` VALUES ({values})")
        after = self.image(schema)
        if after is not None:
            self.expected.append(("c", schema, after))

    def literal(self, column: ColumnSchema) -> str:
        if column.labels:
            return str(self.random.randint(1, len(column.labels)))
        match column.type:
            case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
                # At the bounds, where a wrong sign shows.
                return "18446744073709551615" if column.unsigned else "-9223372036854775808"
            case "point":
                return "X'000000000101000000000000000000F03F0000000000000040'"
            case "bit" | "year" | "float" | "double" | "decimal":
                return str(self.random.randint(1, 155))
            case "date" | "datetime" | "timestamp" | "time":
                return f"'2021-02-03 04:05:06.{self.random.randint(0, 999999):06}'"
        return "'" + "".join(self.random.choices("aé漢 Яx", k=self.random.randint(0, 9))) + "'"


def image_of(text: str, schema: TableSchema) -> Image:
    """Return the payload's columns in their order."""
    payload = json.loads(text, parse_int=Number, parse_float=Number)
    columns = {column.name: column for column in schema.columns}
    return [(name, payload_token(columns[name], value)) for name, value in payload.items()]


@pytest.fixture
def witness(any_server: Server, any_database: str, ddl_seed: int) -> Witness:
    return Witness(any_server, any_database, Random(f"{ddl_seed} {any_server.name}"))


def test_random_ddl_with_restarts_streams_the_rows_of_select(witness: Witness) -> None:
    """Each reader reads a part of the remaining rows, from the last reader's offset."""
    run(witness, STATEMENTS)


@pytest.mark.slow
def test_five_hundred_random_ddl_with_restarts_stream_the_rows_of_select(witness: Witness) -> None:
    run(witness, 500)


def run(witness: Witness, statements: int) -> None:
    random = witness.random
    ddl = RandomDdl(random, [f"`{name}`" for name in TABLES])
    stream = Restarted(witness)
    while len(witness.done) < statements:
        for _ in range(random.randint(1, 60)):
            if witness.ddl(ddl.statement()) and random.random() < 0.7:
                witness.change()
        stream.read(random.choice((0.5, 1)))
    stream.read(1)
    assert len(stream.rows) > statements / 2
    for row, (op, schema, image) in zip(stream.rows, witness.expected, strict=True):
        place = row["source"], witness.done[-1]
        assert (row["op"], row["table"]) == (op, schema.table), place
        assert image_of(row["after"] or row["before"], schema) == image, place
        assert tuple(row["source"]["key"] or ()) == schema.primary_key, place
    starts_in_the_past(witness)


class Restarted:
    """A query that is restarted repeatedly. Its rows leave out TRUNCATE."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.rows: list[dict[str, Any]] = []
        spark = self.new_process()
        start = spark.initial()
        self.offset = spark.latest(start)
        spark.reader.stop()

    def new_process(self) -> Spark:
        tables = f"{self.witness.database}.*"
        return Spark(
            new_reader(
                self.witness.server,
                tables,
                maxBytesPerTrigger="4k",
                operations="insert,update,delete",
            )
        )

    def read(self, part: float) -> None:
        """Read this part of the missing rows; read each batch again, fetched instead of inline."""
        missing = len(self.witness.expected) - len(self.rows)
        goal = len(self.rows) + math.ceil(missing * part)
        spark, other = self.new_process(), self.new_process()
        try:
            while len(self.rows) < goal:
                end = spark.next_batch(self.offset)
                rows = spark.rows(self.offset, end)
                assert other.rows(self.offset, end) == rows
                self.rows += sorted(rows, key=lambda row: tuple(row["seq"].values()))
                self.offset = end
        finally:
            spark.reader.stop()


def starts_in_the_past(witness: Witness) -> None:
    """Check that a start at a past position knows only schemas that were true at each moment.

    Each table must be known at least from the last statement that names it.
    """
    server = witness.server
    settings = ServerSettings(server.host, server.port, server.user, server.password)
    known = 0
    with ReplicaClient.connect(settings) as client:
        for first in witness.random.sample(range(len(witness.moments)), 12):
            history, _ = history_of_server(
                client,
                ServerLog(settings),
                witness.moments[first][0],
                lambda database, _: database == witness.database,
                case_sensitive=True,
                uncaptured=True,
            )
            for moment in range(first, len(witness.moments)):
                position, tables = witness.moments[moment]
                for name in TABLES:
                    found = history.at(position, witness.database, name)
                    if found is not None and found.charset is None and name in tables:
                        # The database's default at that time is unknown; no column depends on it.
                        found = replace(found, charset=tables[name].charset)
                    there = tables.get(name) or witness.made_if_missing(moment, name)
                    if found is not None and there is not None:
                        found = with_all_keys(found, there)
                    assert found is None or found == there, (position, name)
                    # A table that no later statement names is known as the server shows it now.
                    if moment >= witness.last_named(name) and name in tables:
                        assert found is not None, (position, name)
                        known += 1
    assert known


CUT_OVERS = {
    "gh-ost": [
        "CREATE TABLE _t_gho LIKE t",
        "ALTER TABLE _t_gho ADD v INT UNSIGNED, CHANGE id key_id INT",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
    ],
    "pt-online-schema-change": [
        "CREATE TABLE _t_new LIKE t",
        "ALTER TABLE _t_new ADD COLUMN v INT UNSIGNED, CHANGE id key_id INT",
        "RENAME TABLE t TO _t_old, _t_new TO t",
        "DROP TABLE IF EXISTS _t_old",
    ],
    "a swap": [
        "CREATE TABLE u (key_id INT PRIMARY KEY, v INT UNSIGNED)",
        "RENAME TABLE t TO tmp, u TO t, tmp TO u",
    ],
    "through another database": [
        "CREATE TABLE `{other}`.x (key_id INT PRIMARY KEY, v INT UNSIGNED)",
        "DROP TABLE t",
        "ALTER TABLE `{other}`.x RENAME TO t",
    ],
}


@pytest.mark.parametrize("known", ["at the start", "from the log"])
@pytest.mark.parametrize("kind", CUT_OVERS)
def test_online_schema_change_delivers_rows_with_their_columns(
    any_server: Server, any_database: str, kind: str, known: str, new_stream: NewStream
) -> None:
    """An uncaptured table gets a captured name; the stream restarts after every statement."""
    with new_database(any_server, "cut_over_other") as other:
        statements = [sql.replace("{other}", other) for sql in CUT_OVERS[kind]]
        any_server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=any_database)
        if known == "at the start":
            any_server.execute(statements.pop(0), database=any_database)
        table = f"{any_database}.t"
        spark = new_stream(any_server, table)
        offset = spark.latest(spark.initial())
        images = []
        any_server.execute("INSERT INTO t VALUES (1)", database=any_database)
        for sql in [*statements, "INSERT INTO t VALUES (2, 4294967295)", "DELETE FROM t"]:
            any_server.execute(sql, database=any_database)
            spark.reader.stop()
            spark = new_stream(any_server, table, idleOffsetInterval="0s")
            end = spark.next_batch(offset)
            images += [row["after"] or row["before"] for row in spark.rows(offset, end)]
            offset = end
        while len(images) < 3:
            spark.reader.stop()
            spark = new_stream(any_server, table, idleOffsetInterval="0s")
            end = spark.next_batch(offset)
            images += [row["after"] or row["before"] for row in spark.rows(offset, end)]
            offset = end
        new = '{"key_id":2,"v":4294967295}'
        assert [image.replace(" ", "") for image in images] == ['{"id":1}', new, new]


def test_table_left_by_its_own_rename_keeps_its_columns(
    any_server: Server, any_database: str, new_stream: NewStream
) -> None:
    """MariaDB 10.11 leaves the table if its name and file name differ; it keeps its columns."""
    any_server.execute("CREATE TABLE `a-b` (id INT, v INT)", database=any_database)
    spark = new_stream(any_server, f"{any_database}.*")
    offset = spark.latest(spark.initial())
    any_server.execute(
        "ALTER TABLE `a-b` CHANGE v w TEXT, RENAME TO u",
        "INSERT INTO u VALUES (1, 'x')",
        database=any_database,
    )
    expected = {("u", '{"id":1,"w":"x"}')}
    if ("a-b",) in any_server.execute("SHOW TABLES", database=any_database):
        any_server.execute("INSERT INTO `a-b` VALUES (2, 3)", database=any_database)
        expected.add(("a-b", '{"id":2,"v":3}'))
    found: list[tuple[str, str]] = []
    while len(found) < len(expected):
        end = spark.next_batch(offset)
        found += [(row["table"], row["after"]) for row in spark.rows(offset, end)]
        offset = end
    assert set(found) == expected


def test_create_if_not_exists_of_hidden_table_raises_unknown_schema_error(
    any_server: Server, any_database: str, new_stream: NewStream
) -> None:
    """The binlog has CREATE IF NOT EXISTS for an existing table with its columns swapped."""
    any_server.execute(
        "CREATE TABLE t (id INT)", "CREATE TABLE hidden (x INT, y INT)", database=any_database
    )
    user = f"few_{any_database}"[:16]
    any_server.execute(
        f"CREATE USER {user} IDENTIFIED BY 'few'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
        f"GRANT SELECT ON `{any_database}`.t TO {user}",
    )
    try:
        account = {"user": user, "password": "few"}
        spark = new_stream(any_server, f"{any_database}.*", **account)
        offset = spark.initial()
        any_server.execute(
            "CREATE TABLE IF NOT EXISTS hidden (y INT, x INT)",
            "INSERT INTO hidden (x, y) VALUES (1, 2)",
            database=any_database,
        )
        with pytest.raises(UnknownSchemaError, match="hidden"):
            spark.rows(offset, spark.next_batch(offset))
    finally:
        any_server.execute(f"DROP USER {user}")


def test_blobs_modified_to_geometries_equal_select(mysql56: Server, new_stream: NewStream) -> None:
    """5.6 keeps bytes that are too short for an SRID or are no geometry; SELECT returns them."""
    with new_database(mysql56, "blobs_to_geometries") as database:
        rows = ["", "1", "12", "123", "1234", "a geometry"]
        values = ", ".join(f"({at}, '{text}')" for at, text in enumerate(rows))
        mysql56.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, g BLOB)",
            f"INSERT INTO t VALUES {values}",
            "ALTER TABLE t MODIFY g POINT",
            database=database,
        )
        witness = Witness(mysql56, database, Random(0))
        (schema,) = witness.tables().values()
        (shown,) = selected(mysql56, schema)
        assert [row[1] for row in shown] == [text.encode().hex().upper() for text in rows]
        expected = [
            [
                (column.name, select_token(column, text))
                for column, text in zip(schema.columns, row, strict=True)
            ]
            for row in shown
        ]
        spark = new_stream(mysql56, f"{database}.*")
        offset = spark.initial()
        mysql56.execute("DELETE FROM t", database=database)
        found = spark.rows(offset, spark.next_batch(offset))
        assert [image_of(row["before"], schema) for row in found] == expected
