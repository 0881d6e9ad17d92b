"""Whether the patterns of `tables` meet anything, and whether the account may see it.

A table that is named must exist (see `initial_history.check_named_tables`). A pattern may be for
tables that come later, so one that meets none is only logged. But where the account may not see
what a pattern wants, the first row would stop the query, hours later: that is refused at the start,
as far as the grants tell it for certain. What they can't tell is told in the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.options.pattern_databases import (
    excludes_all_of,
    is_covered,
    single_database,
)
from pyspark_mysqlbinlog.connector.options.table_filter import Pattern, TableFilter
from pyspark_mysqlbinlog.connector.server.grants import Grants
from pyspark_mysqlbinlog.connector.server.warn_once import warn_once
from pyspark_mysqlbinlog.errors import AccessDeniedError
from pyspark_mysqlbinlog.names import Table, folding, quoted
from pyspark_mysqlbinlog.protocol.client import ReplicaClient

__all__ = ["Finding", "check_patterns", "findings"]


class Finding(NamedTuple):
    """Something about a pattern, for the log, or to stop for."""

    stops: bool
    text: str


def check_patterns(
    client: ReplicaClient, tables: TableFilter, history: SchemaHistory, *, named_anyhow: bool
) -> None:
    """One query, or two.

    Parameters
    ----------
    history : what is known of the tables from the start on.
    named_anyhow : whether rows of a table that the account may not see are told all the same.

    Raises
    ------
    AccessDeniedError : the account may not see what a pattern wants.
    LostConnectionError : as `ReplicaClient.query` does.
    """
    grants = Grants.ask(client, case_sensitive=tables.case_sensitive)
    known = [name for name in history.tables() if tables.wants(*name)]
    for finding in findings(tables, grants, known):
        if not finding.stops:
            warn_once(finding.text)
        elif not named_anyhow and client.variable("binlog_row_metadata") != "FULL":
            # With FULL (MariaDB, MySQL 8.0) tables describe themselves in the log.
            raise AccessDeniedError(finding.text)


def findings(tables: TableFilter, grants: Grants, known: Collection[Table]) -> Iterator[Finding]:
    """What there is to say of the patterns, in their order.

    known : the wanted tables that are known of.
    """
    if tables.tables is None:
        if not grants.selects_everything:
            # What is excluded may be all that can't be seen.
            stops = grants.is_complete and tables.exclude is None
            yield Finding(
                stops,
                "option tables is not given, so all tables are wanted, and the account may not see"
                " all of them: GRANT SELECT ON *.* to this user, or name those that are wanted",
            )
        elif not known:
            yield Finding(False, "option tables is not given, and the server has no tables now")
        return
    for pattern in tables.included:
        name = single_database(pattern)
        if pattern.literal is None and (name is None or not excludes_all_of(tables, name)):
            yield from _of_pattern(pattern, name, tables, grants, known)


def _of_pattern(
    pattern: Pattern,
    name: str | None,
    tables: TableFilter,
    grants: Grants,
    known: Collection[Table],
) -> Iterator[Finding]:
    meets = any(pattern.matches(*table) for table in known)
    wanted = "*.*" if name is None else f"{quoted(name)}.*"
    if _is_seen(pattern, name, grants, folding(tables.case_sensitive)(name or "")):
        if not meets:
            yield Finding(
                False,
                f"option tables: {pattern.text} meets no table now; check its spelling, unless its"
                " tables come later",
            )
    elif meets:
        yield Finding(
            False,
            f"option tables: {pattern.text} may want tables that the account may not see, whose"
            f" first change would stop the query; GRANT SELECT ON {wanted} to this user, or name"
            " the tables that are wanted",
        )
    else:
        # Whether a database that can't be seen has such tables is known of none but by its name.
        is_certain = name is not None and not grants.selects_from(pattern.matches)
        yield Finding(
            grants.is_complete and (is_certain or grants.selects_nothing),
            f"option tables: {pattern.text} meets no table that the account may see; check its"
            f" spelling, and GRANT SELECT ON {wanted} to this user",
        )


def _is_seen(pattern: Pattern, name: str | None, grants: Grants, folded: str) -> bool:
    """Whether the account is sure to see whatever the pattern can match."""
    if name is not None:
        return grants.sees_all_of(folded)
    if grants.selects_everything:
        return True
    if not pattern.parts:
        return False
    fold = folding(grants.case_sensitive)
    glob = fold(pattern.parts[0].text)
    return any(is_covered(glob, fold(like)) for like in grants.selects_like())
