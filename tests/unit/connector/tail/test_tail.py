"""The tail's connections, tested without a server."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from helpers.waiting import wait_until
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.tail import tail as tail_module
from pyspark_mysqlbinlog.connector.tail.buffer import LogBuffer
from pyspark_mysqlbinlog.connector.tail.buffer_types import BoundaryState
from pyspark_mysqlbinlog.connector.tail.tail import Tail
from pyspark_mysqlbinlog.errors import ConnectionFailedError
from pyspark_mysqlbinlog.protocol.server.client import ServerSettings


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Yield a listener that sends nothing to its connections."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield listener


def test_slow_failed_connection_attempts_exhaust_the_retry_timeout(
    silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "_MAX_HELD_SECONDS", 0.05)
    host, port = silent.getsockname()
    settings = ServerSettings(host, port, "u", "p", connect_timeout=0.2)
    start = BoundaryState(Position.of("mysql-bin.000001", 4), SchemaHistory())
    buffer = LogBuffer(start, capacity=1000, granularity=0)
    tail = Tail(
        settings,
        server_uuid="",
        start=start,
        captures=lambda *_: True,
        buffer=buffer,
        retry_timeout=0.5,
    )
    tail.start()
    try:
        wait_until(lambda: buffer.error is not None, "the tail gives up")
    finally:
        tail.stop()
    assert isinstance(buffer.error, ConnectionFailedError)
