"""A shutdown ends dumps like the end of a binlog; it must not be taken for that end."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from time import time

import pytest

from helpers.logs.log_names import own_servers
from helpers.servers import LocalServer, Server
from helpers.servers.available import mariadb_kind, own_kinds
from helpers.waiting import patience, wait_until
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.log.log_protocol import Log
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.log.time_lookup import first_since
from pyspark_mysqlbinlog.errors import LostConnectionError
from pyspark_mysqlbinlog.protocol.events import Event, EventHeader, EventType
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.dump_stream import DumpStream

FILE = "mysql-bin.000001"
# More than the sockets' buffers hold, so the server has not sent everything at the shutdown.
_EVENTS, _BYTES = 64, 1 << 20
_WRITES = {EventType.WRITE_ROWS_EVENT_V1, EventType.WRITE_ROWS_EVENT}


@pytest.fixture(params=[*own_servers(), mariadb_kind()])
def server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a new server whose first binlog file has 64 MB."""
    kind: type[LocalServer] = request.param
    if kind in own_kinds().values():
        request.getfixturevalue(kind.name)  # ends the test if it is missing
    with kind(["--max-allowed-packet=64M", "--max-binlog-size=1G"]) as own:
        own.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (v LONGBLOB) ENGINE = MyISAM")
        for _ in range(_EVENTS):
            own.execute(f"INSERT INTO shop.t VALUES (REPEAT('x', {_BYTES}))")
        yield own


def inserts(stream: DumpStream) -> int:
    """Return the number of row events before the end that the stream reports."""
    count = 0
    while (raw := stream.next_event()) is not None:
        count += EventHeader.parse(raw).type in _WRITES
    return count


class ShutDown:
    """A shutdown in another thread, because the server may wait until a dump is read."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self._thread = Thread(target=server.halt)

    def begin(self) -> None:
        """Start the shutdown and wait until no new connection is accepted."""
        self._thread.start()
        wait_until(self._is_refusing, "the server refuses connections", 60, every=0.01)

    def _is_refusing(self) -> bool:
        try:
            socket.create_connection((self._server.host, self._server.port), 5).close()
        except OSError:
            return True
        return False

    def end(self) -> None:
        self._thread.join(patience(60))
        self._server.start()


class InterruptedLog:
    """A binlog whose server is shut down when the first rows have been read."""

    def __init__(self, log: Log, shutdown: ShutDown) -> None:
        self._log = log
        self._shutdown = shutdown
        self.position = log.position

    def events(self, start: Position) -> Iterator[Event]:
        is_running = True
        for event in self._log.events(start):
            if is_running and event.type in _WRITES:
                self._shutdown.begin()
                is_running = False
            yield event


@pytest.mark.sample(2)
@pytest.mark.parametrize("blocking", [False, True], ids=["up to the end", "without end"])
def test_dump_ended_by_shutdown_raises_lost_connection_error(
    server: LocalServer, blocking: bool
) -> None:
    shutdown = ShutDown(server)
    with ReplicaClient.connect(server.settings()) as client:
        stream = client.dump(FILE, FIRST_EVENT, blocking=blocking)
        stream.next_event()
        shutdown.begin()
        with pytest.raises(LostConnectionError):
            inserts(stream)
    shutdown.end()
    with ReplicaClient.connect(server.settings()) as client:
        assert inserts(client.dump(FILE, FIRST_EVENT, blocking=False)) == _EVENTS


def test_executor_resumes_reading_after_server_restart(server: LocalServer) -> None:
    shutdown = ShutDown(server)
    log = ReconnectingLog(server.settings(), retry_timeout=patience(600))
    events = log.events(Position.of(FILE, FIRST_EVENT))
    first = next(event for event in events if event.type in _WRITES)
    shutdown.begin()
    # The reader has to reconnect, before and after the server is up.
    ending = Thread(target=shutdown.end)
    ending.start()
    assert first is not None
    assert sum(event.type in _WRITES for event in events) == _EVENTS - 1
    ending.join()


def test_time_lookup_during_shutdown_raises_lost_connection_error(server: LocalServer) -> None:
    """Otherwise a start would be after changes that are still in the binlog."""
    log, begin = ServerLog(server.settings()), Position.of(FILE, FIRST_EVENT)
    shutdown = ShutDown(server)
    with pytest.raises(LostConnectionError):
        first_since(InterruptedLog(log, shutdown), [begin], time() + 3600)
    shutdown.end()
    assert first_since(log, [begin], time() + 3600) is None


def test_end_of_dump_from_before_a_restart_raises_lost_connection_error(
    own_server: LocalServer,
) -> None:
    """The server is up again when the end of the dump is checked, even if it restarts at once."""
    wait_until(lambda: uptime(own_server) > 3, "the two starts differ by seconds", every=0.2)
    # Without TLS, so that received packets can be inspected.
    with ReplicaClient.connect(replace(own_server.settings(), ssl_mode="DISABLED")) as client:
        stream = client.dump(*own_server.position(), blocking=False)
        wait_until(lambda: has_whole_dump(client), "the end of the dump has arrived")
        own_server.kill()
        own_server.start()
        with pytest.raises(LostConnectionError, match="was restarted"):
            inserts(stream)


def has_whole_dump(client: ReplicaClient) -> bool:
    """Return whether the last received bytes, still unread, are an EOF packet."""
    received = client._internals._sock.recv(1 << 16, socket.MSG_PEEK)
    # length u24 | sequence number u8 | 0xFE | warnings u16 | status u16
    return bool(received[-9:-6] == b"\x05\x00\x00" and received[-5] == 0xFE)


def uptime(server: Server) -> int:
    return int(server.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1])


def test_end_of_dump_before_server_switch_raises_lost_connection_error(
    live_server: Server, mariadb: Server
) -> None:
    """A proxy can do this at a switchover."""
    with ReplicaClient.connect(live_server.settings()) as client:
        stream = client.dump(*live_server.position(), blocking=False)
        client._settings = mariadb.settings()
        with pytest.raises(LostConnectionError, match="is another server now"):
            inserts(stream)
