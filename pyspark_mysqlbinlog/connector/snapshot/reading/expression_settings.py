"""The session's settings for the SELECT of a chunk: those that VIRTUAL columns are computed with.

The server computes a VIRTUAL column when a row is read, with the settings of the reading session,
and logs the value that the writing session computed. The best guess of the writer's settings are
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

from pyspark_mysqlbinlog.connector.server.warn_once import warn_once
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
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
_ALLOW_INVALID_DATES, _UTC = "ALLOW_INVALID_DATES", "+00:00"
_UTC_NAMES = frozenset({_UTC, "UTC", "GMT", "Etc/UTC"})
_DATES = frozenset({"date", "datetime", "timestamp"})


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
    ((has_virtual, modes, zone, precision, locale),) = client.query(
        "SELECT EXISTS (SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND"
        " TABLE_NAME = %s AND EXTRA LIKE '%%VIRTUAL%%'), @@global.sql_mode,"
        " IF(@@global.time_zone = 'SYSTEM', @@global.system_time_zone, @@global.time_zone),"
        " @@global.div_precision_increment, @@global.lc_time_names",
        (schema.database, schema.table),
    )
    wanted, wanted_zone = {_ALLOW_INVALID_DATES}, _UTC
    if has_virtual:
        global_modes = {*str(modes).split(",")} & {*_EXPRESSION_MODES, "PAD_CHAR_TO_FULL_LENGTH"}
        if not is_conditional:
            wanted = global_modes & _EXPRESSION_MODES
            if any(column.type in _DATES for column in compared):
                wanted = wanted - _ZERO_DATE_MODES | {_ALLOW_INVALID_DATES}
            if all(column.type != "timestamp" for column in schema.columns):
                wanted_zone = str(client.variable("time_zone"))
        different = {
            "sql_mode": wanted != global_modes,
            "time_zone": wanted_zone == _UTC and zone not in _UTC_NAMES,
            "div_precision_increment": int(precision) != 4,
            "lc_time_names": locale != "en_US",
        }
        names = ", ".join(name for name, differs in different.items() if differs)
        if names:
            warn_once(
                f"{schema.full_name}: the snapshot may compute VIRTUAL columns with another"
                f" {names} than the sessions that wrote the rows, so their values may differ from"
                " those in the binlog; make these columns STORED, or exclude them with"
                " excludeColumns"
            )
    client.query(
        "SET SESSION sql_mode = %s, time_zone = %s", (",".join(sorted(wanted)), wanted_zone)
    )
