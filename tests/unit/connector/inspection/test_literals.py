"""Values, names and statements as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_mysqlbinlog.connector.inspection.columns import Columns
from pyspark_mysqlbinlog.connector.inspection.entries import Entries
from pyspark_mysqlbinlog.connector.inspection.literals import name_text, one_line, printable
from pyspark_mysqlbinlog.connector.inspection.sources import BinlogFiles
from pyspark_mysqlbinlog.connector.inspection.text import statements

DATA = Path(__file__).resolve().parents[3] / "data"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, ñandú 漢字 😀", "plain, ñandú 漢字 😀"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc\rd\x00", r"a\nb\tc\rd\0"),
        ("\x9b31m", r"\x9b31m"),
        ("txt.\u202egpj", r"txt.\u202egpj"),
        ("\udce9", r"\udce9"),
    ],
)
def test_unprintable_characters_are_escaped(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_database_and_table_names_are_quoted_and_escaped() -> None:
    assert name_text("shop", "a`b\x1b") == r"`shop`.`a``b\x1b`"


def test_statement_text_is_shortened_to_one_line_of_limited_width() -> None:
    assert one_line("select\n  1,\n\t2", 40) == "select 1, 2"
    assert one_line(f"select {'1' * 50}", 20) == f"select {'1' * 12}…"


def shown(file: str, table: str) -> dict[str, list[str]]:
    """Return the literals of each column of a table with their types, in the log's order."""
    source = BinlogFiles([str(DATA / file)])
    entries = Entries(source)
    found: dict[str, list[str]] = {}
    for entry in entries:
        if entry.table is not None and entry.table[1] == table:
            for text in statements(entries, entry):
                if text.startswith("###   "):
                    name, _, value = text.removeprefix("###   ").partition("=")
                    found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize(
    ("file", "table", "column", "expected"),
    [
        ("binlogs57/numbers.001.binlog", "t", "`t2`", "255 /* tinyint unsigned */"),
        ("binlogs57/numbers.001.binlog", "t", "`b2`", "18446744073709551615 /* bigint unsigned */"),
        ("binlogs57/numbers.001.binlog", "t", "`bo`", "1 /* tinyint(1) */"),
        ("binlogs57/numbers.001.binlog", "dec_t", "`d2_1`", "9.9 /* decimal(2,1) */"),
        ("binlogs57/numbers.001.binlog", "t", "`y`", "2069 /* year */"),
        ("binlogs97/full_metadata.001.binlog", "t", "`n`", "200 /* tinyint unsigned */"),
        ("binlogs97/full_metadata.001.binlog", "t", "`e`", "'é' /* enum */"),
        ("binlogs97/full_metadata.001.binlog", "t", "`s`", "'x,y' /* set */"),
        ("binlogs97/full_metadata.001.binlog", "t", "`l`", "'café' /* varchar(20) latin1 */"),
        ("binlogs97/full_metadata.001.binlog", "t", "`b`", "x'00' /* varbinary(10) */"),
    ],
)
def test_row_values_are_shown_as_literals_with_their_type(
    file: str, table: str, column: str, expected: str
) -> None:
    assert expected in shown(file, table)[column]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("`dt`", "'1000-01-01' /* date */"),
        ("`tm0`", "'-838:59:59' /* time */"),
        ("`dtm3`", "'1000-01-01 00:00:00.000' /* datetime(3) */"),
        ("`ts0`", "'1970-01-01 00:00:01' /* timestamp, UTC */"),
        ("`ts0`", "'0000-00-00 00:00:00' /* timestamp, UTC */"),
    ],
)
def test_temporal_values_are_shown_as_sql_literals(column: str, expected: str) -> None:
    assert expected in shown("binlogs57/temporals.001.binlog", "t")[column]


def texts_without_names(file: str) -> str:
    """Return the statements as if the log began after its CREATE TABLE statements."""
    source = BinlogFiles([str(DATA / file)])
    entries = Entries(source, Columns(source.position, follows=False))
    return "\n".join(text for entry in entries for text in statements(entries, entry))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("binlogs57/numbers.001.binlog", "@3=-1 (255 if unsigned) /* TINY, sign unknown */"),
        ("binlogs57/numbers.001.binlog", "@11=-1 (18446744073709551615 if unsigned)"),
        ("binlogs57/numbers.001.binlog", "@3=0 /* TINY, sign unknown */"),
        ("binlogs57/strings.001.binlog", "ENUM of 1 bytes, labels unknown */"),
        ("binlogs57/strings.001.binlog", "SET of 8 bytes, labels unknown */"),
        ("binlogs57/strings.001.binlog", "character set unknown */"),
        # MINIMAL metadata, the default of 8.0 and later, has signs and character sets.
        ("binlogs97/numbers.001.binlog", "@3=255 /* tinyint unsigned */"),
        ("binlogs97/strings.001.binlog", "ENUM of 1 bytes, labels unknown */"),
        ("binlogs97/strings.001.binlog", " utf8mb4 */"),
    ],
)
def test_column_metadata_missing_from_the_binlog_is_not_guessed(file: str, expected: str) -> None:
    texts = texts_without_names(file)
    assert expected in texts
    # The notice appears once per table.
    assert texts.count("`.`t`: columns without names: no CREATE TABLE of it comes before") == 1
