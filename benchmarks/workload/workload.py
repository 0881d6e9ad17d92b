"""The binlog for all measurements: a real server writes it in the same run.

It has two files: one with the table's CREATE and bulk INSERTs, and one with transactions of one row
each. Both are copied, for readers of files.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from benchmarks.harness.scale import Scale
from benchmarks.workload.orders import CREATE, DATABASE, Orders
from helpers.servers import MySQL56Server, Server

__all__ = ["Part", "Workload", "flipped", "running_server", "write_workload"]

_STATEMENTS_A_TRIP = 100


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the log.

    Attributes
    ----------
    path : a copy of the file, under its own name.
    rows : changes in it, by `op`.
    piece_end, piece_rows : a boundary near the file's beginning, and the changes before it: enough
        for what is slow.
    """

    path: Path
    rows: dict[str, int]
    piece_end: int
    piece_rows: int

    @property
    def file(self) -> str:
        return self.path.name

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @property
    def total(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class Workload:
    """The written log.

    Attributes
    ----------
    server : that wrote it and serves it; its present file is a later, empty one.
    bulk, single : the two files.
    folder : holds copies of just those two.
    schema : a file with the table's CREATE TABLE.
    """

    server: Server
    bulk: Part
    single: Part
    folder: Path
    schema: Path

    @property
    def rows(self) -> int:
        return self.bulk.total + self.single.total

    @property
    def size(self) -> int:
        return self.bulk.size + self.single.size


@contextmanager
def running_server() -> Iterator[Server]:
    """MySQL 5.6 with room for the workload."""
    reason = MySQL56Server.missing()
    if reason is not None:
        raise SystemExit(reason)
    options = [
        "--innodb-buffer-pool-size=512M",
        "--innodb-log-file-size=128M",
        "--max-allowed-packet=64M",
        "--max-binlog-size=1G",
    ]
    with MySQL56Server(options) as server:
        yield server


def write_workload(server: Server, folder: Path, scale: Scale) -> Workload:
    """Write the log on a fresh server and copy its files into `folder`."""
    orders = Orders()
    logs = folder / "logs"
    logs.mkdir(parents=True)
    schema = folder / "schema.sql"
    schema.write_text(f"CREATE DATABASE {DATABASE};\n{CREATE};\n")
    server.rotate()
    bulk = _write_bulk(server, orders, scale, logs)
    server.rotate()
    single = _write_single(server, orders, scale, logs)
    server.rotate()
    return Workload(server, bulk, single, logs, schema)


def _write_bulk(server: Server, orders: Orders, scale: Scale, logs: Path) -> Part:
    file = server.position()[0]
    server.execute(f"CREATE DATABASE {DATABASE}", CREATE)
    rows, piece_end, piece_rows = 0, 0, 0
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in orders.bulk(scale.bulk_rows):
            rows += cursor.execute(statement)
            if not piece_end and rows >= scale.piece_rows:
                piece_end, piece_rows = server.position()[1], rows
    assert rows == scale.bulk_rows
    return Part(_copied(server, file, logs), {"c": rows}, piece_end, piece_rows)


def _write_single(server: Server, orders: Orders, scale: Scale, logs: Path) -> Part:
    file = server.position()[0]
    counts: Counter[str] = Counter()
    changes = orders.single(scale.single_rows, scale.bulk_rows)
    piece_end, piece_rows = 0, 0
    # In autocommit each statement is a transaction; many a trip only saves the trips.
    with (
        server.connect(client_flag=CLIENT.MULTI_STATEMENTS) as connection,
        connection.cursor() as cursor,
    ):
        while some := list(islice(changes, _STATEMENTS_A_TRIP)):
            counts.update(op for op, _ in some)
            _run_all(cursor, [statement for _, statement in some])
            if not piece_end and counts.total() >= scale.piece_rows:
                piece_end, piece_rows = server.position()[1], counts.total()
    return Part(_copied(server, file, logs), dict(counts), piece_end, piece_rows)


def _run_all(cursor: Cursor, statements: list[str]) -> None:
    changed = cursor.execute(";".join(statements))
    while cursor.nextset():
        changed += cursor.rowcount
    assert changed == len(statements), f"{changed} of {len(statements)} statements changed a row"


def _copied(server: Server, file: str, folder: Path) -> Path:
    """Copy a file of a running server; without other writers, it ends after an event."""
    assert server.datadir is not None
    return Path(shutil.copy(server.datadir / file, folder))


def flipped(part: Part, folder: Path) -> Path:
    """A copy of a file with one bit of a row's text flipped."""
    folder.mkdir()
    content = bytearray(part.path.read_bytes())
    content[content.index(b"SKU-")] ^= 1
    copy = folder / part.file
    copy.write_bytes(content)
    return copy
