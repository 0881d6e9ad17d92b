"""Unique keys that stand in for a primary key, tracked in the binlog of real servers.

A tracked key must exist on the server. In the cases of `KNOWN`, every key is tracked.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql
import pytest

from helpers.schemas.tracker_harness import Follower
from live.conftest import DATABASE
from pyspark_mysqlbinlog.decoder.sql.definitions.unique_keys import may_be_called
from pyspark_mysqlbinlog.tables import TableSchema

_COLUMNS = "a INT NOT NULL, b VARCHAR(90) NOT NULL, c INT, d CHAR(9) NOT NULL, e BLOB NOT NULL"

# (definitions after the columns, statements; {table} is the table)
KNOWN: list[tuple[str, list[str]]] = [
    (", UNIQUE (a)", []),
    (", UNIQUE KEY (b, a)", []),
    (", UNIQUE u (a), UNIQUE KEY `v w` (B, A), UNIQUE (c), UNIQUE x (a, c), KEY k (a)", []),
    (", CONSTRAINT c UNIQUE (a), CONSTRAINT UNIQUE (b)", []),
    (", CONSTRAINT c UNIQUE i USING BTREE (a ASC), UNIQUE USING BTREE (b, d) COMMENT 'x'", []),
    (", UNIQUE p (b(10)), UNIQUE (e(9), a)", []),
    (", f INT NOT NULL UNIQUE, g INT UNIQUE, h BIGINT UNIQUE KEY NOT NULL", []),
    (", f SERIAL", []),
    (", UNIQUE (a), PRIMARY KEY (b)", []),
    (", UNIQUE (a), PRIMARY KEY (b)", ["ALTER TABLE {table} ADD UNIQUE w (d)"]),
    (", UNIQUE (a)", ["ALTER TABLE {table} ADD PRIMARY KEY (b)"]),
    (", UNIQUE (a)", ["CREATE TABLE {table}x LIKE {table}"]),
    ("", ["ALTER TABLE {table} ADD UNIQUE (a), ADD UNIQUE INDEX z (d, b), ADD INDEX (a)"]),
    ("", ["ALTER TABLE {table} ADD CONSTRAINT q UNIQUE KEY (b)"]),
    ("", ["ALTER TABLE {table} ADD f INT NOT NULL UNIQUE FIRST"]),
    ("", ["ALTER TABLE {table} MODIFY a INT NOT NULL UNIQUE"]),
    ("", ["ALTER TABLE {table} ADD (f INT NOT NULL, UNIQUE (f, a))"]),
    ("", ["CREATE UNIQUE INDEX i ON {table} (a)"]),
    ("", ["CREATE UNIQUE INDEX i USING BTREE ON {table} (b(5), a DESC) COMMENT '(x)'"]),
    (", UNIQUE i (a)", ["CREATE INDEX j ON {table} (a)", "DROP INDEX j ON {table}"]),
    (", UNIQUE i (a)", ["DROP INDEX i ON {table}"]),
    (", UNIQUE (a), UNIQUE (a)", ["ALTER TABLE {table} DROP INDEX a, DROP KEY a_2"]),
    (", UNIQUE i (a), UNIQUE j (b)", ["ALTER TABLE {table} DROP KEY I"]),
    (", UNIQUE i (a)", ["ALTER TABLE {table} DROP INDEX i, ADD UNIQUE i (b)"]),
    (", UNIQUE i (a, b)", ["ALTER TABLE {table} CHANGE a z BIGINT NOT NULL, COMMENT 'x'"]),
    (", UNIQUE i (a), UNIQUE j (b)", ["ALTER TABLE {table} MODIFY a INT NULL"]),
    (", UNIQUE i (a), UNIQUE j (b)", ["ALTER TABLE {table} DROP a"]),
    (", UNIQUE i (a)", ["ALTER TABLE {table} RENAME {table}_", "RENAME TABLE {table}_ TO {table}"]),
    (", UNIQUE (d)", ["ALTER TABLE {table} CHANGE d z CHAR(9) NOT NULL, ADD d CHAR(9) NOT NULL"]),
]


def keys_of(schema: TableSchema | str) -> set[tuple[str, ...]]:
    return set() if isinstance(schema, str) else {columns for _, columns in schema.unique_keys}


def test_unique_keys_tracked_from_ddl_equal_those_of_the_server(follower: Follower) -> None:
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        for number, (keys, statements) in enumerate(KNOWN):
            cursor.execute(f"CREATE TABLE t{number} ({_COLUMNS}{keys})")
            for sql in statements:
                cursor.execute(sql.replace("{table}", f"t{number}"))
    follower.catch_up()
    on_server = follower.from_server()
    wrong = [
        (KNOWN[int(name.strip("tx"))], follower.now(name), schema)
        for name, schema in on_server.items()
        if keys_of(follower.now(name)) != keys_of(schema)
    ]
    assert wrong == []
    assert len(on_server) == len(KNOWN) + 1


@pytest.mark.one_server
def test_unique_keys_tracked_from_random_ddl_exist_on_the_server(
    follower: Follower, ddl_seed: int
) -> None:
    """After each statement, every tracked key exists, under a name that its index can have."""
    random = Random(ddl_seed)
    names = ["a", "b", "c", "a_2", "b_2"]
    done: list[str] = []
    known = there = 0
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        while len(done) < 300:
            # The known keys of one table rarely change, so new tables are used from time to time.
            if len(done) % 20 == 0:
                cursor.execute("DROP TABLE IF EXISTS t, u")
            one, two = random.sample(names, 2)
            null = random.choice(("NOT NULL", "NOT NULL", "NULL"))
            sql = random.choice([
                f"CREATE TABLE t (a INT NOT NULL, b INT {null}, UNIQUE (a), UNIQUE (a, b))",
                f"ALTER TABLE t ADD UNIQUE ({one}, {two})",
                f"ALTER TABLE t ADD UNIQUE {two} ({one}), ADD INDEX ({one})",
                f"ALTER TABLE t ADD {one} INT {null}",
                f"ALTER TABLE t MODIFY {one} BIGINT {null}",
                f"ALTER TABLE t CHANGE {one} {two} INT {null}",
                f"ALTER TABLE t DROP {one}, DROP {two}",
                f"ALTER TABLE t DROP INDEX {one}",
                f"ALTER TABLE t DROP KEY {one}, ADD UNIQUE ({two})",
                f"ALTER TABLE t RENAME INDEX {one} TO {two}",
                f"DROP INDEX {one} ON t",
                f"CREATE UNIQUE INDEX {one} ON t ({two})",
                f"CREATE OR REPLACE INDEX {one} ON t ({two})",
                f"CREATE OR REPLACE UNIQUE INDEX {one} ON t ({two})",
                f"CREATE INDEX {one} ON t ({two})",
                "CREATE TABLE u LIKE t",
                "DROP TABLE u",
                "RENAME TABLE t TO u",
                "RENAME TABLE u TO t",
            ])  # fmt: skip
            with suppress(pymysql.MySQLError):
                cursor.execute(sql)
                done.append(sql)
                follower.catch_up()
                for name, schema in follower.from_server().items():
                    followed = follower.now(name)
                    assert isinstance(followed, TableSchema), (followed, done[-8:])
                    for key in followed.unique_keys:
                        assert any(
                            key[1] == columns and may_be_called(key, index)
                            for index, columns in schema.unique_keys
                        ), (key, schema.unique_keys, done[-8:])
                    known, there = (
                        known + len(followed.unique_keys),
                        there + len(schema.unique_keys),
                    )
    assert known > there / 3
