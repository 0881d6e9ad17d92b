"""Finding a bound and reading a chunk read only the necessary rows, and sort nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from helpers.logs.live_log import client_of
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.snapshots.chunk_walk import counting_reads, key_of, plans_of
from pyspark_mysqlbinlog.connector.snapshot.chunks.chunk_bounds import (
    last_bound,
    next_bound,
    range_condition,
)

DATABASE = "load_reads"
ROWS = 4000
CHUNK = 300

Row = Callable[[Random], tuple[object, ...]]

INT = "a INT NOT NULL, PRIMARY KEY (a)"
# Columns and keys, a random row, and the table's options.
SHAPES: dict[str, tuple[str, Row, str]] = {
    "in a row": ("a INT AUTO_INCREMENT PRIMARY KEY", lambda random: (None,), ""),
    "sparse": (INT, lambda random: (random.getrandbits(31),), ""),
    "of a uuid": (
        "a CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL, PRIMARY KEY (a)",
        lambda random: (f"{random.getrandbits(128):032x}",),
        "",
    ),
    "skewed": (
        "a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b)",
        lambda random: (random.choice((1, 1, 1, 1, 2, 3)), random.getrandbits(31)),
        "",
    ),
    "of four": (
        "a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, d INT NOT NULL, PRIMARY KEY (d, c, b, a)",
        lambda random: (random.getrandbits(30), *(random.randrange(3) for _ in range(3))),
        "",
    ),
    "of few rows each": (
        "a VARCHAR(20) NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b)",
        lambda random: (f"name {random.randrange(1000)}", random.getrandbits(31)),
        "",
    ),
    "of dates": (
        "a DATETIME(6) NOT NULL, b FLOAT NOT NULL, PRIMARY KEY (a, b)",
        lambda random: (f"2026-01-{random.randint(1, 28)}", random.random()),
        "",
    ),
    "enum first": (
        "a ENUM('x', 'w', 'v') NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b)",
        lambda random: (random.randint(1, 3), random.getrandbits(31)),
        "",
    ),
    "enum inside": (
        "a INT NOT NULL, b ENUM('x', 'w') NOT NULL, c INT NOT NULL, PRIMARY KEY (a, b, c)",
        lambda random: (random.randint(1, 3), random.randint(1, 2), random.getrandbits(31)),
        "",
    ),
    "of many labels": (
        "a ENUM(" + ", ".join(f"'l{n}'" for n in range(2000)) + ") NOT NULL, b INT NOT NULL,"
        " PRIMARY KEY (a, b)",
        lambda random: (random.randint(0, 2000), random.getrandbits(31)),
        "",
    ),
    "set first": (
        "a SET('x', 'w', 'v') NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b)",
        lambda random: (random.randrange(8), random.getrandbits(31)),
        "",
    ),
    "unique": (
        "a INT NOT NULL, b INT NOT NULL, UNIQUE u (b)",
        lambda random: (random.getrandbits(31), random.getrandbits(31)),
        "",
    ),
    "of MyISAM": (
        "a VARCHAR(40) NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b)",
        lambda random: (f"name {random.randrange(9)}", random.getrandbits(31)),
        "ENGINE = MyISAM",
    ),
    "in partitions": (
        "a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (b, a)",
        lambda random: (random.getrandbits(31), random.randrange(5)),
        "PARTITION BY HASH (a) PARTITIONS 3",
    ),
    # The statistics are those of an empty table.
    "unanalyzed": (
        "a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b)",
        lambda random: (random.choice((1, 1, 1, 1, 2, 3)), random.getrandbits(31)),
        "STATS_PERSISTENT = 1 STATS_AUTO_RECALC = 0",
    ),
}


@pytest.mark.sample(20)
@pytest.mark.parametrize("alone", [False, True], ids=["with a column", "alone"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("server_name", every_server())
def test_reading_a_chunk_reads_only_its_rows(
    server_name: str, shape: str, alone: bool, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(server_name)
    columns, row, more = SHAPES[shape]
    random = Random(shape)
    padding = "" if alone else ", padding VARCHAR(200)"
    rows = [(*row(random), *(() if alone else ("x" * 200,))) for _ in range(ROWS)]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        cursor.execute(f"CREATE TABLE {DATABASE}.t ({columns}{padding}) {more}")
        cursor.execute("SET sql_mode = ''")
        marks = ", ".join(["%s"] * len(rows[0]))
        # Rows with equal keys are ignored; random keys rarely collide.
        cursor.executemany(f"INSERT IGNORE INTO {DATABASE}.t VALUES ({marks})", rows)
        if "STATS" not in more:
            cursor.execute(f"ANALYZE TABLE {DATABASE}.t")
    table = (DATABASE, "t")
    # One seek for each interval and partition; each of many labels is an interval.
    seeks = 350 if "label" in shape else 150
    with client_of(server) as client:
        key = key_of(server, client, DATABASE)
        with counting_reads(client) as reads:
            last = last_bound(client, table, key)
        assert last is not None
        assert reads.total <= 20
        after = None
        found = 0
        while after != last:
            with counting_reads(client) as reads, plans_of(client) as plans:
                upto, size = next_bound(client, table, key, after, last, rows=CHUNK)
            assert upto is not None
            # Rows before an interval that has enough rows are read twice.
            assert reads.total <= 2 * CHUNK + seeks, plans.statements
            assert not plans.sorting()
            # Only the index is read. Most of these keys are InnoDB's tables themselves, for which
            # MariaDB 11.8 does not report "Using index".
            if server.name != "mariadb11" or "MyISAM" in more:
                assert all("Using index" in extra for extra in plans.extras()), plans.statements
            condition = range_condition(key, after, upto)
            select = f"SELECT * FROM {DATABASE}.t FORCE INDEX (`{key.name}`) WHERE {condition}"
            with counting_reads(client) as reads, plans_of(client) as plans:
                assert len(client.query(select)) == size
            assert reads.total <= size + seeks, select
            assert plans.keys() == {key.name}
            assert not plans.sorting()
            after = upto
            found += size
        assert found == client.query(f"SELECT COUNT(*) FROM {DATABASE}.t")[0][0] > ROWS / 2
        with counting_reads(client) as reads:
            assert next_bound(client, table, key, last, last, rows=CHUNK) == (None, 0)
        assert reads.total <= 150
    server.execute(f"DROP DATABASE {DATABASE}")
