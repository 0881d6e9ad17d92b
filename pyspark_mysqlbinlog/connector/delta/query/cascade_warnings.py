"""Warns of tables whose rows foreign keys change: no log has such changes, so no mirror can."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from time import monotonic
from typing import Any

from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.server.cascades import Cascade, cascades_into
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["CascadeWatch"]

_LOG = logging.getLogger(__name__)
# Seconds.
_LOOK_EVERY = 600.0


class CascadeWatch:
    """Names each of them once, in the log, with the way on.

    options : of the source, by which the server is found.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._looked_at: tuple[object, float] = (None, 0.0)
        self._told: set[Cascade] = set()

    def look(self, tables: Collection[Table], state: object) -> None:
        """Ask the server about these tables; again when their state is another one, or is old."""
        # A foreign key that comes alone leaves the columns as they are.
        before, at = self._looked_at
        if state == before and monotonic() - at < _LOOK_EVERY:
            return
        self._looked_at = state, monotonic()
        settings = parse_options(self._options).server_settings()
        try:
            with ReplicaClient.connect(settings) as client:
                found = cascades_into(client, tables)
        except MySQLBinlogError as error:
            _LOG.warning("whether foreign keys change rows is not known: %s", error.message)
            return
        new = [each for each in found if each not in self._told]
        self._told.update(new)
        if new:
            _LOG.warning(
                "foreign keys change rows of %s; the log does not have such changes, and neither"
                " has Delta until the table is loaded again (option reload, on a schedule; see"
                " docs/reference/limitations.md)",
                ", ".join(map(str, new)),
            )
