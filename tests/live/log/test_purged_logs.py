"""Streams whose binlog was purged before they read it: they stop or continue after a gap."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from typing import Any

import pytest
from pyspark.sql.types import StringType

from helpers.logs.cutting_proxy import cutting_proxy
from helpers.needed_servers import need
from helpers.servers import (
    LocalServer,
    MySQL9Server,
    MySQL56Server,
)
from helpers.servers.available import LOCAL_KINDS
from helpers.servers.mysql57 import MySQL57Server
from helpers.streams.source_runner import Offset, Spark, ids, insert
from helpers.waiting import wait_until
from helpers.writers.purges import purge
from helpers.writers.replication import executed_on, promote, replicating_servers, wait_for_replica
from live.conftest import NewStream
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.source.stream.gap_rows import ROW_OF_GAP
from pyspark_mysqlbinlog.errors import (
    BinlogPurgedError,
    BinlogReplacedError,
    ServerError,
    UnknownSchemaError,
    UnsupportedTransactionError,
)

pytestmark = pytest.mark.one_server

GTIDS = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-slave-updates"]
CONTINUE = {
    "failOnDataLoss": "false",
    "operations": "insert,update,delete,truncate,ddl,gap",
    "retryTimeout": "120s",
}


@pytest.fixture(scope="module", params=LOCAL_KINDS)
def own(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """Yield a server whose binlog files the tests purge."""
    kind = LOCAL_KINDS[request.param]
    need(kind)
    with kind(options=[] if kind.is_mariadb else GTIDS) as server:
        yield server


@pytest.fixture
def table(own: LocalServer) -> Iterator[str]:
    own.execute(
        "CREATE DATABASE purged",
        "CREATE TABLE purged.t (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9))",
    )
    yield "purged.t"
    own.execute("DROP DATABASE purged")


def begun(stream: Spark) -> Offset:
    start = stream.initial()
    assert stream.latest(start) == start
    return start


class Reading:
    """The batches from an offset on; another stream reads each batch again for comparison."""

    def __init__(self, new_stream: NewStream, server: LocalServer, table: str) -> None:
        self._again: Callable[[], Spark] = partial(new_stream, server, table, **CONTINUE)
        self.rows: list[dict[str, Any]] = []
        self.offsets: list[Offset] = []

    def until(self, stream: Spark, start: Offset, last: int) -> Offset:
        while not any(row["after"] and json.loads(row["after"])["id"] == last for row in self.rows):
            end = stream.next_batch(start)
            rows = stream.rows(start, end)
            again = self._again()
            assert again.rows(start, end) == rows
            again.reader.stop()
            self.rows += rows
            self.offsets.append(end)
            start = end
        assert [*map(place, self.rows)] == sorted(map(place, self.rows))
        return start


def place(row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(row["seq"].values())


def ids_and_gaps(rows: list[dict[str, Any]]) -> list[Any]:
    """Return the op of each row without images, and the id of each other row."""
    return [row["op"] if not row["after"] else ids([row])[0] for row in rows]


@pytest.mark.parametrize("how", ["restarted", "disconnected"])
def test_stream_without_fail_on_data_loss_continues_after_purge_with_gap_row(
    own: LocalServer,
    table: str,
    new_stream: NewStream,
    caplog: pytest.LogCaptureFixture,
    how: str,
) -> None:
    with cutting_proxy(own.host, own.port, iter(())) as proxy:
        stream = new_stream(own, table, **CONTINUE, port=str(proxy.port))
        reading = Reading(new_stream, own, table)
        start = begun(stream)
        insert(own, table, 1)
        start = reading.until(stream, start, 1)
        if how == "restarted":
            stream.reader.stop()
        else:
            stream.wait_for_tail(own)
            proxy.allowed = repeat(0)
            own.kill_dumps()
        insert(own, table, 2)
        file = purge(own)
        insert(own, table, 3)
        own.rotate()
        insert(own, table, 4)
        proxy.allowed = iter(())
        if how == "restarted":
            stream = new_stream(own, table, **CONTINUE)
        end = reading.until(stream, start, 4)
    assert ids_and_gaps(reading.rows) == [1, "gap", 3, 4]
    gap = reading.rows[1]
    assert gap["source"]["query"] == f"/* gap */ from {start['file']}:{start['pos']} to {file}:4"
    assert (gap["database"], gap["table"], gap["before"]) == (None, None, None)
    assert gap["seq"] == {
        "epoch": 1,
        "file": int(file.partition(".")[2]),
        "pos": 4,
        "row": ROW_OF_GAP,
    }
    assert (end["epoch"], end["gtid"]) == (1, executed_on(own))
    warned = [line for line in caplog.messages if line.startswith("changes are lost")]
    assert len(warned) == 1
    # The next stream continues from there without another gap.
    insert(own, table, 5)
    reading.until(new_stream(own, table, **CONTINUE), end, 5)
    assert ids_and_gaps(reading.rows) == [1, "gap", 3, 4, 5]


def test_gap_row_is_left_out_unless_operations_include_gap(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    stream = new_stream(own, table)
    start = begun(stream)
    stream.reader.stop()
    purge(own)
    insert(own, table, 1)
    stream = new_stream(own, table, failOnDataLoss="false")
    middle = stream.next_batch(start)
    assert (stream.rows(start, middle), middle["epoch"]) == ([], 1)
    assert "gap" in middle
    end = stream.next_batch(middle)
    assert ids(stream.rows(middle, end)) == [1]
    assert "gap" not in end


def test_purged_position_stops_the_stream_and_names_the_first_available_one(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    stream = new_stream(own, table)
    start = begun(stream)
    stream.reader.stop()
    file = purge(own)
    with pytest.raises(BinlogPurgedError) as caught:
        new_stream(own, table).next_batch(start)
    message = caught.value.message
    for words in (
        f"The first available position is {file}:4",
        "failOnDataLoss=false",
        "restore it",
        "a new checkpoint",
        "expire_logs_days",
    ):
        assert words in message
    assert (caught.value.file, caught.value.position) == (start["file"], start["pos"])


def test_batch_read_of_purged_files_raises_binlog_purged_error(
    own: LocalServer, table: str
) -> None:
    file, pos = own.position()
    purge(own)
    for setting in ("true", "false"):
        given = own.options(
            tables=table, payload="json", startingOffset=f"{file}:{pos}", failOnDataLoss=setting
        )
        with pytest.raises(BinlogPurgedError):
            MySQLBinlogReader(parse_options(given), output_schema(StringType())).partitions()


def test_columns_renamed_in_a_gap_keep_their_values(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    """The table map stays the same, so old column names would swap the values."""
    own.execute(f"INSERT INTO {table} VALUES (1, 'a', 'b')")
    stream = new_stream(own, table, **CONTINUE)
    reading = Reading(new_stream, own, table)
    start = begun(stream)
    own.execute(f"INSERT INTO {table} VALUES (2, 'a', 'b')")
    start = reading.until(stream, start, 2)
    stream.reader.stop()
    own.execute(
        f"ALTER TABLE {table} CHANGE a x VARCHAR(9), CHANGE b a VARCHAR(9)",
        f"ALTER TABLE {table} CHANGE x b VARCHAR(9)",
    )
    purge(own)
    own.execute(f"INSERT INTO {table} (id, a, b) VALUES (3, 'a', 'b')")
    reading.until(new_stream(own, table, **CONTINUE), start, 3)
    assert json.loads(reading.rows[-1]["after"]) == {"id": 3, "a": "a", "b": "b"}


def test_rows_before_column_rename_after_a_gap_raise_unknown_schema_error(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    stream = new_stream(own, table, **CONTINUE)
    start = begun(stream)
    stream.reader.stop()
    purge(own)
    own.execute(
        f"INSERT INTO {table} (id, a, b) VALUES (1, 'a', 'b')",
        f"ALTER TABLE {table} CHANGE a x VARCHAR(9), CHANGE b a VARCHAR(9)",
        f"INSERT INTO {table} (id, a, x) VALUES (2, 'b', 'a')",
    )
    stream = new_stream(own, table, **CONTINUE)
    start = stream.next_batch(start)
    with pytest.raises(UnknownSchemaError):
        stream.next_batch(start)


@pytest.mark.parametrize("setting", ["true", "false"])
def test_reset_binlog_is_rejected_regardless_of_fail_on_data_loss(
    own: LocalServer, table: str, new_stream: NewStream, setting: str
) -> None:
    while not own.position()[0].endswith("3"):
        own.rotate()
    # More GTIDs than the new binlog gets: a smaller set proves that the binlog was reset.
    for id in range(10, 20):
        insert(own, table, id)
    stream = new_stream(own, table)
    start = begun(stream)
    insert(own, table, 1)
    start = stream.next_batch(start)
    stream.reader.stop()
    own.reset_binlog()
    insert(own, table, 2)
    with pytest.raises(BinlogReplacedError):
        new_stream(own, table, failOnDataLoss=setting).next_batch(start)
    # Also when the new binlog has passed the position: by the event there, or by the GTIDs.
    while own.position()[0] != start["file"]:
        own.rotate()
    insert(own, table, 3, 4)
    with pytest.raises(BinlogReplacedError):
        new_stream(own, table, failOnDataLoss=setting).next_batch(start)
    if not own.is_mariadb:
        purge(own)
        expected = BinlogPurgedError if setting == "true" else BinlogReplacedError
        with pytest.raises(expected):
            new_stream(own, table, failOnDataLoss=setting).next_batch(start)


def test_planned_batch_in_purged_files_becomes_one_gap_row(
    own: LocalServer, table: str, new_stream: NewStream, caplog: pytest.LogCaptureFixture
) -> None:
    stream = new_stream(own, table, **CONTINUE)
    start = begun(stream)
    insert(own, table, 1)
    middle = stream.next_batch(start)
    assert ids(stream.rows(start, middle)) == [1]
    stream.reader.stop()
    file = purge(own)
    insert(own, table, 2)
    again = new_stream(own, table, **CONTINUE)
    rows = again.rows(start, middle)
    assert ids_and_gaps(rows) == ["gap"]
    assert rows[0]["source"]["query"] == (
        f"/* gap */ from {start['file']}:{start['pos']} to {middle['file']}:{middle['pos']}"
    )
    assert rows == new_stream(own, table, **CONTINUE).rows(start, middle)
    assert any("was planned before" in line for line in caplog.messages)
    reading = Reading(new_stream, own, table)
    reading.until(again, middle, 2)
    assert ids_and_gaps(reading.rows) == ["gap", 2]
    assert reading.rows[0]["source"]["query"].endswith(f"to {file}:4")
    assert place(rows[0]) < place(reading.rows[0])
    with pytest.raises(BinlogPurgedError):
        new_stream(own, table).rows(start, middle)


def test_planned_batch_partly_in_purged_files_becomes_one_gap_row(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    stream = new_stream(own, table, **CONTINUE)
    start = begun(stream)
    insert(own, table, 1)
    own.rotate()
    kept = own.position()[0]
    insert(own, table, 2)
    stream.wait_for_tail(own)
    middle = stream.next_batch(start)
    assert ids(stream.rows(start, middle)) == [1, 2]
    stream.reader.stop()
    wait_until(lambda: not own.dump_threads(), "no dump is left")
    own.execute(f"PURGE BINARY LOGS TO '{kept}'")
    insert(own, table, 3)
    again = new_stream(own, table, **CONTINUE)
    assert ids_and_gaps(again.rows(start, middle)) == ["gap"]
    end = again.next_batch(middle)
    assert (ids(again.rows(middle, end)), end["epoch"]) == ([3], 0)


def test_available_now_delivers_gap_row_and_later_rows(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    stream = new_stream(own, table, **CONTINUE)
    start = begun(stream)
    stream.reader.stop()
    insert(own, table, 1)
    purge(own)
    insert(own, table, 2)
    stream = new_stream(own, table, **CONTINUE)
    stream.reader.prepareForTriggerAvailableNow()
    got = []
    while (end := stream.latest(start)) != start:
        got += stream.rows(start, end)
        start = end
    assert ids_and_gaps(got) == ["gap", 2]


def test_second_purge_gives_a_gap_row_from_the_end_of_the_first_gap(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    """The position after the first gap is purged before the stream reads from it."""
    stream = new_stream(own, table, **CONTINUE)
    start = begun(stream)
    stream.reader.stop()
    first = purge(own)
    insert(own, table, 1)
    middle = new_stream(own, table, **CONTINUE).next_batch(start)
    assert middle["gap"] == f"{start['file']}:{start['pos']}"
    insert(own, table, 2)
    second = purge(own)
    insert(own, table, 3)
    reading = Reading(new_stream, own, table)
    end = reading.until(new_stream(own, table, **CONTINUE), middle, 3)
    assert ids_and_gaps(reading.rows) == ["gap", 3]
    assert reading.rows[0]["source"]["query"] == f"/* gap */ from {first}:4 to {second}:4"
    assert (end["epoch"], end["gtid"]) == (2, executed_on(own))


def read_on(stream: Spark, start: Offset) -> None:
    while True:
        end = stream.next_batch(start)
        stream.rows(start, end)
        start = end


def logs_xa_when_it_is_prepared(server: LocalServer) -> bool:
    version = server.version()
    return not version.startswith("5.6")


@pytest.mark.parametrize("is_delivered", [True, False], ids=["pending", "in the lost part"])
def test_commit_of_xa_transaction_with_purged_rows_gives_a_gap_row(
    own: LocalServer, table: str, new_stream: NewStream, is_delivered: bool
) -> None:
    """Its rows are in no file, so its commit gives another gap row."""
    if not logs_xa_when_it_is_prepared(own):
        pytest.skip("5.6 logs an XA transaction when it commits")
    stream = new_stream(own, table, **CONTINUE)
    reading = Reading(new_stream, own, table)
    start = begun(stream)
    prepare = (
        "XA START 'lost'", f"INSERT INTO {table} (id) VALUES (1)", "XA END 'lost'",
        "XA PREPARE 'lost'",
    )  # fmt: skip
    if is_delivered:
        own.execute(*prepare)
    insert(own, table, 2)
    start = reading.until(stream, start, 2)
    assert len(start["prepared_xa"]) == is_delivered
    if is_delivered:
        own.rotate()
        insert(own, table, 3)
        start = reading.until(stream, start, 3)
    stream.reader.stop()
    if not is_delivered:
        own.execute(*prepare)
        purge(own)
    else:
        wait_until(lambda: not own.dump_threads(), "no dump is left")
        own.execute(f"PURGE BINARY LOGS TO '{start['file']}'")
    insert(own, table, 4)
    own.execute("XA COMMIT 'lost'")
    insert(own, table, 5)
    with pytest.raises((BinlogPurgedError, UnsupportedTransactionError)):
        read_on(new_stream(own, table), start)
    end = reading.until(new_stream(own, table, **CONTINUE), start, 5)
    expected = [2, 3, 4, "gap", 5] if is_delivered else [2, "gap", 4, "gap", 5]
    assert ids_and_gaps(reading.rows) == expected
    assert end["gtid"] == executed_on(own)


def test_planned_batch_with_purged_xa_rows_becomes_one_gap_row(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    if not logs_xa_when_it_is_prepared(own):
        pytest.skip("5.6 logs an XA transaction when it commits")
    stream = new_stream(own, table, **CONTINUE)
    reading = Reading(new_stream, own, table)
    start = begun(stream)
    own.execute(
        "XA START 'late'", f"INSERT INTO {table} (id) VALUES (1)", "XA END 'late'",
        "XA PREPARE 'late'",
    )  # fmt: skip
    insert(own, table, 2)
    own.rotate()
    insert(own, table, 3)
    start = reading.until(stream, start, 3)
    own.execute("XA COMMIT 'late'")
    insert(own, table, 4)
    stream.wait_for_tail(own)
    middle = stream.next_batch(start)
    assert ids_and_gaps(stream.rows(start, middle)) == [1, 4]
    stream.reader.stop()
    wait_until(lambda: not own.dump_threads(), "no dump is left")
    own.execute(f"PURGE BINARY LOGS TO '{start['file']}'")
    insert(own, table, 5)
    again = new_stream(own, table, **CONTINUE)
    assert ids_and_gaps(again.rows(start, middle)) == ["gap"]
    end = again.next_batch(middle)
    assert ids_and_gaps(again.rows(middle, end)) == [5]


def test_snapshot_interrupted_by_a_gap_restarts_and_equals_select(
    own: LocalServer, table: str, new_stream: NewStream
) -> None:
    """Rows that were read before the gap can be outdated and are discarded."""
    own.execute(f"INSERT INTO {table} (id) VALUES {','.join(f'({n})' for n in range(3000))}")
    options = CONTINUE | {
        "startingOffset": "snapshot",
        "maxRowsPerTrigger": "100",
        "targetPartitionBytes": "4000",
    }
    stream = new_stream(own, table, **options)
    start = begun(stream)
    held: dict[int, Any] = {}

    def step(stream: Spark, start: Offset) -> Offset:
        end = stream.next_batch(start)
        rows = stream.rows(start, end)
        for row in sorted(rows, key=place):
            if row["op"] == "gap":
                held.clear()
                continue
            for side in ("before", "after"):
                image = row[side] and json.loads(row[side])
                if image:
                    held.pop(image["id"], None)
            if image:
                held[image["id"]] = image["a"]
        return end

    for _ in range(2):
        start = step(stream, start)
    assert 0 < len(held) < 3000
    stream.reader.stop()
    own.execute(
        f"DELETE FROM {table} WHERE id % 10 = 0",
        f"UPDATE {table} SET a = 'lost' WHERE id % 7 = 0",
        f"INSERT INTO {table} (id) VALUES (5000), (6000)",
    )
    purge(own)
    own.execute(f"UPDATE {table} SET a = 'kept' WHERE id % 11 = 0")
    stream = new_stream(own, table, **options)

    def is_equal() -> bool:
        nonlocal start
        end = stream.latest(start)
        if end != start:
            start = step(stream, start)
        return held == dict(own.execute(f"SELECT id, a FROM {table}"))

    wait_until(is_equal, "the rows are those of SELECT")
    assert start["epoch"] == 1


PAIRS: dict[str, type[LocalServer]] = {
    kind.name: kind for kind in (MySQL56Server, MySQL57Server, MySQL9Server)
}


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Iterator[list[LocalServer]]:
    """Yield a primary with a table, and its replica."""
    need(PAIRS[request.param])
    with replicating_servers(PAIRS[request.param]) as servers:
        servers[0].execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        wait_for_replica(servers[1], servers[0])
        yield servers


@pytest.mark.parametrize("setting", ["true", "false"])
def test_purged_part_is_read_from_another_host_that_still_has_it(
    pair: list[LocalServer], new_stream: NewStream, setting: str
) -> None:
    primary, replica = pair
    hosts = ",".join(f"{server.host}:{server.port}" for server in pair)
    options = CONTINUE | {"host": hosts, "failOnDataLoss": setting, "retryTimeout": "5s"}
    stream = new_stream(primary, "d.t", **options)
    start = begun(stream)
    insert(primary, "d.t", 1)
    first, start = start, stream.next_batch(start)
    planned = start
    stream.reader.stop()
    insert(primary, "d.t", 2)
    # The replica has read the file, so the primary can purge it.
    wait_for_replica(replica, primary)
    purge(primary)
    insert(primary, "d.t", 3)
    wait_for_replica(replica, primary)
    stream = new_stream(primary, "d.t", **options)
    got: list[Any] = []
    while 3 not in got:
        end = stream.next_batch(start)
        got += ids_and_gaps(stream.rows(start, end))
        start = end
    # A restart alone adds two epochs: the previous batch may have been read from another server.
    assert (got, start["epoch"]) == ([2, 3], 4)
    assert start["server_uuid"] == replica.execute("SELECT @@server_uuid")[0][0]
    # A batch planned before the purge is also read from the replica.
    again = new_stream(primary, "d.t", **options)
    assert ids_and_gaps(again.rows(first, planned)) == [1]
    # If the replica has purged the part, too, the gap is on the server that was last read.
    stream.reader.stop()
    insert(primary, "d.t", 4)
    wait_for_replica(replica, primary)
    purge(primary)
    purge(replica)
    insert(primary, "d.t", 5)
    wait_for_replica(replica, primary)
    stream = new_stream(primary, "d.t", **options)
    if setting == "true":
        with pytest.raises(BinlogPurgedError):
            read_on(stream, start)
        return
    got = []
    while 5 not in got:
        end = stream.next_batch(start)
        got += ids_and_gaps(stream.rows(start, end))
        start = end
    assert (got, start["epoch"]) == (["gap", 5], 7)
    assert start["gtid"] == executed_on(replica)


def test_planned_batch_on_another_server_is_rejected_instead_of_a_gap(
    pair: list[LocalServer], new_stream: NewStream
) -> None:
    """A missing file on another server does not prove that the batch's server purged it."""
    primary, replica = pair
    stream = new_stream(primary, "d.t", **CONTINUE)
    start = begun(stream)
    insert(primary, "d.t", 1, 2)
    stream.wait_for_tail(primary)
    end = stream.next_batch(start)
    stream.reader.stop()
    wait_for_replica(replica, primary)
    promote(replica)
    purge(replica)
    with pytest.raises(ServerError, match="the checkpoint belongs to the server"):
        new_stream(replica, "d.t", **CONTINUE).rows(start, end)
    assert ids_and_gaps(new_stream(primary, "d.t", **CONTINUE).rows(start, end)) == [1, 2]
