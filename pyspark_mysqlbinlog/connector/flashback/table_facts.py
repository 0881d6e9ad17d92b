"""Facts of a table whose rows are to be restored, and reasons why they cannot be.

A statement that restores a row must change this row and nothing else, and store exactly the given
values. Therefore a table with triggers is rejected: they run again for each statement, and nothing
can disable them. A table with system versioning (MariaDB) is not a base table, and is not read.

Foreign keys with CASCADE or SET NULL change rows of other tables, of which the binlog has no trace
(before 9.6). So a change of the parent that may have had such an effect fails with UndoError, and a
statement that would have one changes nothing, because it requires that there is no child row.

Generated columns are left out of statements, because the server computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from pyspark_mysqlbinlog.connector.server.grants import Grants
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schemas
from pyspark_mysqlbinlog.errors import UndoError
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["Child", "TableFacts", "read_table_facts"]

# Not DEFAULT_GENERATED, which marks a column with an expression as its default.
_GENERATED = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE"
    " (EXTRA LIKE '%%VIRTUAL%%' OR EXTRA LIKE '%%STORED GENERATED%%'"
    " OR EXTRA LIKE '%%PERSISTENT%%') AND BINARY TABLE_SCHEMA IN %s"
)
_INDEXED = (
    "SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE"
    " COLUMN_NAME IS NOT NULL AND BINARY TABLE_SCHEMA IN %s"
)
_ENGINES = (
    "SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES t"
    " LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE"
    " BINARY t.TABLE_SCHEMA IN %s"
)
_TRIGGERS = (
    "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME FROM information_schema.TRIGGERS"
    " WHERE BINARY EVENT_OBJECT_SCHEMA IN %s"
)
_CHILDREN = (
    "SELECT r.UNIQUE_CONSTRAINT_SCHEMA, r.REFERENCED_TABLE_NAME, r.CONSTRAINT_SCHEMA, r.TABLE_NAME,"
    " r.CONSTRAINT_NAME, r.DELETE_RULE, r.UPDATE_RULE, k.COLUMN_NAME, k.REFERENCED_COLUMN_NAME"
    " FROM information_schema.REFERENTIAL_CONSTRAINTS r JOIN information_schema.KEY_COLUMN_USAGE k"
    " ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA AND k.TABLE_NAME = r.TABLE_NAME"
    " AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME WHERE BINARY r.UNIQUE_CONSTRAINT_SCHEMA IN %s"
    " AND k.REFERENCED_COLUMN_NAME IS NOT NULL"
)
_CHANGE_ROWS = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


@dataclass(frozen=True, slots=True)
class Child:
    """A foreign key that changes rows of a child when its parent's change.

    Attributes
    ----------
    columns : pairs of a column of the child, and the parent's that it refers to.
    on_delete, on_update : whether a DELETE, or an UPDATE of these columns, changes rows.
    """

    table: Table
    name: str
    columns: tuple[tuple[str, str], ...]
    on_delete: bool
    on_update: bool

    def __str__(self) -> str:
        return f"{self.name} of {'.'.join(self.table)}"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table, as statements need it.

    Attributes
    ----------
    generated : names of its generated columns.
    seekable : names of columns by which an index can find a row.
    is_transactional : whether a ROLLBACK undoes its changes.
    engine : for messages.
    hindrance : why its rows cannot be restored; empty if they can.
    children : by foreign keys that change rows.
    """

    schema: TableSchema
    generated: frozenset[str]
    seekable: frozenset[str]
    is_transactional: bool
    engine: str
    hindrance: str
    children: tuple[Child, ...] = ()

    @property
    def table(self) -> Table:
        return self.schema.database, self.schema.table

    @property
    def name(self) -> str:
        """The quoted name."""
        return quoted(self.schema.database, self.schema.table)

    @property
    def opening(self) -> str:
        """A statement that reads no row, and locks the definition until the transaction ends."""
        return f"SELECT 1 FROM {self.name} LIMIT 0"  # noqa: S608 (a quoted name)

    def check(self) -> None:
        """Raise UndoError if its rows cannot be restored."""
        if self.hindrance:
            raise UndoError(self.hindrance, table=self.schema.full_name)


def read_table_facts(
    client: ReplicaClient, captures: Callable[[str, str], bool], *, case_sensitive: bool
) -> dict[Table, TableFacts]:
    """Read the captured tables as they are now; raises as `read_table_schemas`."""
    schemas = read_table_schemas(client, captures)
    databases = tuple(sorted({schema.database for schema in schemas}))
    if not databases:
        return {}

    def texts(sql: str) -> list[tuple[Any, ...]]:
        rows = client.query(sql, [databases])
        return [
            tuple(each.decode() if isinstance(each, bytes) else each for each in row)
            for row in rows
        ]

    generated, indexed = _by_table(texts(_GENERATED)), _by_table(texts(_INDEXED))
    engines = {(row[0], row[1]): (row[2] or "", row[3] == "YES") for row in texts(_ENGINES)}
    triggers = _by_table(texts(_TRIGGERS))
    children = _children(texts(_CHILDREN))
    grants = Grants.ask(client, case_sensitive=case_sensitive)
    found = {}
    for schema in schemas:
        table = schema.database, schema.table
        engine, is_transactional = engines.get(table, ("", False))
        key = schema.row_key
        found[table] = TableFacts(
            schema,
            frozenset(generated.get(table, ())),
            frozenset(key or indexed.get(table, ())),
            is_transactional,
            engine,
            _hindrance(table, triggers.get(table, ()), grants),
            tuple(children.get(table, ())),
        )
    return found


def _children(rows: Iterable[tuple[Any, ...]]) -> dict[Table, list[Child]]:
    """Return the children of each parent."""
    columns: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for *constraint, column, referenced in rows:
        columns.setdefault((*constraint,), []).append((column, referenced))
    found: dict[Table, list[Child]] = {}
    for (*parent, database, table, name, on_delete, on_update), pairs in sorted(columns.items()):
        child = Child(
            (database, table),
            name,
            tuple(pairs),
            on_delete in _CHANGE_ROWS,
            on_update in _CHANGE_ROWS,
        )
        if child.on_delete or child.on_update:
            found.setdefault((parent[0], parent[1]), []).append(child)
    return found


def _by_table(rows: Iterable[tuple[Any, ...]]) -> dict[Table, list[str]]:
    found: dict[Table, list[str]] = {}
    for database, table, name in rows:
        found.setdefault((database, table), []).append(name)
    return found


def _hindrance(table: Table, triggers: Collection[str], grants: Grants) -> str:
    if triggers:
        return (
            f"the table has triggers ({', '.join(sorted(triggers))}), which would run again for"
            " each statement; drop them while the changes are undone"
        )
    if not _sees_triggers(grants, table):
        return (
            "the account cannot see whether the table has triggers, which would run again for each"
            f" statement: GRANT TRIGGER ON {quoted(*table)} to it"
        )
    return ""


def _sees_triggers(grants: Grants, table: Table) -> bool:
    wanted = {"TRIGGER", "ALL PRIVILEGES"}
    return grants.allows("TRIGGER", table[0]) or any(
        (grant.database, grant.table) == table and grant.privileges & wanted
        for grant in grants.grants
    )
