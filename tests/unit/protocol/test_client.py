"""Packets of a dump, received over a real socket."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    BinlogPurgedError,
    BinlogSettingsError,
    LostConnectionError,
    MalformedEventError,
    MySQLBinlogError,
)
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.server.dump_stream import read_packet

MAX = (1 << 24) - 1
SETTINGS = ServerSettings("h", 3306, "u", "secret")


def packets(payload: bytes, sequence: int = 1) -> bytes:
    """Return a payload in packets; a last one of 2^24 - 1 bytes is followed by an empty one."""
    parts = []
    at = 0
    while True:
        part = payload[at : at + MAX]
        parts.append(len(part).to_bytes(3, "little") + bytes([sequence & 0xFF]) + part)
        at += MAX
        sequence += 1
        if len(part) < MAX:
            return b"".join(parts)


def event(body: bytes) -> bytes:
    return packets(b"\x00" + body)


def error(code: int, text: str) -> bytes:
    return packets(b"\xff" + code.to_bytes(2, "little") + b"#HY000" + text.encode())


EOF = packets(b"\xfe\x00\x00\x00\x00")


def events_of(client: ReplicaClient) -> Iterator[bytes]:
    """Return an iterator over the events of a dump."""
    stream = client._stream("mysql-bin.000001", 4, ChecksumAlgorithm.OFF, lambda: None)
    return iter(stream.next_event, None)


@contextmanager
def dump_of(sent: bytes, settings: ServerSettings = SETTINGS) -> Iterator[Iterator[bytes]]:
    """Yield the events of a dump whose peer sends these bytes and closes the connection."""
    reader, writer = socket.socketpair()

    def send() -> None:
        with writer:
            writer.sendall(sent)

    peer = threading.Thread(target=send)
    peer.start()
    # Of the pymysql connection, which makes the handshake, a dump uses only the socket.
    connection = cast(Any, SimpleNamespace(_sock=reader))
    try:
        with reader:
            yield events_of(ReplicaClient(settings, connection))
            reader.shutdown(socket.SHUT_RDWR)
    finally:
        peer.join()


@pytest.mark.parametrize("size", [1, 2, MAX - 1, MAX, MAX + 1, 2 * MAX - 1, 2 * MAX, 2 * MAX + 5])
def test_payload_of_any_size_is_joined_from_its_packets(size: int) -> None:
    payload = bytes([size & 0xFF]) * (size - 1) + b"e"
    sent = packets(payload)
    assert len(sent) == size + 4 * (size // MAX + 1)
    stream = io.BytesIO(sent + EOF)
    assert read_packet(stream.read) == (payload[0], payload[1:])
    assert read_packet(stream.read) == (EOF[4], EOF[5:])


def test_dump_gives_every_event_until_end_of_log() -> None:
    big = b"x" * (MAX - 1)  # exactly one full packet with its status byte
    with dump_of(event(b"one") + event(big) + event(b"") + EOF) as events:
        assert next(events) == b"one"
        assert next(events) == big
        assert list(events) == [b""]


def test_dump_cut_at_any_byte_gives_whole_events_then_lost_connection() -> None:
    sent = [event(b"one"), event(b"two"), event(b"three")]
    ends = [len(b"".join(sent[:n])) for n in range(4)]
    whole = b"".join(sent)
    for length in range(len(whole) + 1):
        found: list[bytes] = []
        with dump_of(whole[:length]) as events, pytest.raises(LostConnectionError) as caught:
            found.extend(iter(lambda: next(events), None))
        assert len(found) == max(n for n, end in enumerate(ends) if end <= length)
        inside = length not in ends and not any(end < length < end + 4 for end in ends)
        assert ("inside a packet" in str(caught.value)) == inside, length


@pytest.mark.parametrize("length", [4 + MAX, 4 + MAX + 3, 4 + MAX + 4 + 5])
def test_dump_cut_between_packets_of_an_event_is_a_lost_connection(length: int) -> None:
    sent = event(b"x" * (MAX + 100))
    with dump_of(sent[:length]) as events, pytest.raises(LostConnectionError):
        next(events)


@pytest.mark.parametrize(
    ("packet", "kind", "words"),
    [
        (
            error(1236, "Could not find first log file name in binary log index file"),
            BinlogPurgedError,
            "no longer has this binlog",
        ),
        # An error packet from before 4.1 has no SQL state.
        (packets(b"\xff\xd4\x04Binary log is not open"), BinlogSettingsError, "writes no binlog"),
        (error(1227, "Access denied"), AccessDeniedError, "GRANT REPLICATION SLAVE"),
        (error(1053, "Server shutdown in progress"), LostConnectionError, "1053"),
        (packets(b"\xff"), MySQLBinlogError, "ended the dump"),
        (packets(b"\x01abc"), MalformedEventError, "begins with 0x01, expected"),
        (packets(b"\xfe" + bytes(8)), MalformedEventError, "begins with 0xfe"),
        (packets(b""), MalformedEventError, "empty packet"),
    ],
)
def test_error_or_invalid_packet_during_dump_raises_matching_error(
    packet: bytes, kind: type[MySQLBinlogError], words: str
) -> None:
    with dump_of(event(b"one") + packet + event(b"two")) as events:
        assert next(events) == b"one"
        with pytest.raises(kind, match=words):
            next(events)


def test_access_denied_error_of_dump_has_no_binlog_position() -> None:
    with (
        dump_of(error(1227, "Access denied")) as events,
        pytest.raises(AccessDeniedError) as caught,
    ):
        next(events)
    assert caught.value.file is None
    assert "mysql-bin" not in str(caught.value)


def test_abort_by_another_thread_ends_waiting_reader_with_lost_connection() -> None:
    reader, writer = socket.socketpair()
    with reader, writer:
        client = ReplicaClient(SETTINGS, cast(Any, SimpleNamespace(_sock=reader)))
        events = events_of(client)
        writer.sendall(event(b"one"))
        assert next(events) == b"one"
        aborting = threading.Timer(0.05, client.abort)
        aborting.start()
        with pytest.raises(LostConnectionError):
            next(events)
        aborting.join()


def test_dump_timeout_is_three_heartbeats_but_at_least_30_seconds() -> None:
    for interval, expected in ((1.0, 30.0), (10.0, 30.0), (60.0, 180.0)):
        settings = ServerSettings("h", 1, "u", "secret", heartbeat_interval=interval)
        reader, writer = socket.socketpair()
        with reader, writer:
            client = ReplicaClient(settings, cast(Any, SimpleNamespace(_sock=reader)))
            writer.sendall(event(b"one"))
            assert next(events_of(client)) == b"one"
            assert reader.gettimeout() == expected


def test_repr_of_server_settings_has_no_password() -> None:
    assert "secret" not in repr(SETTINGS)


# (sslMode, as MySQL's --ssl-mode, and the arguments for pymysql)
SSL: list[tuple[str, dict[str, Any]]] = [
    ("DISABLED", {"ssl_disabled": True}),
    ("PREFERRED", {}),
    ("REQUIRED", {"ssl": {"check_hostname": False, "verify_mode": "none"}}),
    ("VERIFY_CA", {"ssl_verify_cert": True, "ssl_verify_identity": False}),
    ("VERIFY_IDENTITY", {"ssl_verify_cert": True, "ssl_verify_identity": True}),
]


@pytest.mark.parametrize(("mode", "expected"), SSL)
def test_ssl_mode_gives_the_matching_pymysql_arguments(mode: str, expected: dict[str, Any]) -> None:
    assert ServerSettings("h", 1, "u", "p", ssl_mode=mode).ssl_arguments() == expected
