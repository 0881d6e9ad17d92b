"""SELECT grants on some columns of a table: information_schema shows only those columns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.servers import Server
from helpers.streams.source_runner import Spark, ids
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.errors import AccessDeniedError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

USER = "reader_columns"
READER = {"user": USER, "password": "secret"}
GRANTS = f"GRANT {{}} TO {USER}@'%'"


@pytest.fixture
def database(any_server: Server, any_database: str) -> Iterator[str]:
    """Yield a database with one fully visible table, and others with some visible columns."""
    any_server.execute(
        f"CREATE USER {USER}@'%' IDENTIFIED BY 'secret'",
        GRANTS.format("REPLICATION SLAVE, REPLICATION CLIENT ON *.*"),
        "CREATE TABLE seen (id INT PRIMARY KEY, a INT)",
        "CREATE TABLE no_key (id INT PRIMARY KEY, a INT, b INT)",
        "CREATE TABLE no_middle (id INT PRIMARY KEY, a INT, b INT)",
        "CREATE TABLE no_last (id INT PRIMARY KEY, a INT, b INT)",
        GRANTS.format("SELECT ON seen"),
        GRANTS.format("SELECT (a, b) ON no_key"),
        GRANTS.format("SELECT (id, b) ON no_middle"),
        GRANTS.format("SELECT (id, a), DELETE ON no_last"),
        database=any_database,
    )
    yield any_database
    any_server.execute(f"DROP USER {USER}@'%'")


def test_partly_granted_tables_are_ignored_if_not_captured(
    any_server: Server, database: str, new_stream: NewStream
) -> None:
    """To the stream, they are as unknown as tables that the account cannot see at all."""
    stream: Spark = new_stream(any_server, f"{database}.seen", **READER)
    start = stream.initial()
    start = stream.latest(start)
    any_server.execute(
        "INSERT INTO no_last VALUES (1, 2, 3)", "INSERT INTO seen VALUES (7, 8)", database=database
    )
    end = stream.next_batch(start)
    assert ids(stream.rows(start, end)) == [7]
    with ReplicaClient.connect(any_server.settings(**READER)) as client:
        found = read_table_schemas(client, lambda _, table: table == "seen", others=True)
    assert [each.table for each in found if each.database == database] == ["seen"]


@pytest.mark.parametrize("table", ["no_key", "no_middle", "no_last"])
def test_captured_table_with_partial_column_grants_is_rejected(
    any_server: Server, database: str, new_stream: NewStream, table: str
) -> None:
    stream: Spark = new_stream(any_server, f"{database}.{table}", **READER)
    with pytest.raises(AccessDeniedError) as caught:
        stream.initial()
    assert f"GRANT SELECT ON `{database}`.`{table}` to this account" in caught.value.message
    assert caught.value.table == f"{database}.{table}"
    any_server.execute(GRANTS.format(f"INSERT ON `{database}`.`{table}`"))
    # With the INSERT grant, the account can see all columns.
    assert stream.initial()["file"]
