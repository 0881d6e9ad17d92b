"""What the account can see, according to SHOW GRANTS.

information_schema omits what the account has no privilege on: whole tables, and single columns if
privileges are granted on columns only. So only the grants reveal what it does not show.

SHOW GRANTS needs no privilege. MariaDB lists the grants of the roles that are set, and of PUBLIC,
after the account's own, and MySQL those of the active roles (measured on 9.7.4; on 8.x the lines of
an account with roles count as incomplete). With partial_revokes=ON a REVOKE line takes a database
out of a grant on all of them. Before 8.0 MySQL also applies grants to the same user at other hosts,
and to the anonymous user, which are not listed: an account may see more than these lines show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby

from pyspark_mysqlbinlog.errors import LostConnectionError, ServerError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES, Table, folding, table_folding
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["Grant", "Grants", "like"]

_SKIPS_GRANTS = 1290  # mysqld --skip-grant-tables: all accounts have all privileges
_NAME = r"`((?:[^`]|``)*)`"
_GRANT = re.compile(rf"GRANT (.*?) ON (?:\*\.\*|{_NAME}\.(?:\*|{_NAME})) TO (\S+)", re.DOTALL)
# A line of a partial revoke: the database is a name, not a pattern.
_REVOKE = re.compile(rf"REVOKE (.*?) ON {_NAME}\.\* FROM ", re.DOTALL)
_FIRST_WITH_PARTIAL_REVOKES = 8  # MySQL's reference: from 8.0.16 on
_LISTS_ACTIVE_ROLES = 9  # the first version of MySQL on which it was measured
# Column names are not quoted in MySQL up to 5.7.
_COLUMNS = re.compile(r" \(.*?\)(?=, [A-Z]|$)", re.DOTALL)
# These grant nothing on tables.
_OTHERS = re.compile(r"GRANT (?:PROXY|EXECUTE|ALTER ROUTINE|.* ON (?:PROCEDURE|FUNCTION|PACKAGE))")
_ROLE = re.compile(r"GRANT `|SET DEFAULT ROLE ")
# With one of these on a column, information_schema shows the column.
_SHOWS_COLUMNS = frozenset({"SELECT", "INSERT", "UPDATE", "REFERENCES", "ALL PRIVILEGES"})
_SELECTS = frozenset({"SELECT", "ALL PRIVILEGES"})


@dataclass(frozen=True, slots=True)
class Grant:
    """A line of SHOW GRANTS.

    Attributes
    ----------
    database : a LIKE pattern, if `table` is None; None is all databases.
    table : None is all tables.
    privileges : on the whole of it.
    on_columns : whether there are others, on single columns.
    """

    grantee: str
    database: str | None
    table: str | None
    privileges: frozenset[str]
    on_columns: bool

    @classmethod
    def parse(cls, line: str) -> Grant | None:
        """Parse a line; None if it grants nothing on tables.

        Raises
        ------
        ValueError : it is of an unknown kind.
        """
        found = _GRANT.match(line)
        if found is None:
            if _OTHERS.match(line) or _ROLE.match(line):
                return None
            raise ValueError(line)
        granted, database, table, grantee = found.groups()
        privileges, on_columns = set(), False
        for privilege in _COLUMNS.sub("()", granted).split(", "):
            if privilege.endswith("()"):
                on_columns = True
            else:
                privileges.add(privilege)
        return cls(
            grantee,
            None if database is None else database.replace("``", "`"),
            None if table is None else table.replace("``", "`"),
            frozenset(privileges),
            on_columns,
        )

    def escaped(self) -> Grant:
        """Return the grant with its literal database name as a pattern that matches only it."""
        if self.database is None or self.table is not None:
            return self
        return replace(self, database=re.sub(r"[\\%_]", r"\\\g<0>", self.database))


@dataclass(frozen=True, slots=True)
class Grants:
    """What an account can see.

    Attributes
    ----------
    grants : those on tables.
    is_complete : whether every line was understood.
    case_sensitive : whether names of databases and tables differ by case.
    revoked : (database, privilege) that no grant on all databases gives.
    """

    grants: tuple[Grant, ...]
    is_complete: bool
    case_sensitive: bool
    revoked: frozenset[tuple[str, str]] = frozenset()
    # Tables with grants on columns; each table is looked up, and there may be thousands of grants.
    _on_columns: frozenset[Table] = field(default=frozenset(), repr=False)

    @classmethod
    def ask(cls, client: ReplicaClient, *, case_sensitive: bool) -> Grants:
        """Query the account's grants.

        Raises
        ------
        LostConnectionError : as `ReplicaClient.query` does.
        """
        try:
            lines = [str(line) for (line,) in client.query("SHOW GRANTS")]
        except LostConnectionError:
            raise
        except ServerError as error:
            if error.code != _SKIPS_GRANTS:
                return cls((), is_complete=False, case_sensitive=case_sensitive)
            lines = ["GRANT ALL PRIVILEGES ON *.* TO ``"]
        major = 0 if client.is_mariadb else client.major_version
        has_partial_revokes = major >= _FIRST_WITH_PARTIAL_REVOKES
        return cls.parse(
            lines,
            case_sensitive=case_sensitive,
            lists_roles=client.is_mariadb or major >= _LISTS_ACTIVE_ROLES,
            literal_names=has_partial_revokes and client.variable("partial_revokes") == "ON",
        )

    @classmethod
    def parse(
        cls,
        lines: Sequence[str],
        *,
        case_sensitive: bool,
        lists_roles: bool = False,
        literal_names: bool = False,
    ) -> Grants:
        """Parse the lines of SHOW GRANTS.

        Parameters
        ----------
        lists_roles : they contain what the active roles grant.
        literal_names : databases are names, not LIKE patterns: with partial_revokes=ON (measured
            on 9.7.4).
        """
        grants, revoked, is_complete = [], set(), True
        for line in lines:
            # A role whose grants are not listed may grant anything.
            if _ROLE.match(line) and not lists_roles:
                is_complete = False
            found = _REVOKE.match(line)
            if found is not None:
                database = found[2].replace("``", "`")
                revoked |= {(database, privilege) for privilege in found[1].split(", ")}
                continue
            try:
                grant = Grant.parse(line)
            except ValueError:
                is_complete = False
            else:
                if grant is not None:
                    grants.append(grant.escaped() if literal_names else grant)
        fold = table_folding(case_sensitive)
        on_columns = frozenset(
            fold((grant.database or "", grant.table or "")) for grant in grants if grant.on_columns
        )
        return cls(tuple(grants), is_complete, case_sensitive, frozenset(revoked), on_columns)

    @property
    def selects_everything(self) -> bool:
        """Whether the account may SELECT from every table that can be captured."""
        hides_one = any(
            privilege in _SELECTS and database not in SYSTEM_DATABASES
            for database, privilege in self.revoked
        )
        return not hides_one and any(
            grant.database is None and grant.privileges & _SELECTS for grant in self.grants
        )

    @property
    def selects_nothing(self) -> bool:
        """Whether it may SELECT from no table, according to these lines."""
        return self.is_complete and not any(
            grant.on_columns or grant.privileges & _SELECTS for grant in self.grants
        )

    def allows(self, privilege: str, database: str | None = None) -> bool:
        """Whether it has a privilege on all tables, or on those of a database.

        Also True if some grants were not understood (a role of MySQL 8.0): it may have it.
        """
        privileges = frozenset({privilege, "ALL PRIVILEGES"})
        if database is not None:
            return not self.is_complete or self._has(privileges, database)
        return not self.is_complete or any(
            grant.database is None and grant.privileges & privileges for grant in self.grants
        )

    def sees_all_of(self, database: str) -> bool:
        """Whether no table of a database, nor the database, can be hidden from the account."""
        return self._has(_SELECTS, database)

    def selects_from(self, matches: Callable[[str, str], bool]) -> bool:
        """Whether it may SELECT from a single table that matches."""
        return any(
            grant.table is not None
            and (grant.on_columns or grant.privileges & _SELECTS)
            and matches(grant.database or "", grant.table)
            for grant in self.grants
        )

    def selects_like(self) -> Iterator[str]:
        """Yield the LIKE patterns of databases all of whose tables may be SELECTed from."""
        for grant in self.grants:
            if grant.table is None and grant.database is not None and grant.privileges & _SELECTS:
                yield grant.database

    def shows_columns_of(self, database: str, table: str) -> bool:
        """Whether it can see all columns of a table, or none, rather than some of them."""
        fold = table_folding(self.case_sensitive)
        name = fold((database, table))
        if name not in self._on_columns:
            return True
        return self._has(_SHOWS_COLUMNS, database) or any(
            grant.privileges & _SHOWS_COLUMNS
            for grant in self.grants
            if grant.table is not None and fold((grant.database or "", grant.table)) == name
        )

    def _has(self, privileges: frozenset[str], database: str) -> bool:
        """Whether the account has one of them on all tables of a database."""
        for _, granted in groupby(self.grants, key=lambda grant: grant.grantee):
            on_databases = [grant for grant in granted if grant.table is None]
            if any(
                grant.database is None and grant.privileges & privileges - self._revoked(database)
                for grant in on_databases
            ):
                return True
            matching = [
                grant
                for grant in on_databases
                if grant.database is not None
                and like(grant.database, self.case_sensitive).fullmatch(database)
            ]
            # The server applies one of the matching grants; which one is not specified.
            if matching and all(grant.privileges & privileges for grant in matching):
                return True
        return False

    def _revoked(self, database: str) -> set[str]:
        """Return the privileges that grants on all databases do not give on this one."""
        if not self.revoked:
            return set()
        fold = folding(self.case_sensitive)
        return {privilege for name, privilege in self.revoked if fold(name) == fold(database)}


@lru_cache(maxsize=1024)
def like(pattern: str, case_sensitive: bool) -> re.Pattern[str]:
    """Compile a grant's database: LIKE's ``%`` and ``_``, unless after a backslash."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    text = "".join(
        wild.get(part) or re.escape(part.removeprefix("\\") if len(part) > 1 else part)
        for part in parts
    )
    return re.compile(text, re.DOTALL if case_sensitive else re.DOTALL | re.IGNORECASE)
