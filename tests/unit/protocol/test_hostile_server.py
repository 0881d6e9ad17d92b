"""A malicious or broken server gets no file, no unbounded memory and no readable password."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from helpers.writers.hostile_server import (
    COM_BINLOG_DUMP,
    COM_QUERY,
    COM_REGISTER_SLAVE,
    COM_STMT_EXECUTE,
    COM_STMT_PREPARE,
    EOF,
    OK,
    HostileServer,
    definition,
    greeting,
    hostile_server,
    packets,
)
from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    ConnectionFailedError,
    LostConnectionError,
    MalformedEventError,
    MalformedResultError,
    MySQLBinlogError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.server import connection as connection_module
from pyspark_mysqlbinlog.protocol.server import dump_stream
from pyspark_mysqlbinlog.protocol.server import result_set as result_set_module
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.result_set import MAX_PAYLOAD, ResultSet
from pyspark_mysqlbinlog.protocol.wire import lenenc_int

PASSWORD = b"geheim-1"
_LOCAL_FILES = 0x80  # CLIENT_LOCAL_FILES, in the capabilities of a client
_MORE_RESULTS = b"\x00\x00\x00\x0a\x00\x00\x00"


def query(client: ReplicaClient) -> None:
    client.query("SELECT something")


def rows(client: ReplicaClient) -> None:
    result = client.prepared("SELECT something")
    while result.next_row() is not None:
        pass


def dump(client: ReplicaClient) -> None:
    client.dump("mysql-bin.000001", 4, blocking=False).next_event()


def is_own(command: int, argument: bytes) -> bool:
    """Return whether a command is the test's, not one that begins each session."""
    return command != COM_QUERY or argument == b"SELECT something"


def found(server: HostileServer, run: Callable[[ReplicaClient], None]) -> MySQLBinlogError:
    """Return the error of a client of this server."""
    with (
        hostile_server(server),
        pytest.raises(MySQLBinlogError) as caught,
        ReplicaClient.connect(server.settings()) as client,
    ):
        run(client)
    assert PASSWORD.decode() not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


# --- local files

COMMANDS = [
    (query, COM_QUERY),
    (rows, COM_STMT_PREPARE),
    (rows, COM_STMT_EXECUTE),
    (dump, COM_REGISTER_SLAVE),
    (dump, COM_BINLOG_DUMP),
]


@pytest.mark.parametrize(("run", "command"), COMMANDS)
def test_local_file_requested_by_server_is_not_sent(
    run: Callable[[ReplicaClient], None], command: int, tmp_path: Path
) -> None:
    """The server answers the command with 0xfb and a file name, as for LOAD DATA LOCAL."""
    secret = tmp_path / "id_rsa"
    secret.write_bytes(b"PRIVATE KEY")
    asked: list[int] = []

    def answer(number: int, argument: bytes) -> bytes | None:
        if number != command or not is_own(number, argument):
            return None
        asked.append(len(server.received))
        return packets(b"\xfb" + bytes(secret))

    server = HostileServer(answer)
    error = found(server, run)
    assert isinstance(error, ServerError | MalformedEventError | MalformedResultError)
    if command == COM_QUERY:
        assert "requested a file of this machine" in error.message
    assert b"PRIVATE" not in server.received
    # After the request, the client sent at most COM_QUIT.
    assert bytes(server.received[asked[0] :]) in (b"", b"\x01\x00\x00\x00\x01")


def test_login_capabilities_exclude_local_files() -> None:
    with hostile_server(HostileServer()) as server:
        ReplicaClient.connect(server.settings()).close()
        assert not int.from_bytes(server.received[4:8], "little") & _LOCAL_FILES


def test_local_file_request_during_login_fails_the_connection(tmp_path: Path) -> None:
    server = HostileServer(login=(packets(b"\xfb" + bytes(tmp_path / "x"), sequence=2),))
    assert isinstance(found(server, query), ConnectionFailedError)


# --- the password


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog", "mysql_old_password"])
def test_a_password_is_never_sent_in_clear_text_without_tls(plugin: str) -> None:
    prompt = b"\x02Password: " if plugin == "dialog" else b"saltsalt\x00"
    switch = packets(b"\xfe" + plugin.encode() + b"\x00" + prompt, sequence=2)
    server = HostileServer(login=(switch, packets(OK, sequence=4)))
    with hostile_server(server), pytest.raises(AccessDeniedError, match="sslMode=VERIFY") as caught:
        ReplicaClient.connect(server.settings())
    assert plugin in caught.value.message
    assert PASSWORD not in server.received
    # Only the login packet was sent, in which the password is scrambled with the salt.
    assert len(server.received) == 4 + int.from_bytes(server.received[:3], "little")


@pytest.mark.parametrize("mode", ["REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"])
def test_required_tls_sends_nothing_to_server_without_tls(mode: str) -> None:
    server = HostileServer()
    with hostile_server(server), pytest.raises(ServerError, match="SSL"):
        ReplicaClient.connect(server.settings(ssl_mode=mode))
    assert not server.received


# --- memory


def test_answer_larger_than_limit_fails_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connection_module.MAX_ANSWER_BYTES == 1 << 30
    monkeypatch.setattr(connection_module, "MAX_ANSWER_BYTES", 1 << 16)
    many = packets(b"\x01", definition(), EOF, *[b"\x03abc"] * 9000, EOF)
    server = HostileServer(lambda *asked: many if is_own(*asked) else None)
    error = found(server, query)
    assert isinstance(error, ConnectionFailedError)
    assert "longer than any of a MySQL server" in error.message


@pytest.mark.parametrize("count", [2, 300, 1 << 62])
def test_column_count_larger_than_definitions_fails_the_connection(count: int) -> None:
    lies = packets(lenenc_int(count), definition(), EOF, EOF)
    server = HostileServer(lambda *asked: lies if is_own(*asked) else None)
    assert isinstance(found(server, query), ConnectionFailedError)


def test_oversized_handshake_fails_the_connection() -> None:
    server = HostileServer(begin=packets(greeting() + bytes(1 << 21), sequence=0))
    assert isinstance(found(server, query), ConnectionFailedError)


def test_answer_with_more_than_one_result_is_rejected() -> None:
    server = HostileServer(lambda *asked: packets(_MORE_RESULTS) if is_own(*asked) else None)
    assert "more than one result" in found(server, query).message


class Endless:
    """An endless event or row: full packets of zeros, generated when they are read."""

    given = 0

    def read(self, size: int) -> bytes:
        data = bytearray(size)
        begin, self.given = self.given, self.given + size
        for head in range(-begin % (MAX_PAYLOAD + 4), size, MAX_PAYLOAD + 4):
            data[head : head + 3] = b"\xff\xff\xff"
        return bytes(data[:size])

    def receive(self, memory: memoryview) -> int:
        memory[:] = self.read(len(memory))
        return len(memory)


def test_event_larger_than_limit_raises_malformed_event_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert dump_stream.MAX_EVENT_BYTES < 1.1 * (1 << 30)
    monkeypatch.setattr(dump_stream, "MAX_EVENT_BYTES", 1 << 26)
    peer = Endless()
    with pytest.raises(MalformedEventError, match="an event of at least"):
        dump_stream.read_packet(peer.read)
    assert peer.given < (1 << 26) + (1 << 20)


def test_row_larger_than_limit_raises_malformed_result_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert result_set_module.MAX_ROW_BYTES < 1.1 * (1 << 30)
    monkeypatch.setattr(result_set_module, "MAX_ROW_BYTES", 1 << 26)
    head = packets(b"\x01", definition(), EOF)
    peer = Endless()

    def receive(memory: memoryview) -> int:
        nonlocal head
        if not head:
            return peer.receive(memory)
        memory[: len(head)] = head
        size, head = len(head), b""
        return size

    result = ResultSet(receive, "h:3306", lambda: None)
    with pytest.raises(MalformedResultError, match="a packet of at least"):
        result.next_row()
    assert peer.given < (1 << 26) + (1 << 20)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (packets(lenenc_int(1 << 62)), "columns, expected 1 to"),
        (packets(lenenc_int(5000)), "5000 columns"),
        (packets(b"\xfc\x00\x00"), "0 columns"),
        (packets(b"\x01", bytes(1 << 17)), "at least 131072 bytes"),
        (packets(b"\x01", b"\xfe" + b"\xff" * 8 + b"x"), "cut short"),
    ],
)
def test_impossible_lengths_in_a_result_raise_malformed_result_error(
    sent: bytes, words: str
) -> None:
    server = HostileServer(lambda number, _: sent if number == COM_STMT_EXECUTE else None)
    error = found(server, rows)
    assert isinstance(error, MalformedResultError)
    assert words in error.message


# --- malformed answers

BROKEN = [
    b"",
    b"\x00",
    b"\x01",
    b"\xfe",
    b"\xff",
    b"\xff\x01",
    b"\xfc\x01",
    b"\xfd\x00\x00",
    b"\x00\xfe",
    b"\xfb",
]


@pytest.mark.parametrize("payload", BROKEN, ids=bytes.hex)
@pytest.mark.parametrize(("run", "command"), COMMANDS)
def test_a_broken_answer_is_an_error_of_this_package(
    run: Callable[[ReplicaClient], None], command: int, payload: bytes
) -> None:
    def answer(number: int, argument: bytes) -> bytes | None:
        is_meant = number == command and is_own(number, argument)
        return packets(payload) * 3 if is_meant else None

    # The dump accepts an event that is too short; the event reader rejects it. (The end of a dump
    # is an error: it looks like a shutdown, since this server accepts no second connection.)
    is_accepted = command == COM_BINLOG_DUMP and payload[:1] == b"\x00"
    expected = nullcontext() if is_accepted else pytest.raises(MySQLBinlogError)
    with (
        hostile_server(HostileServer(answer)) as server,
        ReplicaClient.connect(server.settings(connect_timeout=0.5)) as client,
    ):
        client._internals._read_timeout = 0.5
        with expected:
            run(client)


@pytest.mark.parametrize(
    "sent",
    [
        packets(b"\x01", definition(b"\xff\xfe"), EOF, EOF),
        packets(b"\x01", b"\xfb" * 30, EOF, EOF),
        packets(b"\x02", definition(), definition(), EOF, b"\x03ab", EOF),
        packets(b"\x01", definition(), EOF, b"\x02\xff\xff", EOF),
        packets(b"\x01", definition(), EOF, b"\xfe" + b"\xff" * 8, EOF),
        packets(OK, sequence=9),
    ],
)
def test_malformed_query_result_raises_server_error(sent: bytes) -> None:
    server = HostileServer(lambda *asked: sent if is_own(*asked) else None)
    assert isinstance(found(server, query), ServerError)


def test_error_text_of_server_is_shortened_and_has_no_control_characters() -> None:
    text = b"\x1b[2Jno\r\nERROR faked " + b"x" * 100_000
    sent = packets(b"\xff\x51\x04#HY000" + text)
    server = HostileServer(lambda *asked: sent if is_own(*asked) else None)
    message = str(found(server, query))
    assert "\x1b" not in message and "\n" not in message
    assert len(message) < 2000


# --- silent servers


@pytest.mark.parametrize(
    "server",
    [
        HostileServer(begin=b""),
        HostileServer(begin=packets(greeting(), sequence=0)[:20]),
        HostileServer(login=(b"",)),
        HostileServer(login=(packets(OK, sequence=2)[:6],)),
        HostileServer(lambda *_: b""),
    ],
    ids=["greeting", "half a greeting", "login", "half an answer", "first statement"],
)
def test_silent_server_while_connecting_is_a_lost_connection(server: HostileServer) -> None:
    with hostile_server(server), pytest.raises(LostConnectionError):
        ReplicaClient.connect(server.settings(connect_timeout=0.3))


def test_silent_server_in_tls_handshake_is_a_lost_connection() -> None:
    begin = packets(greeting(has_tls=True), sequence=0)
    server = HostileServer(begin=begin, login=(b"",))
    with hostile_server(server), pytest.raises(LostConnectionError):
        ReplicaClient.connect(server.settings(connect_timeout=0.3, ssl_mode="REQUIRED"))


def test_socket_timeout_is_set_for_queries_results_and_dumps() -> None:
    with hostile_server(HostileServer()) as server:
        with ReplicaClient.connect(server.settings()) as client:
            query(client)
            assert client._internals._sock.gettimeout() == 120
        sent = packets(b"\x01", definition(), EOF)
        server.answer = lambda number, _: sent if number == COM_STMT_EXECUTE else None
        with ReplicaClient.connect(server.settings()) as client:
            client.prepared("SELECT something")
            assert client._internals._sock.gettimeout() == 3600
        server.answer = lambda number, _: b"" if number == COM_BINLOG_DUMP else None
        with ReplicaClient.connect(server.settings(heartbeat_interval=1.0)) as client:
            client.dump("mysql-bin.000001", 4, blocking=True)
            assert client._internals._sock.gettimeout() == 30
