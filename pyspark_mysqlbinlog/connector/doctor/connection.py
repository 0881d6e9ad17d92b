"""The connection to a server, or why there is none."""

from __future__ import annotations

from pyspark_mysqlbinlog.connector.doctor.finding import Finding, ok, stop
from pyspark_mysqlbinlog.connector.doctor.remedies import quoted_account
from pyspark_mysqlbinlog.connector.log.retry import initial_retry
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.server.replicas import preferred
from pyspark_mysqlbinlog.errors import ConnectionFailedError, MySQLBinlogError, ServerError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

__all__ = ["connection"]

# The server's error numbers.
_EXPIRED, _LOCKED, _BLOCKED = {1820, 1862}, {3118, 4151}, 4150
_TLS_REQUIRED = "requires TLS"


def connection(options: Options) -> tuple[Finding, ReplicaClient | None]:
    """The server answers and accepts the account."""
    settings = options.server_settings()
    try:
        if options.prefer_replica:
            settings = preferred(settings)
        client = initial_retry()(ReplicaClient.connect, settings)
    except MySQLBinlogError as error:
        return _refused(error, settings.user), None
    return ok(f"connected to {settings.address} as {settings.user}"), client


def _refused(error: MySQLBinlogError, user: str) -> Finding:
    text, code = str(error), error.code if isinstance(error, ServerError) else None
    # The host part of the account is unknown.
    account = quoted_account(f"{user}@%")
    where = "the host may be another one: see User and Host in mysql.user"
    if code in _EXPIRED:
        return stop(text, statements=[f"ALTER USER {account} IDENTIFIED BY '…'"], advice=where)
    if code in _LOCKED:
        return stop(text, statements=[f"ALTER USER {account} ACCOUNT UNLOCK"], advice=where)
    if code == _BLOCKED:
        return stop(text, statements=["FLUSH PRIVILEGES"])
    if isinstance(error, ConnectionFailedError):
        return stop(text, advice="check --host and --port, and that the server runs")
    advice = "check --user and the password"
    if _TLS_REQUIRED in text:
        advice += "; if the account requires TLS: --option sslMode=REQUIRED"
    return stop(text, advice=advice)
