"""Binlogs recorded on MySQL 5.7.41, read through Spark by `path`, by streams and by batch reads.

The expected result is SELECT: the rows read by `path`, replayed into empty tables, must equal the
recorded tables. Reads from a server must return the same rows. Only the names and numbers of the
files may differ, because a copy on disk has another name than its original on the server.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from helpers.logs.recorded_logs import CASCADES, DEFAULTS, SCENARIOS, describe, some_batches
from helpers.parity.decoding import CAPTURED
from helpers.replay import Replay, captured_schemas
from helpers.servers import LocalServer, Server, captured_files
from helpers.servers.recorded import original_name
from helpers.streams.spark_session import Reads
from helpers.streams.stream_query import Query

Changes = list[dict[str, Any]]


described = cache(describe)


def dicts(rows: list[Row]) -> Changes:
    return [row.asDict(recursive=True) for row in rows]


def under_names_of_files(scenario: str, changes: Changes) -> Changes:
    """Return the changes with the names and numbers of the files on disk."""
    files = captured_files(scenario)
    copies = {original_name(file): (at, file.name) for at, file in enumerate(files, 1)}
    renamed = []
    for change in changes:
        original = change["source"]["file"]
        at, name = copies[original]
        assert change["seq"]["file"] == int(original.rpartition(".")[2])
        renamed.append(
            change
            | {"seq": change["seq"] | {"file": at}}
            | {"source": change["source"] | {"file": name}}
        )
    return renamed


@pytest.fixture(scope="module")
def by_path(spark: SparkSession) -> Callable[[str], Changes]:
    """Return a function that reads a scenario's changes with `path`, and caches them."""

    @cache
    def read(scenario: str) -> Changes:
        frame = spark.read.format("mysqlbinlog").options(
            path=str(CAPTURED / f"{scenario}.*.binlog"),
            tables=f"{described(scenario)['database']}.*",
            payload="json",
        )
        return dicts(frame.load().collect())

    return read


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_replayed_rows_of_path_equal_select(
    scenario: str, by_path: Callable[[str], Changes]
) -> None:
    schemas = captured_schemas(described(scenario))
    replay = Replay(schemas, DEFAULTS.get(scenario), CASCADES.get(scenario))
    replay.apply(by_path(scenario))
    assert replay.count > 0
    for name, table in described(scenario)["tables"].items():
        replay.assert_equals(described(scenario)["database"], name, table["rows"])


# --- `source` and `seq` against the file's bytes

HEADER = struct.Struct("<IBIIIH")
WRITE, UPDATE, DELETE, QUERY, ANONYMOUS_GTID, GTID = 30, 31, 32, 2, 34, 33
OP_TYPES = {"c": WRITE, "u": UPDATE, "d": DELETE}


def event_at(data: bytes, pos: int) -> tuple[int, int, int, bytes]:
    """Return (timestamp, type, server ID, bytes) of the event at a position."""
    timestamp, kind, server_id, length, _, _ = HEADER.unpack_from(data, pos)
    return timestamp, kind, server_id, data[pos : pos + length]


# The rows of XA transactions are checked in tests/unit/connector/ranges/test_transactions.py.
@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "transactions"])
def test_source_and_seq_point_at_the_rows_events(
    scenario: str, by_path: Callable[[str], Changes]
) -> None:
    files = {file.name: (at, file) for at, file in enumerate(captured_files(scenario), 1)}
    rows_of_event: dict[tuple[int, int], int] = {}
    for change in by_path(scenario):
        source, seq = change["source"], change["seq"]
        number, file = files[source["file"]]
        data = file.read_bytes()
        timestamp, kind, server_id, _ = event_at(data, source["pos"])
        assert kind == OP_TYPES[change["op"]]
        assert change["ts"] == datetime.fromtimestamp(timestamp, UTC).replace(tzinfo=None)
        assert source["server_id"] == server_id
        assert seq == {"epoch": 0, "file": number, "pos": source["pos"], "row": source["row"]}
        # Rows of one event are numbered from 0 without gaps.
        assert source["row"] == rows_of_event.get((number, source["pos"]), 0)
        rows_of_event[number, source["pos"]] = source["row"] + 1
        check_transaction(data, source)
    # No rows event is skipped: the scenario's database is the only one in the binlog.
    assert set(rows_of_event) == {
        (number, pos) for number, file in files.values() for pos in rows_events(file.read_bytes())
    }


def check_transaction(data: bytes, source: dict[str, Any]) -> None:
    """Check that `tx_pos` is a GTID event, and that the BEGIN after it has `thread_id`."""
    _, kind, _, gtid_event = event_at(data, source["tx_pos"])
    assert kind in (GTID, ANONYMOUS_GTID)
    assert source["tx_pos"] < source["pos"]
    if kind == ANONYMOUS_GTID:
        assert source["gtid"] is None
        assert source["query"] is None
    else:
        # flags u8, the server's uuid, gno i64
        uuid, gno = gtid_event[20:36].hex(), int.from_bytes(gtid_event[36:44], "little")
        assert source["gtid"].replace("-", "") == f"{uuid}:{gno}"
        assert re.match(r"insert|update|delete", source["query"]) is not None
    _, kind, _, begin = event_at(data, source["tx_pos"] + len(gtid_event))
    assert kind == QUERY
    assert b"BEGIN" in begin
    assert source["thread_id"] == int.from_bytes(begin[19:23], "little")


def rows_events(data: bytes) -> list[int]:
    found, pos = [], 4
    while pos < len(data):
        _, kind, _, event = event_at(data, pos)
        if kind in OP_TYPES.values():
            found.append(pos)
        pos += len(event)
    return found


# --- the same rows by other reads


@pytest.mark.sample(2)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_server_and_path_give_the_same_rows(
    scenario: str,
    by_path: Callable[[str], Changes],
    spark: SparkSession,
    serve_captured: Callable[[str], Server],
    tmp_path: Path,
) -> None:
    reads = Reads(spark, serve_captured(scenario))
    tables = f"{described(scenario)['database']}.*"
    expected = by_path(scenario)

    batch = reads.batch(tables=tables)
    assert under_names_of_files(scenario, dicts(batch.collect())) == expected

    streamed = reads.available_now(tmp_path / "one", tables=tables, startingOffset="earliest")
    assert [len(batch) for batch in streamed] == [0, len(expected)]
    assert under_names_of_files(scenario, dicts(streamed[1])) == expected

    most = some_batches(scenario)
    limited = reads.available_now(
        tmp_path / "many", tables=tables, startingOffset="earliest", maxBytesPerTrigger=str(most)
    )
    assert limited[0] == []
    batches = [
        under_names_of_files(scenario, dicts(batch)) for batch in limited[1:] if len(batch) > 0
    ]
    assert [change for batch in batches for change in batch] == expected
    assert len(batches) > 1
    seen: set[tuple[int, int]] = set()
    for changes in batches:
        transactions = {(row["seq"]["file"], row["source"]["tx_pos"]) for row in changes}
        assert not transactions & seen, "a transaction came in two batches"
        seen |= transactions
        if len(transactions) > 1:
            check_span(scenario, changes, most)


@pytest.mark.sample(4)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_batches_of_one_transaction_give_the_rows_of_path(
    scenario: str, by_path: Callable[[str], Changes], serve_captured: Callable[[str], Server]
) -> None:
    """The query runs without Spark, which takes a third of a second per batch."""
    tables = f"{described(scenario)['database']}.*"
    options = {"payload": "json", "startingOffset": "earliest", "maxBytesPerTrigger": "1"}
    query = Query(serve_captured(scenario), tables, **options)
    try:
        found = query.start().rows()
    finally:
        query.stop()
    compared = ("op", "before", "after", "seq", "source")
    for found_row, expected_row in zip(
        under_names_of_files(scenario, found), by_path(scenario), strict=True
    ):
        assert [found_row[name] for name in compared] == [expected_row[name] for name in compared]
    for _, _, rows in query.batches:
        assert len({(row["seq"]["file"], row["source"]["tx_pos"]) for row in rows}) <= 1
    assert len(query.batches) > 2


def check_span(scenario: str, changes: Changes, most: int) -> None:
    """Check the bytes from a batch's first transaction to its last rows event."""
    sizes = {at: file.stat().st_size for at, file in enumerate(captured_files(scenario), 1)}
    first, last = changes[0], changes[-1]
    begin = first["seq"]["file"]
    before_last = sum(sizes[at] for at in range(begin, last["seq"]["file"]))
    assert before_last + last["seq"]["pos"] - first["source"]["tx_pos"] <= most


# --- inline and fetched ranges


def run(reads: Reads, checkpoint: Path, **options: Any) -> dict[int, list[Row]]:
    """Return the rows of each batch of one AvailableNow run, by batch ID."""
    batches: dict[int, list[Row]] = {}

    def take(frame: Any, batch_id: int) -> None:
        assert batch_id not in batches
        batches[batch_id] = frame.collect()

    query = (
        reads.stream(**options)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches


def uncommit_newest(checkpoint: Path) -> int:
    """Remove the newest batch's commit, so that it is only planned; return its ID."""
    newest = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / f"{newest}").unlink()
    (checkpoint / "commits" / f".{newest}.crc").unlink(missing_ok=True)
    return newest


def start_of_batch(checkpoint: Path, batch_id: int) -> tuple[str, int]:
    """Return where a dump for the batch starts: one event earlier, to check the fingerprint."""
    lines = (checkpoint / "offsets" / str(batch_id - 1)).read_text().splitlines()
    offset = json.loads(lines[-1])
    return offset["file"], offset["pos"] - offset["fingerprint"]["length"]


def dumps_from(server: LocalServer, place: tuple[str, int]) -> int:
    """Return how many dumps from a position the server's error log contains."""
    file, pos = place
    note = rf"Start binlog_dump .*pos\({re.escape(file)}, {pos}\)"
    return len(re.findall(note, server.error_log()))


@pytest.mark.sample(5)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("batches", ["one batch", "several batches"])
def test_replayed_batch_is_fetched_and_identical(
    scenario: str,
    batches: str,
    spark: SparkSession,
    serve_captured: Callable[[str], Server],
    tmp_path: Path,
) -> None:
    server = serve_captured(scenario)
    assert isinstance(server, LocalServer)
    server.execute("SET GLOBAL log_warnings = 2")  # from 2 on, 5.6 logs dumps
    reads = Reads(spark, server)
    options = {
        "tables": f"{described(scenario)['database']}.*",
        "startingOffset": "earliest",
        "maxBytesPerTrigger": "1g" if batches == "one batch" else str(some_batches(scenario)),
    }
    carried = run(reads, tmp_path, **options)
    assert (len(carried) > 2) == (batches == "several batches")  # batch 0 is empty
    newest = uncommit_newest(tmp_path)
    assert len(carried[newest]) > 0
    place = start_of_batch(tmp_path, newest)
    before = dumps_from(server, place)
    if newest > 1:
        # No dump started at this position: the batch's bytes came from the tail's buffer. (Batch 1
        # starts where the tail and the search for DDL started, too.)
        assert before == 0
    pulled = run(reads, tmp_path, **options)
    # The new process has no buffer, so the task fetched the batch's bytes.
    assert dumps_from(server, place) == before + 1
    assert pulled == {newest: carried[newest]}
