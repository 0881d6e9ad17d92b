"""Errors of invalid positions in the options startingOffset and endingOffset."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from e2e.conftest import REPLICATION, Account, Fails, ShownError
from helpers.servers import Server


def events(server: Server, kind: str) -> list[tuple[str, int, int]]:
    """Return (file, start, end) of the events of a kind in the server's first file."""
    file = server.binlog_files()[0][0]
    rows = server.execute(f"SHOW BINLOG EVENTS IN '{file}'")
    return [(file, int(row[1]), int(row[4])) for row in rows if row[2] == kind]


def test_starting_offset_inside_an_event_is_rejected(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, start, _ = events(shop, "Write_rows")[1]
    error = reading(reads, tables="shop.orders", startingOffset=f"{file}:{start + 7}")
    assert error.name == "InvalidPositionError"
    assert "no event begins" in error.message
    assert error.message.endswith(f"(at {file}:{start + 7})")


def test_starting_offset_past_the_end_of_its_file_is_rejected(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, size = shop.binlog_files()[-1]
    error = reading(reads, tables="shop.orders", startingOffset=f"{file}:{size + 1}")
    assert error.name == "InvalidPositionError"
    assert f"past the end of its file, which has {size} bytes" in error.message
    assert error.message.endswith(f"(at {file}:{size + 1})")


def test_ending_offset_past_the_end_of_its_file_is_rejected(
    shop: Server, account: Account, fails: Fails
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, size = shop.binlog_files()[-1]
    error = fails(lambda: reads.batch(tables="shop.orders", endingOffset=f"{file}:{size + 1}"))
    assert error.name == "InvalidPositionError"
    assert error.message.endswith(f"(at {file}:{size + 1})")


def test_ending_offset_in_an_unknown_file_is_rejected(
    shop: Server, account: Account, fails: Fails
) -> None:
    """The file's number alone is that of another file."""
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    place = f"misspelt.{shop.binlog_files()[0][0].rpartition('.')[2]}:4"
    error = fails(lambda: reads.batch(tables="shop.orders", endingOffset=place))
    assert error.name == "BinlogPurgedError"
    assert "the server has no binlog 'misspelt." in error.message
    assert error.message.endswith(f"(at {place})")


@pytest.mark.parametrize("kind", ["Table_map", "Write_rows", "Xid"])
def test_starting_offset_inside_a_transaction_is_rejected(
    kind: str, shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, start, _ = events(shop, kind)[1]
    error = reading(reads, tables="shop.orders", startingOffset=f"{file}:{start}")
    assert error.name == "InvalidPositionError"
    assert "is inside a transaction; use a position between two transactions" in error.message
    assert error.message.endswith(f"(at {file}:{start})")


@pytest.mark.parametrize(
    ("kind", "into", "says"),
    [
        ("Write_rows", 0, "the end is inside a transaction"),
        ("Xid", 0, "the end is inside a transaction"),
        ("Xid", 5, "the end is inside an event"),
    ],
)
def test_ending_offset_inside_a_transaction_is_rejected(
    *, kind: str, into: int, says: str, shop: Server, account: Account, fails: Fails
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    file, start, end = events(shop, kind)[1]
    place = f"{file}:{start + into}"
    error = fails(lambda: reads.batch(tables="shop.orders", endingOffset=place))
    assert error.name == "InvalidPositionError"
    assert says in error.message
    assert error.message.endswith(f"(at {place})")
    if kind == "Xid":
        read = reads.batch(tables="shop.orders", endingOffset=f"{file}:{end}").collect()
        assert [json.loads(row.after)["id"] for row in read] == [1, 2]


def test_starting_offset_in_an_unknown_file_is_rejected(
    shop: Server, account: Account, reading: Callable[..., ShownError]
) -> None:
    reads = account(shop, REPLICATION, "SELECT ON *.*")
    error = reading(reads, tables="shop.orders", startingOffset="mysql-bin.000999:4")
    assert error.name == "BinlogPurgedError"
    assert "the server has no binlog 'mysql-bin.000999'" in error.message
    assert "mysql-bin.000001" in error.message
