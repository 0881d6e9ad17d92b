"""The SQL that corrects a finding, in the syntax of the server's version.

A statement is for the `mysql` client, in any sql_mode: names are in backquotes, the two parts of an
account too. MySQL 8.0 and later keep a setting over a restart with SET PERSIST; other servers need
a line in their configuration as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from pyspark_mysqlbinlog.names import quoted
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["Remedies", "pasteable", "quoted_account", "shown", "version_of"]

_PERSISTS_FROM = (8, 0, 0)


def version_of(text: str) -> tuple[int, ...]:
    """Return the numbers of a server's version: ``5.7.41-log`` is (5, 7, 41)."""
    # MariaDB before 11 begins with another server's number.
    numbers = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)", text)
    return tuple(map(int, numbers.groups())) if numbers else (0, 0, 0)


def quoted_account(account: str) -> str:
    """Quote an account as CURRENT_USER() returns it: its host is after the last @."""
    user, _, host = account.rpartition("@")
    return f"{quoted(user)}@{quoted(host)}"


@dataclass(frozen=True, slots=True)
class Remedies:
    """Statements for one server and account.

    Attributes
    ----------
    account : quoted.
    """

    is_mariadb: bool
    version: tuple[int, ...]
    account: str

    @classmethod
    def ask(cls, client: ReplicaClient) -> Self:
        """Query the account's name."""
        account = str(client.query("SELECT CURRENT_USER()")[0][0])
        return cls(client.is_mariadb, version_of(client.server_version), quoted_account(account))

    @property
    def persists(self) -> bool:
        """Whether SET PERSIST exists."""
        return not self.is_mariadb and self.version >= _PERSISTS_FROM

    def set_global(self, name: str, value: str) -> str:
        """Return the statement that sets a global variable; `value` is in SQL."""
        return f"SET {'PERSIST' if self.persists else 'GLOBAL'} {name} = {value}"

    def configure(self, **settings: str) -> str:
        """Return what to write into the configuration; empty if SET PERSIST does it."""
        return "" if self.persists else self.configure_always(**settings)

    @staticmethod
    def configure_always(**settings: str) -> str:
        """Return what to write into the configuration for a setting that needs a restart."""
        lines = ", ".join(f"{name} = {value}" for name, value in settings.items())
        return f"in [mysqld] of the server's configuration: {lines}"

    def grant(self, privileges: str, on: str) -> str:
        """Return the statement that grants privileges to the account."""
        return f"GRANT {privileges} ON {on} TO {self.account}"


def shown(text: str) -> str:
    """Return a text for a terminal: names of a server may contain control characters."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def pasteable(statement: str) -> str:
    """Return a statement that a terminal can show, and that means the same."""
    if statement.isprintable():
        return f"{statement};"
    text = statement.encode("utf-8", "surrogatepass").hex()
    return f"SET @s = CONVERT(X'{text}' USING utf8mb4); PREPARE s FROM @s; EXECUTE s;"
