"""Results of prepared SELECTs, received whole, byte by byte, cut, and malformed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pyspark_mysqlbinlog.errors import (
    LostConnectionError,
    MalformedResultError,
    ServerError,
)
from pyspark_mysqlbinlog.protocol.server.result_set import MAX_PAYLOAD, ResultColumn, ResultSet
from pyspark_mysqlbinlog.protocol.wire import lenenc_int

END = b"\xfe\x00\x00\x22\x00"
KILLED = b"\xff\x25\x05#70100Query execution was interrupted"
SHUTDOWN = b"\xff\x1d\x04#08S01Server shutdown in progress"


def packets(*payloads: bytes) -> bytes:
    """Return payloads in packets; one of 2^24 - 1 bytes or more continues in the next packet."""
    parts = []
    for payload in payloads:
        for at in range(0, len(payload) + 1, MAX_PAYLOAD):
            part = payload[at : at + MAX_PAYLOAD]
            parts.append(len(part).to_bytes(3, "little") + b"\x00" + part)
    return b"".join(parts)


def definition(name: str, code: int, collation: int) -> bytes:
    names = (b"def", b"d", b"t", b"t", name.encode(), b"original")
    return (
        b"".join(lenenc_int(len(each)) + each for each in names)
        + b"\x0c"
        + collation.to_bytes(2, "little")
        + (20).to_bytes(4, "little")
        + bytes((code,))
        + b"\x00\x00\x1f\x00\x00"
    )


HEAD = packets(b"\x02", definition("a", 3, 63), definition("é", 253, 8), END)


class Peer:
    """A peer that sends bytes in pieces and closes the connection; it counts calls of `at_end`."""

    def __init__(self, data: bytes, piece: int | None = None) -> None:
        self.data = data
        self.piece = piece or len(data)
        self.ends = 0

    def receive(self, memory: memoryview) -> int:
        part = self.data[: min(self.piece, len(memory))]
        memory[: len(part)] = part
        self.data = self.data[len(part) :]
        return len(part)

    def at_end(self) -> None:
        self.ends += 1

    def result(self) -> ResultSet:
        return ResultSet(self.receive, "h:3306", self.at_end)


def rows_of(result: ResultSet) -> Iterator[bytes]:
    return iter(result.next_row, None)


def filled(result: ResultSet) -> list[bytes]:
    """Return the rows, taken from the buffer if they are complete there, else by `next_row`."""
    found = []
    while True:
        view = result.view()
        length = int.from_bytes(view[:3], "little") if len(view) >= 4 else MAX_PAYLOAD
        if 4 + length <= len(view) and view[4] == 0:
            found.append(bytes(view[4 : 4 + length]))
            result.consume(4 + length)
        elif not result.fill():
            payload = result.next_row()
            if payload is None:
                return found
            found.append(payload)


@pytest.mark.parametrize("piece", [None, 1, 3, 100_000])
@pytest.mark.parametrize("read", [lambda result: list(rows_of(result)), filled])
def test_rows_received_in_pieces_of_any_size_are_complete(
    piece: int | None, read: Callable[[ResultSet], list[bytes]]
) -> None:
    rows = [b"\x00" + bytes((at,)) * at * 40 for at in range(60)]
    peer = Peer(HEAD + packets(*rows, END), piece)
    result = peer.result()
    assert result.columns == (ResultColumn("a", 3, 63), ResultColumn("é", 253, 8))
    assert read(result) == rows
    assert peer.ends == 1
    assert result.next_row() is None
    assert peer.ends == 1


@pytest.mark.parametrize("size", [MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * MAX_PAYLOAD])
def test_row_of_several_packets_is_joined(size: int) -> None:
    large = b"\x00" + b"x" * (size - 1)
    peer = Peer(HEAD + packets(b"\x00a", large, b"\x00b", END))
    assert [len(row) for row in filled(peer.result())] == [2, size, 2]


def test_result_without_rows_is_empty_and_ends() -> None:
    peer = Peer(HEAD + packets(END))
    assert list(rows_of(peer.result())) == []
    assert peer.ends == 1


@pytest.mark.parametrize("cut", range(len(HEAD)))
def test_result_cut_in_its_head_is_a_lost_connection(cut: int) -> None:
    peer = Peer(HEAD[:cut])
    with pytest.raises(LostConnectionError, match="broke while reading rows"):
        peer.result()
    assert peer.ends == 0


@pytest.mark.parametrize("cut", range(12))
def test_result_cut_in_its_rows_gives_whole_rows_then_lost_connection(cut: int) -> None:
    peer = Peer(HEAD + packets(b"\x00one", b"\x00two")[: 8 + cut])
    result = peer.result()
    rows = rows_of(result)
    assert next(rows) == b"\x00one"
    if cut >= 8:
        assert next(rows) == b"\x00two"
    with pytest.raises(LostConnectionError, match=r"h:3306 broke while reading rows.*closed"):
        next(rows)
    assert peer.ends == 0


def test_server_error_between_rows_is_raised_and_ends_the_result() -> None:
    peer = Peer(HEAD + packets(b"\x00one", KILLED))
    rows = rows_of(peer.result())
    assert next(rows) == b"\x00one"
    with pytest.raises(ServerError, match="error 1317: Query execution was interrupted") as caught:
        next(rows)
    assert caught.value.code == 1317
    assert not isinstance(caught.value, LostConnectionError)
    # The error ends the result, so the connection can be used again.
    assert peer.ends == 1


def test_server_shutdown_between_rows_is_a_lost_connection() -> None:
    peer = Peer(HEAD + packets(b"\x00one", SHUTDOWN))
    rows = rows_of(peer.result())
    next(rows)
    with pytest.raises(LostConnectionError) as caught:
        next(rows)
    assert caught.value.code == 1053
    assert peer.ends == 0


def test_server_error_instead_of_a_result_is_raised() -> None:
    peer = Peer(packets(b"\xff\x84\x05#HY000Table definition has changed, please retry"))
    with pytest.raises(ServerError, match="definition has changed") as caught:
        peer.result()
    assert caught.value.code == 1412
    assert peer.ends == 1


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (
            packets(b"\x00\x00\x00\x02\x00\x00\x00"),
            "expected a number of columns, found 7 bytes that begin with 0x00",
        ),
        (packets(b""), "a result is cut short: expected 1 bytes"),
        (packets(b"\x01", definition("a", 3, 63), b"\x00row"), "expected the end of .* 0x00"),
        (packets(b"\x01", definition("a", 3, 63)[:-9]), "a column of the result is cut short"),
        (HEAD + packets(b"\x01"), "expected a row, found 1 bytes that begin with 0x01"),
        (HEAD + packets(b""), "expected a row, found 0 bytes that begin with 0x$"),
        (HEAD + packets(b"\xfe" + bytes(8)), "expected a row, found 9 bytes that begin with 0xfe"),
        (HEAD + packets(END, b"\x00"), "sent 5 bytes after the end of a result, expected none"),
    ],
)
def test_invalid_result_raises_malformed_result_error(sent: bytes, message: str) -> None:
    peer = Peer(sent)
    with pytest.raises(MalformedResultError, match=message):
        list(rows_of(peer.result()))
    assert peer.ends == 0
