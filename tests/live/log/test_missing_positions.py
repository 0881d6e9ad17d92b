"""MariaDB 11.4 and later write no position into the events inside a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from helpers.logs.live_log import log_events, new_database, schemas_of, selected
from helpers.parity.decoding import decoder, rows_of
from helpers.replay import Replay
from helpers.servers import LocalServer
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.binlog_files.files import FileStream
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import HEADER, Event, EventType

pytestmark = pytest.mark.usefixtures("implementation")

DATABASE = "missing_positions"


@pytest.fixture(scope="module")
def logged(mariadb11: LocalServer) -> Iterator[tuple[LocalServer, tuple[str, int], Path]]:
    """Yield a server, the position before its last transactions, and the binlog file with them."""
    with new_database(mariadb11, DATABASE) as name:
        mariadb11.execute("FLUSH BINARY LOGS")
        start = mariadb11.position()
        mariadb11.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)",
            "INSERT INTO t SELECT seq, REPEAT('x', seq % 900) FROM seq_1_to_500",
            "START TRANSACTION",
            "UPDATE t SET v = 'y' WHERE id < 250",
            "SAVEPOINT s",
            "DELETE FROM t WHERE id % 3 = 0",
            "COMMIT",
            "CREATE TABLE m (a INT) ENGINE = MyISAM",
            "INSERT INTO m VALUES (1), (2)",
            "CREATE TABLE n AS SELECT id FROM t WHERE id < 9",
            "XA START 'x'",
            "INSERT INTO t VALUES (1000, 'xa')",
            "XA END 'x'",
            "XA COMMIT 'x' ONE PHASE",
            database=name,
        )
        assert mariadb11.datadir is not None
        yield mariadb11, start, mariadb11.datadir / start[0]


def events_in(path: Path, *, may_be_cut: bool = False) -> list[Event]:
    reader = EventReader(path.name, 4)
    events = []
    with FileStream(path, may_be_cut=may_be_cut) as stream:
        while (raw := stream.next_event()) is not None:
            event = reader.feed(raw)
            if event is not None:
                events.append(event)
    return events


def test_dump_without_event_positions_equals_file_and_select(
    logged: tuple[LocalServer, tuple[str, int], Path],
) -> None:
    server, start, path = logged
    schemas = schemas_of(server, DATABASE)
    events = log_events(server, start, DATABASE)
    kept = {(event.start, event.end) for event in events if event.type in OPERATIONS}
    in_file = {(e.start, e.end) for e in events_in(path) if e.type in OPERATIONS}
    assert kept == in_file
    assert len(kept) > 20
    replay = Replay(schemas)
    replay.apply(rows_of(decoder(schemas).decode(events)))
    for schema, rows in zip(schemas, selected(server, *schemas), strict=True):
        replay.assert_equals(schema.database, schema.table, rows)


def test_incomplete_last_event_is_left_out_unless_its_length_is_wrong(
    logged: tuple[LocalServer, tuple[str, int], Path], tmp_path: Path
) -> None:
    _, _, path = logged
    data = path.read_bytes()
    events = events_in(path)
    unplaced = [e for e in events if not HEADER.unpack_from(data, e.start)[4]]
    assert len(unplaced) > 40
    copy = tmp_path / path.name
    for event in (unplaced[0], unplaced[len(unplaced) // 2], unplaced[-1]):
        copy.write_bytes(data[: event.end - 1])
        assert events_in(copy, may_be_cut=True)[-1].end == event.start
        with pytest.raises(MalformedEventError, match="cut short"):
            events_in(copy)
        damaged = bytearray(data)
        damaged[event.start + 9 : event.start + 13] = len(data).to_bytes(4, "little")
        copy.write_bytes(damaged)
        with pytest.raises(MalformedEventError) as caught:
            events_in(copy, may_be_cut=True)
        assert caught.value.position == event.start


def test_missing_event_is_detected_at_the_next_position(
    logged: tuple[LocalServer, tuple[str, int], Path], tmp_path: Path
) -> None:
    _, _, path = logged
    data = path.read_bytes()
    rows = next(e for e in events_in(path) if e.type in OPERATIONS)
    copy = tmp_path / path.name
    copy.write_bytes(data[: rows.start] + data[rows.end :])
    with pytest.raises(MalformedEventError, match=r"XID_EVENT .* has log_pos \d+, expected \d+"):
        events_in(copy)


def test_transactions_begin_and_end_with_a_position(
    logged: tuple[LocalServer, tuple[str, int], Path],
) -> None:
    """The check of a file that ends inside an event relies on this."""
    _, _, path = logged
    data = path.read_bytes()
    events = events_in(path)
    begins = [n for n, e in enumerate(events) if e.type == EventType.MARIADB_GTID_EVENT]
    assert len(begins) > 5
    for begin, following in pairwise([*begins, len(events)]):
        for event in (events[begin], events[following - 1]):
            assert HEADER.unpack_from(data, event.start)[4] == event.end
