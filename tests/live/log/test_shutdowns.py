"""A server that is shut down ends its dumps like one whose binlog ends: that is no end of a log."""

from __future__ import annotations

import socket
from collections.abc import Iterator
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
# More than the sockets' buffers hold, so that the server has not sent all when it is shut down.
_EVENTS, _BYTES = 64, 1 << 20
_WRITES = {EventType.WRITE_ROWS_EVENT_V1, EventType.WRITE_ROWS_EVENT}


@pytest.fixture(params=[*own_servers(), mariadb_kind()])
def server(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """One of the test's own, whose first binlog file has 64 MB."""
    kind: type[LocalServer] = request.param
    if kind in own_kinds().values():
        request.getfixturevalue(kind.name)  # it says what is missing
    with kind(["--max-allowed-packet=64M", "--max-binlog-size=1G"]) as own:
        own.execute("CREATE DATABASE shop", "CREATE TABLE shop.t (v LONGBLOB) ENGINE = MyISAM")
        for _ in range(_EVENTS):
            own.execute(f"INSERT INTO shop.t VALUES (REPEAT('x', {_BYTES}))")
        yield own


def inserts(stream: DumpStream) -> int:
    """How many are left before the end that the stream tells."""
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
        """Until no new connection is accepted."""
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
    """A log whose server is shut down when the first rows have been read."""

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


@pytest.mark.parametrize("blocking", [False, True], ids=["up to the end", "without end"])
def test_dump_that_a_shutdown_ends_is_a_lost_connection(
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


def test_executor_reads_on_after_a_restart(server: LocalServer) -> None:
    shutdown = ShutDown(server)
    log = ReconnectingLog(server.settings(), retry_timeout=patience(600))
    events = log.events(Position.of(FILE, FIRST_EVENT))
    first = next(event for event in events if event.type in _WRITES)
    shutdown.begin()
    # It has to connect again, before and after the server is there.
    ending = Thread(target=shutdown.end)
    ending.start()
    assert first is not None
    assert sum(event.type in _WRITES for event in events) == _EVENTS - 1
    ending.join()


def test_time_that_is_looked_up_during_a_shutdown_is_not_the_end(server: LocalServer) -> None:
    """Else a start would be after changes that are still in the binlog."""
    log, begin = ServerLog(server.settings()), Position.of(FILE, FIRST_EVENT)
    shutdown = ShutDown(server)
    with pytest.raises(LostConnectionError):
        first_since(InterruptedLog(log, shutdown), [begin], time() + 3600)
    shutdown.end()
    assert first_since(log, [begin], time() + 3600) is None


def test_end_told_before_a_restart_is_a_lost_connection(own_server: LocalServer) -> None:
    """The server is up again when it is asked, however soon after the beginning."""
    wait_until(lambda: uptime(own_server) > 3, "its two starts are in different seconds", every=0.2)
    with ReplicaClient.connect(own_server.settings()) as client:
        stream = client.dump(*own_server.position(), blocking=False)
        own_server.kill()
        own_server.start()
        with pytest.raises(LostConnectionError, match="was restarted"):
            inserts(stream)


def uptime(server: Server) -> int:
    return int(server.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")[0][1])


def test_end_told_before_another_server_took_the_address_is_a_lost_connection(
    live_server: Server, mariadb: Server
) -> None:
    """As with a proxy, at a switchover."""
    with ReplicaClient.connect(live_server.settings()) as client:
        stream = client.dump(*live_server.position(), blocking=False)
        client._settings = mariadb.settings()
        with pytest.raises(LostConnectionError, match="is another server now"):
            inserts(stream)
