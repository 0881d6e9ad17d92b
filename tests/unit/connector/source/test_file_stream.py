"""Streams of files that grow, arrive late, are replaced, truncated, or of another server."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.logs.events import TIMESTAMP, LogBuilder, query_body, rows_body, table_map
from helpers.snapshots.filter_harness import xa, xid
from helpers.streams.file_streams import FileStream, values
from helpers.waiting import wait_until
from pyspark_mysqlbinlog.checkpoints.position import END_OF_SEQUENCE
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files import followed_files
from pyspark_mysqlbinlog.connector.tail import transaction_scanner
from pyspark_mysqlbinlog.errors import (
    BinlogGapError,
    BinlogPurgedError,
    BinlogReplacedError,
    MalformedEventError,
    MySQLBinlogError,
    OptionError,
    UnknownSchemaError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.binlog_files.files import FileStream as BinlogFile
from pyspark_mysqlbinlog.protocol.events import EventType

CREATE = "CREATE TABLE t (a INT)"
# Delay of an error whose cause might be a copy in progress.
SHORT = {"retryTimeout": "300ms"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_files, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(followed_files, "_SETTLE_SECONDS", 0.1)


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[FileStream]:
    found = FileStream.of(tmp_path)
    yield found
    found.stop()


def log(number: int, *values: int, ends: str = "rotate", base: str = "b") -> LogBuilder:
    """Return a file with one transaction per value; file 1 also has the CREATE TABLE.

    ends : the last event, ``rotate`` or ``stop``; empty for neither.
    """
    made = LogBuilder(f"{base}.{number:06}")
    made.format_description()
    if number == 1:
        made.query(CREATE)
    for value in values:
        made.begin().rows(1, "t", value)
        made.add(EventType.XID_EVENT, value.to_bytes(8, "little"))
    if ends == "stop":
        made.add(EventType.STOP_EVENT, b"")
    elif ends == "rotate":
        made.rotate(f"{base}.{number + 1:06}")
    return made


def content(made: LogBuilder) -> bytes:
    return b"\xfebin" + b"".join(made.raws)


def started_by_server(made: LogBuilder) -> LogBuilder:
    """Return the same file with a creation time, as after a start of the server."""
    old = made.raws[0]
    body = bytearray(old[19:-4])
    body[52:56] = TIMESTAMP.to_bytes(4, "little")
    again = LogBuilder(made.file)
    again.add(EventType.FORMAT_DESCRIPTION_EVENT, bytes(body))
    made.raws[0] = again.raws[0]
    return made


def fails(stream: FileStream, error: type[MySQLBinlogError], words: str) -> MySQLBinlogError:
    with pytest.raises(error, match=words) as caught:
        stream.wait_until(lambda: False, "the stream fails")
    return caught.value


def test_file_stream_follows_new_files_and_appended_bytes(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1, 2).write(tmp_path)
    log(2, 3, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2, 3])
    log(2, 3, 4).write(tmp_path)
    stream.wait_for([1, 2, 3, 4])
    log(3, 5, ends="").write(tmp_path)
    stream.wait_for([1, 2, 3, 4, 5])
    stream.restart().wait_for([1, 2, 3, 4, 5])
    log(3, 5, 6, ends="").write(tmp_path)
    stream.wait_for([1, 2, 3, 4, 5, 6])
    stream.replay()


def test_available_now_ends_at_the_end_of_the_files(stream: FileStream, tmp_path: Path) -> None:
    log(1, 1, 2).write(tmp_path)
    log(2, 3, ends="").write(tmp_path)
    stream.begin()
    assert stream.available() == [1, 2, 3]
    stream.restart()
    assert stream.available() == []
    log(2, 3, 4).write(tmp_path)
    log(3, 5).write(tmp_path)
    stream.restart()
    assert stream.available() == [4, 5]
    stream.restart()
    assert stream.available() == []
    stream.replay()


@pytest.mark.parametrize("every", [1, 7])
def test_events_that_arrive_in_portions_are_delivered_once_complete(
    stream: FileStream, tmp_path: Path, every: int
) -> None:
    log(1, 1).write(tmp_path)
    whole = content(log(2, 2, 3, ends=""))
    path = tmp_path / "b.000002"
    path.write_bytes(b"")
    stream.begin()
    for at in range(0, len(whole), every):
        with path.open("ab") as file:
            file.write(whole[at : at + every])
        if at % 5 == 0:
            stream.step()
    stream.wait_for([1, 2, 3])
    stream.replay()


def test_available_now_leaves_a_partial_event_and_an_open_transaction(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1).write(tmp_path)
    whole = log(2, 2, 3, ends="")
    path = tmp_path / "b.000002"
    last = content(whole)
    inside_event, inside_transaction = len(last) - 5, len(last) - len(whole.raws[-1])
    path.write_bytes(last[:inside_event])
    stream.begin()
    assert stream.available() == [1, 2]
    path.write_bytes(last[:inside_transaction])
    # The file is shorter than before, but still has everything that was read.
    assert stream.restart().available() == []
    path.write_bytes(last)
    assert stream.restart().available() == [3]
    stream.replay()


def test_file_after_a_missing_number_waits_for_the_missing_file(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1).write(tmp_path)
    stream.begin().wait_for([1])
    log(3, 3, ends="").write(tmp_path)
    for _ in range(20):
        assert not stream.step()
    log(2, 2).write(tmp_path)
    stream.wait_for([1, 2, 3])


def test_next_file_waits_until_the_growing_file_before_it_is_complete(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1).write(tmp_path)
    log(2, 2, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2])
    log(3, 4, ends="").write(tmp_path)
    for _ in range(20):
        assert not stream.step()
    log(2, 2, 3).write(tmp_path)
    stream.wait_for([1, 2, 3, 4])


@pytest.mark.parametrize("trigger", ["available", "default"])
def test_a_missing_file_is_an_error_after_a_while(
    stream: FileStream, tmp_path: Path, trigger: str
) -> None:
    stream.texts |= SHORT
    log(1, 1).write(tmp_path)
    log(2, 2, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2])
    stream.stop()
    (tmp_path / "b.000002").unlink()
    log(3, 3, ends="").write(tmp_path)
    stream.begin()
    if trigger == "available":
        assert stream.spark is not None
        stream.spark.reader.prepareForTriggerAvailableNow()
    fails(stream, BinlogPurgedError, "no file with the number 2, found b.000003")


def test_missing_file_number_between_two_files_raises_binlog_purged_error(
    stream: FileStream, tmp_path: Path
) -> None:
    stream.texts |= SHORT
    log(1, 1).write(tmp_path)
    stream.begin().wait_for([1])
    log(3, 3).write(tmp_path)
    fails(stream, BinlogPurgedError, "no file with the number 2, found b.000003")


def test_a_file_that_was_delivered_may_be_deleted(stream: FileStream, tmp_path: Path) -> None:
    log(1, 1).write(tmp_path)
    log(2, 2, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2])
    (tmp_path / "b.000001").unlink()
    log(2, 2, 3, ends="").write(tmp_path)
    stream.wait_for([1, 2, 3])
    stream.restart()
    log(2, 2, 3, 4, ends="").write(tmp_path)
    stream.wait_for([1, 2, 3, 4])


def test_deleted_newest_file_raises_binlog_purged_error(stream: FileStream, tmp_path: Path) -> None:
    stream.texts |= SHORT
    log(1, 1).write(tmp_path)
    log(2, 2, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2])
    (tmp_path / "b.000002").unlink()
    fails(stream, BinlogPurgedError, "no file with the number 2, found no later one")


@pytest.mark.parametrize("restarts", [False, True])
def test_newest_file_replaced_by_a_shorter_one_raises_binlog_replaced_error(
    stream: FileStream, tmp_path: Path, *, restarts: bool
) -> None:
    log(1, 1).write(tmp_path)
    log(2, 2, 3, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2, 3])
    if restarts:
        stream.stop()
    log(2, 2, ends="").write(tmp_path)
    if restarts:
        stream.begin()
    fails(stream, BinlogReplacedError, "the file has .* bytes, and was read further before")


@pytest.mark.parametrize("restarts", [False, True])
def test_newest_file_replaced_by_another_one_raises_binlog_replaced_error(
    stream: FileStream, tmp_path: Path, *, restarts: bool
) -> None:
    log(1, 1).write(tmp_path)
    log(2, 2, 3, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2, 3])
    if restarts:
        stream.stop()
    log(2, 2, 7, 8, ends="").write(tmp_path)
    if restarts:
        stream.begin()
    fails(stream, BinlogReplacedError, "another event is before this position")


def test_stream_continues_in_the_next_file_after_a_server_stop(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1, ends="stop").write(tmp_path)
    started_by_server(log(2, 2, ends="")).write(tmp_path)
    stream.begin().wait_for([1, 2])
    assert stream.restart().available() == []
    stream.replay()


def test_stream_continues_in_the_next_file_after_a_server_crash(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1, ends="").write(tmp_path)
    stream.begin().wait_for([1])
    started_by_server(log(2, 2, ends="")).write(tmp_path)
    stream.wait_for([1, 2])
    assert stream.restart().available() == []


def test_file_that_grows_after_the_stream_left_it_raises_binlog_gap_error(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1, ends="").write(tmp_path)
    stream.begin().wait_for([1])
    started_by_server(log(2, 2, ends="")).write(tmp_path)
    stream.wait_for([1, 2])
    log(1, 1, 9, ends="").write(tmp_path)
    fails(stream, BinlogGapError, "the file had .* bytes when the stream continued")


def test_file_without_rotate_before_a_rotated_file_raises_binlog_gap_error(
    stream: FileStream, tmp_path: Path
) -> None:
    stream.texts |= SHORT
    log(1, 1, ends="").write(tmp_path)
    stream.begin().wait_for([1])
    log(2, 2, ends="").write(tmp_path)
    fails(stream, BinlogGapError, "b.000001 does not end with a ROTATE")


@pytest.mark.parametrize(("cut", "what"), [(5, "an event"), (31, "a transaction")])
def test_cut_file_before_another_one_raises_malformed_event_error(
    stream: FileStream, tmp_path: Path, cut: int, what: str
) -> None:
    """The last 31 bytes are the XID event."""
    stream.texts |= SHORT
    path = tmp_path / "b.000001"
    path.write_bytes(content(log(1, 1, 2, ends=""))[:-cut])
    stream.begin().wait_for([1])
    started_by_server(log(2, 3, ends="")).write(tmp_path)
    fails(stream, MalformedEventError, f"the file ends inside {what}, and b.000002 follows it")
    assert stream.found == [1]


def test_stream_follows_file_numbers_that_gain_a_digit(stream: FileStream, tmp_path: Path) -> None:
    first = log(999_999, 1)
    first.raws.clear()
    first.pos = 4
    first.format_description().query(CREATE).begin().rows(1, "t", 1).xid().rotate("b.1000000")
    first.write(tmp_path)
    stream.begin().wait_for([1])
    log(1_000_000, 2).write(tmp_path)
    log(1_000_001, 3, ends="").write(tmp_path)
    stream.wait_for([1, 2, 3])
    assert stream.restart().available() == []


def test_stream_reads_compressed_files_among_plain_ones(stream: FileStream, tmp_path: Path) -> None:
    def compress(made: LogBuilder) -> Path:
        path = tmp_path / f"{made.file}.gz"
        path.write_bytes(gzip.compress(content(made)))
        return path

    compress(log(1, 1))
    log(2, 2).write(tmp_path)
    stream.begin().wait_for([1, 2])
    path = compress(log(3, 3))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    for _ in range(20):
        stream.step()
    path.write_bytes(whole)
    stream.wait_for([1, 2, 3])
    assert stream.restart().available() == []
    stream.replay()


def test_file_that_is_emptied_and_copied_again_is_read_whole(
    stream: FileStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is emptied between the look at its size and the reading of its first bytes."""
    path = tmp_path / "b.000002"
    copies: list[bytes] = []

    def opened(location: Path, **settings: bool) -> BinlogFile:
        if Path(location).name == path.name and not copies:
            copies.append(path.read_bytes())
            path.write_bytes(b"")
        return BinlogFile(location, **settings)

    log(1, 1).write(tmp_path)
    stream.begin().wait_for([1])
    monkeypatch.setattr(followed_files, "FileStream", opened)
    log(2, 2).write(tmp_path)
    wait_until(lambda: not stream.step() and bool(copies), "the file is emptied")
    for _ in range(20):
        stream.step()
    path.write_bytes(copies[0])
    stream.wait_for([1, 2])


def test_truncated_compressed_file_raises_malformed_event_error(
    stream: FileStream, tmp_path: Path
) -> None:
    stream.texts |= SHORT
    log(1, 1).write(tmp_path)
    stream.begin().wait_for([1])
    (tmp_path / "b.000002.gz").write_bytes(gzip.compress(content(log(2, 2)))[:-20])
    fails(stream, MalformedEventError, "can't be decompressed")


def test_file_present_plain_and_compressed_raises_option_error(
    stream: FileStream, tmp_path: Path
) -> None:
    """A stream waits for the retry timeout first: the file may be in the middle of compression."""
    stream.texts |= SHORT
    log(1, 1).write(tmp_path)
    stream.begin().wait_for([1])
    # No ROTATE: after one, the stream would list only files with later numbers.
    second = log(2, 2, ends="")
    second.write(tmp_path)
    (tmp_path / "b.000002.gz").write_bytes(gzip.compress(content(second)))
    fails(stream, OptionError, "has the file b.000002 twice")


def test_stream_continues_in_a_file_compressed_after_it_was_read(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1).write(tmp_path)
    log(2, 2, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2])
    (tmp_path / "b.000002").unlink()
    (tmp_path / "b.000002.gz").write_bytes(gzip.compress(content(log(2, 2, 3))))
    stream.wait_for([1, 2, 3])
    stream.replay()


def test_files_of_two_base_names_in_a_folder_are_rejected(
    stream: FileStream, tmp_path: Path
) -> None:
    stream.texts |= SHORT
    log(1, 1).write(tmp_path)
    stream.begin().wait_for([1])
    log(2, 2, base="c").write(tmp_path)
    fails(stream, BinlogGapError, "expected b.000002, found c.000002")
    stream.stop()
    log(2, 2).write(tmp_path)
    stream.begin()
    fails(stream, OptionError, "two names")


def test_next_file_of_another_server_raises_binlog_gap_error(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1).write(tmp_path)
    stream.begin().wait_for([1])
    other = LogBuilder("b.000002", timestamp=TIMESTAMP + 1000)
    other.format_description().begin().rows(1, "t", 2).xid().write(tmp_path)
    fails(stream, BinlogGapError, "1000 seconds between them")


def test_max_rows_per_trigger_limits_each_batch_of_a_file_stream(
    stream: FileStream, tmp_path: Path
) -> None:
    stream.texts |= {"maxRowsPerTrigger": "1"}
    log(1, 1, 2).write(tmp_path)
    log(2, 3, ends="").write(tmp_path)
    stream.begin()
    assert stream.available() == [1, 2, 3]
    assert [len(rows) for _, _, rows in stream.batches] == [1, 1, 1]
    stream.replay()


def test_a_large_transaction_is_read_by_several_tasks(
    stream: FileStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.texts |= {"targetPartitionBytes": "400k"}
    monkeypatch.setattr(transaction_scanner, "_PIECE_BYTES", 1 << 16)
    made = log(1, 1, ends="").begin()
    made.add(EventType.TABLE_MAP_EVENT, table_map(1, "t"))
    count, each = 300, 1_000
    for n in range(count):
        body = rows_body(1, *range(n * each, (n + 1) * each), last=n == count - 1)
        made.add(EventType.WRITE_ROWS_EVENT, body)
    whole = content(made.xid())
    path = tmp_path / "b.000001"
    path.write_bytes(whole[: len(whole) // 2])
    stream.begin()
    assert stream.available() == [1]
    path.write_bytes(whole)
    stream.restart()
    assert stream.spark is not None
    assert stream.checkpoint is not None
    stream.spark.reader.prepareForTriggerAvailableNow()
    end = stream.spark.next_batch(stream.checkpoint)
    assert len(stream.spark.reader.partitions(stream.checkpoint, end)) == 4
    assert values(stream.spark.rows(stream.checkpoint, end)) == list(range(count * each))


@pytest.mark.parametrize("start", ["b.000001:4", "b.000002:4"])
def test_xa_rows_are_delivered_at_a_commit_in_a_later_file(
    stream: FileStream, tmp_path: Path, start: str
) -> None:
    """A stream that starts between XA PREPARE and XA COMMIT searches the earlier file."""
    stream.texts |= {"startingOffset": start}
    xa(log(1, ends=""), b"a", "t").rotate("b.000002").write(tmp_path)
    second = log(2, 2, ends="")
    second.write(tmp_path)
    stream.begin()
    assert stream.available() == [2]
    second.query(f"XA COMMIT {xid(b'a')}").write(tmp_path)
    assert stream.restart().available() == [1]
    stream.replay()


def test_stream_follows_ddl_and_rejects_a_table_of_unknown_columns(
    stream: FileStream, tmp_path: Path
) -> None:
    stream.texts |= SHORT
    made = log(1, 1, ends="")
    made.write(tmp_path)
    stream.begin().wait_for([1])
    made.query("ALTER TABLE t RENAME TO u").query("CREATE TABLE t (a INT)")
    made.begin().rows(2, "t", 2).xid().write(tmp_path)
    stream.wait_for([1, 2])
    stream.restart()
    made.query("DROP TABLE t").query("CREATE TABLE t LIKE nowhere")
    made.begin().rows(3, "t", 3).xid().write(tmp_path)
    fails(stream, UnknownSchemaError, "nowhere")
    stream.replay()


def test_schema_ddl_defines_no_newly_captured_table_of_a_checkpoint(
    stream: FileStream, tmp_path: Path
) -> None:
    """It describes the beginning of a file that may have been deleted since."""
    ddl = tmp_path.parent / f"{tmp_path.name}.sql"
    # Together the wide tables have more columns than an offset keeps of uncaptured ones.
    columns = ", ".join(f"c{n} INT" for n in range(800))
    wide = "".join(f"CREATE TABLE d.w{n} ({columns});" for n in range(2))
    ddl.write_text(f"CREATE TABLE d.t (a INT); CREATE TABLE d.u (old INT); {wide}")
    stream.texts |= {"schemaDdl": str(ddl)}
    first = LogBuilder("b.000001").format_description().query("ALTER TABLE u CHANGE old a INT")
    first.query("ALTER TABLE w0 ADD x INT").query("ALTER TABLE w1 ADD x INT")
    first.begin().rows(1, "t", 1).xid().rotate("b.000002")
    first.write(tmp_path)
    log(2, 2, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2])
    later = log(2, 2, ends="")
    later.query("ALTER TABLE w0 ADD y INT").query("ALTER TABLE w1 ADD y INT")
    later.begin().rows(1, "t", 3).xid().write(tmp_path)
    stream.wait_for([1, 2, 3])
    (tmp_path / "b.000001").unlink()
    later.begin().rows(2, "u", 4).xid().write(tmp_path)
    stream.restart(tables="d.t,d.u")
    fails(stream, UnknownSchemaError, "d.u")


def test_table_with_an_unconfirmed_charset_is_unknown_to_a_new_stream(
    stream: FileStream, tmp_path: Path
) -> None:
    """A batch read uses the session's charset if a table map confirms it; here none has yet."""
    # collation_server utf8_general_ci
    variables = bytes([4, 33, 0, 33, 0, 33, 0])
    made = log(1, 1, ends="")
    sql = "CREATE TABLE c (a VARCHAR(5))"
    made.add(EventType.QUERY_EVENT, query_body(sql, variables=variables))
    made.write(tmp_path)
    stream.texts["tables"] = "d.*"
    stream.begin().wait_for([1])
    assert stream.spark is not None
    start, *_ = stream.batches[0]
    history = SchemaHistory.unpack(start["schemas"].rpartition(":")[2])
    assert history.at(END_OF_SEQUENCE, "d", "t") is not None
    assert history.at(END_OF_SEQUENCE, "d", "c") is None


def test_stream_skips_files_with_names_of_unfinished_copies(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1).write(tmp_path)
    for name in (".b.000002.Xy1z", "b.000002.part", "b.index"):
        (tmp_path / name).write_bytes(content(log(2, 2)))
    stream.begin().wait_for([1])
    (tmp_path / "b.000002.part").rename(tmp_path / "b.000002")
    stream.wait_for([1, 2])


def test_stream_of_a_relay_log_raises_unsupported_event_error(
    stream: FileStream, tmp_path: Path
) -> None:
    made = LogBuilder("b.000001")
    body = log(1).raws[0][19:-4]
    made.add(EventType.FORMAT_DESCRIPTION_EVENT, body, 0x40)
    made.query(CREATE).begin().rows(1, "t", 1).xid().write(tmp_path)
    stream.begin()
    fails(stream, UnsupportedEventError, "relay log")


def test_replay_of_a_deleted_file_raises_binlog_purged_error(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1).write(tmp_path)
    log(2, 2, ends="").write(tmp_path)
    stream.begin().wait_for([1, 2])
    (tmp_path / "b.000001").unlink()
    with pytest.raises(BinlogPurgedError, match="a batch that was planned needs it"):
        stream.replay()


def test_replay_of_a_replaced_file_raises_binlog_replaced_error(
    stream: FileStream, tmp_path: Path
) -> None:
    log(1, 1, ends="").write(tmp_path)
    stream.begin().wait_for([1])
    log(1, 1, 2, ends="").write(tmp_path)
    stream.wait_for([1, 2])
    log(1, 7, 8, ends="").write(tmp_path)
    with pytest.raises(BinlogReplacedError):
        stream.replay()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 2, 3]),
        ({"startingOffset": "latest"}, []),
        ({"startingOffset": "b.000002:4"}, [2, 3]),
    ],
)
def test_file_stream_starts_at_its_starting_offset(
    stream: FileStream, tmp_path: Path, options: dict[str, str], expected: list[int]
) -> None:
    stream.texts |= options
    log(1, 1).write(tmp_path)
    path = tmp_path / "b.000002"
    path.write_bytes(content(log(2, 2, 3, 4, ends=""))[:-5])
    stream.begin()
    assert stream.available() == expected
    log(2, 2, 3, 4, ends="").write(tmp_path)
    assert stream.restart().available() == [4]
