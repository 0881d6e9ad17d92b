"""Bodies of small events: whole, cut at every byte, and with trailing bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.logs.events import (
    UUID,
    format_description_body,
    gtid_body,
    incident_body,
    query_body,
    rotate_body,
    rows_query_body,
    xa_prepare_body,
)
from helpers.parity.decoding import CAPTURED, read_log
from pyspark_mysqlbinlog.errors import FormatError, MalformedEventError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.checksum import ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.messages import (
    FormatDescription,
    Gtid,
    Incident,
    Query,
    Rotate,
    XaPrepare,
    parse_rows_query,
    parse_server_version,
)

# Q_FLAGS2, Q_SQL_MODE, Q_CATALOG_NZ, Q_CHARSET: the first status variables of every 5.7 server.
SESSION = (
    b"\x00"
    + bytes(4)
    + b"\x01"
    + pack("<Q", 1436549152)
    + b"\x06\x03std\x04"
    + b"\x2d\0\x08\0\x21\0"
)

# (id, parser, whole body, value, required bytes: fewer are an error)
PARSERS: list[tuple[str, Callable[[bytes], object], bytes, object, int]] = [
    ("rotate", Rotate.parse, rotate_body("b.000002", 4), Rotate(4, "b.000002"), 8),
    (
        "query",
        Query.parse,
        query_body("BEGIN", "shop", SESSION, thread=3),
        Query(3, 0, "shop", 1436549152, 0x2D, 8, 0x21, "BEGIN"),
        13 + len(SESSION) + 5,
    ),
    (
        "query without database",
        Query.parse,
        query_body("COMMIT", "", b""),
        Query(7, 0, "", 0, None, None, None, "COMMIT"),
        14,
    ),
    (
        "gtid",
        Gtid.parse,
        gtid_body(23),
        Gtid("3e11fa47-71ca-11e1-9e33-c80aa9429562", 23),
        25,
    ),
    (
        "xa prepare",
        XaPrepare.parse,
        xa_prepare_body(b"xa1", bqual=b"b"),
        XaPrepare(False, "X'786131',X'62',1"),
        13 + 4,
    ),
    (
        "xa prepare, one phase",
        XaPrepare.parse,
        xa_prepare_body(b"xa3", one_phase=True),
        XaPrepare(True, "X'786133',X'',1"),
        13 + 3,
    ),
    ("incident", Incident.parse, incident_body(), Incident(1, ""), 2),
    ("rows query", parse_rows_query, rows_query_body("update t"), "update t", 1),
]


@pytest.mark.parametrize(
    ("parse", "body", "expected", "needed"),
    [case[1:] for case in PARSERS],
    ids=[c[0] for c in PARSERS],
)
def test_event_body_is_parsed_and_one_without_required_bytes_is_rejected(
    parse: Callable[[bytes], object], body: bytes, expected: object, needed: int
) -> None:
    assert parse(body) == expected
    for length in range(needed):
        with pytest.raises(MalformedEventError, match=r"cut short|no 0x00"):
            parse(body[:length])
    for length in range(needed, len(body)):
        parse(body[:length])  # the rest is text of any length


def test_trailing_bytes_are_an_error_text_or_ignored_by_event_type() -> None:
    with pytest.raises(MalformedEventError, match="1 bytes left over"):
        XaPrepare.parse(xa_prepare_body(b"xa1") + b"\x00")
    assert Rotate.parse(rotate_body("a.000001") + b"0").file == "a.0000010"
    assert Query.parse(query_body("BEGIN") + b";").sql == "BEGIN;"
    assert Gtid.parse(gtid_body() + b"logical clocks") == Gtid.parse(gtid_body())


def test_incident_message_is_parsed_and_a_cut_or_longer_one_is_rejected() -> None:
    body = incident_body("LOST_EVENTS")
    assert Incident.parse(body) == Incident(1, "LOST_EVENTS")
    for length in range(3, len(body)):
        with pytest.raises(MalformedEventError, match="INCIDENT is cut short"):
            Incident.parse(body[:length])
    with pytest.raises(MalformedEventError, match=f"4 bytes left over after offset {len(body)}"):
        Incident.parse(body + b"tail")


def test_rows_query_longer_than_255_bytes_is_read_whole() -> None:
    text = "x" * 700
    assert parse_rows_query(rows_query_body(text)) == text


def test_rotate_file_name_that_is_not_utf8_is_rejected() -> None:
    with pytest.raises(MalformedEventError, match="a file name that is not UTF-8: 0x62e9"):
        Rotate.parse(bytes(8) + b"b\xe9")


def test_query_text_that_is_not_utf8_is_preserved() -> None:
    body = query_body("insert 'x'").replace(b"x", b"\xe9")
    assert Query.parse(body).sql.encode("utf-8", "surrogateescape") == b"insert '\xe9'"
    rows_query = parse_rows_query(b"\x01\xe9")
    assert rows_query.encode("utf-8", "surrogateescape") == b"\xe9"


# (id, status variables, sql_mode, collation of the server)
VARIABLES: list[tuple[str, bytes, int, int | None]] = [
    ("none", b"", 0, None),
    ("as 5.7 writes them", SESSION, 1436549152, 0x21),
    ("sql_mode only", b"\x01" + pack("<Q", 2**40), 2**40, None),
    ("old catalog", b"\x02\x03std\x00" + b"\x01" + pack("<Q", 8), 8, None),
    ("auto increment", b"\x03\x01\x00\x02\x00" + b"\x04\x08\0\x08\0\x08\0", 0, 8),
    ("time zone first", b"\x05\x03UTC\x04\x08\0\x08\0\x2d\0", 0, 0x2D),
    (
        "collations of character sets, as MariaDB 11.8 writes them",
        SESSION[:19] + b"\x83\x02\x21\0\0\x08\x23\0\0\x0a" + SESSION[19:],
        1436549152,
        0x21,
    ),
    ("no collations of character sets", b"\x83\x00\x04\x08\0\x08\0\x2d\0", 0, 0x2D),
    ("after the charset", SESSION + b"\x07\x00\x00\x63anything", 1436549152, 0x21),
    ("unknown one ends the search", b"\x01" + pack("<Q", 4) + b"\xc8\xff", 4, None),
]


@pytest.mark.parametrize(
    ("variables", "sql_mode", "collation"),
    [v[1:] for v in VARIABLES],
    ids=[v[0] for v in VARIABLES],
)
def test_query_status_variables_give_sql_mode_and_server_collation(
    variables: bytes, sql_mode: int, collation: int | None
) -> None:
    query = Query.parse(query_body("BEGIN", "d", variables))
    assert (query.sql_mode, query.collation_server, query.sql) == (sql_mode, collation, "BEGIN")


@pytest.mark.parametrize("length", [1, 4, 9])
def test_cut_character_set_collations_in_query_are_rejected(length: int) -> None:
    with pytest.raises(MalformedEventError, match="status variables is cut short"):
        Query.parse(query_body("BEGIN", "d", b"\x83\x02\x21\0\0\x08\x23\0\0\x0a"[:length]))


@pytest.mark.parametrize("length", [1, 4, 6, 13, 15, 17, 18, 20, 24])
def test_cut_status_variables_in_query_are_rejected(length: int) -> None:
    with pytest.raises(MalformedEventError, match="status variables is cut short"):
        Query.parse(query_body("BEGIN", "d", SESSION[:length]))


# (version, algorithm byte in the body, the algorithm, whether the event itself has a CRC32)
VERSIONS = [
    ("5.7.41-log", 1, ChecksumAlgorithm.CRC32, True),
    ("5.7.41-log", 0, ChecksumAlgorithm.OFF, True),
    ("5.7.41-log", 255, ChecksumAlgorithm.OFF, True),
    ("5.6.1-m5", 1, ChecksumAlgorithm.CRC32, True),
    ("5.6.0", None, ChecksumAlgorithm.OFF, False),
    ("5.5.62-log", None, ChecksumAlgorithm.OFF, False),
    ("8.0.35", 1, ChecksumAlgorithm.CRC32, True),
    ("10.11.6-MariaDB-log", 1, ChecksumAlgorithm.CRC32, True),
    ("5.3.0-MariaDB", 0, ChecksumAlgorithm.OFF, True),
    ("5.2.14-MariaDB", None, ChecksumAlgorithm.OFF, False),
]
# Digits of Unicode that are no decimal ones, in a damaged version.
DAMAGED_VERSION = b"5.\xb2\xb2.41-log"


@pytest.mark.parametrize(("version", "code", "algorithm", "carries"), VERSIONS)
def test_format_description_gives_server_version_and_checksum_algorithm(
    version: str, code: int | None, algorithm: ChecksumAlgorithm, carries: bool
) -> None:
    head = format_description_body("5.5")
    head = head[:2] + pack("50s", version.encode()) + head[52:]
    body = head if code is None else head + bytes([code]) + bytes(4)
    described = FormatDescription.parse(body)
    assert described.binlog_version == 4
    assert described.header_length == 19
    assert described.server_version == version == parse_server_version(body)
    assert described.checksum is algorithm
    assert described.carries_checksum is carries
    assert described.post_header_lengths == head[57:]


def test_superscript_in_a_damaged_version_is_no_digit() -> None:
    body = format_description_body("5.5")
    body = body[:2] + pack("50s", DAMAGED_VERSION) + body[52:]
    assert FormatDescription.parse(body).carries_checksum is False


def test_cut_format_description_without_a_checksum_algorithm_is_rejected() -> None:
    whole = format_description_body() + bytes(4)
    for length in range(57 + 5):
        with pytest.raises(MalformedEventError):
            FormatDescription.parse(whole[:length])
    for length in range(57 + 5, len(whole)):
        with_other_algorithm = whole[:length]
        if with_other_algorithm[-5] in (0, 1, 255):
            FormatDescription.parse(with_other_algorithm)
        else:
            with pytest.raises(UnsupportedEventError, match="checksum algorithm"):
                FormatDescription.parse(with_other_algorithm)


def test_recorded_events_have_expected_fields() -> None:
    events = {event.start: event for event in read_log(CAPTURED / "transactions.001.binlog")}
    begin = Query.parse(events[1064].body)
    assert (begin.sql, begin.database, begin.error_code) == ("BEGIN", "fx_transactions", 0)
    assert (begin.sql_mode, begin.collation_server) == (0, 45)  # utf8mb4_general_ci
    start = Query.parse(events[4671].body)
    prepare = XaPrepare.parse(events[4984].body)
    assert start.sql == f"XA START {prepare.xid}"
    assert not prepare.one_phase
    assert XaPrepare.parse(events[6158].body) == XaPrepare(True, "X'786133',X'',1")
    assert Rotate.parse(events[9060].body).pos == 4
    gtids = [
        event
        for event in read_log(CAPTURED / "gtid_no_checksum.001.binlog")
        if event.type == EventType.GTID_LOG_EVENT
    ]
    numbers = [Gtid.parse(event.body).number for event in gtids]
    assert numbers == list(range(numbers[0], numbers[0] + len(gtids)))


@given(st.binary(max_size=80))
def test_any_bytes_give_a_value_or_format_error(body: bytes) -> None:
    for parse in (Rotate.parse, Query.parse, Gtid.parse, XaPrepare.parse, Incident.parse):
        with contextlib.suppress(FormatError):
            parse(body)


def test_gtid_text_is_uuid_and_number() -> None:
    assert str(Gtid.parse(gtid_body(5))) == f"{Gtid.parse(gtid_body()).uuid}:5"
    assert Gtid.parse(gtid_body()).uuid.replace("-", "") == UUID.hex()


@pytest.mark.parametrize(
    ("phase", "is_applied"),
    [(b"", True), (b"\x02", False), (b"\x04" + bytes(8), True), (b"\x08" + bytes(8), False)],
)
def test_phase_of_a_mariadb_alter_is_read_after_other_status_variables(
    phase: bytes, is_applied: bool
) -> None:
    charsets = b"\x04" + pack("<HHH", 8, 8, 8)
    others = b"\x80" + bytes(3) + b"\x81" + pack("<Q", 130)
    variables = charsets + others + (b"\x82" + phase if phase else b"")
    query = Query.parse(query_body("ALTER TABLE t ADD a INT", "d", variables))
    assert query.is_applied is is_applied
    assert query.collation_client == 8
