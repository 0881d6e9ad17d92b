"""Binlogs whose base name changes at a restart while the index file stays.

The server continues in the first file of the new name. From then on the order of the files is
their order in the index, whatever their numbers are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from time import time
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType

from helpers.logs.log_names import INDEX, name_log, own_servers, restart_with_log_name
from helpers.servers import LocalServer
from helpers.servers.available import mariadb_kind, own_kinds
from helpers.streams.source_runner import Offset, Spark, ids, insert
from helpers.waiting import wait_until
from live.conftest import NewStream
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.log.dump import Dump
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.tail import lag as lag_module
from pyspark_mysqlbinlog.errors import (
    BinlogGapError,
    BinlogPurgedError,
    BinlogReplacedError,
    OptionError,
    ServerError,
    UnknownSchemaError,
    UnsupportedTransactionError,
)
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient

pytestmark = pytest.mark.one_server

TABLE = "shop.t"
PREPARE = "XA PREPARE 'x'"


@pytest.fixture(params=[*own_servers(), mariadb_kind()])
def shop(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a new server whose binlog is at aaa-bin.000004."""
    kind: type[LocalServer] = request.param
    if kind in own_kinds().values():
        request.getfixturevalue(kind.name)  # ends the test if it is missing
    with kind([INDEX, "--innodb-flush-log-at-trx-commit=1"]) as server:
        server.execute("CREATE DATABASE shop", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY)")
        restart_with_log_name(server, "aaa-bin")
        while server.position()[0] != "aaa-bin.000004":
            server.rotate()
        yield server


def follow(stream: Spark, start: Offset, count: int) -> tuple[list[int], Offset]:
    """Return the ids of the next rows and the offset after them; check that `seq` increases."""
    got: list[int] = []
    last: tuple[int, ...] = ()
    while len(got) < count:
        end = stream.next_batch(start)
        rows = stream.rows(start, end)
        for row in rows:
            seq = tuple(row["seq"].values())
            assert seq > last
            last = seq
        got += ids(rows)
        start = end
    return got, start


def begun(stream: Spark) -> Offset:
    start = stream.initial()
    assert stream.latest(start) == start
    return start


@pytest.mark.sample(2)
@pytest.mark.parametrize("rotations", [0, 2, 6])
@pytest.mark.parametrize("how", ["running", "restarted"])
def test_stream_continues_after_base_name_change(
    shop: LocalServer, new_stream: NewStream, how: str, rotations: int
) -> None:
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    insert(shop, TABLE, 1, 2)
    got, middle = follow(stream, start, 2)
    if how == "restarted":
        stream.reader.stop()
    restart_with_log_name(shop, "bbb-bin")
    assert shop.position()[0] == "bbb-bin.000001"
    insert(shop, TABLE, 3, 4)
    for _ in range(rotations):
        shop.rotate()
    insert(shop, TABLE, 5)
    if how == "restarted":
        stream = new_stream(shop, TABLE)
    more, end = follow(stream, middle, 3)
    assert got + more == [1, 2, 3, 4, 5]
    assert (end["epoch"], end["file"]) == (1, f"bbb-bin.{rotations + 1:06}")


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["running", "restarted"])
def test_repeated_base_name_changes_deliver_every_row_in_order(
    shop: LocalServer, new_stream: NewStream, how: str
) -> None:
    """The base names are aaa, bbb, aaa, ccc (without captured changes) and bbb."""
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    insert(shop, TABLE, 1)
    got, middle = follow(stream, start, 1)
    if how == "restarted":
        stream.reader.stop()
    for number, name in enumerate(("bbb-bin", "aaa-bin", "ccc-bin", "bbb-bin"), 2):
        restart_with_log_name(shop, name)
        if name != "ccc-bin":
            insert(shop, TABLE, number)
        if name == "aaa-bin":
            # The numbers continue from the earlier files of this base name.
            assert shop.position()[0] == "aaa-bin.000005"
    if how == "restarted":
        stream = new_stream(shop, TABLE)
    more, end = follow(stream, middle, 3)
    assert got + more == [1, 2, 3, 5]
    assert (end["epoch"], end["file"]) == (4, "bbb-bin.000002")
    # A restart from either offset reads the same rows.
    for place, rows in ((start, [1, 2, 3, 5]), (middle, [2, 3, 5])):
        found, again = follow(new_stream(shop, TABLE), place, len(rows))
        assert (found, again) == (rows, end)


def test_replay_across_base_name_change_returns_equal_rows(
    shop: LocalServer, new_stream: NewStream
) -> None:
    """The batches before, across and after the change are each read again by another stream."""
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    insert(shop, TABLE, 1)
    offsets, rows = [start], list[list[int]]()
    restart_with_log_name(shop, "bbb-bin")
    insert(shop, TABLE, 2)
    while [*chain(*rows)] != [1, 2]:
        offsets.append(stream.next_batch(offsets[-1]))
        rows.append(ids(stream.rows(*offsets[-2:])))
    assert rows == [[1], [], [2]]
    assert [offset["epoch"] for offset in offsets] == [0, 0, 1, 1]
    for place in range(3):
        again, later = new_stream(shop, TABLE), [*chain(*rows[place + 1 :])]
        assert ids(again.rows(*offsets[place : place + 2])) == rows[place]
        assert follow(again, offsets[place + 1], len(later))[0] == later
    # The schema tracker also follows the table across the change.
    shop.execute(f"ALTER TABLE {TABLE} ADD c INT", f"INSERT INTO {TABLE} VALUES (3, 4)")
    assert follow(stream, offsets[-1], 1)[0] == [3]


def test_available_now_reads_to_the_end_across_base_name_changes(
    shop: LocalServer, new_stream: NewStream
) -> None:
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    stream.reader.stop()
    insert(shop, TABLE, 1)
    for name in ("bbb-bin", "ccc-bin"):
        restart_with_log_name(shop, name)
        insert(shop, TABLE, 2 if name == "bbb-bin" else 3)
    stream = new_stream(shop, TABLE)
    stream.reader.prepareForTriggerAvailableNow()
    # Changes after the end of this run belong to the next run.
    insert(shop, TABLE, 4)
    restart_with_log_name(shop, "ddd-bin")
    insert(shop, TABLE, 5)
    got = []
    while (end := stream.latest(start)) != start:
        got += ids(stream.rows(start, end))
        start = end
    assert (got, start["epoch"], start["file"]) == ([1, 2, 3], 2, "ccc-bin.000001")
    stream = new_stream(shop, TABLE)
    stream.reader.prepareForTriggerAvailableNow()
    while (end := stream.latest(start)) != start:
        got += ids(stream.rows(start, end))
        start = end
    assert (got, start["epoch"]) == ([1, 2, 3, 4, 5], 3)


def test_trigger_once_reads_one_sequence_of_files_per_run(
    shop: LocalServer, new_stream: NewStream
) -> None:
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    stream.reader.stop()
    insert(shop, TABLE, 1)
    restart_with_log_name(shop, "bbb-bin")
    insert(shop, TABLE, 2)
    runs: list[tuple[list[int], int]] = []
    for _ in range(3):
        stream = new_stream(shop, TABLE)
        end = stream.reader.latestOffset(start, ReadAllAvailable())
        runs.append((ids(stream.rows(start, end)), end["epoch"]))
        start = end
    assert runs == [([1], 0), ([], 1), ([2], 1)]


def test_purged_sequence_of_files_raises_binlog_purged_error(
    shop: LocalServer, new_stream: NewStream
) -> None:
    """The changes between the two sequences are unknown, so the new sequence is not read."""
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    stream.reader.stop()
    insert(shop, TABLE, 1)
    restart_with_log_name(shop, "bbb-bin")
    insert(shop, TABLE, 2)
    shop.rotate()
    shop.execute("PURGE BINARY LOGS TO 'bbb-bin.000002'")
    with pytest.raises(BinlogPurgedError):
        new_stream(shop, TABLE).next_batch(start)
    stream = new_stream(shop, TABLE)
    stream.reader.prepareForTriggerAvailableNow()
    with pytest.raises(BinlogPurgedError):
        stream.latest(start)
    # Nor when the new sequence reaches the number of the purged file.
    while shop.position()[0] != "bbb-bin.000006":
        shop.rotate()
    with pytest.raises(BinlogPurgedError):
        new_stream(shop, TABLE).next_batch(start)


def read_batch(server: LocalServer, start: str, end: str = "latest") -> list[dict[str, Any]]:
    options = parse_options(
        server.options(tables=TABLE, payload="json", startingOffset=start, endingOffset=end)
    )
    reader = MySQLBinlogReader(options, output_schema(StringType()))
    rows = []
    for part in reader.partitions():
        for batch in reader.read(part):
            rows += batch.to_pylist()
    return rows


@pytest.mark.sample(1)
@pytest.mark.parametrize("rotations", [0, 6])
def test_batch_read_spans_base_name_changes(shop: LocalServer, rotations: int) -> None:
    insert(shop, TABLE, 1)
    start = "{}:{}".format(*shop.position())
    insert(shop, TABLE, 2)
    for number, name in enumerate(("bbb-bin", "aaa-bin"), 3):
        restart_with_log_name(shop, name)
        for _ in range(rotations):
            shop.rotate()
        insert(shop, TABLE, number)
        if name == "bbb-bin":
            middle = "{}:{}".format(*shop.position())
    rows = read_batch(shop, start)
    assert ids(rows) == [2, 3, 4]
    assert [row["seq"]["epoch"] for row in rows] == [0, 1, 2]
    assert ids(read_batch(shop, start, middle)) == [2, 3]
    assert ids(read_batch(shop, middle)) == [4]
    with pytest.raises(OptionError, match="before the start"):
        read_batch(shop, middle, start)


def test_batch_read_across_base_names_uses_columns_valid_at_each_row(shop: LocalServer) -> None:
    """The columns are known because the binlog contains the table's CREATE."""
    start = "{}:{}".format(*shop.position())
    for number, name in enumerate(("aaa-bin", "bbb-bin", "aaa-bin")):
        if number:
            restart_with_log_name(shop, name)
        insert(shop, TABLE, 2 * number)
        shop.execute(
            f"ALTER TABLE {TABLE} ADD c{number} INT DEFAULT {number}",
            f"INSERT INTO {TABLE} (id) VALUES ({2 * number + 1})",
        )
    assert [json.loads(row["after"]) for row in read_batch(shop, "earliest")] == [
        {"id": 0},
        {"id": 1, "c0": 0},
        {"id": 2, "c0": 0},
        {"id": 3, "c0": 0, "c1": 1},
        {"id": 4, "c0": 0, "c1": 1},
        {"id": 5, "c0": 0, "c1": 1, "c2": 2},
    ]
    # From `start` on, only the current columns are known, which differ from those at `start`.
    with pytest.raises(UnknownSchemaError):
        read_batch(shop, start)


def test_unknown_schema_error_suggests_no_grant_if_ddl_is_in_next_sequence(
    shop: LocalServer, new_stream: NewStream
) -> None:
    """The columns are known from the table's next DDL on, which is in the next sequence."""
    start = "{}:{}".format(*shop.position())
    insert(shop, TABLE, 1)
    restart_with_log_name(shop, "bbb-bin")
    shop.execute(f"ALTER TABLE {TABLE} ADD c INT")
    stream = new_stream(shop, TABLE, startingOffset=start)
    with pytest.raises(UnknownSchemaError) as error:
        follow(stream, begun(stream), 1)
    assert "GRANT" not in error.value.message


def test_start_time_is_searched_in_binlog_index_order(shop: LocalServer) -> None:
    """The first file in the index is the oldest, whatever its number is."""
    for number, name in enumerate(("ccc-bin", "bbb-bin", "aaa-bin")):
        restart_with_log_name(shop, name)
        shop.execute(
            f"SET timestamp = {2_000_000_000 + 1000 * number}",
            f"INSERT INTO {TABLE} (id) VALUES ({number})",
        )
        shop.rotate()
    for number in range(3):
        time = datetime.fromtimestamp(2_000_000_000 + 1000 * number, UTC)
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ")
        assert ids(read_batch(shop, start)) == [*range(number, 3)]


def test_lag_bytes_include_files_of_all_base_names(
    shop: LocalServer, new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_module, "_POLL_SECONDS", 0.05)
    monkeypatch.setattr(lag_module, "_ASK_AFTER_SECONDS", 0.2)
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    stream.reader.stop()
    file, pos = start["file"], start["pos"]
    insert(shop, TABLE, 1)
    restart_with_log_name(shop, "bbb-bin")
    shop.rotate()
    insert(shop, TABLE, 2)
    stream = new_stream(shop, TABLE)

    def report(start: Offset, bytes_behind: Callable[[], int]) -> dict[str, Any]:
        # Until the first change is read, the lag counts from the tail's position.
        def look() -> dict[str, Any] | None:
            stream.latest(start)
            found = stream.reader.reportLatestOffset()
            if found is None or found["bytes_behind"] != bytes_behind() or not at_end(found):
                return None
            return found

        return wait_until(look, lambda: f"{bytes_behind()} bytes are behind")

    def at_end(found: dict[str, Any]) -> bool:
        server_position = found["server"]
        return (
            server_position is not None
            and (server_position["file"], server_position["pos"]) == shop.position()
        )

    def all_bytes() -> int:
        # MariaDB writes a checkpoint event some time after a rotation.
        sizes = dict(shop.binlog_files())
        left = sizes[str(file)] - int(pos)
        return left + sizes["bbb-bin.000001"] + shop.position()[1]

    report(start, all_bytes)
    got, end = follow(stream, start, 2)
    assert got == [1, 2]
    assert report(end, lambda: 0)["seconds_behind"] == 0


def test_missing_last_file_of_a_base_name_raises_binlog_gap_error(
    shop: LocalServer, new_stream: NewStream
) -> None:
    """The file before it names it. Its changes are lost, and the stream must not skip them."""
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    stream.reader.stop()
    insert(shop, TABLE, 1)
    shop.rotate()
    insert(shop, TABLE, 2)
    shop.halt()
    assert shop.datadir is not None
    index = shop.datadir / "binlogs.index"
    lines = index.read_text().splitlines()
    assert lines[-1].endswith("aaa-bin.000005")
    index.write_text("".join(f"{line}\n" for line in lines[:-1]))
    name_log(shop, "bbb-bin")
    shop.start()
    insert(shop, TABLE, 3)
    stream = new_stream(shop, TABLE)
    got, middle = follow(stream, start, 1)
    assert got == [1]
    with pytest.raises(BinlogGapError, match=r"aaa-bin\.000005 is missing"):
        stream.next_batch(middle)


def test_missing_middle_file_of_a_base_name_raises_binlog_gap_error(
    shop: LocalServer, new_stream: NewStream
) -> None:
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    stream.reader.stop()
    for number in (1, 2, 3):
        insert(shop, TABLE, number)
        shop.rotate()
    shop.halt()
    assert shop.datadir is not None
    index = shop.datadir / "binlogs.index"
    lines = [line for line in index.read_text().splitlines() if not line.endswith(".000005")]
    index.write_text("".join(f"{line}\n" for line in lines))
    shop.start()
    stream = new_stream(shop, TABLE)
    got, middle = follow(stream, start, 1)
    assert got == [1]
    with pytest.raises(BinlogGapError, match=r"aaa-bin\.000005 is missing"):
        stream.next_batch(middle)


def reset_master(server: LocalServer) -> None:
    """Run RESET MASTER in a later second than the one in which the last file was created."""
    assert server.datadir is not None
    began = int((server.datadir / server.position()[0]).stat().st_ctime)
    wait_until(lambda: time() >= began + 2, "the second is over")
    server.reset_binlog()


def test_next_sequence_replaced_before_reading_raises_binlog_replaced_error(
    shop: LocalServer, new_stream: NewStream
) -> None:
    """The tail has found the next sequence while Spark still reads the current one."""
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    insert(shop, TABLE, 1)
    restart_with_log_name(shop, "bbb-bin")
    insert(shop, TABLE, 2)
    tail = stream.reader.tail
    assert tail is not None
    wait_until(lambda: tail.next_sequence, "the tail is at the end of its sequence")
    reset_master(shop)
    assert shop.position()[0] == "bbb-bin.000001"
    insert(shop, TABLE, 3)
    with pytest.raises(BinlogReplacedError, match="bbb-bin"):
        follow(stream, start, 2)


@pytest.mark.parametrize("kept", ["only the last file", "all files"])
def test_dump_continued_after_reset_master_raises_an_error(shop: LocalServer, kept: str) -> None:
    """The server continues the dump in the file that has the same place in the new index."""
    if kept == "only the last file":
        shop.execute("PURGE BINARY LOGS TO 'aaa-bin.000004'")
    shop.execute("CREATE TABLE shop.large (id INT PRIMARY KEY, b LONGBLOB)")
    with ReplicaClient.connect(parse_options(shop.options()).server_settings()) as client:
        dump = Dump(client, Position.of(*shop.position()), None, blocking=True)
        # More than fits into the socket buffers: the server blocks in the middle of the dump.
        for number in range(150):
            shop.execute(f"INSERT INTO shop.large VALUES ({number}, REPEAT('x', 200000))")
        shop.reset_binlog()
        for number in range(200, 208):
            shop.execute(f"INSERT INTO shop.large VALUES ({number}, 'x')")
            shop.rotate()
        with pytest.raises((BinlogReplacedError, ServerError)):
            assert {event.file for event in dump} == {"aaa-bin.000004"}


def test_truncated_last_event_of_a_sequence_raises_binlog_replaced_error(
    shop: LocalServer, new_stream: NewStream
) -> None:
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    insert(shop, TABLE, 1)
    _, end = follow(stream, start, 1)
    stream.reader.stop()
    shop.halt()
    assert shop.datadir is not None
    with (shop.datadir / end["file"]).open("r+b") as file:
        file.truncate(end["pos"] - end["fingerprint"]["length"])
    name_log(shop, "bbb-bin")
    shop.start()
    insert(shop, TABLE, 2)
    with pytest.raises(BinlogReplacedError, match="ends before this position"):
        follow(new_stream(shop, TABLE), end, 1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("names", [("aaa-bin.000004", "bbb-bin.000005"), ("b.000002", "a.000001")])
def test_files_with_two_base_names_raise_binlog_gap_error(
    shop: LocalServer, tmp_path: Path, names: tuple[str, str]
) -> None:
    """The files alone do not show which base name is older."""
    insert(shop, TABLE, 1)
    restart_with_log_name(shop, "bbb-bin")
    insert(shop, TABLE, 2)
    shop.halt()
    assert shop.datadir is not None
    for name, file in zip(("aaa-bin.000004", "bbb-bin.000001"), names, strict=True):
        shutil.copy(shop.datadir / name, tmp_path / file)
    options = parse_options({"path": str(tmp_path), "tables": TABLE, "payload": "json"})
    with pytest.raises(BinlogGapError):
        MySQLBinlogReader(options, output_schema(StringType())).partitions()


@pytest.mark.sample(1)
@pytest.mark.parametrize("when", ["between batches", "of a planned batch"])
def test_snapshot_across_base_name_changes_equals_select(
    shop: LocalServer, new_stream: NewStream, when: str
) -> None:
    """A snapshot row never replaces a change that is logged after it."""
    values = ",".join(f"({number})" for number in range(2000))
    shop.execute(
        "CREATE TABLE shop.other (id INT PRIMARY KEY)",
        f"INSERT INTO {TABLE} VALUES {values}",
        f"INSERT INTO shop.other VALUES {values}",
    )
    options = {
        "startingOffset": "snapshot",
        "targetPartitionBytes": "2000",
        "maxBytesPerTrigger": "20k",
    }
    stream = new_stream(shop, "shop.*", **options)
    start = begun(stream)
    rows: list[dict[str, Any]] = []
    for batch in range(3):
        end = stream.next_batch(start)
        if batch == 2 and when == "of a planned batch":
            stream.reader.stop()
            break
        rows += stream.rows(start, end)
        start = end
    for name in ("bbb-bin", "ccc-bin"):
        for table in (TABLE, "shop.other"):
            shop.execute(
                f"DELETE FROM {table} WHERE id % 3 = 0 AND id % 2 = {name == 'bbb-bin':d}",
                f"UPDATE {table} SET id = id + 10000 WHERE id % 7 = 0 LIMIT 50",
            )
        restart_with_log_name(shop, name)
        shop.execute(f"UPDATE {TABLE} SET id = id + 5000 WHERE id % 11 = 0 AND id < 4000")
    if when == "of a planned batch":
        stream = new_stream(shop, "shop.*", **options)
        rows += stream.rows(start, end)
        start = end
    insert(shop, TABLE, 99_999)
    last = Position.of(*shop.position())
    while not is_done(start, last):
        end = stream.next_batch(start)
        rows += stream.rows(start, end)
        start = end
    assert start["epoch"] == 2
    for table in ("t", "other"):
        selected = {row[0] for row in shop.execute(f"SELECT id FROM shop.{table}")}
        assert left_by([row for row in rows if row["table"] == table]) == selected


def is_done(offset: Offset, end: Position) -> bool:
    """Return whether the snapshot is complete and all changes up to `end` are delivered."""
    load = SnapshotState.unpack(offset["snapshot"])
    return load.is_done and (offset["file"], offset["pos"]) == (end.file, end.pos)


def left_by(rows: list[dict[str, Any]]) -> set[int]:
    """Return the ids that remain after all changes, in the order of `seq`."""
    left: set[int] = set()
    for row in sorted(rows, key=lambda row: tuple(row["seq"].values())):
        if row["before"] is not None:
            left.discard(json.loads(row["before"])["id"])
        if row["after"] is not None:
            left.add(json.loads(row["after"])["id"])
    return left


@pytest.mark.parametrize("table", ["t", "other"])
def test_xa_transaction_across_base_names_is_rejected_only_if_captured(
    shop: LocalServer, new_stream: NewStream, table: str
) -> None:
    """On another table it is skipped, whether or not the stream has read its XA PREPARE."""
    shop.execute("CREATE TABLE shop.other (id INT PRIMARY KEY)")
    stream = new_stream(shop, TABLE)
    start = begun(stream)
    shop.execute("XA START 'x'", f"INSERT INTO shop.{table} VALUES (100)", "XA END 'x'", PREPARE)
    # MySQL 5.6 rolls the transaction back when its session has ended; it logs only commits.
    is_kept = shop.name != "mysql56"
    wait_until(lambda: bool(shop.execute("XA RECOVER")) == is_kept, "it is kept or rolled back")
    insert(shop, TABLE, 1)
    restart_with_log_name(shop, "bbb-bin")
    late = new_stream(shop, TABLE)
    late_start = begun(late)
    if is_kept:
        shop.execute("XA COMMIT 'x'")
    insert(shop, TABLE, 2)
    if is_kept and table == "t":
        # No stream has delivered the prepared rows, on either side of the name change.
        for each, place in ((stream, start), (late, late_start)):
            with pytest.raises(UnsupportedTransactionError):
                follow(each, place, 3)
        return
    assert follow(stream, start, 2)[0] == [1, 2]
    assert follow(late, late_start, 1)[0] == [2]
