"""Checks of the server's settings."""

from __future__ import annotations

import time

from pyspark_mysqlbinlog.connector.doctor.examined import ExaminedServer
from pyspark_mysqlbinlog.connector.doctor.finding import Finding, ok, stop, warning
from pyspark_mysqlbinlog.connector.gtids.executed import has_gtids
from pyspark_mysqlbinlog.connector.server.settings import (
    binlog_files,
    check_binlog_is_on,
    check_row_format,
    check_row_image,
    server_time,
)
from pyspark_mysqlbinlog.connector.tail.retention import begun_at, retention_seconds
from pyspark_mysqlbinlog.errors import BinlogSettingsError, MySQLBinlogError

__all__ = [
    "binlog",
    "binlog_checksum",
    "binlog_format",
    "clock",
    "gtid_mode",
    "json_images",
    "retention",
    "row_image",
    "row_metadata",
    "time_zone_tables",
]

_HOUR = 3_600
# A weekend and a day.
_MIN_RETENTION_HOURS = 72
_GOOD_RETENTION_DAYS = 7
_MAX_CLOCK_SECONDS = 5
# The modes in the order in which a server can change them.
_GTID_MODES = ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
_FIRST_ONLINE_GTIDS = (5, 7, 6)
_FIRST_SECONDS_MYSQL, _FIRST_SECONDS_MARIADB = (8, 0, 1), (10, 6, 1)


def binlog(server: ExaminedServer) -> Finding:
    """The server writes a binlog (`log_bin`)."""
    try:
        check_binlog_is_on(server.client)
    except BinlogSettingsError as error:
        settings = {"log-bin": "mysql-bin", "server-id": "1", "binlog-format": "ROW"}
        advice = f"{server.remedies.configure_always(**settings)}; restart the server"
        return stop(error.message, advice=advice)
    return ok("log_bin is ON")


def binlog_format(server: ExaminedServer) -> Finding:
    """It logs rows, not statements (`binlog_format`)."""
    try:
        check_row_format(server.client)
    except BinlogSettingsError as error:
        statement = server.remedies.set_global("binlog_format", "'ROW'")
        more = server.remedies.configure(binlog_format="ROW")
        advice = "; ".join(filter(None, (more, "sessions keep their format until they reconnect")))
        return stop(error.message, statements=[statement], advice=advice)
    return ok("binlog_format is ROW")


def row_image(server: ExaminedServer) -> Finding:
    """Rows in the binlog have all columns (`binlog_row_image`); a mirror requires it."""
    try:
        check_row_image(server.client)
    except BinlogSettingsError as error:
        statements = [server.remedies.set_global("binlog_row_image", "'FULL'")]
        advice = server.remedies.configure(binlog_row_image="FULL")
        if server.for_mirror:
            return stop(error.message, statements=statements, advice=advice)
        return warning(error.message, statements=statements, advice=advice)
    return ok("binlog_row_image is FULL")


def json_images(server: ExaminedServer) -> Finding | None:
    """Updated JSON documents are logged as a whole (`binlog_row_value_options`)."""
    value = server.variable("binlog_row_value_options")
    if value is None:
        return None
    if value:
        return warning(
            f"binlog_row_value_options is {value}: updates of JSON columns may be logged as"
            " differences, and a stream lacks a document that it cannot rebuild",
            "an empty value",
            statements=[server.remedies.set_global("binlog_row_value_options", "''")],
        )
    return ok("binlog_row_value_options is empty")


def row_metadata(server: ExaminedServer) -> Finding | None:
    """The binlog describes its columns (`binlog_row_metadata`)."""
    value = server.variable("binlog_row_metadata")
    if value is None:
        return None
    if value != "FULL":
        return warning(
            f"binlog_row_metadata is {value}: the binlog has no names of columns by which the"
            " followed columns are verified",
            "FULL",
            statements=[server.remedies.set_global("binlog_row_metadata", "'FULL'")],
            advice=server.remedies.configure(binlog_row_metadata="FULL"),
        )
    return ok("binlog_row_metadata is FULL")


def binlog_checksum(server: ExaminedServer) -> Finding | None:
    """Events have checksums (`binlog_checksum`)."""
    value = server.variable("binlog_checksum")
    if value is None:
        return None
    if value != "CRC32":
        return warning(
            f"binlog_checksum is {value}: damaged events are not detected",
            "CRC32",
            statements=[server.remedies.set_global("binlog_checksum", "'CRC32'")],
            advice=server.remedies.configure(binlog_checksum="CRC32"),
        )
    return ok("binlog_checksum is CRC32")


def gtid_mode(server: ExaminedServer) -> Finding:
    """Transactions have GTIDs, by which another server can continue (`gtid_mode`)."""
    mode = server.variable("gtid_mode")
    if mode is None:
        return ok("the server has no gtid_mode")
    if has_gtids(server.client):
        return ok("gtid_mode is ON")
    found = f"gtid_mode is {mode}: no other server can continue a stream if this one is lost"
    if server.remedies.version < _FIRST_ONLINE_GTIDS:
        settings = {"gtid-mode": "ON", "enforce-gtid-consistency": "ON", "log-slave-updates": "ON"}
        advice = f"{server.remedies.configure_always(**settings)}; restart the server"
        return warning(found, "ON", advice=advice)
    later = _GTID_MODES[_GTID_MODES.index(mode) + 1 :] if mode in _GTID_MODES else ()
    settings = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
    advice = (
        "before the last statement, wait until SHOW STATUS LIKE"
        " 'ONGOING_ANONYMOUS_TRANSACTION_COUNT' shows 0 on every server of the topology"
    )
    return warning(
        found,
        "ON",
        statements=[
            server.remedies.set_global("enforce_gtid_consistency", "'ON'"),
            *(server.remedies.set_global("gtid_mode", f"'{each}'") for each in later),
        ],
        advice="; ".join(filter(None, (advice, server.remedies.configure(**settings)))),
    )


def retention(server: ExaminedServer) -> Finding:
    """The binlog is kept long enough, at the present write rate."""
    files = binlog_files(server.client)
    size, rate = sum(files.values()), None
    try:
        begun = begun_at(server.settings, next(iter(files)))
    except MySQLBinlogError:
        begun = None
    if begun is not None and (seconds := server_time(server.client) - begun) > 0:
        rate = size * _HOUR / seconds
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    written = f"{count} of {_megabytes(size)}"
    if rate is not None:
        written += f", {_megabytes(rate)} an hour"
    limit = int(server.variable("max_binlog_total_size") or 0)
    by_time = retention_seconds(server.client)
    by_size = limit * _HOUR / rate if limit and rate else None
    kept = min((each for each in (by_time, by_size) if each is not None), default=None)
    if kept is None:
        return ok(f"binlog files are not purged ({written})")
    hours = kept / _HOUR
    found = f"binlog files are kept for {hours:,.0f} hours ({written})"
    if hours >= _MIN_RETENTION_HOURS:
        return ok(found)
    statements, settings = [], {}
    if by_time is not None and by_time < _MIN_RETENTION_HOURS * _HOUR:
        name, value = _retention_setting(server)
        # In MySQL 8.0 the two exclude each other.
        is_other = name != "expire_logs_days" and server.remedies.persists
        if is_other and server.variable("expire_logs_days") not in {None, "0"}:
            statements.append(server.remedies.set_global("expire_logs_days", "0"))
        statements.append(server.remedies.set_global(name, str(value)))
        settings[name] = str(value)
    if by_size is not None and by_size < _MIN_RETENTION_HOURS * _HOUR and rate is not None:
        needed = int(rate * 24 * _GOOD_RETENTION_DAYS) + limit
        statements.append(server.remedies.set_global("max_binlog_total_size", str(needed)))
        settings["max_binlog_total_size"] = str(needed)
    return warning(
        f"{found}: a query that is stopped for longer has to reload its tables",
        f"at least {_MIN_RETENTION_HOURS} hours",
        statements=statements,
        advice=server.remedies.configure(**settings),
    )


def _retention_setting(server: ExaminedServer) -> tuple[str, int]:
    """Return the variable that limits the retention by time, and a recommended value."""
    is_mariadb, version = server.remedies.is_mariadb, server.remedies.version
    if version >= (_FIRST_SECONDS_MARIADB if is_mariadb else _FIRST_SECONDS_MYSQL):
        return "binlog_expire_logs_seconds", _GOOD_RETENTION_DAYS * 24 * _HOUR
    return "expire_logs_days", _GOOD_RETENTION_DAYS


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


def clock(server: ExaminedServer) -> Finding:
    """The server's clock agrees with this machine's; lags are differences of the two."""
    before = time.time()
    there = server_time(server.client)
    # The server returns whole seconds, and its answer takes a while.
    early, late = there + 1 - before, there - time.time()
    difference = min(early, 0.0) + max(late, 0.0)
    if abs(difference) > _MAX_CLOCK_SECONDS:
        way = "fast" if difference > 0 else "slow"
        return warning(
            f"the server's clock is {abs(difference):,.0f} s {way}, compared with this machine's:"
            " reported lags are wrong by that",
            f"at most {_MAX_CLOCK_SECONDS} s",
            advice="synchronize both clocks (NTP)",
        )
    return ok("the server's clock agrees with this machine's")


def time_zone_tables(server: ExaminedServer) -> Finding:
    """Named time zones are known, if a setting or `snapshotWhere` uses them."""
    zone = server.variable("time_zone") or "SYSTEM"
    is_named = zone != "SYSTEM" and zone[:1] not in "+-"
    conditions = " ".join((server.options.snapshot_where or {}).values())
    uses = [f"the server's time_zone is {zone}"] if is_named else []
    uses += ["snapshotWhere calls CONVERT_TZ"] if "CONVERT_TZ" in conditions.upper() else []
    probe = "SELECT CONVERT_TZ('2026-01-01 00:00:00', 'UTC', '+00:00')"
    if server.client.query(probe)[0][0] is not None:
        return ok("the time zone tables are filled")
    if not uses:
        return ok("the time zone tables are empty; nothing uses them")
    return warning(
        f"the time zone tables are empty, but {' and '.join(uses)}: CONVERT_TZ returns"
        " NULL for a named zone",
        "filled tables",
        advice="on the server: mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql -u root mysql",
    )
