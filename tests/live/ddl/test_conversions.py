"""CONVERT TO CHARACTER SET that changes no column: the table's default equals the server's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pymysql
import pytest

from helpers.logs.live_log import new_database
from helpers.schemas.alter_cases import CONVERSIONS
from helpers.schemas.random_alters import RandomConversions
from helpers.schemas.tracker_harness import Follower
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.streams.source_runner import Spark
from live.conftest import DATABASE
from pyspark_mysqlbinlog.tables import TableSchema

DATABASE_OF_ROWS = "converted_rows"
# Clauses after which it is unknown whether 5.6 found anything to convert.
NOT_KNOWN_ON_56 = ("DROP PRIMARY KEY", "DROP INDEX")


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield each server in turn, with an empty utf8mb4 database."""
    server: Server = request.getfixturevalue(request.param)
    with new_database(server, DATABASE_OF_ROWS):
        yield server


def run(follower: Follower, sql: str) -> bool:
    """Run the statement and return whether the server accepted it."""
    with suppress(pymysql.MySQLError):
        with follower.server.connect(database=DATABASE) as connection:
            cursor = connection.cursor()
            cursor.execute("SET sql_mode = ''")
            cursor.execute(sql)
        return True
    return False


def test_every_charset_conversion_gives_the_schema_of_the_server(follower: Follower) -> None:
    """5.7 and MariaDB always change the default; on 5.6 it can be unknown, but not wrong."""
    done = {}
    for index, (create, alter) in enumerate(CONVERSIONS):
        names = {"table": f"t{index}"}
        if run(follower, create.format(**names)) and run(follower, alter.format(**names)):
            done[f"t{index}"] = alter
    follower.catch_up()
    on_server = follower.from_server()
    is_56 = follower.server.version().startswith("5.6.")
    unknown = 0
    for table, alter in done.items():
        followed = follower.now(table)
        assert isinstance(followed, TableSchema)
        if followed.charset is None:
            unknown += 1
            has_text = any(column.charset for column in followed.columns)
            assert is_56, alter
            assert has_text or any(word in alter for word in NOT_KNOWN_ON_56), alter
            followed = replace(followed, charset=on_server[table].charset)
        assert followed == on_server[table], alter
    assert len(done) >= len(CONVERSIONS) - 1  # 5.6 has no JSON
    assert unknown == (8 if is_56 else 0)

    # An added column has the server's character set, or on 5.6 an unknown one.
    for table in done:
        assert run(follower, f"ALTER TABLE {table} ADD note TEXT, ADD w VARCHAR(9) FIRST")
    follower.catch_up()
    on_server = follower.from_server()
    wrong = [
        (alter, followed, on_server[table])
        for table, alter in done.items()
        if (followed := follower.now(table)) != on_server[table]
        and not (is_56 and "character set that its definition" in str(followed))
    ]
    assert wrong == []


@pytest.mark.one_server
@pytest.mark.parametrize(
    "statements", [pytest.param(90, id="short"), pytest.param(900, marks=pytest.mark.slow)]
)
def test_random_charset_conversions_give_the_schemas_of_the_server(
    follower: Follower, ddl_seed: int, statements: int
) -> None:
    """Tables are also swapped, copied and altered later; 5.6 may leave a default unknown."""
    ddl = RandomConversions(Random(ddl_seed))
    is_56 = follower.server.version().startswith("5.6.")
    done: list[str] = []
    known = 0
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        while len(done) < statements:
            for _ in range(3):
                sql = ddl.statement()
                with suppress(pymysql.MySQLError):
                    cursor.execute(sql)
                    done.append(sql)
            follower.catch_up()
            for name, on_server in follower.from_server().items():
                followed = follower.now(name)
                if is_56 and isinstance(followed, TableSchema) and followed.charset is None:
                    followed = replace(followed, charset=on_server.charset)
                elif is_56 and isinstance(followed, str):
                    continue
                known += 1
                assert followed == on_server, "\n".join([f"DDL_SEED={ddl_seed}", *done[-12:]])
    assert known > statements / 3


# (columns and options, the ALTERs between the first row and the second)
ROWS = [
    (
        "(id INT PRIMARY KEY, n INT) CHARSET latin1",
        ["CONVERT TO CHARACTER SET utf8mb4", "ADD note TEXT"],
    ),
    (
        "(id INT PRIMARY KEY, n INT) CHARSET latin1",
        ["CONVERT TO CHARACTER SET utf8mb4", "ADD note VARCHAR(40)"],
    ),
    (
        "(id INT PRIMARY KEY, n INT) CHARSET utf8mb4",
        ["CONVERT TO CHARACTER SET latin1", "ADD note TEXT"],
    ),
    (
        "(id INT PRIMARY KEY, e CHAR(3) CHARSET latin1)",
        ["CONVERT TO CHARACTER SET latin1", "ADD note TEXT"],
    ),
    (
        "(id INT PRIMARY KEY, b BLOB) CHARSET gbk",
        ["CONVERT TO CHARACTER SET utf8mb4", "ADD INDEX (b(3))", "ADD note TINYTEXT FIRST"],
    ),
    (
        "(id INT PRIMARY KEY, n INT) CHARSET latin1 ENGINE=MyISAM",
        [
            "CONVERT TO CHARACTER SET utf8mb4",
            "CONVERT TO CHARACTER SET cp1251",
            "CONVERT TO CHARACTER SET utf8mb4",
            "ADD note TEXT",
        ],
    ),
]


@pytest.mark.parametrize("later_ddl", ["CONVERT", "RENAME", "LIKE"])
def test_rows_after_charset_conversion_equal_select(
    server: Server, new_stream: Callable[..., Spark], later_ddl: str
) -> None:
    """The converted default also applies after a RENAME, and to a copy made by LIKE."""
    spark = new_stream(server, f"{DATABASE_OF_ROWS}.*")
    start = spark.initial()
    start = spark.latest(start)  # batch 0 is empty
    selected = {}
    with server.connect(database=DATABASE_OF_ROWS) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        for index, (columns, alters) in enumerate(ROWS):
            table = f"t{index}"
            cursor.execute(f"CREATE TABLE {table} {columns}")
            cursor.execute(f"INSERT INTO {table} (id) VALUES (1)")
            cursor.execute(f"ALTER TABLE {table} {alters[0]}")
            if later_ddl == "RENAME":
                cursor.execute(f"RENAME TABLE {table} TO other{index}")
                table = f"other{index}"
            elif later_ddl == "LIKE":
                cursor.execute(f"CREATE TABLE like{index} LIKE {table}")
                table = f"like{index}"
            for alter in alters[1:]:
                cursor.execute(f"ALTER TABLE {table} {alter}")
            cursor.execute(f"INSERT INTO {table} (id, note) VALUES (2, 'é€😀')")
            cursor.execute(f"SELECT note FROM {table} WHERE id = 2")
            ((selected[table],),) = cursor.fetchall()
    rows: list[dict[str, Any]] = []
    while len(rows) < 2 * len(ROWS):
        end = spark.next_batch(start)
        rows += spark.rows(start, end)
        start = end
    notes = {row["table"]: json.loads(row["after"]) for row in rows}
    assert {table: image["note"] for table, image in notes.items() if image["id"] == 2} == selected
