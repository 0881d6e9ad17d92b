"""The replica client: one connection, whose socket the stream of a dump takes over.

pymysql does the handshake, TLS and authentication, and runs the queries before the dump. Then this
module uses the socket directly: COM_REGISTER_SLAVE, COM_BINLOG_DUMP, and packets until the end (see
`dump_stream`).

The rows of a prepared SELECT are read in the same way (see `result_set`). After their end pymysql
uses the socket again.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Self
from uuid import uuid4

import pymysql
from pymysql.constants import CLIENT, COMMAND

from pyspark_mysqlbinlog.errors import (
    ConnectionFailedError,
    LostConnectionError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.gtid_sets import Interval, encode_gtid_set
from pyspark_mysqlbinlog.protocol.server.account_errors import Login
from pyspark_mysqlbinlog.protocol.server.connection import Connection
from pyspark_mysqlbinlog.protocol.server.dump_stream import DumpStream, receiving
from pyspark_mysqlbinlog.protocol.server.result_set import ResultSet
from pyspark_mysqlbinlog.protocol.server.server_errors import refused
from pyspark_mysqlbinlog.protocol.server.session_settings import RAW_ROWS_SETTINGS, SESSION_SETTINGS

__all__ = ["ReplicaClient", "ServerSettings"]

_BINLOG_DUMP_NON_BLOCK = 1
_BINLOG_THROUGH_GTID = 4
_MARIADB_SEND_ANNOTATE_ROWS = 2
_QUERY_TIMEOUT = 120.0
# The server may have to read a whole table before it sends a SELECT's first row.
_ROWS_TIMEOUT = 3600.0
# Seconds: detects a dead peer after two minutes, even if nothing is sent to it.
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


# A server's uuid -> the address at which this process last reached that server.
_LAST_ADDRESS: dict[str, tuple[str, int]] = {}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How to reach a server. Durations are in seconds.

    Attributes
    ----------
    others : more addresses, each with its port, of servers that replicate one another.
    server_uuid : uuid of the server to connect to; empty for any of them.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    ssl_mode: str = "PREFERRED"
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    connect_timeout: float = 10.0
    heartbeat_interval: float = 10.0
    server_ids: tuple[int, int] = (1 << 30, (1 << 31) - 1)
    others: tuple[tuple[str, int], ...] = ()
    server_uuid: str = ""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def each(self) -> list[ServerSettings]:
        """Return the settings of each address, beginning with the one that was last used."""
        addresses = [(self.host, self.port), *self.others]
        last = _LAST_ADDRESS.get(self.server_uuid)
        if last in addresses:
            addresses = [last, *(each for each in addresses if each != last)]
        return [replace(self, host=host, port=port, others=()) for host, port in addresses]

    def ssl_arguments(self) -> dict[str, Any]:
        """Return pymysql's arguments for MySQL's --ssl-mode."""
        if self.ssl_mode == "DISABLED":
            return {"ssl_disabled": True}
        files = {"ssl_ca": self.ssl_ca, "ssl_cert": self.ssl_cert, "ssl_key": self.ssl_key}
        given = {name: value for name, value in files.items() if value is not None}
        if self.ssl_mode in ("VERIFY_CA", "VERIFY_IDENTITY"):
            identity = self.ssl_mode == "VERIFY_IDENTITY"
            return {"ssl_verify_cert": True, "ssl_verify_identity": identity, **given}
        if self.ssl_mode == "REQUIRED":
            return {"ssl": {"check_hostname": False, "verify_mode": "none", **_without_ssl(given)}}
        return given


def _without_ssl(given: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix("ssl_"): value for name, value in given.items()}


class ReplicaClient:
    """One connection: queries and prepared SELECTs first, then at most one dump.

    Every failure raises an error of this package; only LostConnectionError is worth a retry.
    """

    def __init__(self, settings: ServerSettings, connection: pymysql.Connection[Any]) -> None:
        self._settings = settings
        self._connection = connection
        # pymysql has no public access to its socket and packets, and its stubs omit them.
        self._internals: Any = connection
        self._is_streaming = False
        # None until it is queried.
        self._server_uuid: str | None = None

    @classmethod
    def connect(cls, settings: ServerSettings) -> ReplicaClient:
        """Open a connection and log in; the caller must close it.

        Of several addresses, the first one is used at which a server answers that has the requested
        uuid, if a uuid is given.

        Raises
        ------
        LostConnectionError : the server does not answer; a retry may help.
        ConnectionFailedError : unknown host, no MySQL server at the address, or TLS failed.
        AccessDeniedError : the server rejects the user or the host.
        ServerError : the server rejects the connection for another reason.
        """
        failed: list[ServerError] = []
        for one in settings.each():
            try:
                client = cls._connect(one)
            except ServerError as error:
                failed.append(error)
                continue
            if not one.server_uuid or len(settings.others) == 0:
                return client
            try:
                found = client.server_uuid()
            except ServerError as error:
                client.close()
                failed.append(error)
                continue
            if found == one.server_uuid:
                _LAST_ADDRESS[found] = one.host, one.port
                return client
            client.close()
            failed.append(LostConnectionError(f"{one.address} is another server, {found}"))
        if len(failed) == 1:
            raise failed[0]
        lost = [error for error in failed if isinstance(error, LostConnectionError)]
        texts = "; ".join(error.message for error in failed)
        meant = f"the server {settings.server_uuid}" if settings.server_uuid else "a server"
        raise (LostConnectionError if lost else ConnectionFailedError)(
            f"{meant} is reached at none of its addresses: {texts}"
        )

    @classmethod
    def _connect(cls, settings: ServerSettings) -> ReplicaClient:
        login = Login(has_tls=False, has_certificate=settings.ssl_cert is not None)
        try:
            connection = Connection(
                host=settings.host,
                port=settings.port,
                user=settings.user,
                # UTF-8, as the server compares it; pymysql would encode it as latin1.
                password=settings.password.encode(),
                charset="utf8mb4",
                # Set by SESSION_SETTINGS: pymysql does not notice changes made by init_connect.
                autocommit=None,
                connect_timeout=settings.connect_timeout,
                read_timeout=settings.connect_timeout,
                write_timeout=settings.connect_timeout,
                # A server must not be able to read files of this machine.
                local_infile=False,
                program_name="pyspark-mysqlbinlog",
                client_flag=CLIENT.MULTI_RESULTS,
                defer_connect=True,
                **settings.ssl_arguments(),
            )
            client = cls(settings, connection)
            try:
                connection.connect()
            finally:
                login = replace(login, has_tls=client._internals._secure)
        except Exception as error:  # noqa: BLE001 (raised again as an error of this package)
            # A peer that is no MySQL server can cause any exception in pymysql.
            raise refused(error, settings.address, "connecting", login) from None
        # A handshake is quick; a query on information_schema may take longer.
        timeout = max(settings.connect_timeout, _QUERY_TIMEOUT)
        client._internals._read_timeout = client._internals._write_timeout = timeout
        try:
            for statement in SESSION_SETTINGS:
                client.query(statement)
        except BaseException:
            client.close()
            raise
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; the server notices when it next writes."""
        if self._is_streaming or not self._connection.open:
            self._internals._force_close()
        else:
            # With COM_QUIT: otherwise the server logs an aborted connection.
            self._connection.close()

    def abort(self) -> None:
        """Break the connection for another thread that waits on it."""
        sock = self._internals._sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    @property
    def server_version(self) -> str:
        return str(self._internals.server_version)

    @property
    def major_version(self) -> int:
        """The first number of the version, of MySQL or of MariaDB."""
        version = self.server_version
        if self.is_mariadb:
            # Up to 10.11, for replicas that expect a version of MySQL.
            version = version.removeprefix("5.5.5-")
        return int(version.partition(".")[0])

    @property
    def is_mariadb(self) -> bool:
        return "mariadb" in self.server_version.lower()

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement's result.

        Raises
        ------
        LostConnectionError : the connection broke; a new one may work.
        AccessDeniedError : the account lacks a grant.
        ServerError : the server rejects the statement; `code` is its error number.
        """
        return self._run(sql, arguments)[1]

    def execute(self, sql: str) -> int:
        """Run a statement that changes rows, and return how many it changed; raises as `query`."""
        # It may have to read a whole table.
        self._internals._read_timeout = _ROWS_TIMEOUT
        try:
            with self._connection.cursor() as cursor:
                return int(cursor.execute(sql))
        except Exception as error:  # noqa: BLE001 (as in `_connect`)
            raise refused(error, self._settings.address, f"running {sql[:60]!r}") from None

    def records(self, sql: str) -> list[dict[str, Any]]:
        """Return rows by column name, for a statement whose columns differ between versions."""
        names, rows = self._run(sql, ())
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _run(
        self, sql: str, arguments: Sequence[object]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql, tuple(arguments) or None)
                rows = list(cursor.fetchall())
                return [str(column[0]) for column in cursor.description or ()], rows
        except Exception as error:  # noqa: BLE001 (as in `_connect`)
            raise refused(error, self._settings.address, f"running {sql[:60]!r}") from None

    def variable(self, name: str) -> str | None:
        """Return a global variable's value; None if the server does not have it."""
        rows = self.query(f"SHOW GLOBAL VARIABLES LIKE '{name}'")
        return str(rows[0][1]) if rows else None

    def begin_raw_rows(self) -> None:
        """Prepare this session for reading rows (see `session_settings.RAW_ROWS_SETTINGS`).

        Raises LostConnectionError, ServerError.
        """
        self.query(RAW_ROWS_SETTINGS)

    def prepared(self, sql: str) -> ResultSet:
        """Run a SELECT and return its rows in the binary protocol, as they arrive.

        The connection cannot be used for anything else until all rows have been read.

        Raises
        ------
        LostConnectionError, AccessDeniedError, ServerError : as for `query`.
        """
        statement = self._prepare(sql)
        self._is_streaming = True
        sock: socket.socket = self._internals._sock
        for name, seconds in _KEEPALIVE.items():
            option = getattr(socket, name, None)
            if option is not None:
                sock.setsockopt(socket.IPPROTO_TCP, option, seconds)

        def at_end() -> None:
            self._is_streaming = False
            # pymysql assumes that the timeout it set last is still in effect.
            self._internals._current_timeout = None
            self._send(COMMAND.COM_STMT_CLOSE, struct.pack("<I", statement))

        # statement id u32 | flags u8: no cursor | iteration count u32, always 1
        self._send(COMMAND.COM_STMT_EXECUTE, struct.pack("<IBI", statement, 0, 1))
        sock.settimeout(_ROWS_TIMEOUT)
        return ResultSet(receiving(sock), self._settings.address, at_end)

    def _prepare(self, sql: str) -> int:
        """0x00 | statement id u32 | columns u16 | parameters u16 | …, then their definitions."""
        read = self._internals._read_packet
        try:
            self._internals._execute_command(COMMAND.COM_STMT_PREPARE, sql)
            head = read().get_all_data()
            if head[:1] != b"\x00":
                raise _unexpected(head)
            statement, columns, parameters = struct.unpack_from("<IHH", head, 1)
            for count in (parameters, columns):
                # If there are any, an EOF packet follows them.
                for _ in range(count + 1 if count else 0):
                    read()
        except Exception as error:  # noqa: BLE001 (as in `_connect`)
            raise refused(error, self._settings.address, f"preparing {sql[:60]!r}") from None
        return int(statement)

    def dump(self, file: str, pos: int, *, blocking: bool) -> DumpStream:
        """Stream the binlog from (file, pos) to its end, or without end when blocking.

        The connection cannot be used for anything else afterwards.

        Raises
        ------
        LostConnectionError, AccessDeniedError, ServerError : as for `query`.
        """
        at_end = self._refuse_end if blocking else self._end_check()
        checksum, server_id = self._begin_dump()
        flags = 0 if blocking else _BINLOG_DUMP_NON_BLOCK
        if self.is_mariadb:
            flags |= _MARIADB_SEND_ANNOTATE_ROWS
        self._send(
            COMMAND.COM_BINLOG_DUMP, struct.pack("<IHI", pos, flags, server_id) + file.encode()
        )
        return self._stream(file, pos, checksum, at_end)

    def server_uuid(self) -> str:
        """Return the server's identity among the servers that replicate one another.

        This is its UUID. MariaDB has none; the identity is ``server_id-1``, for example, which is
        unique in a topology. Empty before MySQL 5.6, which has no UUID.
        """
        if self._server_uuid is None:
            if self.is_mariadb:
                self._server_uuid = f"server_id-{self.variable('server_id')}"
            else:
                self._server_uuid = self.variable("server_uuid") or ""
        return self._server_uuid

    def dump_after(self, executed: Sequence[Interval]) -> DumpStream:
        """Stream a MySQL's binlog to its end, without the transactions in a GTID set.

        The server begins with the newest file such that all transactions before it are in the set.

        Parameters
        ----------
        executed : the set's intervals, in order.

        Raises
        ------
        LostConnectionError, AccessDeniedError, ServerError : as for `query`.
        """
        at_end = self._end_check()
        checksum, server_id = self._begin_dump()
        encoded = encode_gtid_set(executed)
        # flags u16 | server id u32 | name length u32 | position u64 | size u32 | set
        flags = _BINLOG_DUMP_NON_BLOCK | _BINLOG_THROUGH_GTID
        head = struct.pack("<HIIQI", flags, server_id, 0, 4, len(encoded))
        self._send(COMMAND.COM_BINLOG_DUMP_GTID, head + encoded)
        return self._stream("", 4, checksum, at_end)

    def dump_after_mariadb(self, last: Sequence[str]) -> DumpStream:
        """Stream a MariaDB's binlog to its end, after the last GTID of each domain.

        Transactions up to these GTIDs are left out, domain by domain.

        Parameters
        ----------
        last : one GTID for each domain, as ``domain-server-number``.

        Raises
        ------
        LostConnectionError, AccessDeniedError : as for `query`.
        ServerError : it has not logged one of them, or has purged what follows.
        """
        at_end = self._end_check()
        checksum, server_id = self._begin_dump()
        self.query("SET @slave_connect_state = %s", [",".join(last)])
        # Otherwise it accepts a GTID that it lacks if it has a later one of the same domain.
        self.query("SET @slave_gtid_strict_mode = 1")
        head = struct.pack("<IHI", 4, _BINLOG_DUMP_NON_BLOCK, server_id)
        self._send(COMMAND.COM_BINLOG_DUMP, head)
        return self._stream("", 4, checksum, at_end)

    def _begin_dump(self) -> tuple[ChecksumAlgorithm, int]:
        checksum = self._negotiate()
        server_id = random.randint(*self._settings.server_ids)
        self._register(server_id)
        self._is_streaming = True
        return checksum, server_id

    def _negotiate(self) -> ChecksumAlgorithm:
        """Set the session variables that a dump uses: identity, heartbeats, checksums."""
        heartbeat = int(self._settings.heartbeat_interval * 1e9)
        self.query("SET @slave_uuid = %s", [str(uuid4())])
        self.query(f"SET @master_heartbeat_period = {heartbeat}")
        if self.is_mariadb:
            # 4: supports GTID and ANNOTATE events, so that the server sends the binlog unchanged.
            self.query("SET @mariadb_slave_capability = 4")
        algorithm = self.variable("binlog_checksum")
        if algorithm is None:  # before 5.6.1 there are none
            return ChecksumAlgorithm.OFF
        self.query("SET @master_binlog_checksum = @@global.binlog_checksum")
        return ChecksumAlgorithm.OFF if algorithm == "NONE" else ChecksumAlgorithm.CRC32

    def _register(self, server_id: int) -> None:
        """server_id u32 | host | user | password | port u16 | rank u32 | master id u32"""
        host = b"pyspark-mysqlbinlog"
        payload = struct.pack("<IB", server_id, len(host)) + host + b"\x00\x00"
        self._send(COMMAND.COM_REGISTER_SLAVE, payload + struct.pack("<HII", 0, 0, 0))
        try:
            answer = self._internals._read_packet()
            if not answer.is_ok_packet():
                raise _unexpected(answer.get_all_data())
        except Exception as error:  # noqa: BLE001 (as in `_connect`)
            raise refused(error, self._settings.address, "registering as a replica") from None

    def _send(self, command: int, payload: bytes) -> None:
        try:
            self._internals._execute_command(command, payload)
        except (pymysql.err.MySQLError, OSError) as error:
            raise refused(error, self._settings.address, "sending a command") from None

    def _refuse_end(self) -> None:
        raise LostConnectionError("the server ended a dump that should not end")

    def _end_check(self) -> Callable[[], None]:
        """Return a check that raises LostConnectionError unless a dump ended at the binlog's end.

        A server that is shut down ends its dumps in the same way, wherever they are (measured on
        MySQL 5.6.24, 5.7.41, 9.7.4, MariaDB 10.11 and 11.8). By then it takes no new connections.
        KILL breaks the connection instead (measured on the same).
        """
        uuid, uptime = self.server_uuid(), self._uptime()
        # Taken after this answer, and `asked_at` before the next question. Their difference is at
        # most the time between the two uptimes.
        known_at = monotonic()

        def check() -> None:
            try:
                with self._connect(self._settings) as other:
                    found, asked_at = other.server_uuid(), monotonic()
                    now = other._uptime()
            except LostConnectionError as error:
                raise LostConnectionError(
                    f"the server ended a dump while it was shut down: {error.message}",
                    code=error.code,
                ) from None
            except ServerError:
                return  # such as too many connections: it is not shut down
            address = self._settings.address
            if found != uuid:
                raise LostConnectionError(
                    f"the server ended a dump, and {address} is another server now: expected"
                    f" {uuid}, found {found}"
                )
            # An uptime is in whole seconds, by a clock that may be adjusted.
            if uptime is not None and now is not None and now + 2 < uptime + asked_at - known_at:
                raise LostConnectionError(f"{address} was restarted, and had ended a dump before")

        return check

    def _uptime(self) -> int | None:
        """Return the seconds since the server's start; None if the server does not report them."""
        rows = self.query("SHOW GLOBAL STATUS LIKE 'Uptime'")
        text = str(rows[0][1]) if rows else ""
        return int(text) if text.isdecimal() else None

    def _stream(
        self, file: str, pos: int, checksum: ChecksumAlgorithm, at_end: Callable[[], None]
    ) -> DumpStream:
        sock: socket.socket = self._internals._sock
        # Two heartbeats may be late; a third missing one means that the server is dead.
        sock.settimeout(max(3 * self._settings.heartbeat_interval, 30.0))
        lowest, highest = self._settings.server_ids
        return DumpStream(
            sock,
            self._settings.address,
            file,
            pos,
            checksum,
            at_end=at_end,
            can_draw=lowest < highest,
        )


def _unexpected(answer: bytes) -> pymysql.err.InternalError:
    return pymysql.err.InternalError(
        f"an answer of {len(answer)} bytes that begins with 0x{answer[:1].hex()}, expected 0x00"
    )
