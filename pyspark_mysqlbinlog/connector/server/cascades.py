"""Tables whose rows foreign keys change without the binlog, because InnoDB does so internally.

MySQL 9.6 and later execute foreign keys above the engine, and log these changes as rows like any
others, unless innodb_native_foreign_keys is ON (both measured on 9.7.4). Older servers lack this
variable, and log none of them (measured on 5.6, 5.7 and MariaDB 10.11).

MySQL shows the rules of each table that the account may read. MariaDB requires another grant on it
in addition to SELECT, such as REFERENCES; otherwise none are found.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["Cascade", "cascades_into"]

_RULES = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME,"
    " DELETE_RULE, UPDATE_RULE, CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS"
    " WHERE CONSTRAINT_SCHEMA = %s"
)
_CHANGE_ROWS = ("CASCADE", "SET NULL")


class Cascade(NamedTuple):
    """A foreign key that changes rows.

    Attributes
    ----------
    table : whose rows change.
    parent : the table whose changes cause it.
    rules : such as ``ON DELETE CASCADE``.
    name : of the constraint.
    """

    table: Table
    parent: Table
    rules: str
    name: str

    def __str__(self) -> str:
        return f"{'.'.join(self.table)} ({self.rules} of {'.'.join(self.parent)})"


def cascades_into(client: ReplicaClient, tables: Collection[Table]) -> list[Cascade]:
    """Return the foreign keys of these tables whose changes of rows are not logged, sorted.

    Queries each database separately: the server then opens no tables of others.
    """
    if client.variable("innodb_native_foreign_keys") == "OFF":
        return []
    found = []
    for database in sorted({database for database, _ in tables}):
        for schema, table, *parent, on_delete, on_update, name in client.query(_RULES, [database]):
            rules = [
                f"ON {what} {rule}"
                for what, rule in (("DELETE", on_delete), ("UPDATE", on_update))
                if rule in _CHANGE_ROWS
            ]
            if rules and (schema, table) in tables:
                actions = " and ".join(rules)
                found.append(Cascade((schema, table), (parent[0], parent[1]), actions, name))
    return sorted(found)
