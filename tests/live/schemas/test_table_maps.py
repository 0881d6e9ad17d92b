"""The table maps of real servers match the schemas that are derived from the DDL."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pymysql
import pytest

from helpers.logs.live_log import new_database, schemas_of, selected
from helpers.replay import Replay
from helpers.schemas.ddl_cases import TYPES
from helpers.schemas.random_tables import RandomTable
from helpers.schemas.tracker_harness import Follower
from helpers.servers import Server
from live.conftest import DATABASE, NewStream
from pyspark_mysqlbinlog.errors import SchemaMismatchError


def test_table_maps_of_every_type_match_schemas_tracked_from_ddl(follower: Follower) -> None:
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        made = 0
        for index, (definition, _) in enumerate(TYPES):
            with suppress(pymysql.MySQLError):  # types that the server does not have
                other = ", b INT" if "b +" in definition else ""
                cursor.execute(f"CREATE TABLE t{index} ({definition}{other}) ENGINE=MyISAM")
                cursor.execute(f"INSERT INTO t{index} () VALUES ()")
                made += 1
    follower.catch_up()
    assert follower.fitted == made
    assert made > len(TYPES) * 0.7


@pytest.mark.one_server
def test_table_maps_of_random_tables_match_schemas_tracked_from_ddl(
    follower: Follower, ddl_seed: int
) -> None:
    """The tables have random types in every character set, and unusual names."""
    random = Random(ddl_seed)
    with follower.server.connect(database=DATABASE) as connection:
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = ''")
        for number in range(30):
            # Few columns, so that no row is too long.
            columns = random.sample(RandomTable.make(random, 12).columns, 5)
            create, insert = list(RandomTable(columns).statements(random, 1))[:2]
            cursor.execute(create.replace("TABLE t", f"TABLE t{number}"))
            cursor.execute(insert.replace("INTO t", f"INTO t{number}"))
    follower.catch_up()
    on_server = follower.from_server()
    assert follower.fitted == 30
    assert len(on_server) == 30


OUTER_JOINS = [
    "UPDATE o LEFT JOIN t ON t.id = o.id SET t.a = t.a + 5",
    "UPDATE t RIGHT JOIN o ON t.id = o.id SET t.a = t.a + 7, o.x = o.x + 1",
    "UPDATE o LEFT JOIN (t JOIN i ON i.id = t.id) ON t.id = o.id SET t.a = 9, i.x = 9, o.x = 9",
    "DELETE t FROM o LEFT JOIN t ON t.id = o.id AND t.id < 2",
    "DELETE o, t FROM o LEFT JOIN t ON t.id = o.id WHERE o.id = 2",
]


@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_rows_of_an_outer_joins_inner_table_equal_select(
    any_server: Server, any_database: str, new_stream: NewStream, metadata: str
) -> None:
    """Some servers set all nullable bits in its table map; the next map has its own bits again."""
    is_mariadb = any_server.is_mariadb
    if metadata == "FULL" and not is_mariadb:
        pytest.skip("only MariaDB has both such table maps and metadata")
    any_server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, s VARCHAR(9) NOT NULL)",
        "CREATE TABLE o (id INT PRIMARY KEY, x INT NOT NULL)",
        "CREATE TABLE i (id INT PRIMARY KEY, x INT NOT NULL)",
        database=any_database,
    )
    schemas = schemas_of(any_server, any_database)
    stream = new_stream(any_server, f"{any_database}.*")
    start = stream.initial()
    stream.latest(start)
    settings = [f"SET GLOBAL binlog_row_metadata = {metadata}"] if is_mariadb else []
    try:
        any_server.execute(
            *settings,
            "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')",
            "INSERT INTO o VALUES (1, 10), (2, 20), (4, 40)",
            "INSERT INTO i VALUES (1, 10), (3, 30)",
            *OUTER_JOINS,
            "UPDATE t SET a = a + 1",
            database=any_database,
        )
    finally:
        if settings:
            any_server.execute("SET GLOBAL binlog_row_metadata = DEFAULT")
    stream.wait_for_tail(any_server)
    replay = Replay(schemas)
    replay.apply(stream.rows(start, stream.latest(start)))
    for schema, shown in zip(schemas, selected(any_server, *schemas), strict=True):
        assert shown
        replay.assert_equals(any_database, schema.table, shown)


def test_hashed_unique_key_raises_schema_mismatch_error(
    mariadb: Server, new_stream: NewStream
) -> None:
    """MariaDB logs an additional column for the key, which no definition shows."""
    with new_database(mariadb, DATABASE):
        mariadb.execute(f"CREATE TABLE {DATABASE}.t (id INT PRIMARY KEY, b BLOB, UNIQUE (b))")
        stream = new_stream(mariadb, f"{DATABASE}.t", payload="json")
        start = stream.initial()
        mariadb.execute(f"INSERT INTO {DATABASE}.t VALUES (1, 'x')")
        with pytest.raises(SchemaMismatchError, match=r"expected 2 columns .* found 3"):
            stream.rows(start, stream.next_batch(start))
