"""Check whether the patterns of `tables` match tables, and whether the account can see them.

A named table must exist (see `initial_history.check_named_tables`). A pattern may be for tables
that are created later, so one that matches none is only logged. But if the account cannot see a
table that a pattern captures, its first row would stop the query, hours later: this is rejected at
the start, if the grants show it for certain. If they do not, it is logged.
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
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["Finding", "check_patterns", "findings", "hidden_tables"]


class Finding(NamedTuple):
    """A finding about a pattern, to log or to stop for.

    select_on : the tables that the account cannot see, as GRANT SELECT names them; None if it sees
        them.
    """

    stops: bool
    text: str
    select_on: str | None = None


def check_patterns(
    client: ReplicaClient,
    tables: TableFilter,
    history: SchemaHistory,
    *,
    named_anyhow: bool,
    reads_rows: bool = False,
) -> None:
    """Check the patterns, with one query or two.

    Parameters
    ----------
    history : of the tables from the start on.
    named_anyhow : whether table maps describe tables that the account cannot see.
    reads_rows : whether a snapshot reads the tables, which then must be seen.

    Raises
    ------
    AccessDeniedError : the account cannot see a table that a pattern captures.
    LostConnectionError : as `ReplicaClient.query` does.
    """
    grants = Grants.ask(client, case_sensitive=tables.case_sensitive)
    known = [name for name in history.tables() if tables.captures(*name)]
    for finding in findings(tables, grants, known):
        if not finding.stops:
            warn_once(finding.text)
        elif reads_rows or not (named_anyhow or _are_described(client)):
            raise AccessDeniedError(finding.text)


def hidden_tables(
    client: ReplicaClient, tables: TableFilter, missing: Collection[Table]
) -> list[Table]:
    """Return the tables that may exist although the account can't see them, and log a warning.

    Such tables can be read if table maps contain the schemas; otherwise none is returned.
    """
    if not _are_described(client):
        return []
    grants = Grants.ask(client, case_sensitive=tables.case_sensitive)
    fold = folding(tables.case_sensitive)
    found = [name for name in missing if not grants.sees_all_of(fold(name[0]))]
    if found:
        warn_once(
            f"option tables: the account cannot see {', '.join(map('.'.join, found))}, so it is not"
            " known whether the names are right; their columns are read from the binlog"
            " (binlog_row_metadata=FULL)"
        )
    return found


def _are_described(client: ReplicaClient) -> bool:
    """Whether table maps alone are sufficient (see `optional_metadata.usable_schema`)."""
    return not client.is_mariadb and client.variable("binlog_row_metadata") == "FULL"


def findings(tables: TableFilter, grants: Grants, known: Collection[Table]) -> Iterator[Finding]:
    """Yield the findings about the patterns, in their order.

    known : the captured tables that are known.
    """
    if tables.tables is None:
        if not grants.selects_everything:
            # The tables that can't be seen may all be excluded.
            stops = grants.is_complete and tables.exclude is None
            yield Finding(
                stops,
                "option tables is not set, so all tables are captured, and the account cannot see"
                " all of them: GRANT SELECT ON *.* to this account, or set tables to fewer",
                "*.*",
            )
        elif not known:
            yield Finding(False, "option tables is not set, and the server has no tables now")
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
                f"option tables: {pattern.text} matches no table now; check its spelling, unless"
                " its tables are created later",
            )
    elif meets:
        yield Finding(
            False,
            f"option tables: {pattern.text} may capture tables that the account cannot see, whose"
            f" first change would stop the query; GRANT SELECT ON {wanted} to this account, or"
            " name the captured tables",
            wanted,
        )
    else:
        # Whether an invisible database has such tables is certain only by its name.
        is_certain = name is not None and not grants.selects_from(pattern.matches)
        yield Finding(
            grants.is_complete and (is_certain or grants.selects_nothing),
            f"option tables: {pattern.text} matches no table that the account can see; check its"
            f" spelling, and GRANT SELECT ON {wanted} to this account",
            wanted,
        )


def _is_seen(pattern: Pattern, name: str | None, grants: Grants, folded: str) -> bool:
    """Whether the account certainly sees everything that the pattern can match."""
    if name is not None:
        return grants.sees_all_of(folded)
    if grants.selects_everything:
        return True
    if not pattern.parts:
        return False
    fold = folding(grants.case_sensitive)
    glob = fold(pattern.parts[0].text)
    return any(is_covered(glob, fold(like)) for like in grants.selects_like())
