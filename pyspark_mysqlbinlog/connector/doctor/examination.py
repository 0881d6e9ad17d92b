"""All checks, in the order in which a query makes them.

A check is a function that returns a finding, or None if it does not apply; its name and its summary
are those of the finding and of its documentation. What a query checks at its start is checked by
the same functions, and a query reports the first stop. At the end the start of a query is resolved
as a query does it. So an error that no check has found is a stop, too.

A check that fails does not hide the others. If the account lacks a privilege for a check, the
finding is a warning with the grant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from pyspark_mysqlbinlog.connector.doctor import account_checks as account
from pyspark_mysqlbinlog.connector.doctor import settings_checks as settings
from pyspark_mysqlbinlog.connector.doctor import table_checks as of_tables
from pyspark_mysqlbinlog.connector.doctor.connection import connection
from pyspark_mysqlbinlog.connector.doctor.examined import ExaminedServer
from pyspark_mysqlbinlog.connector.doctor.finding import Finding, ok, stop, warning
from pyspark_mysqlbinlog.connector.doctor.target_checks import (
    ExaminedNames,
    ExaminedTarget,
    target_paths,
    target_storage,
    target_tables,
)
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.warn_once import collected_warnings
from pyspark_mysqlbinlog.connector.source.start_offset import start_of_server
from pyspark_mysqlbinlog.errors import AccessDeniedError, MySQLBinlogError

__all__ = ["CHECKS", "TARGET_CHECKS", "check_name", "examine"]

Check = Callable[[ExaminedServer], Finding | None]


def start(server: ExaminedServer) -> Finding:
    """A query can start."""
    with collected_warnings():
        try:
            found = start_of_server(server.options, streaming=True)
        except MySQLBinlogError as error:
            return stop(str(error))
    return ok(f"a query starts at {found.position}")


# The checks between `binlog` and `tables` need a binlog.
CHECKS: tuple[Check, ...] = (
    account.version,
    account.encryption,
    account.connection_limit,
    account.replica_ids,
    settings.clock,
    settings.time_zone_tables,
    settings.binlog,
    settings.binlog_format,
    account.binlog_contents,
    account.binlog_access,
    account.replication,
    settings.row_image,
    settings.json_images,
    settings.row_metadata,
    settings.binlog_checksum,
    settings.gtid_mode,
    settings.retention,
    of_tables.tables,
    account.snapshot_reads,
    of_tables.keyless_locks,
    of_tables.snapshot_locks,
    of_tables.primary_keys,
    of_tables.foreign_keys,
    of_tables.unlogged_tables,
    of_tables.views_and_triggers,
    of_tables.statement_sessions,
    of_tables.column_types,
    of_tables.zero_dates,
    of_tables.column_names,
    of_tables.snapshot_size,
    start,
)
_BINLOG = slice(CHECKS.index(settings.binlog) + 1, CHECKS.index(of_tables.tables))
TARGET_CHECKS = (target_storage, target_paths, target_tables)


def check_name(check: Callable[..., object]) -> str:
    """Return the name of a check, as findings and the documentation have it."""
    return check.__name__.replace("_", " ")


def examine(
    options: Options, target: str | None = None, storage_options: Mapping[str, str] | None = None
) -> Iterator[Finding]:
    """Yield the finding of each check.

    Parameters
    ----------
    options : of the source; with a target, those of a mirror.
    target : of a mirror's Delta tables, as `DeltaMirror` takes it.
    storage_options : of delta-rs.

    Raises
    ------
    OptionError : `target` is no template of paths, or of names in a catalog.
    LostConnectionError, ServerError : the server answers no query.
    """
    place = None if target is None else ExaminedTarget.parse(target, storage_options or {})
    found, client = connection(options)
    if client is None:
        yield replace(found, check=check_name(connection))
        if place is not None:
            yield from _of_target(place, None)
        return
    with client:
        server = ExaminedServer(client, options, for_mirror=place is not None)
        yield replace(found, check=check_name(connection))
        yield from _of_server(server)
        if place is not None:
            yield from _of_target(place, server)


def _of_server(server: ExaminedServer) -> Iterator[Finding]:
    stops: list[str] = []
    for check in CHECKS:
        if check in CHECKS[_BINLOG] and not server.is_logging:
            continue
        finding = _run(check, partial(check, server), server)
        if finding is None or (check is start and _is_known(finding, stops)):
            continue
        if finding.status == "stop":
            stops.append(finding.found)
        yield finding


def _of_target(
    place: ExaminedTarget | ExaminedNames, server: ExaminedServer | None
) -> Iterator[Finding]:
    found = _run(target_storage, partial(target_storage, place), server)
    if found is not None:
        yield found
    if server is None or (found is not None and found.status == "stop"):
        return
    for check in (target_paths, target_tables):
        finding = _run(check, partial(check, place, server), server)
        if finding is not None:
            yield finding


def _is_known(finding: Finding, stops: list[str]) -> bool:
    """Whether the error of a start is that of a check."""
    return finding.status == "stop" and any(finding.found in each for each in stops)


def _run(
    check: Callable[..., object],
    work: Callable[[], Finding | None],
    server: ExaminedServer | None,
) -> Finding | None:
    """Return the finding of a check; a warning if the check fails with an error."""
    try:
        found = work()
    except MySQLBinlogError as error:
        statements = []
        if isinstance(error, AccessDeniedError) and server is not None:
            statements = [server.remedies.grant(each, "*.*") for each in _missing(error)]
        found = warning(f"not checked: {error}", statements=statements)
    return None if found is None else replace(found, check=check_name(check))


_PRIVILEGES = re.compile(r"at least one of\) the ([A-Z ,/_]+?) privilege")


def _missing(error: AccessDeniedError) -> list[str]:
    """Return the smallest privilege of those that the server's error names."""
    found = _PRIVILEGES.search(error.message)
    names = [each.strip() for each in found[1].split(",")] if found else []
    return [each for each in names if each != "SUPER"][-1:]
