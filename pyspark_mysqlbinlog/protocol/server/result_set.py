"""The rows of a prepared SELECT, as raw bytes in a buffer.

Rows of a prepared statement are binary: integers, floats and times in the server's format, texts in
the character set that the session requested. This module decodes no values. The reader takes whole
packets out of the buffer (see `receive_buffer.ReceiveBuffer`) if they have arrived, otherwise one
row at a time, of any size.

The server's answer to COM_STMT_EXECUTE, each a packet ``length u24 | sequence u8 | payload``
(the manual's "Client/Server Protocol", Binary Protocol Resultset; without CLIENT_DEPRECATE_EOF)::

    column count lenenc
    column definition     once for each
    EOF                   0xfe | warnings u16 | status u16
    row                   0x00 | null bitmap, two bits in | the values that are not NULL; any number
    EOF, or an error      0xff | code u16 | '#' | SQL state char[5] | text

A payload of 2^24 - 1 bytes continues in the next packet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pymysql

from pyspark_mysqlbinlog.errors import (
    LostConnectionError,
    MalformedEventError,
    MalformedResultError,
    MySQLBinlogError,
)
from pyspark_mysqlbinlog.protocol.receive_buffer import ReceiveBuffer
from pyspark_mysqlbinlog.protocol.server.server_errors import refused
from pyspark_mysqlbinlog.protocol.wire import Reader

__all__ = ["MAX_PAYLOAD", "ResultColumn", "ResultSet"]

# A payload of this size continues in the next packet.
MAX_PAYLOAD = (1 << 24) - 1
# The largest max_allowed_packet: MySQL's own clients read no larger row, and no binlog event with
# one can be sent.
MAX_ROW_BYTES = (1 << 30) + (1 << 20)
# The names in a definition have at most 64 characters each.
_MAX_DEFINITION_BYTES = 1 << 16
_MAX_COLUMNS = 4096  # of a table; a SELECT of its columns has no more
_PACKET_HEAD = 4
_ROW, _END, _ERROR = b"\x00", b"\xfe", b"\xff"
_END_LENGTH = 9  # an EOF packet is shorter


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """Definition of one column of a result.

    Attributes
    ----------
    type : MySQL's type code (`FieldType`); texts and times have the codes of the protocol.
    collation : id of the collation of its texts; 63 for bytes.
    """

    name: str
    type: int
    collation: int

    @classmethod
    def parse(cls, payload: bytes) -> ResultColumn:
        """catalog | database | table | original table | name | original name, each lenenc
        | 0x0c | collation u16 | length u32 | type u8 | flags u16 | decimals u8 | 0x0000
        """
        reader = Reader(payload, "a column of the result")
        for _ in range(4):
            reader.lenenc_bytes()
        name = reader.lenenc_bytes().decode("utf-8", "replace")
        reader.lenenc_bytes()
        reader.lenenc_int()
        collation = reader.u16()
        reader.u32()
        return cls(name, reader.u8(), collation)


class ResultSet:
    """A result, from its columns to its end.

    Parameters
    ----------
    receive : waits for bytes of the connection and writes them to the given memory; returns their
        number, 0 at the end of the connection.
    address : of the server, for errors.
    at_end : called once, after the result's last packet: the connection is free again.

    Raises LostConnectionError; ServerError in place of a result; MalformedResultError.

    Attributes
    ----------
    columns : definitions of the rows' columns.
    """

    def __init__(
        self, receive: Callable[[memoryview], int], address: str, at_end: Callable[[], None]
    ) -> None:
        self._address = address
        self._at_end = at_end
        self._buffer = ReceiveBuffer(receive)
        self._is_open = True
        self.view = self._buffer.view
        self.consume = self._buffer.consume
        try:
            self.columns = self._read_columns()
        except MalformedEventError as error:
            raise MalformedResultError(f"{address}: {error.message}") from None

    def fill(self) -> bool:
        """Wait for more bytes; return False if the buffer is full, or at the end.

        Raises LostConnectionError.
        """
        try:
            return self._buffer.fill()
        except (OSError, ValueError) as error:
            raise self._refused(error) from None

    def next_row(self) -> bytes | None:
        """Return the payload of the next row, of any size; None at the result's end.

        Raises
        ------
        LostConnectionError : the connection broke; the rows before are valid.
        ServerError : the server ended the result; `code` gives the reason (1317: killed, 1412: the
            table was altered since the snapshot, …).
        """
        if not self._is_open:
            return None
        payload = self._packet()
        first = payload[:1]
        if first == _ROW:
            return payload
        if first == _END and len(payload) < _END_LENGTH:
            self._close()
            return None
        raise self._unexpected(payload, "a row")

    def _close(self) -> None:
        self._is_open = False
        left = len(self._buffer.view())
        if left:
            raise MalformedResultError(
                f"{self._address} sent {left} bytes after the end of a result, expected none"
            )
        self._at_end()

    def _read_columns(self) -> tuple[ResultColumn, ...]:
        head = self._packet(_MAX_DEFINITION_BYTES)
        if head[:1] in (_ERROR, _ROW):
            raise self._unexpected(head, "a number of columns")
        reader = Reader(head, "the head of a result")
        count = reader.lenenc_int()
        reader.check_end()
        if not 0 < count <= _MAX_COLUMNS:
            raise MalformedEventError(
                f"the result has {count} columns, expected 1 to {_MAX_COLUMNS}"
            )
        columns = tuple(
            ResultColumn.parse(self._packet(_MAX_DEFINITION_BYTES)) for _ in range(count)
        )
        end = self._packet(_MAX_DEFINITION_BYTES)
        if end[:1] != _END or len(end) >= _END_LENGTH:
            raise self._unexpected(end, "the end of the columns")
        return columns

    def _packet(self, most: int | None = None) -> bytes:
        """Return one payload, joined from all its packets; `most` bytes, or those of a row."""
        most = most or MAX_ROW_BYTES
        parts: list[bytes] = []
        size = 0
        take = self._buffer.take
        try:
            while True:
                head = take(_PACKET_HEAD)
                length = int.from_bytes(head[:3], "little")
                size += length
                if size > most:
                    raise MalformedResultError(
                        f"{self._address} sent a packet of at least {size} bytes in a result,"
                        f" expected at most {most}"
                    )
                payload = take(length)
                if len(head) < _PACKET_HEAD or len(payload) < length:
                    raise EOFError("the server closed the connection inside a result")
                if length < MAX_PAYLOAD and not parts:
                    return payload
                parts.append(payload)
                if length < MAX_PAYLOAD:
                    return b"".join(parts)
        except (OSError, EOFError, ValueError) as error:
            raise self._refused(error) from None

    def _unexpected(self, payload: bytes, expected: str) -> MySQLBinlogError:
        """Return the error for an error packet, or for any other unexpected packet."""
        if payload[:1] == _ERROR:
            self._is_open = False
            try:
                pymysql.err.raise_mysql_exception(payload)
            except Exception as error:  # noqa: BLE001 (pymysql fails in any way if it is cut short)
                found = self._refused(error)
            if not isinstance(found, LostConnectionError):
                # An error ends the result as EOF does.
                self._at_end()
            return found
        return MalformedResultError(
            f"{self._address} sent an unexpected packet: expected {expected}, found {len(payload)}"
            f" bytes that begin with 0x{payload[:1].hex()}"
        )

    def _refused(self, error: Exception) -> MySQLBinlogError:
        return refused(error, self._address, "reading rows")
