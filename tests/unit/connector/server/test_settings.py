"""Queries of the binlog position, with a stand-in for a server."""

from __future__ import annotations

from typing import Any, cast

import pymysql
import pytest

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.server.settings import current_position
from pyspark_mysqlbinlog.errors import ServerError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.server_errors import refused


class Refusing:
    """A stand-in for a server that rejects SHOW MASTER STATUS, as MySQL 8.4 and later do."""

    def __init__(self, code: int, address: str) -> None:
        self._error = refused(pymysql.err.ProgrammingError(code, "no"), address, "running it")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        if sql == "SHOW MASTER STATUS":
            raise self._error
        return [("b.000007", 120)]


def asked(code: int, address: str = "h:3306") -> Position:
    return current_position(cast(ReplicaClient, Refusing(code, address)))


def test_binlog_status_falls_back_to_the_statement_of_newer_servers() -> None:
    assert asked(1064) == Position(7, 120, "b.000007")


@pytest.mark.parametrize("address", ["h:3306", "h:10640", "host1064:3306"])
def test_other_binlog_status_error_raises_server_error(address: str) -> None:
    with pytest.raises(ServerError, match=f"{address} failed while running it: error 1105"):
        asked(1105, address)
