"""Checks of the connection and of what its account may do, by doing it."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.doctor.examined import ExaminedServer
from pyspark_mysqlbinlog.connector.doctor.finding import Finding, ok, stop, warning
from pyspark_mysqlbinlog.connector.doctor.remedies import version_of
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.server.binlog_filters import check_log_contents
from pyspark_mysqlbinlog.connector.server.settings import binlog_files, current_position
from pyspark_mysqlbinlog.connector.server.statements import REPLICAS
from pyspark_mysqlbinlog.connector.server.warn_once import collected_warnings
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import is_innodb, unreadable_tables
from pyspark_mysqlbinlog.errors import AccessDeniedError, BinlogSettingsError, MySQLBinlogError
from pyspark_mysqlbinlog.names import quoted

__all__ = [
    "binlog_contents",
    "binlog_access",
    "connection_limit",
    "encryption",
    "replica_ids",
    "replication",
    "snapshot_reads",
    "version",
    "version_finding",
]

_REPLICATION_CLIENT = ("REPLICATION CLIENT", "*.*")
_REPLICATION_SLAVE = ("REPLICATION SLAVE", "*.*")
# Errors for a dump from a server without a server_id: of 5.7.41, and of 9.7.4.
_NO_SERVER_ID = ("server id was not set", "server_id is 0")
# A clash of ids is reported if one is expected within so many connections.
_CONNECTIONS = 10_000
# The versions in docs/reference/compatibility.md.
_FIRST_SUPPORTED = (5, 5, 0)
_TESTED_MYSQL, _TESTED_MARIADB = ((5, 6), (5, 7), (9, 7)), ((10, 11), (11, 8))
_SEE = "read docs/reference/compatibility.md"


def version(server: ExaminedServer) -> Finding:
    """The server's version is supported, and this package is tested on it."""
    return version_finding(server.client.server_version, is_mariadb=server.remedies.is_mariadb)


def version_finding(text: str, *, is_mariadb: bool) -> Finding:
    """Return the finding for the version that a server shows when it is connected."""
    found = version_of(text)
    name = "MariaDB" if is_mariadb else "MySQL"
    shown = f"{name} {'.'.join(map(str, found))}" if any(found) else f"version {text}"
    if found < _FIRST_SUPPORTED:
        return warning(f"{shown} is not supported", "MySQL 5.5 or later, or MariaDB", advice=_SEE)
    tested = _TESTED_MARIADB if is_mariadb else _TESTED_MYSQL
    if found[:2] not in tested:
        versions = ", ".join(".".join(map(str, each)) for each in tested)
        return warning(f"{shown} is supported, but not tested", f"{name} {versions}", advice=_SEE)
    return ok(shown)


def encryption(server: ExaminedServer) -> Finding:
    """The connection is encrypted (TLS)."""
    cipher = dict(server.client.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")).get("Ssl_cipher")
    if cipher:
        return ok(f"TLS with {cipher}, sslMode={server.settings.ssl_mode}")
    has_tls = server.variable("have_ssl") == "YES" or server.remedies.persists
    advice = (
        "set --option sslMode=REQUIRED, or VERIFY_IDENTITY with sslCa"
        if has_tls
        else "give the server a certificate: ssl-cert, ssl-key and ssl-ca in its configuration"
    )
    return warning("rows and queries are sent without TLS", "TLS", advice=advice)


def connection_limit(server: ExaminedServer) -> Finding:
    """The account may open as many connections as a stream uses."""
    parallel = server.options.max_connections
    needed = parallel + (4 if server.options.starts_with_snapshot else 2)
    limit = int(server.client.query("SELECT @@SESSION.max_user_connections")[0][0])
    if not 0 < limit < needed:
        return ok(f"limit: {limit or 'none'}, needed: {needed}")
    if limit == int(server.variable("max_user_connections") or 0):
        statement = server.remedies.set_global("max_user_connections", str(needed))
    elif server.remedies.persists:
        account = server.remedies.account
        statement = f"ALTER USER {account} WITH MAX_USER_CONNECTIONS {needed}"
    else:
        statement = f"{server.remedies.grant('USAGE', '*.*')} WITH MAX_USER_CONNECTIONS {needed}"
    return warning(
        f"the account may open {limit} connections, and a query may open {needed}",
        f"at least {needed}",
        statements=[statement],
        advice=f"or --option maxConnections={max(limit - needed + parallel, 1)}",
    )


def replica_ids(server: ExaminedServer) -> Finding:
    """No other replica is connected with a server_id of this query's range (`serverId`)."""
    lowest, highest = server.options.server_id
    connected = REPLICAS.run(server.client.query)
    used = {int(row[0]): str(row[1]) for row in connected if lowest <= int(row[0]) <= highest}
    if len(used) * _CONNECTIONS <= highest - lowest + 1:
        return ok(f"{len(connected)} replicas are connected, none with a likely clash of ids")
    # Far from the ids of other replicas.
    free = max(int(row[0]) for row in connected) + 1_000_000
    free = free if free + 99_999 < 1 << 32 else 1 << 29
    ids = ", ".join(f"{number} (host {host or 'unknown'})" for number, host in sorted(used.items()))
    return warning(
        f"replicas are connected with server_id {ids}, in the range of serverId,"
        f" {lowest}-{highest}: the server may disconnect one of two with the same id",
        "ids that no other replica uses",
        advice=f"set --option serverId={free}-{free + 99_999}",
    )


def binlog_contents(server: ExaminedServer) -> Finding:
    """The binlog has the changes of all captured tables: no filters, and what a replica applies."""
    with collected_warnings() as warnings:
        try:
            check_log_contents(server.client, server.tables)
        except BinlogSettingsError as error:
            return stop(
                str(error),
                advice="binlog_do_db, binlog_ignore_db and log_slave_updates are set in the"
                " server's configuration; restart it",
            )
    if warnings:
        is_denied = any(each.startswith("not checked whether the binlog") for each in warnings)
        return warning(
            "; ".join(warnings),
            statements=[server.remedies.grant(*_REPLICATION_CLIENT)] if is_denied else [],
        )
    return ok("no filter excludes a captured database")


def binlog_access(server: ExaminedServer) -> Finding:
    """The account can see the binlog's files and its end (REPLICATION CLIENT)."""
    try:
        files = binlog_files(server.client)
        end = current_position(server.client)
    except AccessDeniedError as error:
        return stop(str(error), statements=[server.remedies.grant(*_REPLICATION_CLIENT)])
    except BinlogSettingsError as error:
        return stop(str(error))
    return ok(f"{len(files)} files, up to {end.file}:{end.pos}")


def replication(server: ExaminedServer) -> Finding:
    """The server sends its binlog to the account (REPLICATION SLAVE, `server_id`)."""
    try:
        end = current_position(server.client)
    except MySQLBinlogError:
        if server.grants.allows("REPLICATION SLAVE"):
            return ok("the account has REPLICATION SLAVE")
        return warning(
            "the account lacks REPLICATION SLAVE",
            statements=[server.remedies.grant(*_REPLICATION_SLAVE)],
        )
    try:
        ServerLog(server.settings).fingerprint_at(end)
    except AccessDeniedError as error:
        return stop(str(error), statements=[server.remedies.grant(*_REPLICATION_SLAVE)])
    except MySQLBinlogError as error:
        if not any(each in error.message for each in _NO_SERVER_ID):
            return stop(str(error))
        number = server.client.query("SELECT 1 + FLOOR(RAND() * 100000)")[0][0]
        return stop(
            str(error),
            statements=[server.remedies.set_global("server_id", str(int(number)))],
            advice="the number is any that no other server of the topology has; "
            + server.remedies.configure(**{"server-id": str(int(number))}),
        )
    return ok(f"the binlog was read up to {end.file}:{end.pos}")


def snapshot_reads(server: ExaminedServer) -> Finding:
    """A snapshot may read the rows (SELECT), and verify that it sees all (PROCESS, LOCK TABLES)."""
    errors, statements = list[str](), list[str]()
    grant = server.remedies.grant
    by_name = {".".join(table): table for table in server.engines}
    for denied in unreadable_tables(server.client, server.engines):
        errors.append(str(denied))
        statements.append(grant("SELECT", quoted(*by_name[str(denied.table)])))
    for table, engine in sorted(server.engines.items()):
        try:
            server.visibility.checks(table, engine)
        except MySQLBinlogError as error:
            errors.append(str(error))
            is_grant = isinstance(error, AccessDeniedError)
            if is_grant and is_innodb(engine):
                statements.append(grant("PROCESS", "*.*"))
            elif is_grant:
                statements.append(grant("SELECT, LOCK TABLES", f"{quoted(table[0])}.*"))
    if errors and server.options.starts_with_snapshot:
        return stop(errors, statements=statements)
    if errors:
        return warning(f"for a later snapshot or reload: {errors[0]}", statements=statements)
    return ok("the account can read all tables, and verify what it reads")
