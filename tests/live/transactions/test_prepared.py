"""Prepared SELECTs of a live server, read to the end or only in part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.logs.cutting_proxy import cutting_proxy
from helpers.logs.live_log import schemas_of
from helpers.servers import Server
from helpers.snapshots.loaded_rows import raw_client
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.decoder.kernel.result_rows import row_images
from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.read import read_rows
from pyspark_mysqlbinlog.errors import AccessDeniedError, LostConnectionError, ServerError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

ROWS = 40_000
# Bytes of a row image: null bitmap, id, length, text.
ROW_SIZE = 1 + 4 + 1 + 200
# A kill cannot stop rows that are already in buffers: after 2 MB the rows come slowly.
SLOW = "WHERE id < 10000 OR SLEEP(0.05) = 0 ORDER BY id"


@pytest.fixture
def plan(any_server: Server, any_database: str) -> ResultPlan:
    """Return the plan of a table of 8 MB, more than the buffers on the way hold."""
    any_server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v CHAR(200) NOT NULL)"
        " CHARACTER SET latin1",
        "INSERT INTO t (v) VALUES (REPEAT('x', 200))",
        *["INSERT INTO t (v) SELECT v FROM t"] * 16,
        f"DELETE FROM t ORDER BY id DESC LIMIT {(1 << 16) - ROWS}",
        database=any_database,
    )
    (schema,) = schemas_of(any_server, any_database)
    return ResultPlan.make(schema)


@pytest.fixture
def client(any_server: Server, plan: ResultPlan) -> Iterator[ReplicaClient]:
    # Close it before the database is dropped: an open transaction would lock the table.
    with raw_client(any_server) as client:
        yield client


def test_consecutive_prepared_reads_return_all_rows_and_close_statements(
    any_server: Server, client: ReplicaClient, plan: ResultPlan
) -> None:
    def held() -> int:
        ((_, count),) = any_server.execute("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")
        return int(count)

    before = held()
    for condition, count in (("", ROWS), ("WHERE id < 0", 0), ("LIMIT 1", 1), ("LIMIT 100", 100)):
        images = b"".join(read_rows(client, plan, condition, row_images))
        assert len(images) == count * ROW_SIZE
        assert client.query("SELECT 1 + 1") == [(2,)]
    assert held() == before


def test_killed_prepared_query_raises_server_error_and_keeps_connection(
    any_server: Server, client: ReplicaClient, plan: ResultPlan
) -> None:
    ((own_id,),) = client.query("SELECT CONNECTION_ID()")
    parts = read_rows(client, plan, SLOW, row_images)
    got = next(parts)
    assert len(got) % ROW_SIZE == 0
    any_server.execute(f"KILL QUERY {own_id}")
    with pytest.raises(ServerError, match="failed while reading rows: error 1317") as caught:
        list(parts)
    assert caught.value.code == 1317
    # The connection can still be used.
    assert client.query("SELECT 1") == [(1,)]
    assert len(b"".join(read_rows(client, plan, "", row_images))) == ROWS * ROW_SIZE


def test_killed_connection_during_prepared_read_raises_an_error(
    any_server: Server, client: ReplicaClient, plan: ResultPlan
) -> None:
    ((own_id,),) = client.query("SELECT CONNECTION_ID()")
    parts = read_rows(client, plan, SLOW, row_images)
    next(parts)
    any_server.execute(f"KILL {own_id}")
    with pytest.raises((LostConnectionError, ServerError)):
        list(parts)


def test_prepared_read_of_table_altered_after_snapshot_raises_server_error(
    any_server: Server, client: ReplicaClient, plan: ResultPlan
) -> None:
    client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    # Without COPY, MariaDB adds the column without a new table if possible.
    any_server.execute(f"ALTER TABLE {plan.source} ADD COLUMN w INT FIRST, ALGORITHM = COPY")
    with pytest.raises(ServerError) as caught:
        list(read_rows(client, plan, "", row_images))
    assert caught.value.code == 1412
    client.query("ROLLBACK")
    assert len(b"".join(read_rows(client, plan, "LIMIT 3", row_images))) == 3 * ROW_SIZE


def test_prepared_read_of_missing_table_raises_server_error(
    client: ReplicaClient, plan: ResultPlan
) -> None:
    client.query(f"DROP TABLE {plan.source}")
    with pytest.raises(ServerError, match="failed while preparing") as caught:
        list(read_rows(client, plan))
    assert caught.value.code == 1146
    assert client.query("SELECT 1") == [(1,)]


def test_prepared_read_without_select_grant_raises_access_denied_error(
    any_server: Server, plan: ResultPlan
) -> None:
    any_server.execute(
        "CREATE USER 'sees_nothing'@'%' IDENTIFIED BY 'x'",
        "GRANT REPLICATION CLIENT ON *.* TO 'sees_nothing'@'%'",
    )
    try:
        settings = any_server.settings(user="sees_nothing", password="x", ssl_mode="DISABLED")
        with ReplicaClient.connect(settings) as client:
            client.begin_raw_rows()
            with pytest.raises(AccessDeniedError, match="SELECT command denied"):
                list(read_rows(client, plan))
    finally:
        any_server.execute("DROP USER 'sees_nothing'@'%'")


def test_broken_connection_yields_whole_rows_then_lost_connection_error(
    any_server: Server, plan: ResultPlan
) -> None:
    whole = b""
    with raw_client(any_server) as client:
        whole = b"".join(read_rows(client, plan, "ORDER BY id", row_images))
    assert len(whole) == ROWS * ROW_SIZE
    for allowed in (5_000, 100_000, 1_234_567, 4_000_000, 8_000_000):
        with cutting_proxy(any_server.host, any_server.port, iter([allowed])) as proxy:
            settings = any_server.settings(port=proxy.port, ssl_mode="DISABLED")
            with ReplicaClient.connect(settings) as client:
                client.begin_raw_rows()
                got: list[bytes] = []
                with pytest.raises(LostConnectionError, match="reading rows"):
                    got.extend(read_rows(client, plan, "ORDER BY id", row_images))
            assert proxy.cuts == 1
        assert whole.startswith(b"".join(got))
        assert all(len(part) % ROW_SIZE == 0 for part in got)


def test_closing_a_client_during_a_prepared_read_ends_its_session(
    any_server: Server, plan: ResultPlan
) -> None:
    with raw_client(any_server) as client:
        ((own_id,),) = client.query("SELECT CONNECTION_ID()")
        next(read_rows(client, plan, "", row_images))
    wait_until(
        lambda: own_id not in [row[0] for row in any_server.execute("SHOW PROCESSLIST")],
        "the session ends",
    )
