"""A server on loopback that greets as MySQL does, and then sends the answers of a test."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from helpers.waiting import patience
from pyspark_mysqlbinlog.protocol.server.client import ServerSettings
from pyspark_mysqlbinlog.protocol.wire import lenenc_int

__all__ = [
    "COM_QUERY",
    "COM_REGISTER_SLAVE",
    "COM_STMT_EXECUTE",
    "COM_STMT_PREPARE",
    "COM_BINLOG_DUMP",
    "EOF",
    "OK",
    "HostileServer",
    "definition",
    "greeting",
    "hostile_server",
    "packets",
    "result",
]

COM_QUERY, COM_BINLOG_DUMP, COM_REGISTER_SLAVE = 0x03, 0x12, 0x15
COM_STMT_PREPARE, COM_STMT_EXECUTE, _COM_QUIT = 0x16, 0x17, 0x01
MAX = (1 << 24) - 1
OK = b"\x00\x00\x00\x02\x00\x00\x00"
EOF = b"\xfe\x00\x00\x02\x00"
_SSL = 0x800
# Capabilities in the greeting: LONG_PASSWORD, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH.
_CAPABILITIES = 0x0001 | 0x0200 | 0x8000 | 0x80000


def greeting(plugin: str = "mysql_native_password", *, has_tls: bool = False) -> bytes:
    """protocol u8 | version | thread u32 | salt[8] | 0 | capabilities, … (HandshakeV10)"""
    flags = _CAPABILITIES | (_SSL if has_tls else 0)
    return (
        b"\x0a5.7.41-log\x00"
        + struct.pack("<I8sxHBHHB10x", 7, b"saltsalt", flags & 0xFFFF, 33, 2, flags >> 16, 21)
        + b"saltsaltsalt\x00"
        + plugin.encode()
        + b"\x00"
    )


def packets(*payloads: bytes, sequence: int = 1) -> bytes:
    """Return payloads as a server sends them; one of 2^24 - 1 bytes is followed by its rest."""
    parts = []
    for payload in payloads:
        for at in range(0, len(payload) + 1, MAX):
            part = payload[at : at + MAX]
            parts.append(len(part).to_bytes(3, "little") + bytes((sequence & 0xFF,)) + part)
            sequence += 1
    return b"".join(parts)


def definition(name: bytes = b"a") -> bytes:
    """Return the definition of a text column, as read by `result_set.ResultColumn.parse`."""
    names = (b"def", b"d", b"t", b"t", name, b"original")
    head = b"".join(lenenc_int(len(each)) + each for each in names)
    return head + b"\x0c" + struct.pack("<HIBHBxx", 33, 20, 253, 0, 31)


def result(*rows: Sequence[bytes], columns: int = 1) -> bytes:
    """Return a whole text result."""
    texts = [b"".join(lenenc_int(len(each)) + each for each in row) for row in rows]
    return packets(lenenc_int(columns), *[definition()] * columns, EOF, *texts, EOF)


# From a command's number and argument to the bytes of the answer; None for the default answer,
# empty bytes for no answer.
Answer = Callable[[int, bytes], bytes | None]


@dataclass
class HostileServer:
    """A server that accepts any password, unless `login` rejects it.

    Attributes
    ----------
    answer : returns the answer to a command.
    begin : bytes that are sent to a new client.
    login : the answers to the packets of the login, one after the other.
    received : all bytes that clients have sent.
    """

    answer: Answer = lambda *_: None
    begin: bytes = field(default_factory=lambda: packets(greeting(), sequence=0))
    login: tuple[bytes, ...] = (packets(OK, sequence=2),)
    received: bytearray = field(default_factory=bytearray)
    port: int = 0

    def settings(self, **more: object) -> ServerSettings:
        given = {"ssl_mode": "DISABLED", "connect_timeout": 20.0} | more
        # Any settings may be given, so their types are not known here.
        return ServerSettings("127.0.0.1", self.port, "spark", "geheim-1", **given)  # type: ignore[arg-type]

    def serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError, EOFError):
            peer.sendall(self.begin)
            for each in self.login:
                self._packet(peer)
                peer.sendall(each)
            while True:
                payload = self._packet(peer)
                if payload[:1] == bytes((_COM_QUIT,)):
                    return
                peer.sendall(self._answer_to(payload[0], payload[1:]))

    def _answer_to(self, command: int, argument: bytes) -> bytes:
        found = self.answer(command, argument)
        if found is not None:
            return found
        if command == COM_QUERY and argument.startswith(b"SHOW GLOBAL VARIABLES"):
            return result((b"binlog_checksum", b"NONE"), columns=2)
        if command == COM_STMT_PREPARE:
            return packets(b"\x00" + struct.pack("<IHHxH", 1, 1, 0, 0), definition(), EOF)
        return packets(OK)

    def _packet(self, peer: socket.socket) -> bytes:
        head = self._take(peer, 4)
        return self._take(peer, int.from_bytes(head[:3], "little"))

    def _take(self, peer: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = peer.recv(size - len(data))
            if not more:
                raise EOFError
            self.received += more
            data += more
        return data


@contextmanager
def hostile_server(server: HostileServer) -> Iterator[HostileServer]:
    """Serve one client after the other until the end of the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    server.port = listener.getsockname()[1]
    peers: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            peers.append(peer)
            server.serve(peer)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        # The data of a disconnected client is read to its end, so that `received` is complete.
        thread.join(patience(20))
        for each in peers:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        thread.join()
