"""Snapshots and streams under changed global settings give what SELECT shows by default.

See `helpers/writers/global_settings.py`; the account has no SUPER. A retry would hide a failed
read of a chunk, so no attempt may fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pymysql
import pytest

from helpers.logs.live_log import client_of, new_database
from helpers.servers import LocalServer, MySQL56Server, Server
from helpers.servers.available import every_server, mariadb_kind
from helpers.streams.stream_query import Query
from helpers.writers.global_settings import (
    GROUPS,
    Tables,
    assert_snapshot_and_changes,
    globally,
    plain_account,
    with_tables,
)
from pyspark_mysqlbinlog.connector.server.dictionary import pin_definition
from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    BinlogPurgedError,
    InvalidPositionError,
    LostConnectionError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

Account = dict[str, str]

LOCK_WAIT_TIMEOUT = 1205

INIT_CONNECT = (
    "SET NAMES sjis, autocommit = 0, sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES', time_zone = '-03:00',"
    " lc_messages = 'ja_JP', timestamp = 1, net_write_timeout = 1, completion_type = 2,"
    " sql_select_limit = 1, wait_timeout = 1"
)


@pytest.fixture(params=every_server())
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def tables(server: Server) -> Iterator[Tables]:
    with with_tables(server, "settings_reach") as tables:
        yield tables


@pytest.fixture
def account(server: Server) -> Iterator[Account]:
    with plain_account(server) as account:
        yield account


@pytest.fixture
def no_second_try(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that no connection was lost and no chunk was read twice."""
    yield
    messages = [record.getMessage() for record in caplog.get_records("call")]
    assert [text for text in messages if "failed" in text or "lost" in text] == []


@pytest.mark.one_server
@pytest.mark.usefixtures("no_second_try")
@pytest.mark.parametrize("group", GROUPS)
def test_global_settings_do_not_change_snapshot_and_streamed_rows(
    server: Server, tables: Tables, account: Account, group: str
) -> None:
    if group == "oracle" and server.is_mysql9():
        pytest.skip("8.0 and later have no such sql_mode")
    with globally(server, GROUPS[group]) as found:
        if not found and group == "mysql8" and not server.is_mysql9():
            pytest.skip("it has none of these settings")
        assert found
        if "binlog_row_image" not in GROUPS[group]:
            assert_snapshot_and_changes(tables, account)
            return
        # Row images depend on the writing session's settings, which are set when it connects.
        with server.connect() as connection, connection.cursor() as writer:
            assert_snapshot_and_changes(tables, account, writer=writer)


@pytest.mark.usefixtures("no_second_try")
def test_init_connect_does_not_change_snapshot_and_streamed_rows(
    server: Server, tables: Tables, account: Account
) -> None:
    with globally(server, {"init_connect": INIT_CONNECT}):
        assert_snapshot_and_changes(tables, account)


@pytest.mark.parametrize("level", ["READ-UNCOMMITTED", "SERIALIZABLE"])
def test_snapshot_includes_rows_of_a_delete_that_is_rolled_back_later(
    server: Server, level: str
) -> None:
    """The last row's key is the limit of the snapshot, whatever the global isolation level is."""
    isolation = dict.fromkeys(("tx_isolation", "transaction_isolation"), level)
    with new_database(server, "rolled_back") as database:
        server.execute(
            f"CREATE TABLE {database}.t (id INT PRIMARY KEY)",
            f"INSERT INTO {database}.t VALUES (1), (2), (3), (4)",
        )
        query = Query(server, f"{database}.t", payload="json", startingOffset="snapshot")
        with (
            server.connect(database=database, autocommit=False) as connection,
            connection.cursor() as writer,
            globally(server, isolation),
        ):
            writer.execute("DELETE FROM t WHERE id > 2")
            try:
                rows = query.start().rows()
                connection.rollback()
                rows += query.rows()
            finally:
                query.stop()
    assert sorted(json.loads(row["after"])["id"] for row in rows) == [1, 2, 3, 4]


@pytest.mark.one_server
@pytest.mark.parametrize("init", ["SET autocommit = 0", "START TRANSACTION"])
def test_no_transaction_stays_open_between_snapshot_batches(
    server: Server, tables: Tables, account: Account, init: str
) -> None:
    """Otherwise the planner would read a stale view, and ALTER TABLE would wait for it."""
    texts = {"payload": "json", "startingOffset": "snapshot", "sslMode": "DISABLED", **account}
    query = Query(
        server,
        f"{tables.database}.keyed",
        maxRowsPerTrigger="12",
        reloadAfterDdl="true",
        **texts,
    )
    with globally(server, {"init_connect": init}):
        try:
            spark = query.start().spark
            assert spark is not None and query.checkpoint is not None
            end = spark.next_batch(query.checkpoint)
            assert spark.rows(query.checkpoint, end)
            query.checkpoint = end
            tables.cursor.execute("SET lock_wait_timeout = 60")
            tables.cursor.execute("ALTER TABLE keyed MODIFY b VARCHAR(30), ADD more INT DEFAULT 7")
            rows = query.rows()
        finally:
            query.stop()
    tables.cursor.execute("SELECT number FROM keyed")
    numbers = {int(number) for (number,) in tables.cursor.fetchall()}
    loaded = [json.loads(row["after"]) for row in rows if row["op"] == "r"]
    assert {row["number"] for row in loaded if row["more"] == 7} == numbers


def test_failing_init_connect_raises_final_server_error(server: Server, account: Account) -> None:
    settings = server.settings(**account, ssl_mode="DISABLED")
    with (
        globally(server, {"init_connect": "SELECT no_such_column"}),
        pytest.raises(ServerError, match="the global init_connect fails for this account") as error,
    ):
        ReplicaClient.connect(settings)
    # Another attempt would fail in the same way.
    assert not isinstance(error.value, LostConnectionError)


LANGUAGES = ("de_DE", "ja_JP")


@pytest.mark.parametrize("language", LANGUAGES)
def test_dump_errors_are_distinguished_in_every_server_language(
    server: Server, language: str
) -> None:
    """The texts of error 1236 are not translated, not even in a session of that language."""
    file, end = server.position()
    refusals: list[tuple[str, int, type[Exception]]] = [
        ("no-such-file.000001", 4, BinlogPurgedError),
        (file, end + 1_000_000, InvalidPositionError),
        (file, 5, InvalidPositionError),
    ]
    with globally(server, {"lc_messages": language}):
        for own in (False, True):
            for name, pos, kind in refusals:
                with client_of(server) as client:
                    if own:
                        client.query("SET SESSION lc_messages = @@GLOBAL.lc_messages")
                    with pytest.raises(kind):
                        _read_dump(client, name, pos)
        # Before there is a session, the global language applies.
        with pytest.raises(AccessDeniedError, match="rejected the user"):
            ReplicaClient.connect(server.settings(password="wrong", ssl_mode="DISABLED"))


def test_select_returns_current_rows_despite_system_versioning_asof(mariadb: Server) -> None:
    with new_database(mariadb, "versioned") as database:
        mariadb.execute(
            f"CREATE TABLE {database}.t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
            f"INSERT INTO {database}.t VALUES (1, 1)",
        )
        past = {"system_versioning_asof": "2001-01-01 00:00:00"}
        with globally(mariadb, past), client_of(mariadb) as client:
            assert client.query(f"SELECT * FROM {database}.t") == [(1, 1)]


def _read_dump(client: ReplicaClient, file: str, pos: int) -> None:
    dump = client.dump(file, pos, blocking=False)
    while dump.next_event() is not None:
        pass


# Settings that only a server start can set.
STARTED_WITH = (
    "--query-cache-type=1",
    "--query-cache-size=4M",
    "--skip-character-set-client-handshake",
    "--character-set-server=latin1",
)
# MySQL 8.0 and later has no query cache.
CACHING: dict[str, type[LocalServer]] = {
    kind.name: kind for kind in (MySQL56Server, mariadb_kind())
}


@pytest.fixture(scope="module", params=CACHING)
def caching(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Yield a server that answers a repeated SELECT from its query cache."""
    request.getfixturevalue(request.param)  # ends the test if it is missing
    with CACHING[request.param](STARTED_WITH) as server:
        yield server


def test_query_cache_does_not_change_snapshot_and_streamed_rows(caching: Server) -> None:
    with with_tables(caching, "cached") as tables, plain_account(caching) as account:
        assert_snapshot_and_changes(tables, account)
        # Read the same chunks again, with rows that have changed.
        assert_snapshot_and_changes(tables, account)


@pytest.mark.parametrize("mode", ["YES", "SUPER"])
def test_secure_timestamp_does_not_change_snapshot_and_streamed_rows(
    request: pytest.FixtureRequest, mode: str
) -> None:
    """With secure_timestamp, a session can set `timestamp` only to DEFAULT."""
    request.getfixturevalue("mariadb")  # ends the test if it is missing
    with (
        mariadb_kind()([f"--secure-timestamp={mode}"]) as server,
        with_tables(server, "clock") as tables,
        plain_account(server) as account,
    ):
        assert_snapshot_and_changes(tables, account)


def test_table_definition_is_pinned_despite_query_cache(caching: Server) -> None:
    with new_database(caching, "held") as database:
        caching.execute(f"CREATE TABLE {database}.t (a INT, b INT)")
        for _ in range(2):
            with client_of(caching) as client:
                client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                pin_definition(client, (database, "t"))
                # Swaps two columns in place.
                with pytest.raises(pymysql.err.OperationalError) as error:
                    caching.execute(
                        "SET lock_wait_timeout = 1",
                        f"ALTER TABLE {database}.t CHANGE a b INT, CHANGE b a INT",
                    )
                assert error.value.args[0] == LOCK_WAIT_TIMEOUT
