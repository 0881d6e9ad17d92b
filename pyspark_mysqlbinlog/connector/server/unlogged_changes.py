"""Warns of captured tables whose rows may change without row events, when a query starts.

* Foreign keys with CASCADE or SET NULL: see `cascades`.
* MERGE tables: a row that is changed through one is logged as a row of the MERGE table.
* MEMORY tables: a restart of the server empties them. It logs a statement when a session first uses
  the table. 5.6.24 and MariaDB log none if that session has sql_log_bin = 0; 5.7.41 and 9.7.4 log
  it (measured, MariaDB on 10.11 and 11.8).
* Views, and triggers of other tables: only in statement format, and then the stream stops if it can
  (see `statement_routes`). So they are named in an INFO line.
* BEFORE UPDATE triggers, whose effect on these columns is not in the row event: VIRTUAL columns in
  an UPDATE of several tables (measured on MariaDB 10.11.18; 11.8.9 does not log the columns), and
  a JSON document that is logged as a difference (measured on 9.7.4).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection

from pyspark_mysqlbinlog.connector.server.cascades import cascades_into
from pyspark_mysqlbinlog.connector.server.statement_routes import names_in
from pyspark_mysqlbinlog.connector.server.warn_once import warn_once
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext
from pyspark_mysqlbinlog.errors import AccessDeniedError
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["indirect_writers", "warn_of_unlogged_changes"]

_LOG = logging.getLogger("pyspark_mysqlbinlog")
_ENGINES = (
    "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = %s AND ENGINE IN ('MEMORY', 'MRG_MYISAM')"
)
_VIEWS = "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = %s"
_TRIGGERS = (
    "SELECT EVENT_OBJECT_TABLE, ACTION_STATEMENT FROM information_schema.TRIGGERS"
    " WHERE EVENT_OBJECT_SCHEMA = %s"
)
_UPDATE_TRIGGERS = (
    "SELECT EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = %s"
    " AND EVENT_MANIPULATION = 'UPDATE' AND ACTION_TIMING = 'BEFORE'"
)
_COLUMNS = "SELECT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND "
_IS_VIRTUAL, _IS_JSON = "EXTRA LIKE '%%VIRTUAL%%'", "DATA_TYPE = 'json'"
# The first version that was measured not to log virtual columns of updated rows.
_MIN_MARIADB_WITHOUT_VIRTUAL = 110800
_UNION = re.compile(r" UNION=\((.*?)\)(?: |$)", re.DOTALL)
_NAME = re.compile(r"(?:`((?:[^`]|``)+)`\.)?`((?:[^`]|``)+)`")
_SEE = "see docs/reference/limitations.md"


def warn_of_unlogged_changes(
    client: ReplicaClient, tables: Collection[Table], *, with_cascades: bool
) -> None:
    """Log a warning for each kind of such tables among the captured ones.

    with_cascades : False if the caller warns of foreign keys itself.

    Raises
    ------
    LostConnectionError, ServerError : as `ReplicaClient.query` does.
    """
    try:
        if with_cascades and (cascades := cascades_into(client, tables)):
            warn_once(
                f"foreign keys change rows of {', '.join(map(str, cascades))}; the binlog lacks"
                f" these changes, and so does this query: {_SEE}"
            )
        _warn_of_engines(client, tables)
        _warn_of_triggers(client, tables)
        _tell_of_routes(client, tables)
    except AccessDeniedError as error:
        warn_once(f"not checked which tables change without row events: {error.message}")


def _warn_of_engines(client: ReplicaClient, tables: Collection[Table]) -> None:
    emptied: list[str] = []
    for database in sorted({database for database, _ in tables}):
        for name, engine in client.query(_ENGINES, [database]):
            table = database, str(name)
            # MariaDB spells it MRG_MyISAM.
            if str(engine).upper() == "MRG_MYISAM":
                _warn_of_merge(client, table, tables)
            elif table in tables:
                emptied.append(".".join(table))
    if emptied and (client.is_mariadb or client.server_version.startswith(("5.5.", "5.6."))):
        warn_once(
            f"{', '.join(sorted(emptied))}: a restart of the server empties MEMORY tables, and it"
            f" does not log that if the first session that uses one has sql_log_bin = 0: {_SEE}"
        )


def _warn_of_triggers(client: ReplicaClient, tables: Collection[Table]) -> None:
    context = SqlContext.of(0, client.server_version)
    if context.mariadb and context.server_version < _MIN_MARIADB_WITHOUT_VIRTUAL:
        columns = _IS_VIRTUAL
        lost = (
            "an UPDATE of several tables logs VIRTUAL columns with their values from before the"
            " trigger"
        )
    elif "PARTIAL_JSON" in (client.variable("binlog_row_value_options") or ""):
        columns = _IS_JSON
        lost = "with PARTIAL_JSON the binlog lacks the trigger's changes of a document"
    else:
        return
    found = []
    for database in sorted({database for database, _ in tables}):
        with_trigger, with_column = (
            {(database, str(name)) for (name,) in client.query(query, [database])}
            for query in (_UPDATE_TRIGGERS, _COLUMNS + columns)
        )
        found += sorted(with_trigger & with_column & set(tables))
    if found:
        names = ", ".join(map(".".join, found))
        warn_once(
            f"{names}: `after` can have wrong values where a BEFORE UPDATE trigger changes rows,"
            f" because {lost}: {_SEE}"
        )


def _tell_of_routes(client: ReplicaClient, tables: Collection[Table]) -> None:
    found = indirect_writers(client, tables)
    if found:
        _LOG.info(
            "some sessions may change %s: they must have binlog_format=ROW, or their statements"
            " stop this query",
            "; ".join(found),
        )


def indirect_writers(client: ReplicaClient, tables: Collection[Table]) -> list[str]:
    """Return the views and triggers by which a statement that names no table here may change one.

    Each with the tables; sorted.
    """
    found = set()
    for database in {database for database, _ in tables}:
        for query, what in ((_VIEWS, "the view"), (_TRIGGERS, "triggers of")):
            for name, text in client.query(query, [database]):
                used = [".".join(each) for each in names_in(str(text), database) if each in tables]
                if used and (database, name) not in tables:
                    found.add(f"{', '.join(used)} through {what} {database}.{name}")
    return sorted(found)


def _warn_of_merge(client: ReplicaClient, merge: Table, tables: Collection[Table]) -> None:
    union = _UNION.search(str(client.query(f"SHOW CREATE TABLE {quoted(*merge)}")[0][1]))
    parts = [
        (database.replace("``", "`") or merge[0], name.replace("``", "`"))
        for database, name in _NAME.findall(union[1] if union else "")
    ]
    captured = [".".join(part) for part in parts if part in tables]
    if captured:
        warn_once(
            f"rows of {', '.join(captured)} that are changed through the MERGE table"
            f" {'.'.join(merge)} are logged as its rows, not as theirs: {_SEE}"
        )
