"""Maps errors of the server and of the connection to errors of this package, with a remedy.

Errors are distinguished by number, because texts depend on lc_messages: before a session begins,
they are in the language of the server's global value. Only error 1236 has many causes, which differ
in the text alone (MySQL's rpl_master.cc and rpl_binlog_sender.cc, MariaDB's sql_repl.cc). They
are English in every language (measured with de_DE, fr_FR, ja_JP and ru_RU on MySQL 5.6.24, 5.7.41
and MariaDB 10.11), and each session also sets its lc_messages.
"""

from __future__ import annotations

import re
import socket
import ssl

import pymysql

from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    BinlogPurgedError,
    BinlogReplacedError,
    BinlogSettingsError,
    ConnectionFailedError,
    InvalidPositionError,
    LostConnectionError,
    MySQLBinlogError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.server.account_errors import (
    WRONG_PASSWORD,
    Login,
    account_error,
    not_authenticated,
)

__all__ = ["LOCK_WAIT_TIMEOUT_CODE", "dump_error", "is_identity_clash", "log_replaced", "refused"]

LOCK_WAIT_TIMEOUT_CODE = 1205  # of InnoDB's locks and of metadata locks
_GRANT_MISSING = {1044, 1142, 1143, 1227, 1370}
_HOST_IS_BLOCKED = 1129
_INIT_CONNECT_FAILED = 1184
_HOST_NOT_PRIVILEGED = 1130
# Shutdown, aborted, read/write interrupted, no server, lost, killed. A blocked host is not
# transient: it stays blocked until FLUSH HOSTS.
_TRANSIENT = {1053, 1152, 1158, 1159, 1160, 1161, 2003, 2006, 2013, 1927}
# A shutdown interrupts statements before it closes their connections.
_INTERRUPTED = 1317
_MARIADB_SAME_ID = 4052
# The message of the server (5.7.6 and later) under a gtid_mode -> the next mode, in which it sends
# both kinds of transactions.
_GTID_MODES = {
    "cannot replicate anonymous transaction when @@global.gtid_mode = on": "ON_PERMISSIVE",
    "cannot replicate gtid-transaction when @@global.gtid_mode = off": "OFF_PERMISSIVE",
}
_CAUSES = "RESET MASTER was run, the server was restored, or it lost its tail in a crash"
_REMEDIES = (
    "start with a new checkpoint, and snapshot the tables again: the changes in between are in no"
    " binlog"
)
_TLS_ALERT = "_ALERT_"
_CERTIFICATE_ALERT = re.compile(r"_ALERT_(?:UNKNOWN_CA|\w*CERTIFICATE)")
# A word in pymysql's error for a server that answers a statement as if it were LOAD DATA LOCAL.
_LOCAL_FILE = "LOAD_LOCAL"
# Limit for a server's text in an error.
_MAX_SHOWN_CHARACTERS = 1000
# The peer, or a proxy before it, closed the connection: TLS itself rejected nothing.
_TLS_CUT = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def refused(
    error: Exception, address: str, doing: str, login: Login | None = None
) -> MySQLBinlogError:
    """Return the error for a failure on a connection while `doing` something.

    login : given while the connection is being made.

    Only a LostConnectionError is worth a retry. A ServerError has the server's `code`.
    """
    cause = getattr(error, "original_exception", None)
    if isinstance(cause, socket.gaierror):
        return _not_found(cause, address)
    for each in (cause, error):
        if isinstance(each, ssl.SSLError):
            return _without_tls(each, address, doing)
    not_sent = not_authenticated(error, address)
    if not_sent is not None:
        return not_sent
    if isinstance(error, pymysql.err.MySQLError):
        code, text = _code_and_text(error)
        if isinstance(error, pymysql.err.InterfaceError) and not text:
            # What pymysql raises for each query after one at which it lost the connection.
            return LostConnectionError(f"the connection to {address} is closed, before {doing}")
        if code == 0:
            # pymysql's own message about packets that no MySQL server sends.
            return _no_mysql(address, doing, text)
        return _from_error_number(code, text, address, doing, login)
    if isinstance(error, RuntimeError) and _LOCAL_FILE in str(error):
        return ConnectionFailedError(
            f"{address} requested a file of this machine while {doing}; nothing was sent. No MySQL"
            " server does that: check the options host and port, and set sslMode=VERIFY_IDENTITY"
        )
    if isinstance(error, (OSError, EOFError)):
        return LostConnectionError(f"the connection to {address} broke while {doing}: {error}")
    # Only its type: the text of a foreign error may contain arguments, even a password.
    return _no_mysql(address, doing, type(error).__name__)


def _not_found(error: socket.gaierror, address: str) -> ConnectionFailedError:
    if error.errno == socket.EAI_AGAIN:
        return LostConnectionError(
            f"the name of {address} cannot be resolved now ({error.strerror}); check the"
            " name servers of this machine"
        )
    return ConnectionFailedError(
        f"unknown host: {address} ({error.strerror}); check the option host"
    )


def _without_tls(error: ssl.SSLError, address: str, doing: str) -> ConnectionFailedError:
    if isinstance(error, _TLS_CUT):
        return LostConnectionError(
            f"the connection to {address} broke inside TLS while {doing}: {error}; if it always"
            " does, check sslMode"
        )
    # The server sends such an alert about this client's certificate.
    is_own = _CERTIFICATE_ALERT.search(str(error)) is not None
    options = "sslCert and sslKey" if is_own else "sslMode and sslCa"
    return ConnectionFailedError(
        f"TLS with {address} failed while {doing}: {error}; check {options}"
    )


def _from_error_number(
    code: int, text: str, address: str, doing: str, login: Login | None
) -> MySQLBinlogError:
    """Return the error for a MySQL error number, either the server's or the client's."""
    of_account = account_error(code, text, address, doing)
    if of_account is not None:
        return of_account
    if code in WRONG_PASSWORD and doing == "connecting":
        also = f"; {login.also_refused()}" if login is not None else ""
        return AccessDeniedError(
            f"{address} rejected the user: {text}{also}; check the options user and password",
            code=code,
        )
    # A user without REPLICATION SLAVE gets "access denied" when the connection registers.
    if code in _GRANT_MISSING or code in WRONG_PASSWORD:
        return AccessDeniedError(
            f"{address} rejected {doing}: {text}; GRANT REPLICATION SLAVE, REPLICATION CLIENT"
            " ON *.* and SELECT on the tables to this user",
            code=code,
        )
    if code == _HOST_NOT_PRIVILEGED:
        return AccessDeniedError(
            f"{address} rejected this host: {text}; create the user for this host", code=code
        )
    if code == _HOST_IS_BLOCKED:
        return ServerError(
            f"{address} rejected this host: {text}; run FLUSH HOSTS on the server (8.0 and later:"
            " TRUNCATE TABLE performance_schema.host_cache), and find what breaks its handshakes"
            " (max_connect_errors)",
            code=code,
        )
    if code == _INIT_CONNECT_FAILED and doing == "connecting":
        return ServerError(
            f"{address} ended the new session: {text}; the global init_connect fails for this"
            " account: correct it (SELECT @@GLOBAL.init_connect; the server's error log has the"
            " reason), or grant the account what it requires",
            code=code,
        )
    if code == 1236:
        return dump_error(code, text, None, None)
    if code in _TRANSIENT and _TLS_ALERT in text:
        # In TLS 1.3 a client receives the server's rejection only after its own handshake.
        return ConnectionFailedError(
            f"{address} broke off TLS while {doing}: {text}; check sslCert and sslKey", code=code
        )
    if code in _TRANSIENT or (code == _INTERRUPTED and doing.startswith("running ")):
        hint = "; if it always does, check sslMode, sslCert and sslKey" if "SSL" in text else ""
        return LostConnectionError(
            f"{address} does not answer while {doing}: {text}{hint}", code=code
        )
    return ServerError(f"{address} failed while {doing}: error {code}: {text}", code=code)


def _no_mysql(address: str, doing: str, found: str) -> ConnectionFailedError:
    return ConnectionFailedError(
        f"{address} did not answer like a MySQL server while {doing}: {found}; check the options"
        " host and port"
    )


def _code_and_text(error: pymysql.err.MySQLError) -> tuple[int, str]:
    arguments = error.args
    if len(arguments) >= 2 and isinstance(arguments[0], int):
        return arguments[0], _shown(str(arguments[1]))
    return 0, _shown(str(error))


def _shown(text: str) -> str:
    """Return a server's text in a safe form: one line, limited, without control characters."""
    text = " ".join(text[:_MAX_SHOWN_CHARACTERS].split())
    return "".join(each if each.isprintable() else "�" for each in text)


def dump_error(code: int, text: str, file: str | None, position: int | None) -> MySQLBinlogError:
    """Return the error for an error packet in place of the dump's next event."""
    text = _shown(text)
    lower = text.lower()
    if code in _GRANT_MISSING:
        return AccessDeniedError(
            f"the server rejected the dump: {text}; GRANT REPLICATION SLAVE ON *.* to this user",
            code=code,
        )
    if is_identity_clash(code, text):
        return ServerError(
            "another replica uses the same server_id or UUID, or another connection of this query"
            f" does: {text}; leave serverId unset, or set a range of at least 10000 numbers that no"
            " other replica uses",
            file=file,
            position=position,
            code=code,
        )
    if code != 1236:
        of_account = account_error(code, text, "the server", "the dump")
        if of_account is not None:
            return of_account
        if code in _TRANSIENT:
            return LostConnectionError(
                f"the server ended the dump: error {code}: {text}", code=code
            )
        return ServerError(
            f"the server ended the dump: error {code}: {text}",
            file=file,
            position=position,
            code=code,
        )
    if "could not find first log file" in lower or "purged" in lower:
        return BinlogPurgedError(
            f"the server no longer has this binlog: {text}; restore it, or start again with a new"
            " checkpoint (the changes in between are lost), and raise"
            " expire_logs_days (8.0 and later: binlog_expire_logs_seconds)",
            file=file,
            position=position,
        )
    for words, until in _GTID_MODES.items():
        if words in lower:
            return ServerError(
                f"the server does not send the next transactions: {text}; its gtid_mode was changed"
                f" while this stream was behind: SET GLOBAL gtid_mode = {until} until it has"
                " caught up, and restart it with the same checkpoint",
                file=file,
                position=position,
                code=code,
            )
    if "binary log is not open" in lower:
        return BinlogSettingsError(
            "the server writes no binlog; start it with --log-bin and binlog_format=ROW", code=code
        )
    # In mid-dump. RESET MASTER deletes a file that a dump reads; PURGE keeps it.
    if "could not find next log" in lower:
        return log_replaced(f"the file that was read no longer exists: {text}", file, position)
    # "impossible position": 5.5 and MariaDB, for positions past the end and before 4 alike.
    past_the_end = ("position > file size", "from past eof", "impossible position")
    if any(words in lower for words in past_the_end):
        return InvalidPositionError(
            f"the position is past the end of its file: {text}; {_CAUSES}; {_REMEDIES}",
            file=file,
            position=position,
        )
    if "max_allowed_packet" in lower or "bogus data" in lower or "position < 4" in lower:
        return InvalidPositionError(
            f"no event begins at this position: {text}; use one that SHOW BINLOG EVENTS lists;"
            f" or, if it is from a checkpoint: {_CAUSES}; {_REMEDIES}",
            file=file,
            position=position,
        )
    # The server took bytes inside an event for a length, or the file ends inside an event.
    if "truncated in the middle of event" in lower:
        return InvalidPositionError(
            f"no complete event begins at this position: {text}; use one that SHOW BINLOG EVENTS"
            f" lists; or, if it is from a checkpoint: {_CAUSES}, or the file is damaged;"
            f" {_REMEDIES}",
            file=file,
            position=position,
        )
    return ServerError(
        f"the server ended the dump: {text}", file=file, position=position, code=code
    )


def is_identity_clash(code: int, text: str) -> bool:
    """Whether a dump ended because a newer one has the same identity.

    MySQL compares the UUIDs, and the server_id only if there are none. MariaDB compares the
    server_id (measured on 5.6.24, 5.7.41, 9.7.4, MariaDB 10.11 and 11.8).
    """
    lower = text.lower()
    names_clash = any(words in lower for words in ("same server_uuid", "same server_id"))
    return code == _MARIADB_SAME_ID or (code == 1236 and names_clash)


def log_replaced(found: str, file: str | None, position: int | None) -> BinlogReplacedError:
    """Return the error for a binlog that is not the position's; `found` is the evidence."""
    return BinlogReplacedError(
        f"the server's binlog is not the one that this position belongs to: {found};"
        f" {_CAUSES}; {_REMEDIES}",
        file=file,
        position=position,
    )
