"""Two replicas with one identity: an error names the clash, instead of endless reconnects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from helpers.servers import Server
from helpers.streams.source_runner import Spark, ids, insert, new_reader
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.errors import LostConnectionError, ServerError
from pyspark_mysqlbinlog.protocol.server import client as client_module
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.dump_stream import DumpStream

CLASH = "another replica uses the same server_id or UUID"


@contextmanager
def dumping(server: Server, ids: tuple[int, int] = (77, 77)) -> Iterator[DumpStream]:
    """Yield a dump whose first event has arrived."""
    settings = replace(server.settings(heartbeat_interval=1.0), server_ids=ids)
    with ReplicaClient.connect(settings) as client:
        stream = client.dump(*server.position(), blocking=True)
        stream.next_event()
        yield stream


def until_it_ends(stream: DumpStream) -> None:
    while stream.next_event() is not None:
        pass


def test_same_server_id_ends_the_older_dump_on_mariadb_only(any_server: Server) -> None:
    """On MySQL both connections stay, because their UUIDs differ."""
    with dumping(any_server) as first, dumping(any_server) as second:
        if any_server.is_mariadb:
            with pytest.raises(ServerError, match=CLASH) as caught:
                until_it_ends(first)
            assert not isinstance(caught.value, LostConnectionError)
        else:
            first.next_event()
        second.next_event()


def test_server_id_clash_in_range_raises_lost_connection_error_on_mariadb(
    any_server: Server,
) -> None:
    with dumping(any_server, (77, 78)) as first, dumping(any_server) as second:
        if any_server.is_mariadb:
            # If the first dump uses 78, only this third one clashes with it.
            with dumping(any_server, (78, 78)), pytest.raises(LostConnectionError, match=CLASH):
                until_it_ends(first)
        else:
            first.next_event()
        second.next_event()


def test_same_replica_uuid_ends_the_older_dump(
    any_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UUIDs are random, so that only an error in this package can cause this clash."""
    monkeypatch.setattr(client_module, "uuid4", lambda: "11111111-1111-1111-1111-111111111111")
    with dumping(any_server, (77, 77)) as first, dumping(any_server, (77, 77)) as second:
        is_silent = any_server.version().startswith("5.6")
        with pytest.raises(ServerError, match="should not end" if is_silent else CLASH):
            until_it_ends(first)
        second.next_event()


def test_streams_with_same_server_id_conflict_on_mariadb_only(
    any_server: Server, any_database: str
) -> None:
    any_server.execute(f"CREATE TABLE {any_database}.t (id INT PRIMARY KEY)")
    streams = [
        Spark(new_reader(any_server, f"{any_database}.t", serverId="77", retryTimeout="20s"))
        for _ in range(2)
    ]
    begun = []
    for stream in streams:
        begun.append(stream.latest(stream.initial()))
        stream.wait_for_tail(any_server)
    try:
        insert(any_server, f"{any_database}.t", 1)
        older, newer = streams
        end = newer.next_batch(begun[1])
        if not any_server.is_mariadb:
            assert ids(newer.rows(begun[1], end)) == [1]
            assert ids(older.rows(begun[0], older.next_batch(begun[0]))) == [1]
            return
        tail = older.reader.tail
        assert tail is not None
        error = wait_until(lambda: tail.buffer.error, "the older stream stops")
        assert CLASH in str(error)
    finally:
        for stream in streams:
            stream.reader.stop()
