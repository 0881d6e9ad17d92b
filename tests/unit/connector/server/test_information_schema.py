"""Queries of information_schema over a connection that fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self, cast

import pymysql
import pytest

from pyspark_mysqlbinlog.connector.server.information_schema import (
    read_database_charsets,
    read_table_schemas,
)
from pyspark_mysqlbinlog.errors import AccessDeniedError, LostConnectionError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

# Part of a query: its result row. Some servers send texts as bytes.
ROWS: dict[str, tuple[Any, ...]] = {
    ".TABLES": (b"d", b"t", b"utf8_bin"),
    "VERSION()": ("5.7.41", 0),
    ".COLUMNS": (b"d", b"t", b"id", b"int(11)", None, b"NO", b"", 1),
    ".STATISTICS": (b"d", b"t", b"PRIMARY", b"id", 1),
    ".SCHEMATA": (b"d", b"utf8mb3"),
    "SHOW GRANTS": ("GRANT SELECT ON *.* TO 'u'@'%'",),
}


class Cursor:
    """A cursor that answers every query except for one that fails."""

    description = None

    def __init__(self, fails: str, error: Exception | None) -> None:
        self._fails = fails
        self._error = error
        self._rows: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, query: str, _: object) -> None:
        if self._error is not None and self._fails in query:
            raise self._error
        self._rows = [next(row for part, row in ROWS.items() if part in query)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


def client(fails: str = "nothing", error: Exception | None = None) -> ReplicaClient:
    connection = SimpleNamespace(cursor=lambda: Cursor(fails, error), server_version="5.7")
    return ReplicaClient(ServerSettings("h", 3306, "u", "secret"), cast(Any, connection))


def test_texts_returned_as_bytes_are_decoded() -> None:
    (schema,) = read_table_schemas(client(), lambda *_: True)
    assert schema.full_name == "d.t"
    assert schema.primary_key == ("id",)
    assert read_database_charsets(client()) == {"d": "utf8"}


ERRORS: list[tuple[Exception, type[MySQLBinlogError]]] = [
    (pymysql.err.OperationalError(2013, "Lost connection to MySQL server"), LostConnectionError),
    (pymysql.err.OperationalError(1142, "SELECT command denied to user"), AccessDeniedError),
    (ConnectionResetError(104, "Connection reset by peer"), LostConnectionError),
]


@pytest.mark.parametrize("fails", list(ROWS)[:-2])
@pytest.mark.parametrize(("error", "kind"), ERRORS)
def test_failed_table_query_raises_a_connection_or_access_error(
    fails: str, error: Exception, kind: type[MySQLBinlogError]
) -> None:
    with pytest.raises(kind, match=r"^h:3306|^the connection to h:3306"):
        read_table_schemas(client(fails, error), lambda *_: True)


def test_denied_grants_query_is_ignored_but_a_lost_connection_is_raised() -> None:
    denied = pymysql.err.OperationalError(1142, "SELECT command denied to user")
    assert len(read_table_schemas(client("SHOW GRANTS", denied), lambda *_: True)) == 1
    lost = pymysql.err.OperationalError(2013, "Lost connection to MySQL server")
    with pytest.raises(LostConnectionError):
        read_table_schemas(client("SHOW GRANTS", lost), lambda *_: True)


@pytest.mark.parametrize(("error", "kind"), ERRORS)
def test_failed_database_query_raises_a_connection_or_access_error(
    error: Exception, kind: type[MySQLBinlogError]
) -> None:
    with pytest.raises(kind):
        read_database_charsets(client(".SCHEMATA", error))
