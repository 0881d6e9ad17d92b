"""Statistics of logs agree between implementations, with inspect's entries and with SELECT."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import helpers.parity.require_kernel  # noqa: F401 (skips the tests if the kernel is missing)
from helpers.logs.events import LogBuilder, gtid_body, query_body, rows_body, table_map
from pyspark_mysqlbinlog.connector.inspection.entries import Entries
from pyspark_mysqlbinlog.connector.inspection.figures.report import report_page
from pyspark_mysqlbinlog.connector.inspection.figures.statistics import LogStatistics, collect
from pyspark_mysqlbinlog.connector.inspection.figures.statistics_text import (
    statistics_json,
    statistics_text,
)
from pyspark_mysqlbinlog.connector.inspection.selection import Selection
from pyspark_mysqlbinlog.connector.inspection.sources import BinlogFiles
from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using
from pyspark_mysqlbinlog.errors import ChecksumError, MalformedEventError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.events import EventType

DATA = Path(__file__).resolve().parents[3] / "data"
LOGS = sorted([*DATA.glob("binlogs*/*.binlog"), *DATA.glob("relay57/relay-bin.*")])
ALL = Selection()


def numbers(
    *paths: Path, implementation: Implementation = "c", selection: Selection = ALL
) -> LogStatistics:
    statistics = LogStatistics()
    source = BinlogFiles([*map(str, paths)])
    with using(implementation):
        collect(source, selection, lambda: Entries(source), statistics)
    return statistics


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_statistics_of_both_implementations_equal_the_listed_entries(path: Path) -> None:
    compiled, python = (numbers(path, implementation=each) for each in ("c", "python"))
    assert compiled == python
    source = BinlogFiles([str(path)])
    events: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    rows: Counter[tuple[str, str]] = Counter()
    transactions: list[tuple[int, int, int, int]] = []
    for entry in Entries(source):
        events[entry.event.type] += 1
        sizes[entry.event.type] += entry.size
        if entry.table is not None and entry.head is not None:
            rows[entry.table] += entry.rows
        if entry.ends and (it := entry.transaction) is not None:
            transactions.append((it.begin, it.bytes, it.rows, it.events))
    assert compiled.types == {kind: (events[kind], sizes[kind]) for kind in events}
    assert rows == {
        name: sum(each.rows for each in operations.values())
        for name, operations in compiled.tables.items()
    }
    assert compiled.transactions == len(transactions) == sum(compiled.by_bytes)
    assert compiled.rows == sum(each[2] for each in transactions)
    assert compiled.bytes == sum(each[1] for each in transactions)
    largest = sorted((each[1] for each in transactions), reverse=True)[:10]
    assert [each.bytes for each in compiled.largest] == largest
    found = {each.pos: (each.bytes, each.rows, each.events) for each in compiled.largest}
    assert found.items() <= {each[0]: each[1:] for each in transactions}.items()


SCENARIOS = [
    (folder, scenario)
    for scenario in ("numbers", "temporals", "strings", "json_docs", "geometry", "wide")
    for folder in ("binlogs57", "binlogs97")
    # Recorded on 5.7 only.
    if (folder, scenario) != ("binlogs97", "wide")
]


@pytest.mark.parametrize(("folder", "scenario"), SCENARIOS)
def test_inserted_minus_deleted_rows_equal_the_row_count_of_select(
    folder: str, scenario: str
) -> None:
    file = DATA / folder / f"{scenario}.json"
    described = json.loads(file.read_text(encoding="utf-8"))
    found = numbers(*(file.parent / name for name in described["files"]))
    for table, shown in described["tables"].items():
        operations = found.tables.get((described["database"], table), {})
        rows = {op: each.rows for op, each in operations.items()}
        assert rows.get("c", 0) - rows.get("d", 0) == len(shown["rows"]), table


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    """Return a log with four transactions of 1 to 3 rows."""
    log = LogBuilder()
    log.format_description()
    for number, rows in enumerate([1, 3, 2, 1]):
        log.begin(gtid=number + 1)
        log.rows(7, "orders" if number % 2 else "carts", *range(rows))
        log.xid()
    return log.write(tmp_path)


@pytest.mark.parametrize("implementation", ["c", "python"])
def test_statistics_count_only_transactions_with_rows_of_selected_tables(
    busy: Path, implementation: Implementation
) -> None:
    selection = Selection(TableFilter.parse("*.orders"))
    statistics = numbers(busy, implementation=implementation, selection=selection)
    assert (statistics.transactions, statistics.rows) == (2, 4)
    assert list(statistics.tables) == [("d", "orders")]


def test_statistics_of_a_damaged_log_count_up_to_the_damage(busy: Path, tmp_path: Path) -> None:
    content = bytearray(busy.read_bytes())
    content[-10] ^= 1
    damaged = tmp_path / "damaged.000001"
    damaged.write_bytes(content)
    statistics = LogStatistics()
    source = BinlogFiles([str(damaged)])
    with pytest.raises(ChecksumError, match="damaged"):
        collect(source, ALL, lambda: Entries(source), statistics)
    assert statistics.transactions == 3


@pytest.mark.parametrize("implementation", ["c", "python"])
def test_transaction_cut_off_by_a_crash_does_not_continue_in_the_next_file(
    tmp_path: Path, implementation: Implementation
) -> None:
    first = LogBuilder("mysql-bin.000001")
    first.format_description()
    first.begin(gtid=1)
    second = LogBuilder("mysql-bin.000002")
    second.format_description()
    second.begin(gtid=2)
    second.rows(7, "t", 1)
    second.xid()
    statistics = numbers(
        first.write(tmp_path), second.write(tmp_path), implementation=implementation
    )
    assert [(each.file, each.rows) for each in statistics.largest] == [("mysql-bin.000002", 1)]


@pytest.mark.parametrize("implementation", ["c", "python"])
@pytest.mark.parametrize(("code", "metadata"), [(0xFC, b"\x00"), (0xF5, b"\x09")])
def test_rows_of_an_unreadable_table_map_are_not_counted_by_an_earlier_one(
    tmp_path: Path, implementation: Implementation, code: int, metadata: bytes
) -> None:
    log = LogBuilder()
    log.format_description()
    log.begin()
    log.rows(7, "t", 1)
    of_int = table_map(7, "t")
    damaged = of_int.removesuffix(b"\x03\x00\x01") + bytes([code, len(metadata)]) + metadata
    log.add(EventType.TABLE_MAP_EVENT, damaged + b"\x01")
    second = log.pos
    log.add(EventType.WRITE_ROWS_EVENT, rows_body(7, 1))
    path = log.write(tmp_path)
    with using(implementation):
        source = BinlogFiles([str(path)])
        for read in (
            lambda: [*Entries(source)],
            lambda: collect(source, ALL, lambda: Entries(source), LogStatistics()),
        ):
            with pytest.raises(UnsupportedEventError) as raised:
                read()
            assert f":{second})" in str(raised.value)


@pytest.mark.parametrize("maps", [9_998, 9_999, 10_000])
def test_statement_of_two_tables_is_counted_after_any_number_of_table_maps(
    tmp_path: Path, maps: int
) -> None:
    log = LogBuilder()
    log.format_description()
    for number in range(maps):
        log.begin().rows(100 + number, f"t{number}", 1).xid()
    # Both maps precede the rows.
    log.begin()
    log.add(EventType.TABLE_MAP_EVENT, table_map(90_001, "a"))
    log.add(EventType.TABLE_MAP_EVENT, table_map(90_002, "b"))
    log.add(EventType.WRITE_ROWS_EVENT, rows_body(90_001, 1, 2, last=False))
    log.add(EventType.WRITE_ROWS_EVENT, rows_body(90_002, 1)).xid()
    statistics = numbers(log.write(tmp_path))
    assert len(statistics.tables) == maps + 2
    assert statistics.rows == maps + 3


# Longer than what the compiled scan reads at once, by optional metadata of an unknown type.
_LONG = b"\x0c\xfd" + (600_000).to_bytes(3, "little") + bytes(600_000)


@pytest.mark.parametrize("implementation", ["c", "python"])
def test_rows_of_a_table_map_of_600_kb_are_not_counted_by_an_earlier_one(
    tmp_path: Path, implementation: Implementation
) -> None:
    log = LogBuilder()
    log.format_description()
    log.begin().rows(7, "t", 1).xid()
    log.begin()
    of_tinyint = table_map(7, "u").removesuffix(b"\x03\x00\x01") + b"\x01\x00\x01"
    log.add(EventType.TABLE_MAP_EVENT, of_tinyint + _LONG)
    log.add(EventType.WRITE_ROWS_EVENT, rows_body(7) + b"\xfe\x02" * 5).xid()
    statistics = numbers(log.write(tmp_path), implementation=implementation)
    rows = {
        table: sum(each.rows for each in it.values()) for table, it in statistics.tables.items()
    }
    assert rows == {("d", "t"): 1, ("d", "u"): 5}


@pytest.mark.parametrize("implementation", ["c", "python"])
@pytest.mark.parametrize("columns", [b"\x02\xff", b"\x08\xff"])
def test_rows_event_with_another_number_of_columns_than_its_map_is_rejected(
    tmp_path: Path, implementation: Implementation, columns: bytes
) -> None:
    log = LogBuilder()
    log.format_description()
    log.begin()
    nine = table_map(7, "t").removesuffix(b"\x01\x03\x00\x01") + b"\x09" + b"\x01" * 9
    log.add(EventType.TABLE_MAP_EVENT, nine + b"\x00\xff\x01")
    log.add(EventType.WRITE_ROWS_EVENT, rows_body(7).removesuffix(b"\x01\xff") + columns + bytes(9))
    path = log.write(tmp_path)
    with pytest.raises(MalformedEventError, match="columns, expected the 9 of its table map"):
        numbers(path, implementation=implementation)


HOSTILE = "<script>alert(1)</script>&\"'\x1b[31m"


def test_hostile_table_name_is_escaped_in_report_and_terminal(tmp_path: Path) -> None:
    log = LogBuilder()
    log.format_description()
    log.begin()
    log.rows(7, HOSTILE, 1)
    log.xid()
    statistics = numbers(log.write(tmp_path))
    assert list(statistics.tables) == [("d", HOSTILE)]
    page = report_page(statistics)
    assert "<script" not in page
    assert "alert(1)" in page
    for shown in (page, *statistics_text(statistics)):
        assert "\x1b" not in shown
    assert json.loads(statistics_json(statistics))["tables"][0]["table"] == HOSTILE


def test_html_report_has_no_scripts_and_no_external_resources() -> None:
    page = report_page(numbers(DATA / "binlogs57" / "transactions.001.binlog"))
    without = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    for word in ("http:", "https:", "src=", "<link", "<script", "@import", "url("):
        assert word not in without, word
    assert "default-src 'none'" in page


def test_a_log_without_transactions_has_a_report() -> None:
    statistics = numbers(DATA / "binlogs57" / "rotations.005.binlog")
    assert statistics.transactions == 0
    assert report_page(statistics).startswith("<!DOCTYPE html>")
    assert next(iter(statistics_text(statistics))) == "# rotations.005.binlog"


def test_gaps_bursts_and_timeline_are_computed_from_event_times(tmp_path: Path) -> None:
    log = LogBuilder()
    log.format_description()
    for time in (1000, 1000, 1000, 1007, 1008, 2_000_000):
        log.timestamp = time
        log.add(EventType.GTID_LOG_EVENT, gtid_body(1))
        log.add(EventType.QUERY_EVENT, query_body("BEGIN"))
        log.rows(7, "t", 1, 2)
        log.xid()
    statistics = numbers(log.write(tmp_path))
    assert (statistics.first, statistics.last) == (1000, 2_000_000)
    assert [(gap.seconds, gap.after) for gap in statistics.gaps] == [(1_998_992, 1008), (7, 1000)]
    assert [(each.time, each.transactions) for each in statistics.busiest][:2] == [
        (1000, 3),
        (1007, 1),
    ]
    assert [(each.time, each.rows) for each in statistics.timeline] == [
        (1000, 6),
        (1007, 2),
        (1008, 2),
        (2_000_000, 2),
    ]
