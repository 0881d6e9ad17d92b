"""The session's settings for the SELECT of a chunk: those that VIRTUAL columns are computed with.

The server computes a VIRTUAL column when a row is read, with the settings of the reading session,
and logs the value that the writing session computed. The best guess of the writer's settings is
the global ones. So a table with such columns is read with the global `sql_mode` and `time_zone`,
except where that would change the rest of the SELECT:

- ``snapshotWhere`` means the same on each server;
- a condition on a date needs ALLOW_INVALID_DATES, and no mode that rejects zero dates;
- a TIMESTAMP column is read in UTC: in most zones one hour occurs twice;
- PAD_CHAR_TO_FULL_LENGTH changes all CHAR columns, and other modes the grammar.

Other settings take effect when a session opens the table, and the server keeps opened tables for
later sessions (measured on 9.7.4 with div_precision_increment and lc_time_names): no session can
set them. A warning names the settings that differ.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from pyspark_mysqlbinlog.connector.server.warn_once import warn_once
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.session_settings import (
    DEFAULT_DIV_PRECISION_INCREMENT,
    DEFAULT_LOCALE,
)
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["set_expression_settings"]

# The modes that change the value of an expression, and nothing else in a SELECT.
_EXPRESSION_MODES = frozenset(
    {
        "ALLOW_INVALID_DATES",
        "NO_UNSIGNED_SUBTRACTION",
        "NO_ZERO_DATE",
        "NO_ZERO_IN_DATE",
        "TIME_ROUND_FRACTIONAL",
        "TIME_TRUNCATE_FRACTIONAL",
    }
)
_ZERO_DATE_MODES = frozenset({"NO_ZERO_DATE", "NO_ZERO_IN_DATE"})
_ALLOW_INVALID_DATES, _PAD_CHAR, _UTC = "ALLOW_INVALID_DATES", "PAD_CHAR_TO_FULL_LENGTH", "+00:00"
_UTC_NAMES = frozenset({_UTC, "UTC", "GMT", "Etc/UTC"})
_DATES = frozenset({"date", "datetime", "timestamp"})


class _GlobalSettings(NamedTuple):
    """The server's global settings that VIRTUAL columns are computed with.

    Attributes
    ----------
    modes : of `sql_mode`, those that change a value of a SELECT.
    zone : `time_zone`, such as SYSTEM.
    named_zone : `time_zone`, with the system's zone in place of SYSTEM.
    """

    modes: frozenset[str]
    zone: str
    named_zone: str
    div_precision_increment: int
    locale: str


def set_expression_settings(
    client: ReplicaClient,
    schema: TableSchema,
    *,
    compared: Collection[ColumnSchema],
    is_conditional: bool,
) -> None:
    """Set the session's settings for a table's rows; raises what `ReplicaClient.query` raises.

    Parameters
    ----------
    compared : the columns that the SELECT's own conditions compare with constants.
    is_conditional : whether `snapshotWhere` has a condition for the table.
    """
    session_modes, session_zone = frozenset({_ALLOW_INVALID_DATES}), _UTC
    found = _read_global_settings(client, schema)
    if found is not None:
        if not is_conditional:
            session_modes, session_zone = _session_settings(schema, compared, found)
        _warn_of_differences(schema, found, session_modes, session_zone)
    client.query(
        "SET SESSION sql_mode = %s, time_zone = %s",
        (",".join(sorted(session_modes)), session_zone),
    )


def _read_global_settings(client: ReplicaClient, schema: TableSchema) -> _GlobalSettings | None:
    """Return the global settings; None if the table has no VIRTUAL column."""
    ((has_virtual, modes, zone, system_zone, precision, locale),) = client.query(
        "SELECT EXISTS (SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND"
        " TABLE_NAME = %s AND EXTRA LIKE '%%VIRTUAL%%'), @@global.sql_mode, @@global.time_zone,"
        " @@global.system_time_zone, @@global.div_precision_increment, @@global.lc_time_names",
        (schema.database, schema.table),
    )
    if not has_virtual:
        return None
    return _GlobalSettings(
        frozenset(str(modes).split(",")) & {*_EXPRESSION_MODES, _PAD_CHAR},
        str(zone),
        str(system_zone if zone == "SYSTEM" else zone),
        int(precision),
        str(locale),
    )


def _session_settings(
    schema: TableSchema, compared: Collection[ColumnSchema], found: _GlobalSettings
) -> tuple[frozenset[str], str]:
    """Return the modes and the time zone for a SELECT without a condition of `snapshotWhere`."""
    modes, zone = found.modes & _EXPRESSION_MODES, found.zone
    if any(column.type in _DATES for column in compared):
        modes = modes - _ZERO_DATE_MODES | {_ALLOW_INVALID_DATES}
    if any(column.type == "timestamp" for column in schema.columns):
        zone = _UTC
    return modes, zone


def _warn_of_differences(
    schema: TableSchema, found: _GlobalSettings, session_modes: Collection[str], session_zone: str
) -> None:
    """Log a warning if the session has other settings than the global ones."""
    different = {
        "sql_mode": session_modes != found.modes,
        "time_zone": session_zone == _UTC and found.named_zone not in _UTC_NAMES,
        "div_precision_increment": found.div_precision_increment != DEFAULT_DIV_PRECISION_INCREMENT,
        "lc_time_names": found.locale != DEFAULT_LOCALE,
    }
    names = ", ".join(name for name, differs in different.items() if differs)
    if names:
        warn_once(
            f"{schema.full_name}: snapshots and verify may compute VIRTUAL columns with another"
            f" {names} than the sessions that wrote the rows, so their values may differ from"
            " those in the binlog; make these columns STORED, or exclude them with excludeColumns"
        )
