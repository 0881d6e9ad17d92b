"""Files that contain events of another server: relay logs and saved dumps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from helpers.logs.events import (
    LogBuilder,
    format_description_body,
    raw_event,
    rotate_body,
    rows_body,
)
from helpers.logs.later_logs import read
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    MySQLBinlogError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.binlog_files.files import MAGIC
from pyspark_mysqlbinlog.protocol.events import ARTIFICIAL_FLAG, RELAY_LOG_FLAG, EventType

pytestmark = pytest.mark.usefixtures("implementation")

RELAY57 = Path(__file__).resolve().parents[3] / "data" / "relay57"
CREATE = "CREATE TABLE t (a INT)"


def rows_of(path: Path | str, **options: str) -> list[dict[str, Any]]:
    return read(str(path), "json", **({"tables": "d.t"} | options))


# --- relay logs of a real replica


def test_a_recorded_relay_log_replayed_equals_select() -> None:
    held: dict[int, dict[str, Any]] = {}
    rows = rows_of(RELAY57 / "relay-bin.0*", tables="rl.t")
    for row in rows:
        if row["op"] != "c":
            del held[json.loads(row["before"])["id"]]
        if row["op"] != "d":
            after = json.loads(row["after"])
            held[after["id"]] = {"w": None, **after}
    assert [(row["id"], row["v"], row["w"]) for row in held.values()] == [
        (3, "three", None),
        (2, "zwei", None),
        (4, "four", 4),
        (5, "five", 5),
        (6, "six", 6),
    ]
    # The name of the relay log file, and the position in it.
    assert {(row["source"]["file"], row["source"]["pos"]) for row in rows} == {
        ("relay-bin.000002", 906),
        ("relay-bin.000002", 1168),
        ("relay-bin.000004", 545),
        ("relay-bin.000004", 969),
        ("relay-bin.000005", 452),
        ("relay-bin.000006", 499),
        ("relay-bin.000006", 758),
    }
    assert {row["source"]["server_id"] for row in rows} == {71}


@pytest.mark.parametrize("start", ["relay-bin.000002:990", "relay-bin.000005:273"])
def test_a_read_that_begins_inside_a_relay_log_returns_the_later_rows(start: str) -> None:
    everything = rows_of(RELAY57 / "relay-bin.0*", tables="rl.t")
    file, pos = start.split(":")
    later = [
        row
        for row in everything
        if (row["source"]["file"], row["source"]["pos"]) > (file, int(pos))
    ]
    assert rows_of(RELAY57 / "relay-bin.0*", tables="rl.t", startingOffset=start) == later


def test_a_start_inside_an_event_of_a_relay_log_is_an_error() -> None:
    with pytest.raises(InvalidPositionError, match="no event begins at this position"):
        rows_of(RELAY57 / "relay-bin.0*", tables="rl.t", startingOffset="relay-bin.000002:991")


@pytest.mark.parametrize("begin", range(3))
def test_damaged_byte_of_a_relay_log_never_gives_wrong_rows(begin: int, tmp_path: Path) -> None:
    for path in RELAY57.glob("relay-bin.0*"):
        shutil.copy(path, tmp_path)
    expected = rows_of(tmp_path, tables="rl.t")
    path = tmp_path / "relay-bin.000004"
    data = path.read_bytes()
    # The flags of the first event are not in its checksum.
    for at in range(23 + begin, len(data), 3 * 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            found = rows_of(tmp_path, tables="rl.t")
        except MySQLBinlogError:
            continue
        assert found == expected, at


# --- built relay logs


def relay_head(file: str = "relay-bin.000001", version: str = "5.7.41-log") -> LogBuilder:
    """Return the beginning of a relay log."""
    log = LogBuilder(file)
    body = format_description_body(version)
    return log.add(EventType.FORMAT_DESCRIPTION_EVENT, body, RELAY_LOG_FLAG)


def connected(pos: int = 4, version: str = "5.7.41-log", *, has_pos: bool = True) -> list[bytes]:
    """Return the first events that a source sends to a replica that starts at a position."""
    body = format_description_body(version)
    end = 4 + 19 + len(body) + 4 if has_pos and pos == 4 else 0
    rotate = rotate_body("mysql-bin.000001", pos)
    return [
        raw_event(EventType.ROTATE_EVENT, rotate, log_pos=0, flags=ARTIFICIAL_FLAG, timestamp=0),
        raw_event(EventType.FORMAT_DESCRIPTION_EVENT, body, log_pos=end),
    ]


def source_log() -> LogBuilder:
    """Return the log of a source; its first event is the FORMAT_DESCRIPTION."""
    log = LogBuilder().format_description()
    log.query(CREATE).begin().rows(1, "t", 1, 2).xid().begin().rows(1, "t", 3).rows(1, "t", 4)
    log.xid()
    return log


def write(folder: Path, raws: Iterable[bytes], name: str = "relay-bin.000001") -> Path:
    path = folder / name
    path.write_bytes(MAGIC + b"".join(raws))
    return path


def values(path: Path, **options: str) -> list[int]:
    return [json.loads(row["after"])["a"] for row in rows_of(path, **options)]


def test_saved_replication_dump_is_read_as_a_log(tmp_path: Path) -> None:
    path = write(tmp_path, [*connected(), *source_log().raws[1:]])
    assert values(path) == [1, 2, 3, 4]


def test_relay_log_with_two_source_files_is_read_completely(tmp_path: Path) -> None:
    first = source_log().rotate("mysql-bin.000002")
    second = LogBuilder("mysql-bin.000002").format_description()
    second.begin().rows(1, "t", 5).xid()
    raws = [*relay_head().raws, *connected(), *first.raws[1:], *connected(), *second.raws[1:]]
    assert values(write(tmp_path, raws)) == [1, 2, 3, 4, 5]


def test_relay_log_transaction_continues_after_a_lost_connection(tmp_path: Path) -> None:
    raws = source_log().raws
    pos = 4 + sum(map(len, raws[:8]))
    again = [*connected(pos), *raws[8:]]
    path = write(tmp_path, [*relay_head().raws, *connected(), *raws[1:8], *again])
    assert values(path) == [1, 2, 3, 4]


def test_heartbeat_and_reconnection_in_a_relay_log_add_no_rows(tmp_path: Path) -> None:
    raws = source_log().raws
    end = 4 + sum(map(len, raws))
    heartbeat = raw_event(EventType.HEARTBEAT_LOG_EVENT, b"mysql-bin.000001", log_pos=end)
    path = write(tmp_path, [*connected(), *raws[1:], heartbeat, *connected(end)])
    assert values(path) == [1, 2, 3, 4]


def test_relay_log_that_lacks_whole_transactions_is_accepted(tmp_path: Path) -> None:
    raws = source_log().raws
    raws = [*relay_head().raws, *connected(), raws[1], *raws[6:]]
    assert values(write(tmp_path, raws)) == [3, 4]


@pytest.mark.parametrize("missing", [3, 4, 8, 9, 10])
def test_relay_log_that_lacks_an_event_of_a_transaction_is_rejected(
    missing: int, tmp_path: Path
) -> None:
    raws = source_log().raws
    del raws[missing]
    path = write(tmp_path, [*relay_head().raws, *connected(), *raws[1:]])
    with pytest.raises(MalformedEventError, match=r"of another server has log_pos \d+, expected"):
        values(path)


def test_relay_log_with_a_repeated_transaction_is_rejected(tmp_path: Path) -> None:
    raws = source_log().raws
    path = write(tmp_path, [*relay_head().raws, *connected(), *raws[1:], *raws[2:6]])
    with pytest.raises(MalformedEventError, match="of another server has log_pos"):
        values(path)


def test_missing_events_in_an_ordinary_binlog_are_rejected(tmp_path: Path) -> None:
    raws = source_log().raws
    path = write(tmp_path, [*raws[:2], *raws[6:]], "mysql-bin.000001")
    with pytest.raises(MalformedEventError, match="has log_pos"):
        values(path)


def test_relay_log_with_a_source_upgrade_inside_a_file_is_rejected(tmp_path: Path) -> None:
    log = source_log()
    end = 4 + sum(map(len, log.raws))
    raws = [*relay_head().raws, *connected(), *log.raws[1:], *connected(end, "8.0.36")]
    with pytest.raises(UnsupportedEventError, match=r"was 5\.7\.41-log .* and is 8\.0\.36"):
        values(write(tmp_path, raws))


def test_relay_log_statements_are_parsed_for_the_version_of_the_source(tmp_path: Path) -> None:
    # Only MariaDB executes a /*M! comment.
    log = LogBuilder().format_description("10.11.6-MariaDB-log")
    log.query("CREATE TABLE t (a INT /*M!100000 , b INT */)").begin()
    log.add(EventType.TABLE_MAP_EVENT, _two_columns())
    log.add(EventType.WRITE_ROWS_EVENT_V1, _two_values(1, 2)).xid()
    head = [*relay_head().raws, *connected(version="10.11.6-MariaDB-log")]
    (row,) = rows_of(write(tmp_path, [*head, *log.raws[1:]]))
    assert row["after"] == '{"a":1,"b":2}'


def _two_columns() -> bytes:
    names = b"\x01d\x00\x01t\x00"
    return (1).to_bytes(6, "little") + b"\x01\x00" + names + b"\x02\x03\x03\x00\x03"


def _two_values(a: int, b: int) -> bytes:
    one = rows_body(1, a)
    head = one[:8] + b"\x02\xff"
    return head + b"\xfc" + a.to_bytes(4, "little") + b.to_bytes(4, "little")
