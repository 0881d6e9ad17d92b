"""What a server's refusal means, and what to do about it.

Everything is told apart by its number, for the texts depend on lc_messages: what a server says
before a session has begun is in the language of its global value. Only error 1236 stands for many
things that its text alone tells apart (MySQL's rpl_master.cc and rpl_binlog_sender.cc, MariaDB's
sql_repl.cc). These texts are English in every language (measured with de_DE, fr_FR, ja_JP and ru_RU
on MySQL 5.6.24, 5.7.41 and MariaDB 10.11), and each session sets its lc_messages as well.
"""

from __future__ import annotations

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
from pyspark_mysqlbinlog.protocol.account_errors import (
    WRONG_PASSWORD,
    Login,
    account_error,
    not_authenticated,
)

__all__ = ["dump_error", "log_replaced", "refused"]

_GRANT_MISSING = {1044, 1142, 1143, 1227, 1370}
_HOST_IS_BLOCKED = 1129
_INIT_CONNECT_FAILED = 1184
_HOST_NOT_PRIVILEGED = 1130
# Shutdown, aborted, read/write interrupted, no server there, gone, lost, killed. Not a blocked
# host: it stays so until somebody flushes it.
_TRANSIENT = {1053, 1152, 1158, 1159, 1160, 1161, 2003, 2006, 2013, 1927}
# A shutdown interrupts statements before it closes their connections.
_INTERRUPTED = 1317
# What the server (5.7.6 and later) refuses under which gtid_mode, and the next mode, in which it
# sends both kinds.
_GTID_MODES = {
    "cannot replicate anonymous transaction when @@global.gtid_mode = on": "ON_PERMISSIVE",
    "cannot replicate gtid-transaction when @@global.gtid_mode = off": "OFF_PERMISSIVE",
}
_CAUSES = "RESET MASTER was run, the server was restored, or it lost its tail in a crash"
_WAYS_ON = (
    "start again with a new checkpoint, and load the tables anew: no log tells what changed in"
    " between"
)
_TLS_ALERT = "_ALERT_"
# The peer, or a proxy before it, went away: nothing that TLS itself has refused.
_TLS_CUT = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def refused(
    error: Exception, address: str, doing: str, login: Login | None = None
) -> MySQLBinlogError:
    """Our error for what went wrong on a connection while `doing` something.

    login : while it was being made.

    Only a LostConnectionError is worth another try. A ServerError has the server's `code`.
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
        if code == 0:
            # pymysql's own words about packets that no MySQL server sends.
            return _no_mysql(address, doing, text)
        return _told(code, text, address, doing, login)
    if isinstance(error, (OSError, EOFError)):
        return LostConnectionError(f"the connection to {address} broke while {doing}: {error}")
    # Only its kind: the text of a foreign error may show what it was given, a password too.
    return _no_mysql(address, doing, type(error).__name__)


def _not_found(error: socket.gaierror, address: str) -> ConnectionFailedError:
    if error.errno == socket.EAI_AGAIN:
        return LostConnectionError(
            f"the name of {address} can't be looked up now ({error.strerror}); check the machine's"
            " name servers"
        )
    return ConnectionFailedError(
        f"no host of that name: {address} ({error.strerror}); check the option host"
    )


def _without_tls(error: ssl.SSLError, address: str, doing: str) -> ConnectionFailedError:
    if isinstance(error, _TLS_CUT):
        return LostConnectionError(
            f"the connection to {address} broke inside TLS while {doing}: {error}; where it"
            " always does, check sslMode"
        )
    return ConnectionFailedError(
        f"TLS with {address} failed while {doing}: {error}; check sslMode and sslCa"
    )


def _told(code: int, text: str, address: str, doing: str, login: Login | None) -> MySQLBinlogError:
    """Our error for one that has a number, the server's or the client's."""
    of_account = account_error(code, text, address, doing)
    if of_account is not None:
        return of_account
    if code in WRONG_PASSWORD and doing == "connecting":
        also = f"; {login.also_refused()}" if login is not None else ""
        return AccessDeniedError(
            f"{address} refused the user: {text}{also}; check the options user and password",
            code=code,
        )
    # A user without REPLICATION SLAVE is denied access a second time when it registers.
    if code in _GRANT_MISSING or code in WRONG_PASSWORD:
        return AccessDeniedError(
            f"{address} refused {doing}: {text}; GRANT REPLICATION SLAVE, REPLICATION CLIENT"
            " ON *.* and SELECT on the tables to this user",
            code=code,
        )
    if code == _HOST_NOT_PRIVILEGED:
        return AccessDeniedError(
            f"{address} refused this host: {text}; create the user for it", code=code
        )
    if code == _HOST_IS_BLOCKED:
        return ServerError(
            f"{address} refused this host: {text}; FLUSH HOSTS on the server, and look for what"
            " breaks its handshakes (max_connect_errors)",
            code=code,
        )
    if code == _INIT_CONNECT_FAILED and doing == "connecting":
        return ServerError(
            f"{address} ended the new session: {text}; its global init_connect fails for this"
            " account: correct it (SELECT @@GLOBAL.init_connect; the server's error log has the"
            " reason), or grant the account what it needs",
            code=code,
        )
    if code == 1236:
        return dump_error(code, text, None, None)
    if code in _TRANSIENT and _TLS_ALERT in text:
        # In TLS 1.3 a client hears after its handshake that the server did not like it.
        return ConnectionFailedError(
            f"{address} broke off TLS while {doing}: {text}; check sslCert and sslKey", code=code
        )
    if code in _TRANSIENT or (code == _INTERRUPTED and doing.startswith("running ")):
        hint = "; where it always does, check sslMode, sslCert and sslKey" if "SSL" in text else ""
        return LostConnectionError(
            f"{address} does not answer while {doing}: {text}{hint}", code=code
        )
    return ServerError(f"{address} failed while {doing}: error {code}: {text}", code=code)


def _no_mysql(address: str, doing: str, found: str) -> ConnectionFailedError:
    return ConnectionFailedError(
        f"{address} gave an answer that is not MySQL's while {doing}: {found}; check the options"
        " host and port"
    )


def _code_and_text(error: pymysql.err.MySQLError) -> tuple[int, str]:
    arguments = error.args
    if len(arguments) >= 2 and isinstance(arguments[0], int):
        return arguments[0], str(arguments[1])
    return 0, str(error)


def dump_error(code: int, text: str, file: str | None, position: int | None) -> MySQLBinlogError:
    """Our error for an error packet in place of the dump's next event."""
    lower = text.lower()
    if code in _GRANT_MISSING:
        return AccessDeniedError(
            f"the server refused the dump: {text}; GRANT REPLICATION SLAVE ON *.* to this user",
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
            " checkpoint (the changes in between are lost), and raise expire_logs_days",
            file=file,
            position=position,
        )
    if "same server_uuid" in lower or "same server_id" in lower or "server_uuid/server_id" in lower:
        return ServerError(
            f"another replica took our identity: {text}; leave serverId unset, or give a range of"
            " numbers that nobody else uses",
            file=file,
            position=position,
            code=code,
        )
    for words, until in _GTID_MODES.items():
        if words in lower:
            return ServerError(
                f"the server does not send the transactions that come next: {text}; its gtid_mode"
                f" was changed while this stream was behind: SET GLOBAL gtid_mode = {until} until"
                " it has caught up, and start it again with the same checkpoint",
                file=file,
                position=position,
                code=code,
            )
    if "binary log is not open" in lower:
        return BinlogSettingsError(
            "the server writes no binlog; start it with --log-bin and binlog_format=ROW", code=code
        )
    # In mid-dump. RESET MASTER takes a file away from under a dump; PURGE leaves it.
    if "could not find next log" in lower:
        return log_replaced(f"the file that was read is gone: {text}", file, position)
    # "impossible position": 5.5 and MariaDB, for positions past the end and before 4 alike.
    past_the_end = ("position > file size", "from past eof", "impossible position")
    if any(words in lower for words in past_the_end):
        return InvalidPositionError(
            f"the position is past the end of its file: {text}; {_CAUSES}; {_WAYS_ON}",
            file=file,
            position=position,
        )
    if "max_allowed_packet" in lower or "bogus data" in lower or "position < 4" in lower:
        return InvalidPositionError(
            f"no event begins at this position: {text}; give one that SHOW BINLOG EVENTS lists;"
            f" or, where it is a checkpoint's: {_CAUSES}; {_WAYS_ON}",
            file=file,
            position=position,
        )
    # It took bytes inside of an event for a length, or the file ends inside of one.
    if "truncated in the middle of event" in lower:
        return InvalidPositionError(
            f"no whole event begins at this position: {text}; give one that SHOW BINLOG EVENTS"
            f" lists; or, where it is a checkpoint's: {_CAUSES}, or the file is damaged;"
            f" {_WAYS_ON}",
            file=file,
            position=position,
        )
    return ServerError(
        f"the server ended the dump: {text}", file=file, position=position, code=code
    )


def log_replaced(found: str, file: str | None, position: int | None) -> BinlogReplacedError:
    """The error for a log that is not the one of a position; `found` says how that shows."""
    return BinlogReplacedError(
        f"the server's log is not the one any more that this position belongs to: {found};"
        f" {_CAUSES}; {_WAYS_ON}",
        file=file,
        position=position,
    )
