"""The packets of a dump: each is the server's next event, its error, or the end.

A packet is: length u24 | sequence u8 | payload. A payload of 2^24 - 1 bytes continues in the next
packet. In a dump, each payload is a status byte (0x00 event, 0xff error, 0xfe end) and one event.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable

from pyspark_mysqlbinlog.errors import (
    AccessDeniedError,
    LostConnectionError,
    MalformedEventError,
    MySQLBinlogError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.receive_buffer import ReceiveBuffer
from pyspark_mysqlbinlog.protocol.server.server_errors import dump_error, is_identity_clash, refused

__all__ = ["MAX_EVENT_BYTES", "DumpStream", "next_event_of", "read_packet", "receiving"]

_MAX_PAYLOAD = (1 << 24) - 1
# No server sends a larger event: this is the largest max_allowed_packet, with room for what the
# server adds to it (MAX_LOG_EVENT_HEADER, some kB).
MAX_EVENT_BYTES = (1 << 30) + (1 << 20)
# Bytes to gather before they are passed on, if they have already arrived.
_WORTH_SCANNING = 1 << 18


class DumpStream:
    """The packets of a dump in a buffer (see `receive_buffer.EventStream`); it owns the socket.

    Attributes
    ----------
    checksum : algorithm of the events before the first FORMAT_DESCRIPTION of the dump.

    Parameters
    ----------
    at_end : called at the end; raises an error if the binlog does not end there.
    can_draw : a new connection draws another server_id, so an error about two replicas with the
        same server_id is temporary.
    """

    packets = True

    def __init__(
        self,
        sock: socket.socket,
        address: str,
        file: str,
        pos: int,
        checksum: ChecksumAlgorithm,
        *,
        at_end: Callable[[], None],
        can_draw: bool = True,
    ) -> None:
        self.checksum = checksum
        self._at_end = at_end
        self._can_draw = can_draw
        self._address = address
        self._place = (file, pos)
        self._buffer = ReceiveBuffer(receiving(sock))
        self.view = self._buffer.view
        self.consume = self._buffer.consume

    def fill(self) -> bool:
        try:
            return self._buffer.fill()
        except (OSError, ValueError) as error:
            raise refused(error, self._address, "reading the binlog") from None

    def next_event(self) -> bytes | None:
        try:
            event = next_event_of(self._buffer.take, self._address, *self._place)
        except ServerError as error:
            if self._can_draw and is_identity_clash(error.code or 0, error.message):
                raise LostConnectionError(error.message, code=error.code) from None
            raise
        if event is None:
            self._at_end()
        return event


def receiving(sock: socket.socket) -> Callable[[memoryview], int]:
    """Return the function by which a buffer receives from a socket that has a timeout."""
    if isinstance(sock, ssl.SSLSocket) or not hasattr(os, "readv"):
        # With TLS, it is unknown whether another read would block.
        return sock.recv_into

    def receive(memory: memoryview) -> int:
        """Wait for bytes, then also take those that have already arrived."""
        received = sock.recv_into(memory)
        enough = min(len(memory), _WORTH_SCANNING)
        try:
            more = received
            while more and received < enough:
                # Never blocks: a Python socket with a timeout is non-blocking, and waits in Python.
                more = os.readv(sock.fileno(), [memory[received:]])
                received += more
        except OSError:
            pass  # nothing more has arrived; a broken connection shows in the next read
        return received

    return receive


def next_event_of(read: Callable[[int], bytes], address: str, file: str, pos: int) -> bytes | None:
    """Return the next event of a dump; None at its end."""
    try:
        status, payload = read_packet(read)
    except (OSError, EOFError, ValueError) as error:
        raise refused(error, address, "reading the binlog") from None
    if status == 0xFF:
        raise _dump_error(payload, file, pos)
    if status == 0xFE and len(payload) < 8:
        return None
    if status != 0x00:
        raise MalformedEventError(
            f"a packet of the dump begins with 0x{status:02x}, expected 0x00, 0xfe or 0xff"
        )
    return payload


def read_packet(read: Callable[[int], bytes]) -> tuple[int, bytes]:
    """Return (status byte, rest of the payload), joined from all its packets.

    `read` returns as many bytes as requested, and fewer only at the end.
    """
    parts: list[bytes] = []
    status = size = 0
    while True:
        header = read(4 if parts else 5)
        if len(header) < 4:
            raise EOFError("the server closed the connection")
        length = header[0] | header[1] << 8 | header[2] << 16
        size += length
        if size > MAX_EVENT_BYTES:
            raise MalformedEventError(
                f"the server sent an event of at least {size} bytes, expected at most"
                f" {MAX_EVENT_BYTES}"
            )
        rest = length
        if not parts:
            if not length:
                raise MalformedEventError("the server sent an empty packet in a dump")
            if len(header) < 5:
                raise EOFError("the server closed the connection inside a packet")
            status = header[4]
            rest = length - 1
        payload = read(rest)
        if len(payload) < rest:
            raise EOFError("the server closed the connection inside a packet")
        if length < _MAX_PAYLOAD and not parts:
            return status, payload
        parts.append(payload)
        if length < _MAX_PAYLOAD:
            return status, b"".join(parts)


def _dump_error(payload: bytes, file: str, pos: int) -> MySQLBinlogError:
    """code u16 | '#' and five characters of SQL state, after 4.1 | text"""
    code = int.from_bytes(payload[:2], "little")
    text = payload[8:] if payload[2:3] == b"#" else payload[2:]
    error = dump_error(code, text.decode("utf-8", "replace"), file, pos)
    if isinstance(error, AccessDeniedError):
        error.file = error.position = None
    return error
