"""Compressed transactions give the rows of plain ones, also split inside a payload."""

from __future__ import annotations

import json
import random
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType

from helpers.logs.corrupt_logs import RawEvent
from helpers.logs.events import (
    LogBuilder,
    gtid_body,
    query_body,
    rows_body,
    table_map,
    xa_prepare_body,
)
from helpers.logs.recorded_logs import SCENARIOS
from helpers.parity.decoding import CAPTURED
from helpers.parity.payloads import inner, payload_body, repacked
from helpers.snapshots.filter_harness import xid
from pyspark_mysqlbinlog.connector.options.parse import parse_options
from pyspark_mysqlbinlog.connector.ranges import transactions
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.source.batch_reader import MySQLBinlogReader
from pyspark_mysqlbinlog.connector.source.schema import output_schema
from pyspark_mysqlbinlog.connector.tail import transaction_scanner
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.events import EventType

pytestmark = pytest.mark.usefixtures("implementation")

ALL = "insert,update,delete,truncate,ddl"
CREATE = "CREATE TABLE t (a INT)"
BEGIN = RawEvent(EventType.QUERY_EVENT, query_body("BEGIN"))
MAP = RawEvent(EventType.TABLE_MAP_EVENT, table_map(1, "t"))
OTHER_MAP = RawEvent(EventType.TABLE_MAP_EVENT, table_map(2, "other"))
XID = RawEvent(EventType.XID_EVENT, bytes(8))


def rows_event(*values: int, table_id: int = 1, last: bool = True) -> RawEvent:
    return RawEvent(EventType.WRITE_ROWS_EVENT, rows_body(table_id, *values, last=last))


def cut(path: Path | str, target: int | str, **options: str) -> tuple[list[RangePartition], Any]:
    """Return the ranges, and the rows of all of them in order."""
    given = {"path": str(path), "targetPartitionBytes": str(target), "payload": "json"} | options
    reader = MySQLBinlogReader(parse_options(given), output_schema(StringType()))
    ranges = [part for part in reader.partitions() if isinstance(part, RangePartition)]
    batches = [batch for part in ranges for batch in reader.read(part)]
    return ranges, pa.Table.from_batches(batches).to_pylist() if batches else []


def without_places(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without positions and row numbers, which compression changes."""
    places = {"pos": 0, "row": 0, "tx_pos": 0}
    return [
        {**row, "seq": row["seq"]["file"], "source": {**row["source"], **places}} for row in rows
    ]


def assert_ordered(rows: list[dict[str, Any]], prepared: int = 0) -> None:
    """Check the order of rows, of which `prepared` have the `seq` of their XA COMMIT."""
    order = [tuple(row["seq"].values()) for row in rows]
    assert all(one < other for one, other in pairwise(order))
    assert sum(row["source"]["pos"] != row["seq"]["pos"] for row in rows) == prepared


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a split of a transaction after every 300 bytes."""
    monkeypatch.setattr(transaction_scanner, "_PIECE_BYTES", 300)


@pytest.mark.sample(4)
@pytest.mark.parametrize("scenario", [*SCENARIOS, "ddl_history", "random_ddl_177"])
def test_compressed_transactions_give_the_rows_of_plain_ones(
    scenario: str, tmp_path: Path, short_pieces: None
) -> None:
    plain = CAPTURED / f"{scenario}.*.binlog"
    for file in sorted(CAPTURED.glob(f"{scenario}.*.binlog")):
        repacked(file, tmp_path)
    _, expected = cut(plain, "4g", tables="*.*", operations=ALL)
    assert expected
    _, whole = cut(tmp_path, "4g", tables="*.*", operations=ALL)
    assert without_places(whole) == without_places(expected)
    assert_ordered(whole, prepared=scenario == "transactions")
    for target in (1, 700):
        _, rows = cut(tmp_path, target, tables="*.*", operations=ALL)
        assert rows == whole


def write(folder: Path, *streams: bytes, after: bool = True) -> Path:
    log = LogBuilder().format_description().query(CREATE)
    for number, stream in enumerate(streams, 1):
        log.add(EventType.GTID_LOG_EVENT, b"\x01" + bytes(16) + number.to_bytes(8, "little"))
        log.add(EventType.TRANSACTION_PAYLOAD_EVENT, payload_body(stream))
    if after:
        log.begin(99).rows(1, "t", -1).xid()
    return log.write(folder)


def test_long_payload_is_split_into_ranges_with_the_same_rows(
    tmp_path: Path, short_pieces: None
) -> None:
    """Later parts need the table maps and the statement of the earlier parts."""
    events = [BEGIN, RawEvent(EventType.ROWS_QUERY_LOG_EVENT, b"\x06INSERT"), MAP]
    for n in range(0, 300, 3):
        events += [rows_event(n, n + 1, n + 2, last=n == 297)]
    path = write(tmp_path, inner([*events, XID]))
    whole, expected = cut(path, "1g", tables="d.t")
    ranges, rows = cut(path, 1, tables="d.t")
    assert len(whole) == 1
    assert len(ranges) > 10
    assert rows == expected
    assert [row["after"] for row in rows] == [f'{{"a":{n}}}' for n in [*range(300), -1]]
    assert {row["source"]["query"] for row in rows[:-1]} == {"INSERT"}
    assert_ordered(rows)
    inside = [part for part in ranges if part.offset]
    assert len(inside) > 10
    assert len({part.start for part in inside}) == 1
    for one, other in pairwise(ranges):
        assert (one.end, one.end_offset) == (other.start, other.offset)


@pytest.mark.parametrize("seed", range(20))
def test_random_payloads_in_random_ranges_give_each_captured_row_once(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = random.Random(seed)
    monkeypatch.setattr(transaction_scanner, "_PIECE_BYTES", made.choice((60, 200, 1000)))
    value, expected, streams = 0, [], []
    for _ in range(made.randrange(1, 8)):
        events = [BEGIN]
        for _ in range(made.randrange(1, 20)):
            maps = made.choice(((MAP,), (OTHER_MAP,), (MAP, OTHER_MAP)))
            events += maps
            for _ in range(made.randrange(1, 4)):
                values = [value + n for n in range(made.randrange(1, 30))]
                value += len(values)
                wanted = made.choice(maps) is MAP
                events.append(rows_event(*values, table_id=1 if wanted else 2))
                expected += values if wanted else []
        streams.append(inner([*events, XID]))
    path = write(tmp_path, *streams)
    for target in (1, made.randrange(2, 2000), "1g"):
        _, rows = cut(path, target, tables="d.t")
        assert [row["after"] for row in rows] == [f'{{"a":{n}}}' for n in [*expected, -1]]
        assert_ordered(rows)


ERRORS = (MalformedEventError, UnsupportedEventError, InvalidPositionError)
DDL = RawEvent(EventType.QUERY_EVENT, query_body("CREATE TABLE u (a INT)"))
# (fault, events, part of the error message)
WRONG: list[tuple[str, list[RawEvent], str]] = [
    ("no end", [BEGIN, MAP, rows_event(1)], "follows a TRANSACTION_PAYLOAD, expected the end"),
    ("more after the end", [BEGIN, XID, BEGIN, XID], "ends a transaction inside"),
    ("no begin", [MAP, rows_event(1), XID], "outside of any transaction"),
    ("DDL", [DDL], "a statement that changes tables"),
    ("rows without a map", [BEGIN, rows_event(1), XID], "expected one of a table map"),
    ("half a row", [BEGIN, MAP, RawEvent(30, rows_body(1, 5)[:-2]), XID], "cut short"),
]


@pytest.mark.parametrize(
    ("events", "message"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG]
)
def test_payload_without_one_whole_transaction_is_rejected(
    events: list[RawEvent], message: str, tmp_path: Path
) -> None:
    path = write(tmp_path, inner(events))
    with pytest.raises(ERRORS, match=message) as caught:
        cut(path, "1g", tables="d.t")
    assert caught.value.file == "mysql-bin.000001"
    assert caught.value.position


class RandomHistory:
    """Plain and XA transactions with savepoints, some of them in payloads, over several files."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.logs = [LogBuilder("mysql-bin.000001").format_description().query(CREATE)]
        self.expected: list[int] = []
        self._pending: dict[bytes, list[int]] = {}
        self._values = count()
        self._numbers = count(1)

    def step(self) -> None:
        choices = self._random
        if choices.random() < 0.15:
            file = f"mysql-bin.{len(self.logs) + 1:06}"
            self.logs[-1].rotate(file)
            self.logs.append(LogBuilder(file).format_description())
            return
        log = self.logs[-1]
        log.add(EventType.GTID_LOG_EVENT, gtid_body(next(self._numbers)))
        if self._pending and choices.random() < 0.4:
            name, values = self._pending.popitem()
            is_committed = choices.random() < 0.7
            log.query(f"XA {'COMMIT' if is_committed else 'ROLLBACK'} {xid(name)}")
            self.expected += values if is_committed else []
            return
        free = [name for name in (b"a", b"b", b"c") if name not in self._pending]
        kind = choices.choice(["plain", "xa", "one phase"]) if free else "plain"
        name = choices.choice(free) if free else b""
        changes, values = self._changes()
        if kind == "plain":
            events = [BEGIN, *changes, XID]
        else:
            prepare = xa_prepare_body(name, one_phase=kind == "one phase")
            end = RawEvent(EventType.XA_PREPARE_LOG_EVENT, prepare)
            events = [_query(f"XA START {xid(name)}"), *changes, _query(f"XA END {xid(name)}"), end]
        if choices.random() < 0.6:
            log.add(EventType.TRANSACTION_PAYLOAD_EVENT, payload_body(inner(events)))
        else:
            for event in events:
                log.add(event.kind, event.body)
        if kind == "xa":
            self._pending[name] = values
        else:
            self.expected += values

    def _changes(self) -> tuple[list[RawEvent], list[int]]:
        """Return statements, and the values of table `t` that remain after their rollbacks."""
        choices = self._random
        events, values, savepoints = list[RawEvent](), list[int](), dict[str, int]()
        for _ in range(choices.randrange(1, 14)):
            chance = choices.random()
            if chance < 0.15:
                name = choices.choice("xyz")
                savepoints.pop(name, None)
                savepoints[name] = len(values)
                events.append(_query(f"SAVEPOINT `{name}`"))
            elif chance < 0.3 and savepoints:
                name = choices.choice([*savepoints])
                del values[savepoints[name] :]
                names = [*savepoints]
                for later in names[names.index(name) + 1 :]:
                    del savepoints[later]
                events.append(_query(f"ROLLBACK TO `{name}`"))
            else:
                maps = choices.choice([[MAP], [OTHER_MAP], [MAP, OTHER_MAP]])
                events += maps
                for _ in range(choices.randrange(1, 3)):
                    which = choices.choice(maps)
                    new = [next(self._values) for _ in range(choices.randrange(1, 20))]
                    events.append(rows_event(*new, table_id=1 if which is MAP else 2))
                    values += new if which is MAP else []
        return events, values


def _query(sql: str) -> RawEvent:
    return RawEvent(EventType.QUERY_EVENT, query_body(sql))


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(60))
def test_random_savepoints_and_xa_give_only_committed_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The sizes of splits and the limits of held events are random."""
    choices = random.Random(seed)
    monkeypatch.setattr(transaction_scanner, "_PIECE_BYTES", choices.choice([60, 200, 1000]))
    monkeypatch.setattr(transactions, "_MAX_HELD_BYTES", choices.choice([1, 100, 300, 1 << 20]))
    monkeypatch.setattr(transactions, "_MAX_PREPARED_BYTES", choices.choice([1, 400, 1 << 20]))
    history = RandomHistory(seed)
    for _ in range(14):
        history.step()
    for log in history.logs:
        log.write(tmp_path)
    for target in (1, choices.randrange(2, 1500), "1g"):
        _, rows = cut(tmp_path, target, tables="d.t")
        assert [json.loads(row["after"])["a"] for row in rows] == history.expected
        order = [tuple(row["seq"].values()) for row in rows]
        assert order == sorted(set(order))
