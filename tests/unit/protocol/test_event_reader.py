"""The event reader: events, their positions, and rejected events."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.logs.events import (
    LogBuilder,
    format_description_body,
    query_body,
    raw_event,
    rotate_body,
)
from helpers.parity.decoding import CAPTURED, raws_in
from pyspark_mysqlbinlog.errors import (
    ChecksumError,
    FormatError,
    InvalidPositionError,
    MalformedEventError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.event_reader import EventReader
from pyspark_mysqlbinlog.protocol.events import (
    ARTIFICIAL_FLAG,
    HEADER,
    EventHeader,
    EventType,
    type_name,
)

T = EventType
FILE = "mysql-bin.000003"
CRC32 = ChecksumAlgorithm.CRC32
OFF = ChecksumAlgorithm.OFF

UPDATE = bytes.fromhex(
    "240ea1581fe56b010034000000b901000000 00"
    "d2000000000001000200 03ffff fd0474657374 fa02000000 0474657374 1d59c021"
)
DELETE = bytes.fromhex(
    "2a0ea15820e56b01002d000000c802000000 00"
    "d2000000000001000200 03ff fa02000000 0474657374 c1415705"
)


def format_description(log_pos: int = 0, *, algorithm: int = 1, flags: int = 0) -> bytes:
    body = format_description_body(algorithm=algorithm)
    return raw_event(T.FORMAT_DESCRIPTION_EVENT, body, log_pos=log_pos, flags=flags)


def walker_at(pos: int, *, checksum: bool = True) -> EventReader:
    """Return a reader at `pos` that has read a dump's FORMAT_DESCRIPTION."""
    walker = EventReader(FILE, pos)
    assert walker.feed(format_description(algorithm=int(checksum))) is None
    return walker


def test_event_header_is_parsed_and_unknown_type_is_named_by_number() -> None:
    assert HEADER.size == 19
    header = EventHeader.parse(bytes.fromhex("b61e1c5a") + UPDATE[4:])
    assert header == (1511792310, 31, 93157, 52, 441, 0)
    assert type_name(header.type) == "UPDATE_ROWS_EVENT"
    assert type_name(99) == "type 99"


@pytest.mark.parametrize(
    ("raw", "start", "kind", "checksum"),
    [
        (UPDATE, 389, T.UPDATE_ROWS_EVENT, 0x21C0591D),
        (DELETE, 667, T.DELETE_ROWS_EVENT, 0x055741C1),
    ],
)
def test_rows_event_is_read_with_its_position_type_and_body(
    raw: bytes, start: int, kind: EventType, checksum: int
) -> None:
    assert raw[-4:] == pack("<I", checksum)
    event = walker_at(start).feed(raw)
    assert event is not None
    assert (event.file, event.start, event.end) == (FILE, start, start + len(raw))
    assert (event.type, event.server_id, event.flags) == (kind, 93157, 0)
    assert event.body == raw[19:-4]


def test_event_positions_follow_from_event_lengths() -> None:
    """The lengths are those of GTID, BEGIN, TABLE_MAP, UPDATE, XID; then the same with DELETE."""
    lengths = [65, 72, 58, 52, 31, 65, 72, 58, 45, 31]
    walker = walker_at(194)
    found = []
    for length in lengths:
        event = walker.feed(raw_event(T.XID_EVENT, bytes(length - 23), log_pos=walker.pos + length))
        assert event is not None
        found.append(event.start)
    assert found == [194, 259, 331, 389, 441, 472, 537, 609, 667, 712]
    assert walker.pos == 743


@pytest.mark.parametrize("raw", [UPDATE, DELETE])
def test_every_changed_byte_of_an_event_raises_error_at_its_position(raw: bytes) -> None:
    start = EventHeader.parse(raw).log_pos - len(raw)
    for at in range(len(raw)):
        damaged = raw[:at] + bytes([raw[at] ^ 0x40]) + raw[at + 1 :]
        with pytest.raises(FormatError) as caught:
            # One event was read before: directly at the start, the start position can be the fault.
            walker_after(start).feed(damaged)
        assert (caught.value.file, caught.value.position) == (FILE, start)


@pytest.mark.parametrize("raw", [UPDATE, DELETE])
def test_truncated_or_extended_event_raises_malformed_event_error(raw: bytes) -> None:
    start = EventHeader.parse(raw).log_pos - len(raw)
    for wrong in [*(raw[:length] for length in range(len(raw))), raw + b"\x00"]:
        with pytest.raises(MalformedEventError) as caught:
            walker_after(start).feed(wrong)
        assert (caught.value.file, caught.value.position) == (FILE, start)


def walker_after(pos: int) -> EventReader:
    """Return a reader that has read one event, which ends at `pos`."""
    walker = walker_at(pos - 31)
    assert walker.feed(raw_event(T.XID_EVENT, bytes(8), log_pos=pos)) is not None
    return walker


@pytest.mark.parametrize("checksum", [CRC32, OFF])
def test_artificial_rotate_before_format_description_does_not_move_position(
    checksum: ChecksumAlgorithm,
) -> None:
    """The server sends this ROTATE first, with or without a checksum as it is configured."""
    walker = EventReader(FILE, 4, checksum)
    raw = raw_event(
        T.ROTATE_EVENT,
        rotate_body(FILE),
        log_pos=0,
        flags=ARTIFICIAL_FLAG,
        checksum=checksum is CRC32,
        timestamp=0,
    )
    assert walker.feed(raw) is None
    assert (walker.file, walker.pos) == (FILE, 4)
    described = format_description(123, algorithm=int(checksum))
    event = walker.feed(described)
    assert event is not None
    assert (event.start, event.end) == (4, 4 + len(described))


def test_artificial_rotate_with_wrong_checksum_raises_checksum_error() -> None:
    raw = raw_event(T.ROTATE_EVENT, rotate_body(FILE), log_pos=0, flags=ARTIFICIAL_FLAG)
    with pytest.raises(ChecksumError):
        EventReader(FILE, 4, CRC32).feed(raw[:-1] + bytes([raw[-1] ^ 1]))


def test_dump_from_mid_file_begins_with_the_event_at_its_position() -> None:
    """The server sends a ROTATE to the position, FORMAT_DESCRIPTION with log_pos 0, and the log."""
    walker = EventReader("", 0, CRC32)
    rotate = rotate_body(FILE, 389)
    assert walker.feed(raw_event(T.ROTATE_EVENT, rotate, log_pos=0, flags=ARTIFICIAL_FLAG)) is None
    assert walker.feed(format_description(0)) is None
    assert (walker.file, walker.pos) == (FILE, 389)
    with pytest.raises(InvalidPositionError, match="no event begins here"):
        walker.feed(DELETE)
    event = walker.feed(UPDATE)
    assert event is not None
    assert event.start == 389


@pytest.mark.parametrize("kind", [T.HEARTBEAT_LOG_EVENT, T.HEARTBEAT_LOG_EVENT_V2])
def test_heartbeat_does_not_move_the_position(kind: EventType) -> None:
    walker = walker_at(389)
    for log_pos in (441, 389, 0, 7):
        assert walker.feed(raw_event(kind, FILE.encode(), log_pos=log_pos)) is None
    assert walker.pos == 389
    event = walker.feed(UPDATE)
    assert event is not None
    assert event.start == 389


def test_heartbeat_with_wrong_checksum_raises_checksum_error() -> None:
    raw = raw_event(T.HEARTBEAT_LOG_EVENT, FILE.encode(), log_pos=441)
    with pytest.raises(ChecksumError):
        walker_after(389).feed(raw[:-1] + bytes([raw[-1] ^ 1]))


@pytest.mark.parametrize("past", [0, 1, 12, 30, 31, 32])
def test_positions_grow_past_4_gib_where_log_pos_wraps(past: int) -> None:
    """Some events end at exactly 4 GiB, where log_pos is 0 as in artificial events."""
    begin = (1 << 32) - 62 + past
    walker = walker_at(begin)
    found = []
    for n in range(1, 5):
        event = walker.feed(raw_event(T.XID_EVENT, bytes(8), log_pos=begin + 31 * n))
        assert event is not None
        found.append(event.end)
    assert found == [begin + 31 * n for n in range(1, 5)]
    assert walker.pos == begin + 124


def test_in_use_flag_is_not_in_the_checksum() -> None:
    """The server sets the flag in the file's first event and clears it when it closes the file."""
    closed = format_description(123)
    in_use = closed[:17] + b"\x01\x00" + closed[19:]
    event = EventReader(FILE, 4).feed(in_use)
    assert event is not None
    assert (event.end, event.flags) == (123, 1)
    with pytest.raises(ChecksumError):
        EventReader(FILE, 4).feed(closed[:17] + b"\x02\x00" + closed[19:])


def test_format_description_checksum_is_verified_if_algorithm_is_off() -> None:
    raw = format_description(123, algorithm=0)
    assert EventReader(FILE, 4).feed(raw) is not None
    with pytest.raises(ChecksumError):
        EventReader(FILE, 4).feed(raw[:-1] + bytes([raw[-1] ^ 1]))


def test_resent_format_description_may_have_a_stale_checksum_if_checksums_are_off() -> None:
    """A start in mid-file changes this event, but changes its CRC32 only with checksums on."""
    stale = format_description(0, algorithm=0)[:-4] + bytes(4)
    assert EventReader(FILE, 389).feed(stale) is None
    with pytest.raises(InvalidPositionError, match="CRC32"):
        EventReader(FILE, 389).feed(format_description(0, algorithm=1)[:-4] + bytes(4))


def test_events_of_server_5_5_are_read_without_checksums() -> None:
    body = format_description_body("5.5.62-log")
    walker = EventReader(FILE, 4)
    end = 4 + 19 + len(body)
    raw = raw_event(T.FORMAT_DESCRIPTION_EVENT, body, log_pos=end, checksum=False)
    event = walker.feed(raw)
    assert event is not None
    assert event.body == body
    xid = walker.feed(raw_event(T.XID_EVENT, bytes(8), log_pos=end + 27, checksum=False))
    assert xid is not None
    assert xid.body == bytes(8)


def test_checksum_algorithm_may_change_between_files() -> None:
    """SET GLOBAL binlog_checksum rotates the log; the ROTATE has the algorithm of the old file."""
    first = LogBuilder("mysql-bin.000001", checksum=True)
    first.format_description().begin().xid().rotate("mysql-bin.000002")
    second = LogBuilder("mysql-bin.000002", checksum=False)
    second.format_description().begin().xid().rotate("mysql-bin.000003")
    third = LogBuilder("mysql-bin.000003", checksum=True)
    third.format_description().begin().xid()
    logs = (first, second, third)
    walker = EventReader(first.file, 4)
    found = [walker.feed(raw) for log in logs for raw in log.raws]
    expected = [(log.file, end) for log in logs for end in _ends([len(raw) for raw in log.raws])]
    assert [(event.file, event.end) for event in found if event] == expected
    bodies = [event.body for event in found if event and event.type == T.XID_EVENT]
    assert bodies == [bytes(8)] * 3
    assert (walker.file, walker.pos) == (third.file, third.pos)


def _ends(lengths: list[int]) -> list[int]:
    ends = [4]
    for length in lengths:
        ends.append(ends[-1] + length)
    return ends[1:]


@pytest.mark.parametrize(
    ("log_pos", "words"), [(440, "has log_pos 440, expected 441"), (442, "has log_pos 442")]
)
def test_wrong_log_pos_raises_malformed_event_error(log_pos: int, words: str) -> None:
    walker = walker_after(389)
    with pytest.raises(MalformedEventError, match=words) as caught:
        walker.feed(raw_event(T.XID_EVENT, bytes(29), log_pos=log_pos))
    assert (caught.value.file, caught.value.position) == (FILE, 389)


def test_start_inside_an_event_raises_invalid_position_error() -> None:
    """A wrong checksum of the first FORMAT_DESCRIPTION still raises ChecksumError."""
    with pytest.raises(InvalidPositionError, match="no event begins here") as caught:
        walker_at(390).feed(UPDATE)
    assert (caught.value.file, caught.value.position) == (FILE, 390)
    with pytest.raises(ChecksumError):
        EventReader(FILE, 4).feed(format_description(123)[:-1] + b"\x00")


def test_event_before_any_format_description_is_rejected() -> None:
    raw = raw_event(T.XID_EVENT, bytes(8), log_pos=4 + 27, checksum=False)
    with pytest.raises(MalformedEventError, match="XID_EVENT comes before any FORMAT_DESCRIPTION"):
        EventReader(FILE, 4).feed(raw)


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (b"\x03" + format_description_body()[1:], UnsupportedEventError, "binlog version 3"),
        (
            format_description_body()[:56] + b"\x0d" + format_description_body()[57:],
            UnsupportedEventError,
            "headers of 13 bytes",
        ),
        (format_description_body(algorithm=2), UnsupportedEventError, "checksum algorithm 2"),
        (format_description_body()[:57], MalformedEventError, "before its checksum algorithm"),
        (format_description_body()[:40], MalformedEventError, "cut short"),
    ],
)
def test_unsupported_or_malformed_format_description_is_rejected(
    body: bytes, error: type[FormatError], words: str
) -> None:
    checksum = len(body) > 57
    raw = raw_event(T.FORMAT_DESCRIPTION_EVENT, body, log_pos=23 + len(body), checksum=checksum)
    with pytest.raises(error, match=words):
        EventReader(FILE, 4).feed(raw)


@pytest.mark.parametrize("path", sorted(CAPTURED.glob("*.binlog")), ids=lambda path: path.stem)
def test_recorded_logs_are_read_to_their_last_byte(path: object) -> None:
    file = CAPTURED / str(path)
    walker = EventReader(file.name, 4)
    last = 4
    for raw in raws_in(file):
        event = walker.feed(raw)
        assert event is not None
        assert event.start == last
        last = event.end
        if event.type != T.ROTATE_EVENT:
            assert (walker.file, walker.pos) == (file.name, last)
    assert last == file.stat().st_size


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=30), st.booleans())
def test_positions_of_any_events_follow_lengths_despite_heartbeats(
    parts: list[tuple[int, bool]], checksum: bool
) -> None:
    log = LogBuilder(FILE, checksum=checksum)
    walker = walker_at(4, checksum=checksum)
    for size, beats in parts:
        if beats:
            beat = raw_event(T.HEARTBEAT_LOG_EVENT, b"x", log_pos=log.pos, checksum=checksum)
            assert walker.feed(beat) is None
        start = log.pos
        body = query_body("x" * size)
        event = walker.feed(log.add(T.QUERY_EVENT, body).raws[-1])
        assert event is not None
        assert (event.start, event.end, event.body) == (start, log.pos, body)


@pytest.mark.parametrize(
    ("version", "lacks"),
    [
        ("11.8.9-MariaDB-0+deb13u1 from Debian-log", True),
        ("11.4.2-MariaDB", True),
        ("11.4.7-4-MariaDB-enterprise-log", True),
        ("10.11.14-MariaDB-log", False),
        ("11.3.2-MariaDB", False),
        ("11.4.0-log", False),
        ("9.7.4", False),
    ],
)
def test_only_mariadb_from_11_4_on_may_lack_positions(version: str, lacks: bool) -> None:
    walker = EventReader(FILE, 4)
    (head,) = LogBuilder().format_description(version).raws
    walker.feed(head)
    assert walker.may_lack_positions is lacks


@pytest.mark.parametrize("kind", [T.MARIADB_START_ENCRYPTION_EVENT, T.MARIADB_GTID_LIST_EVENT])
def test_event_resent_at_start_of_a_dump_does_not_move_the_position(kind: EventType) -> None:
    """For a start in mid-file, MariaDB sends such events again, not all of them as artificial."""
    walker = EventReader(FILE, 1000)
    body = format_description_body("11.8.9-MariaDB-log")
    assert walker.feed(raw_event(T.FORMAT_DESCRIPTION_EVENT, body, log_pos=0)) is None
    assert walker.feed(raw_event(kind, bytes(17), log_pos=0, flags=0x80)) is None
    assert walker.pos == 1000
    raw = raw_event(T.MARIADB_GTID_EVENT, bytes(19), log_pos=1042)
    event = walker.feed(raw)
    assert event is not None
    assert (event.start, event.end) == (1000, 1042)
