"""Error classes for errors of servers and clients; only LostConnectionError can be retried."""

from __future__ import annotations

import socket
import ssl

import pymysql
import pytest

from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    BinlogPurgedError,
    BinlogSettingsError,
    ConnectionFailedError,
    InvalidPositionError,
    LostConnectionError,
    MySQLBinlogError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.server.server_errors import dump_error, refused

OperationalError = pymysql.err.OperationalError
# The end of the texts of error 1236 on 5.6 and 5.7.
TAIL = (
    "; the first event 'mysql-bin.000001' at 4, the last event read from './mysql-bin.000001' at"
    " 123, the last byte read from './mysql-bin.000001' at 123."
)

# (code, text, class, words of the message), as error packets in a dump
DUMP: list[tuple[int, str, type[MySQLBinlogError], str]] = [
    (
        1236,
        "Could not find first log file name in binary log index file",
        BinlogPurgedError,
        "no longer has this binlog",
    ),
    (
        1236,
        "the master has purged binary logs containing GTIDs that the slave requires.",
        BinlogPurgedError,
        "no longer has this binlog",
    ),
    (
        1236,
        "A slave with the same server_uuid/server_id as this slave has connected to the master"
        + TAIL,
        ServerError,
        "another replica uses the same server_id or UUID",
    ),
    (
        1236,
        "A slave with the same server_uuid as this slave has connected to the master" + TAIL,
        ServerError,
        "another replica uses the same server_id or UUID",
    ),
    (
        1236,
        "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master" + TAIL,
        InvalidPositionError,
        "no event begins at this position",
    ),
    (
        1236,
        "bogus data in log event" + TAIL,
        InvalidPositionError,
        "no event begins at this position",
    ),
    (
        1236,
        "Client requested master to start replication from position < 4" + TAIL,
        InvalidPositionError,
        "no event begins at this position",
    ),
    (
        1236,
        "Client requested master to start replication from position > file size" + TAIL,
        InvalidPositionError,
        "past the end of its file",
    ),
    (
        1236,
        "Client requested master to start replication from impossible position" + TAIL,
        InvalidPositionError,
        "past the end of its file",
    ),
    (
        1236,
        "Cannot replicate anonymous transaction when @@GLOBAL.GTID_MODE = ON, at file"
        " ./mysql-bin.000003, position 154." + TAIL,
        ServerError,
        "SET GLOBAL gtid_mode = ON_PERMISSIVE until it has caught up",
    ),
    (
        1236,
        "Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF, at file"
        " ./mysql-bin.000003, position 154." + TAIL,
        ServerError,
        "SET GLOBAL gtid_mode = OFF_PERMISSIVE until it has caught up",
    ),
    (1236, "Binary log is not open", BinlogSettingsError, "writes no binlog"),
    (
        1236,
        "binlog truncated in the middle of event",
        InvalidPositionError,
        "no complete event begins",
    ),
    (
        1227,
        "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s)",
        AccessDeniedError,
        "GRANT REPLICATION SLAVE",
    ),
    (1053, "Server shutdown in progress", LostConnectionError, "error 1053"),
    (1105, "Unknown error", ServerError, "error 1105: Unknown error"),
]


@pytest.mark.parametrize(("code", "text", "kind", "words"), DUMP)
def test_dump_error_packet_gives_matching_error_class_and_message(
    code: int, text: str, kind: type[MySQLBinlogError], words: str
) -> None:
    error = dump_error(code, text, "mysql-bin.000001", 4)
    assert type(error) is kind
    assert words in error.message
    if isinstance(error, ServerError):
        assert error.code == code
    if isinstance(error, BinlogPurgedError | InvalidPositionError):
        assert str(error).endswith("(at mysql-bin.000001:4)")


def wrapped(cause: Exception) -> Exception:
    """Return the error that pymysql raises if connecting fails by `cause`."""
    error = OperationalError(2003, f"Can't connect to MySQL server on 'h' ({cause})")
    error.original_exception = cause  # type: ignore[attr-defined] # as pymysql does
    return error


# (exception, action that failed, class, words of the message)
REFUSALS: list[tuple[Exception, str, type[MySQLBinlogError], str]] = [
    (
        wrapped(socket.gaierror(-2, "Name or service not known")),
        "connecting",
        ConnectionFailedError,
        "unknown host: h:3306 (Name or service not known)",
    ),
    (
        wrapped(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")),
        "connecting",
        LostConnectionError,
        "cannot be resolved now (Temporary failure in name resolution)",
    ),
    (
        wrapped(ConnectionRefusedError(111, "Connection refused")),
        "connecting",
        LostConnectionError,
        "does not answer",
    ),
    (wrapped(TimeoutError("timed out")), "connecting", LostConnectionError, "does not answer"),
    (wrapped(ssl.SSLError(1, "bad cert")), "connecting", ConnectionFailedError, "sslMode"),
    (ssl.SSLCertVerificationError(1, "bad"), "connecting", ConnectionFailedError, "sslMode"),
    (
        wrapped(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")),
        "connecting",
        LostConnectionError,
        "broke inside TLS while connecting",
    ),
    (
        wrapped(ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed")),
        "connecting",
        LostConnectionError,
        "broke inside TLS",
    ),
    (
        ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
        "reading the binlog",
        LostConnectionError,
        "broke inside TLS while reading the binlog",
    ),
    (ssl.SSLSyscallError(5, "Some I/O error"), "running 'x'", LostConnectionError, "inside TLS"),
    (
        OperationalError(1129, "Host 'h' is blocked because of many connection errors"),
        "connecting",
        ServerError,
        "rejected this host: Host 'h' is blocked because of many connection errors; run FLUSH",
    ),
    (
        OperationalError(1045, "Access denied for user 'u'@'h' (using password: YES)"),
        "connecting",
        AccessDeniedError,
        "check the options user and password",
    ),
    (
        OperationalError(1227, "Access denied; you need the REPLICATION CLIENT privilege"),
        "running 'SHOW MASTER STATUS'",
        AccessDeniedError,
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT",
    ),
    (
        OperationalError(1045, "Access denied for user 'u'@'h' (using password: YES)"),
        "registering as a replica",
        AccessDeniedError,
        "GRANT REPLICATION SLAVE",
    ),
    (
        OperationalError(1142, "SELECT command denied to user"),
        "running 'SELECT'",
        AccessDeniedError,
        "SELECT on the tables",
    ),
    (
        OperationalError(1130, "Host 'h' is not allowed to connect"),
        "connecting",
        AccessDeniedError,
        "create the user for this host",
    ),
    (OperationalError(1040, "Too many connections"), "connecting", LostConnectionError, "Too many"),
    (
        OperationalError(1203, "User u already has more than 'max_user_connections' connections"),
        "connecting",
        LostConnectionError,
        "raise max_user_connections, or lower the option maxConnections",
    ),
    (
        OperationalError(1226, "User 'u' has exceeded the 'max_questions' resource (value: 1)"),
        "running 'SELECT 1'",
        LostConnectionError,
        "rejected running 'SELECT 1' for now: the account has reached a resource limit",
    ),
    (
        OperationalError(1862, "Your password has expired."),
        "connecting",
        AccessDeniedError,
        "the account's password has expired",
    ),
    (
        OperationalError(3118, "Access denied for user 'u'@'h'. Account is locked."),
        "connecting",
        AccessDeniedError,
        "ACCOUNT UNLOCK",
    ),
    (
        OperationalError(2059, "Authentication plugin 'b'kerberos'' not configured"),
        "connecting",
        AccessDeniedError,
        "uses an unsupported authentication plugin",
    ),
    (
        RuntimeError("'cryptography' package is required for sha256_password"),
        "connecting",
        AccessDeniedError,
        "the password cannot be sent to h:3306",
    ),
    (
        OperationalError(2006, "MySQL server has gone away (BrokenPipeError(32))"),
        "running 'SELECT 1'",
        LostConnectionError,
        "gone away",
    ),
    (OperationalError(2013, "Lost connection"), "running 'x'", LostConnectionError, "Lost"),
    (OperationalError(1317, "was interrupted"), "running 'x'", LostConnectionError, "interrupted"),
    (OperationalError(1317, "was interrupted"), "reading rows", ServerError, "error 1317"),
    (
        OperationalError(2013, "Lost connection ([SSL: TLSV1_ALERT_UNKNOWN_CA] alert)"),
        "connecting",
        ConnectionFailedError,
        "check sslCert and sslKey",
    ),
    (
        OperationalError(2013, "Lost connection (SSLEOFError: EOF occurred)"),
        "connecting",
        LostConnectionError,
        "if it always does, check sslMode, sslCert and sslKey",
    ),
    (
        pymysql.err.ProgrammingError(1064, "You have an error in your SQL syntax"),
        "running 'x'",
        ServerError,
        "error 1064",
    ),
    (
        pymysql.err.InternalError(1236, "Could not find first log file name in binary log index"),
        "registering as a replica",
        BinlogPurgedError,
        "no longer has",
    ),
    (
        pymysql.err.InternalError("Packet sequence number wrong - got 45 expected 0"),
        "connecting",
        ConnectionFailedError,
        "did not answer like a MySQL server",
    ),
    (IndexError("out of range"), "connecting", ConnectionFailedError, "like a MySQL server"),
    (ConnectionResetError(104, "reset"), "reading the binlog", LostConnectionError, "broke while"),
    (EOFError("closed"), "reading the binlog", LostConnectionError, "broke while reading"),
    (TimeoutError("timed out"), "reading the binlog", LostConnectionError, "timed out"),
]


@pytest.mark.parametrize(("error", "doing", "kind", "words"), REFUSALS)
def test_client_exception_gives_matching_error_class_and_message(
    error: Exception, doing: str, kind: type[MySQLBinlogError], words: str
) -> None:
    found = refused(error, "h:3306", doing)
    assert type(found) is kind
    assert words in found.message
    if isinstance(found, ServerError):
        is_numbered = isinstance(error, pymysql.MySQLError) and isinstance(error.args[0], int)
        is_ours = isinstance(
            getattr(error, "original_exception", None), socket.gaierror | ssl.SSLError
        )
        assert found.code == (error.args[0] if is_numbered and not is_ours else None)
    if kind is not BinlogPurgedError:
        assert "h:3306" in found.message
