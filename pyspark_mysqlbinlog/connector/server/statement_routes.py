"""Whether a statement that names no captured table changes one: by a view, trigger or function.

With row format the rows themselves are logged, whatever a statement names. A session with another
binlog_format has its statements logged instead, and then the server is queried for their tables.
It shows them as they are now: a view or trigger that was dropped since then is not found.

A view shows its definition only to accounts with SHOW VIEW, and a table its triggers only to those
with TRIGGER. A definition names its tables with their databases; the body of a trigger may leave
them out. A stored function is shown to accounts that may execute or alter it; what it changes is
not searched in its body, because a function that changes nothing is rarely in such a statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark_mysqlbinlog.connector.server.grants import Grants
from pyspark_mysqlbinlog.connector.server.warn_once import warn_once
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import StatementFormatError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["StatementRoutes", "names_in"]

_KIND = (
    "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_VIEW = (
    "SELECT VIEW_DEFINITION FROM information_schema.VIEWS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_TRIGGERS = (
    "SELECT ACTION_STATEMENT FROM information_schema.TRIGGERS"
    " WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s"
)
_FUNCTIONS = (
    "SELECT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES"
    " WHERE ROUTINE_TYPE = 'FUNCTION' AND ROUTINE_SCHEMA <> 'sys'"
)
_IDENTIFIER = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
_NAME = re.compile(rf"{_IDENTIFIER}(?:\s*\.\s*{_IDENTIFIER})?")
_CALLED = re.compile(rf"{_IDENTIFIER}\s*\(")
_CALL = re.compile(r"\bCALL\b", re.IGNORECASE)


class StatementRoutes:
    """Checks the tables of such statements, each once.

    Parameters
    ----------
    captures : whether a table is captured.
    case_sensitive : whether names of databases and tables differ by case.
    """

    def __init__(
        self,
        settings: ServerSettings,
        captures: Callable[[str, str], bool],
        *,
        case_sensitive: bool,
    ) -> None:
        self._settings = settings
        self._captures = captures
        self._case_sensitive = case_sensitive
        self._checked: set[Table] = set()
        self._no_functions: set[str] = set()

    def check(self, logged: LoggedStatement) -> None:
        """Raise for a statement that changes a captured table, or may.

        Raises
        ------
        StatementFormatError : it does so through a view or a trigger.
        MySQLBinlogError : the server cannot be queried.
        """
        named = {table for table in logged.statement.tables or () if _may_be_route(table)}
        new = named - self._checked
        called = {
            (quoted.replace("``", "`") or plain).lower()
            for quoted, plain in _CALLED.findall(logged.text)
        } - self._no_functions
        if not new and not called:
            return
        with ReplicaClient.connect(self._settings) as client:
            routes = [(table, self._route(client, table, set())) for table in sorted(new)]
            routes += [(table, self._function(client, called)) for table in sorted(named)[:1]]
        for table, route in routes:
            if route is not None:
                raise StatementFormatError(
                    f"a change of {'.'.join(table)} was logged as a statement, not as rows:"
                    f" {logged.statement.head!r}, and {route}; set binlog_format=ROW globally and"
                    " in every session, then start again with a new checkpoint after this position",
                    table=".".join(table),
                )
        self._checked |= new
        self._no_functions |= called

    @staticmethod
    def _function(client: ReplicaClient, called: set[str]) -> str | None:
        """Return how a stored function of one of these names may change a captured table."""
        for database, function in client.query(_FUNCTIONS) if called else ():
            if str(function).lower() in called:
                return f"{database}.{function} is a function, which may change a captured table"
        return None

    def _route(self, client: ReplicaClient, table: Table, visited: set[Table]) -> str | None:
        """Return how a change of a table changes a captured one; None if it does not."""
        if table in visited or not _may_be_route(table):
            return None
        visited.add(table)
        kinds = client.query(_KIND, table)
        if kinds and "VIEW" in str(kinds[0][0]):
            return self._route_of_view(client, table, visited)
        for (body,) in client.query(_TRIGGERS, table):
            name = f"a trigger of {'.'.join(table)}"
            if _CALL.search(str(body)):
                return f"{name} calls a procedure, which may change a captured table"
            for used in names_in(str(body), table[0]):
                if self._captures(*used):
                    return f"{name} uses the captured {'.'.join(used)}"
        grants = Grants.ask(client, case_sensitive=self._case_sensitive)
        if not kinds or not grants.allows("TRIGGER", table[0]):
            warn_once(
                f"a change of {'.'.join(table)} was logged as a statement, not as rows, and this"
                " account cannot see whether its triggers change captured tables: set"
                " binlog_format=ROW in every session, or GRANT TRIGGER, SHOW VIEW ON"
                f" `{table[0]}`.* to it"
            )
        return None

    def _route_of_view(self, client: ReplicaClient, view: Table, visited: set[Table]) -> str | None:
        name = f"{'.'.join(view)} is a view"
        text = "".join(str(row[0] or "") for row in client.query(_VIEW, view))
        if not text:
            return f"{name} whose tables this account cannot see (GRANT SHOW VIEW)"
        for used in names_in(text, view[0]):
            if self._captures(*used):
                return f"{name} that uses the captured {'.'.join(used)}"
        for used in names_in(text, view[0]):
            # A name may be that of a column: then no such table exists.
            if used != view and client.query(_KIND, used):
                inner = self._route(client, used, visited)
                if inner is not None:
                    return f"{name} of {'.'.join(used)}, and {inner}"
        return None


def _may_be_route(table: Table) -> bool:
    return table[0].lower() not in SYSTEM_DATABASES


def names_in(text: str, database: str) -> list[Table]:
    """Return the names in a definition that may be tables, sorted."""
    found = set()
    for groups in _NAME.findall(text):
        first, second = (groups[at].replace("``", "`") or groups[at + 1] for at in (0, 2))
        found.add((first, second) if second else (database, first))
    return sorted(found)
