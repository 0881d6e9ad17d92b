"""Statements whose name differs between versions of the server.

Measured: 5.6, 5.7 and MariaDB 10.11 and 11.8 have only the older names, 9.7 only the newer ones. In
between (8.0.22 to 8.3) a server may have both, and reports the older ones as deprecated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from pyspark_mysqlbinlog.errors import ServerError

__all__ = ["BINLOG_STATUS", "REPLICAS", "REPLICA_STATUS", "VersionedStatement"]

_PARSE_ERROR = 1064
_Rows = TypeVar("_Rows")


class VersionedStatement(NamedTuple):
    """The two names of one statement."""

    older: str
    newer: str

    def run(self, query: Callable[[str], _Rows]) -> _Rows:
        """Return what `query` returns for the name that the server knows.

        Raises what `query` raises; for a server that knows neither, the error of the newer name.
        """
        try:
            return query(self.older)
        except ServerError as error:
            if error.code != _PARSE_ERROR:
                raise
            return query(self.newer)


BINLOG_STATUS = VersionedStatement("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")
REPLICAS = VersionedStatement("SHOW SLAVE HOSTS", "SHOW REPLICAS")
REPLICA_STATUS = VersionedStatement("SHOW SLAVE STATUS", "SHOW REPLICA STATUS")
