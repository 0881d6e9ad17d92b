"""Warns of tables that foreign keys change: the binlog, and thus a mirror, lacks these changes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from time import monotonic
from typing import Any

from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.server.cascades import Cascade, cascades_into
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["CascadeWatch"]

_LOG = logging.getLogger(__name__)
_CHECK_INTERVAL_SECONDS = 600.0


class CascadeWatch:
    """Logs each foreign key that changes rows of the tables, once, with the remedy.

    options : of the source, to connect to the server.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._looked_at: tuple[object, float] = (None, 0.0)
        self._warned: set[Cascade] = set()

    def look(self, tables: Collection[Table], state: object) -> None:
        """Query the server for these tables; again if their state has changed or is old."""
        # Adding only a foreign key leaves the columns unchanged.
        before, at = self._looked_at
        if state == before and monotonic() - at < _CHECK_INTERVAL_SECONDS:
            return
        self._looked_at = state, monotonic()
        settings = parse_options(self._options).server_settings()
        try:
            with ReplicaClient.connect(settings) as client:
                found = cascades_into(client, tables)
        except MySQLBinlogError as error:
            _LOG.warning("cannot check whether foreign keys change rows: %s", error.message)
            return
        new = [each for each in found if each not in self._warned]
        self._warned.update(new)
        if new:
            _LOG.warning(
                "foreign keys change rows of %s; the binlog lacks these changes, and so does Delta"
                " until the table is reloaded (option reload, on a schedule; see"
                " docs/reference/limitations.md)",
                ", ".join(map(str, new)),
            )
