"""Events byte by byte: two worked examples, and every byte of every recorded log."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.logs.corrupt_logs import RawEvent, to_bytes
from helpers.logs.events import format_description_body, query_body
from pyspark_mysqlbinlog.connector.inspection.entries import Entries
from pyspark_mysqlbinlog.connector.inspection.hexdump import fields_of, hexdump
from pyspark_mysqlbinlog.connector.inspection.sources import BinlogFiles
from pyspark_mysqlbinlog.connector.inspection.text import line, statements
from pyspark_mysqlbinlog.protocol.events import EventType

DATA = Path(__file__).resolve().parents[3] / "data"
LOGS = sorted([*DATA.glob("binlogs*/*.binlog"), *DATA.glob("relay57/relay-bin.*")])
T = EventType
SERVER_ID = 0x00016BE5
UUID = bytes(range(16))


def _golden() -> bytes:
    """Return a file with an UPDATE and a DELETE as MySQL 5.7.13 logged them.

    Table test.testnull2 has the id 210, an int column and two columns of varchar(60 bytes).
    """
    table_map = bytes.fromhex(
        "d20000000000 0100 04 74657374 00 09 746573746e756c6c32 0003 03 0f0f 04 3c00 3c00 07"
    )
    begin = query_body(
        "BEGIN",
        "test",
        bytes.fromhex("00 00000000 01 0000000000000000 06 03 737464 04 080008000800"),
    )
    update = bytes.fromhex("d20000000000 0100 0200 03 ff ff fd 0474657374 fa 02000000 0474657374")
    delete = bytes.fromhex("d20000000000 0100 0200 03 ff fa 02000000 0474657374")

    def transaction(number: int, time: int, kind: int, rows: bytes) -> list[RawEvent]:
        gtid = b"\x01" + UUID + number.to_bytes(8, "little") + b"\x02" + bytes(16)
        parts = [
            (T.GTID_LOG_EVENT, gtid),
            (T.QUERY_EVENT, begin),
            (T.TABLE_MAP_EVENT, table_map),
            (kind, rows),
            (T.XID_EVENT, number.to_bytes(8, "little")),
        ]
        return [RawEvent(int(each), body, time, SERVER_ID) for each, body in parts]

    previous = (1).to_bytes(8, "little") + UUID + (1).to_bytes(8, "little") + bytes([1] + [0] * 7)
    head = [
        RawEvent(int(T.FORMAT_DESCRIPTION_EVENT), format_description_body("5.7.13-log")),
        RawEvent(int(T.PREVIOUS_GTIDS_LOG_EVENT), previous + (1_000_450).to_bytes(8, "little")),
    ]
    # The headers have the times and the server id of the two events.
    events = [
        *head,
        *transaction(1_000_450, 0x58A10E24, T.UPDATE_ROWS_EVENT, update),
        *transaction(1_000_451, 0x58A10E2A, T.DELETE_ROWS_EVENT, delete),
    ]
    return to_bytes(events, checksum=True)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden") / "mysql-bin.000001"
    path.write_bytes(_golden())
    return path


def read(path: Path) -> Entries:
    source = BinlogFiles([str(path)])
    return Entries(source)


def test_example_log_events_have_the_expected_positions_and_sizes(golden: Path) -> None:
    found = [(e.event.start, e.event.end, e.size, e.event.type) for e in read(golden)]
    assert found[2:] == [
        (194, 259, 65, T.GTID_LOG_EVENT),
        (259, 331, 72, T.QUERY_EVENT),
        (331, 389, 58, T.TABLE_MAP_EVENT),
        (389, 441, 52, T.UPDATE_ROWS_EVENT),
        (441, 472, 31, T.XID_EVENT),
        (472, 537, 65, T.GTID_LOG_EVENT),
        (537, 609, 72, T.QUERY_EVENT),
        (609, 667, 58, T.TABLE_MAP_EVENT),
        (667, 712, 45, T.DELETE_ROWS_EVENT),
        (712, 743, 31, T.XID_EVENT),
    ]


UPDATE = """\
# header
#        389  24 0e a1 58  timestamp: 1486949924 = 2017-02-13 01:38:44 UTC
#        393  1f  type: 31 = UPDATE_ROWS
#        394  e5 6b 01 00  server id: 93157
#        398  34 00 00 00  event length: 52
#        402  b9 01 00 00  end position: 441
#        406  00 00  flags: none
# post-header
#        408  d2 00 00 00 00 00  table id: 210 = `test`.`testnull2`
#        414  01 00  flags: STMT_END
#        416  02 00  length of the extra data, itself included: 2
# bitmaps
#        418  03  column count: 3
#        419  ff  columns of the before image: all 3 columns
#        420  ff  columns of the after image: all 3 columns
# row 1 before
#        421  fd  null bitmap: NULL: @1, @3
#        422  04  length of @2: 4
#        423  74 65 73 74  @2: 'test'
# row 1 after
#        427  fa  null bitmap: NULL: @2
#        428  02 00 00 00  @1: 2
#        432  04  length of @3: 4
#        433  74 65 73 74  @3: 'test'
# checksum
#        437  1d 59 c0 21  CRC32: 0x21c0591d
"""
DELETE = """\
# header
#        667  2a 0e a1 58  timestamp: 1486949930 = 2017-02-13 01:38:50 UTC
#        671  20  type: 32 = DELETE_ROWS
#        672  e5 6b 01 00  server id: 93157
#        676  2d 00 00 00  event length: 45
#        680  c8 02 00 00  end position: 712
#        684  00 00  flags: none
# post-header
#        686  d2 00 00 00 00 00  table id: 210 = `test`.`testnull2`
#        692  01 00  flags: STMT_END
#        694  02 00  length of the extra data, itself included: 2
# bitmaps
#        696  03  column count: 3
#        697  ff  columns of the before image: all 3 columns
# row 1 before
#        698  fa  null bitmap: NULL: @2
#        699  02 00 00 00  @1: 2
#        703  04  length of @3: 4
#        704  74 65 73 74  @3: 'test'
# checksum
#        708  c1 41 57 05  CRC32: 0x055741c1
"""


@pytest.mark.parametrize(("start", "expected"), [(389, UPDATE), (667, DELETE)])
def test_hexdump_of_example_rows_events_shows_each_byte(
    golden: Path, start: int, expected: str
) -> None:
    entries = read(golden)
    entry = next(each for each in entries if each.event.start == start)
    found = [*hexdump(entry, entries.columns(entry))]
    # The column of bytes is padded to 16 bytes, so whitespace is normalized.
    assert [" ".join(text.split()) for text in found] == [
        " ".join(text.split()) for text in expected.splitlines()
    ]


def test_example_update_is_shown_as_a_statement_with_unnamed_columns(golden: Path) -> None:
    entries = read(golden)
    entry = next(each for each in entries if each.event.start == 389)
    assert line(entry).split() == [
        *("389", "441", "52", "2017-02-13", "01:38:44"),
        *("UPDATE_ROWS", "`test`.`testnull2`", "1", "row"),
    ]
    reason, *texts = statements(entries, entry)
    assert reason.startswith("### `test`.`testnull2`: columns without names: no CREATE TABLE")
    varchar = "VARCHAR of 60 bytes, character set unknown"
    assert texts == [
        "### UPDATE `test`.`testnull2`",
        "### WHERE",
        "###   @1=NULL /* LONG, sign unknown */",
        f"###   @2='test' /* {varchar} */",
        f"###   @3=NULL /* {varchar} */",
        "### SET",
        "###   @1=2 /* LONG, sign unknown */",
        f"###   @2=NULL /* {varchar} */",
        f"###   @3='test' /* {varchar} */",
    ]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_hexdump_fields_cover_every_byte_of_recorded_events(path: Path) -> None:
    entries = read(path)
    for entry in entries:
        end = 0
        for field in fields_of(entry, entries.columns(entry)):
            assert field.begin == end
            assert field.name != "not named here", (entry.event.start, field)
            end = field.end
        assert end == len(entry.logged.raw)
