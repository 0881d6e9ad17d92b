"""Check whether the server's binlog contains the captured changes at all.

Two settings leave changes out of it without a trace: filters by database, and `log_slave_updates`
off on a replica. Both may have changed when the server returns, so they are checked at each
connection that follows the binlog.

A filter applies to rows by their table's database, and to DDL by the session's default database,
whatever tables it names (the manuals, --binlog-do-db, on row-based logging).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark_mysqlbinlog.connector.options.pattern_databases import (
    may_match_database,
    named_databases,
)
from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter
from pyspark_mysqlbinlog.connector.server.settings import master_status
from pyspark_mysqlbinlog.connector.server.statements import REPLICA_STATUS
from pyspark_mysqlbinlog.connector.server.warn_once import warn_once
from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    BinlogSettingsError,
    LostConnectionError,
    ServerError,
)
from pyspark_mysqlbinlog.names import folding
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["DatabaseFilter", "check_log_contents", "left_out_by"]

_DATABASES = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA"
# The second name since 8.0.26; a Galera node applies its cluster's changes like a replica.
_VARIABLES = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
    " ('log_slave_updates', 'log_replica_updates', 'wsrep_on')"
)


@dataclass(frozen=True, slots=True)
class DatabaseFilter:
    """The filters of a binlog; at least one of the two has no names, and excludes nothing.

    Attributes
    ----------
    do_db : the databases of binlog_do_db: all others are excluded, and `ignore_db` has no effect.
    ignore_db : those of binlog_ignore_db.
    """

    do_db: tuple[str, ...] = ()
    ignore_db: tuple[str, ...] = ()

    @classmethod
    def of(cls, only: str, but: str) -> DatabaseFilter:
        """Parse the values of SHOW MASTER STATUS, separated by commas."""
        return cls(_names(only), _names(but))

    @property
    def is_empty(self) -> bool:
        return not (self.do_db or self.ignore_db)

    @property
    def shown(self) -> str:
        """The filters for a message."""
        if self.do_db:
            return f"binlog_do_db shows {', '.join(self.do_db)}"
        return f"binlog_ignore_db shows {', '.join(self.ignore_db)}"

    def excludes(self, database: str) -> bool:
        # Names are compared exactly, even if table names are case-insensitive.
        return database not in self.do_db if self.do_db else database in self.ignore_db


def check_log_contents(client: ReplicaClient, tables: TableFilter) -> None:
    """Check the binlog with two or three queries; uncertain findings are logged, once each.

    Raises
    ------
    BinlogSettingsError : changes of captured tables are not in the binlog.
    LostConnectionError : as `ReplicaClient.query` does.
    """
    try:
        _check_filter(client, tables)
        _check_replica(client)
    except AccessDeniedError as error:
        warn_once(
            "not checked whether the binlog has all changes (binlog_do_db, binlog_ignore_db,"
            f" log_slave_updates): {error.message}"
        )


def _check_filter(client: ReplicaClient, tables: TableFilter) -> None:
    status = master_status(client)
    filtering = DatabaseFilter.of(*map(str, status[2:4])) if len(status) >= 4 else DatabaseFilter()
    if filtering.is_empty:
        return
    existing = [str(name) for (name,) in client.query(_DATABASES)]
    left_out, perhaps = left_out_by(filtering, tables, existing)
    if left_out:
        names = ", ".join(f"`{name}`" for name in left_out)
        raise BinlogSettingsError(
            f"the server leaves the changes of {names} out of its binlog ({filtering.shown}): start"
            " it without that option, or exclude these databases (tables, excludeTables)"
        )
    if perhaps:
        names = ", ".join(f"`{name}`" for name in perhaps)
        warn_once(
            f"the server leaves the changes of {names} out of its binlog ({filtering.shown}): if"
            " the option tables includes one of these, its rows are missing"
        )
    warn_once(
        f"the server's binlog does not have all databases ({filtering.shown}): DDL is in it if the"
        " session's default database is logged, whatever tables it names; ALTER a captured table"
        " with its own database as the default one"
    )
    if len(filtering.do_db) > 1:
        warn_once(
            f"{filtering.shown}: set as one option with commas, this is the name of one database,"
            " and nothing is logged; set the option once for each"
        )


def left_out_by(
    filtering: DatabaseFilter, tables: TableFilter, existing: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the excluded databases that are captured, and those that possibly are."""
    fold = folding(tables.case_sensitive)
    names = {*existing, *filtering.ignore_db, *map(fold, named_databases(tables))}
    wanted = {
        name: may_match_database(tables, name) for name in sorted(names) if filtering.excludes(name)
    }
    return (
        [name for name, is_wanted in wanted.items() if is_wanted],
        [name for name, is_wanted in wanted.items() if is_wanted is None],
    )


def _check_replica(client: ReplicaClient) -> None:
    """Check that a server that does not log what it applies is no replica."""
    values = {str(name): str(value) for name, value in client.query(_VARIABLES)}
    if "ON" in (values.get("log_slave_updates"), values.get("log_replica_updates")):
        return
    if values.get("wsrep_on") == "ON":
        warn_once(
            "the server is a node of a Galera cluster and log_slave_updates is OFF: the changes of"
            " its other nodes are not in its binlog; start it with --log-slave-updates"
        )
    applies, is_set_up = _replica_state(client)
    what = "log_slave_updates is OFF: the changes that the server applies as a replica are"
    cure = "start it with --log-slave-updates, or read its source's binlog"
    if applies:
        raise BinlogSettingsError(f"{what} not in its binlog, and it is replicating; {cure}")
    if is_set_up:
        warn_once(f"{what} not in its binlog, and it is configured as one; {cure}")


def _replica_state(client: ReplicaClient) -> tuple[bool, bool]:
    """Return whether the server applies changes of another one, and whether it is set up to."""
    try:
        if client.is_mariadb:
            sources = client.records("SHOW ALL SLAVES STATUS")
        else:
            sources = REPLICA_STATUS.run(client.records)
    except AccessDeniedError:
        if not client.is_mariadb:
            raise
        # MariaDB 10.5 and later require another privilege for this, but none for the number.
        rows = client.query("SHOW GLOBAL STATUS LIKE 'Slaves_running'")
        return any(str(value) != "0" for _, value in rows), False
    except LostConnectionError:
        raise
    except ServerError as error:
        warn_once(f"not checked whether the server is a replica: {error.message}")
        return False, False
    applies = any(
        "Yes" in (source.get("Slave_SQL_Running"), source.get("Replica_SQL_Running"))
        for source in sources
    )
    return applies, bool(sources)


def _names(shown: str) -> tuple[str, ...]:
    return tuple(name for name in shown.split(",") if name)
