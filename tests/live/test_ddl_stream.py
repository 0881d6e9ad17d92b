"""Random DDL between changes, streamed with restarts: every image as SELECT showed it then.

No table ever has more than one row, so SELECT in front of each DELETE and behind each INSERT is the
row image that must come, columns, labels, signs and characters included, whatever DDL came between.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random, randrange
from typing import Any

import pymysql
import pytest
from random_alters import RandomDdl

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.information_schema import read_table_schemas
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

from live_log import selected
from replay import payload_token, select_token
from servers import Server
from source_runner import Offset, Spark, new_reader

TABLES = ("t", "u", "v", "W w", "漢")
STATEMENTS = 500

Image = list[tuple[str, str | None]]


@dataclass
class Witness:
    """Runs statements, and notes what SELECT and information_schema show."""

    server: Server
    database: str
    random: Random
    # op, table, image; where the log ended then, and the tables.
    expected: list[tuple[str, str, Image]] = field(default_factory=list)
    moments: list[tuple[Position, dict[str, TableSchema]]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def tables(self) -> dict[str, TableSchema]:
        with self.server.connect() as connection:
            found = read_table_schemas(connection, lambda name, _: name == self.database)
        return {schema.table: schema for schema in found}

    def image(self, schema: TableSchema) -> Image | None:
        (rows,) = selected(self.server, schema)
        assert len(rows) <= 1
        return [
            (column.name, select_token(column, text))
            for row in rows
            for column, text in zip(schema.columns, row, strict=True)
        ] or None

    def ddl(self, sql: str) -> bool:
        """Whether the server did it."""
        with self.server.connect(database=self.database) as connection:
            cursor = connection.cursor()
            cursor.execute("SET sql_mode = ''")
            try:
                cursor.execute(sql)
            except pymysql.MySQLError:
                return False
        self.done.append(sql)
        tables = self.tables()
        self.moments.append((Position.of(*self.server.position()), tables))
        if sql.startswith("CREATE TABLE") and " SELECT " in sql:
            name = sql.split("`")[1]
            image = self.image(tables[name])
            if image is not None:
                self.expected.append(("c", name, image))
        return True

    def change(self) -> None:
        """Another row in place of the one that a table has."""
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
                self.expected.append(("d", name, image))
            values = ", ".join(self.literal(column) for column in schema.columns)
            with suppress(pymysql.MySQLError):  # a row that would be too long
                cursor.execute(f"INSERT INTO `{name}` VALUES ({values})")
        after = self.image(schema)
        if after is not None:
            self.expected.append(("c", name, after))

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


def image_of(text: str, schema: dict[str, ColumnSchema]) -> Image:
    from replay import _load

    return [(name, payload_token(schema[name], value)) for name, value in _load(text).items()]


@pytest.fixture
def witness(any_server: Server, any_database: str) -> Witness:
    seed = int(os.environ.get("DDL_SEED") or randrange(1 << 32))
    print(f"DDL_SEED={seed}")  # noqa: T201 pytest shows it where the test fails
    return Witness(any_server, any_database, Random(f"{seed} {any_server.name}"))


def test_random_ddl_and_restarts(witness: Witness) -> None:
    server, random = witness.server, witness.random
    ddl = RandomDdl(random, [f"`{name}`" for name in TABLES])
    options = {"maxBytesPerTrigger": "4k", "idleOffsetInterval": "1s"}
    # Half of the tables are wanted under every name that they get.
    first = Spark(new_reader(server, f"{witness.database}.*", **options))
    offset = first.latest(first.initial())
    first.reader.stop()
    found: list[dict[str, Any]] = []
    while len(witness.done) < STATEMENTS:
        for _ in range(random.randint(1, 40)):
            if witness.ddl(ddl.statement()) and random.random() < 0.7:
                witness.change()
        offset = read_some(witness, options, offset, found, until=random.choice((0.5, 1)))
    read_some(witness, options, offset, found, until=1)
    compare(witness, found)
    assert len(found) > STATEMENTS / 2


def read_some(
    witness: Witness,
    options: dict[str, str],
    offset: Offset,
    found: list[dict[str, Any]],
    until: float,
) -> Offset:
    """A new process reads a part of what it has not read yet; each batch also a second time."""
    spark = Spark(new_reader(witness.server, f"{witness.database}.*", **options))
    goal = len(found) + (len(witness.expected) - len(found)) * until
    with closing(spark.reader.stop) if False else suppress():
        try:
            while len(found) < goal:
                end = spark.next_batch(offset)
                rows = spark.rows(offset, end)
                again = Spark(new_reader(witness.server, f"{witness.database}.*", **options))
                assert again.rows(offset, end) == rows
                found += sorted(rows, key=lambda row: tuple(row["seq"].values()))
                offset = end
        finally:
            spark.reader.stop()
    return offset


def compare(witness: Witness, found: list[dict[str, Any]]) -> None:
    types: dict[str, dict[str, ColumnSchema]] = {}
    moments = iter([*witness.moments, (None, {})])
    here, tables = next(moments)
    now: dict[str, TableSchema] = {}
    changes = [row for row in found if row["op"] != "t"]
    for row, (op, table, image) in zip(changes, witness.expected, strict=True):
        at = Position.of(row["source"]["file"], row["source"]["pos"])
        while here is not None and here <= at:
            now = tables
            here, tables = next(moments)
        assert (row["op"], row["table"]) == (op, table)
        schema = now.get(table) or tables[table]
        columns = {column.name: column for column in schema.columns}
        assert image_of(row["after"] or row["before"], columns) == image
    assert types == {}
