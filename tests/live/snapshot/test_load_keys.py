"""Keys of every type: chunks contain the table's rows in the server's order, each row once."""

from __future__ import annotations

import os
import warnings
from random import Random

import pytest

from helpers.logs.live_log import client_of
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.snapshots.chunk_walk import by_key, key_of, walk

DATABASE = "load_keys"

# Each entry has the columns, the key, and the values of each column as literals.
KEYS: dict[str, tuple[str, str, list[str]]] = {
    "int": ("a INT", "a", ["-2147483648", "-1", "0", "1", "7", "2147483647"]),
    "tinyint": ("a TINYINT(1)", "a", ["-128", "-1", "0", "1", "127"]),
    "zerofill": ("a INT(6) ZEROFILL", "a", ["0", "1", "7", "4294967295"]),
    "bigint": ("a BIGINT", "a", ["-9223372036854775808", "0", "9223372036854775807"]),
    "bigint unsigned": (
        "a BIGINT UNSIGNED",
        "a",
        ["0", "9223372036854775807", "9223372036854775808", "18446744073709551615", "5"],
    ),
    "decimal": (
        "a DECIMAL(65,30)",
        "a",
        [
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            "-0.000000000000000000000000000001",
            "0",
            "0.000000000000000000000000000001",
            "1e-7",
            "12345678901234567890.5",
            "99999999999999999999999999999999999.999999999999999999999999999999",
        ],
    ),
    "decimal without fraction": (
        "a DECIMAL(30,0)",
        "a",
        ["-100000000000000000000", "0", "18446744073709551616", "18446744073709551617", "10"],
    ),
    "float": (
        "a FLOAT",
        "a",
        ["-3.4e38", "-0e0", "1e-45", "0.1", "1.1", "16777215", "16777216", "1e10", "3.4e38"],
    ),
    "float close": ("a FLOAT", "a", [f"{16777200 + n}" for n in range(16)]),
    "float digits": ("a FLOAT(10,3)", "a", ["-1.001", "0.1", "0.333", "1000.125", "0"]),
    "double": (
        "a DOUBLE",
        "a",
        [
            "-1.7976931348623157e308",
            "-0e0",
            "5e-324",
            "2.2250738585072014e-308",
            "0.1",
            "0.30000000000000004",
            "0.3",
            "9007199254740993",
            "1e15",
            "1e16",
            "1.7976931348623157e308",
        ],
    ),
    "double digits": ("a DOUBLE(20,2)", "a", ["-1.01", "0.1", "0.33", "1e14", "0"]),
    "bit": ("a BIT(64)", "a", ["0", "1", "9223372036854775808", "18446744073709551615", "256"]),
    "date": (
        "a DATE",
        "a",
        ["'0000-00-00'", "'2026-00-00'", "'2026-02-31'", "'2026-03-01'", "'9999-12-31'"],
    ),
    "datetime": (
        "a DATETIME(6)",
        "a",
        [
            "'0000-00-00'",
            "'1000-01-01 00:00:00.000001'",
            "'2026-02-30 10:00:00'",
            "'2026-11-01 10:00:00.000001'",
            "'2026-11-01 10:00:00.000002'",
            "'9999-12-31 23:59:59.999999'",
        ],
    ),
    "datetime without fraction": (
        "a DATETIME",
        "a",
        ["'0000-00-00'", "'2026-11-01 10:00:00'", "'2026-11-01 10:00:01'", "'2027-00-00'"],
    ),
    # The hour that occurs twice in Europe, in UTC: 02:30 local time is 00:30 and 01:30.
    "timestamp": (
        "a TIMESTAMP(3)",
        "a",
        [
            "0",
            "'1970-01-01 00:00:01'",
            "'2026-10-25 00:30:00'",
            "'2026-10-25 00:30:00.001'",
            "'2026-10-25 01:30:00'",
            "'2026-10-25 01:30:00.001'",
            "'2026-10-25 02:30:00'",
            "'2038-01-19 03:14:07.999'",
        ],
    ),
    "time": (
        "a TIME(6)",
        "a",
        [
            "'-838:59:59'",
            "'-00:00:00.000001'",
            "'00:00:00'",
            "'00:00:10'",
            "'10:00:00.5'",
            "'838:59:59'",
        ],
    ),
    "time without fraction": ("a TIME", "a", ["'-10:00:01'", "'-10:00:00'", "0", "'99:00:00'"]),
    "year": ("a YEAR", "a", ["'0000'", "1901", "1969", "1970", "2000", "2069", "2070", "2155"]),
    "enum": ("a ENUM('z','10','A','a ','2','b')", "a", ["0", "1", "2", "3", "4", "5", "6"]),
    "set": ("a SET('z','10','A','b')", "a", [str(n) for n in range(16)]),
    "set of 64": (
        "a SET(" + ",".join(f"'m{n}'" for n in range(64)) + ")",
        "a",
        ["0", "1", "5000", "9223372036854775808", "18446744073709551615"],
    ),
    "binary": ("a BINARY(16)", "a", ["''", "'a'", "X'61FF'", "X'6101'", "X'6120'", "X'FF'"]),
    "varbinary": (
        "a VARBINARY(16)",
        "a",
        ["''", "'a'", "X'61FF'", "X'6100'", "X'6120'", "X'00'", "X'0000'", "X'5C27'"],
    ),
    "general_ci": (
        "a CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "a",
        ["'aaaa'", "'ZZZZ'", "'zzzz1'", "'é'", "'f'", "'E1'", "'a'", "X'6109'", "''", "'漢'"],
    ),
    "unicode_ci": (
        "a VARCHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        "a",
        ["'aaaa'", "'ZZZZ'", "'ß'", "'st'", "'é1'", "'f'", "'a'", "X'6109'", "'😀'", "'\\''"],
    ),
    "bin": (
        "a VARCHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "a",
        ["'aaaa'", "'AAAA'", "'ZZZZ'", "'é'", "'e'", "'a'", "X'6109'", "'a!'", "'😀'", "'\\\\'"],
    ),
    "german": (
        "a VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german2_ci",
        "a",
        ["'ä'", "'af'", "'ad'", "'ß'", "'sr'", "'st'", "'€'", "'ÿ'"],
    ),
    "ucs2": ("a VARCHAR(20) CHARACTER SET ucs2", "a", ["'a'", "'B'", "'漢字'", "'é'", "''"]),
    "utf16": ("a CHAR(20) CHARACTER SET utf16", "a", ["'a'", "'B'", "'漢字'", "'😀'", "''"]),
    "utf32": ("a CHAR(20) CHARACTER SET utf32", "a", ["'a'", "'B'", "'漢字'", "'😀'", "''"]),
    "sjis": ("a VARCHAR(20) CHARACTER SET sjis", "a", ["'表'", "'ソ'", "'A'", "'b'", "'ｱ'"]),
    "gbk": ("a VARCHAR(20) CHARACTER SET gbk", "a", ["'汉'", "'字'", "'A'", "'b'", "'漢'"]),
    "utf8": ("a VARCHAR(20) CHARACTER SET utf8", "a", ["'aaaa'", "'ZZZZ'", "'é'", "'漢'"]),
    "swedish": (
        "a VARCHAR(20) CHARACTER SET latin1",
        "a",
        ["'å'", "'ä'", "'ö'", "'z'", "'Z1'", "'a'"],
    ),
    "names": ("`a``b` INT, `select` VARCHAR(9)", "`a``b`, `select`", ["1", "2", "3"]),
    "aliases": ("`HEX(``b``)` INT, b VARCHAR(9)", "`HEX(``b``)`, b", ["1", "10", "9"]),
    "composite": (
        "a INT, b VARCHAR(9), c BIGINT UNSIGNED",
        "c, a, b",
        ["1", "10", "9"],
    ),
    "enum inside": ("a INT, b ENUM('x','w','v'), c INT", "a, b, c", ["1", "2", "3"]),
    "set inside": ("a INT, b SET('x','w'), c INT", "a, b, c", ["0", "1", "2", "3"]),
    "enum first": ("a ENUM('x','w','v'), b INT", "a, b", ["1", "2", "3"]),
    "dates first": (
        "a DATE, b DATE",
        "a, b",
        ["'0000-00-00'", "'2026-00-00'", "'2026-02-31'", "'2026-03-01'"],
    ),
    "datetimes first": (
        "a DATETIME(6), b DATETIME",
        "a, b",
        ["'0000-00-00 10:00:00'", "'2026-02-31 10:00:00'", "'2026-03-01 00:00:00'"],
    ),
    "five": ("a INT, b INT, c INT, d INT, e INT", "e, d, c, b, a", ["1", "2", "3"]),
}


# Collations differ in case, accents, double letters, spaces and what sorts before spaces.
TEXTS = [
    *("", "aaaa", "ZZZZ", "zzzz1", "a", "a ", "a\t", "a!", "b", "B1", "é", "E1", "f", "ä", "ae"),
    *("af", "ß", "ss1", "st", "ch", "cz", "d", "ll", "lz", "m", "ij", "ñ", "ø", "'", "\\"),
    *("İ", "ı", "Ω", "я", "漢", "字", "表", "ｱ", "한", "א", "ก", "😀", "\uffff"),
]


def _collations(server: Server) -> list[tuple[str, str]]:
    """Return (character set, collation) for each collation that a column can have."""
    names = "information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    (full,) = server.execute(
        "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema'"
        " AND COLUMN_NAME = 'FULL_COLLATION_NAME'"
    )
    column = "FULL_COLLATION_NAME" if full[0] else "COLLATION_NAME"
    rows = server.execute(f"SELECT CHARACTER_SET_NAME, {column} FROM {names}")
    return [(str(charset), str(collation)) for charset, collation in rows if charset != "binary"]


@pytest.mark.parametrize("some", [40, pytest.param(0, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("server_name", every_server())
def test_chunks_of_every_collation_follow_the_key_order(
    server_name: str, some: int, request: pytest.FixtureRequest
) -> None:
    """All collations take minutes; a seed in the header of the run chooses some."""
    server: Server = request.getfixturevalue(server_name)
    collations = _collations(server)
    assert len(collations) > 200
    if some:
        collations = Random(os.environ["MYSQLBINLOG_FUZZ_SEED"]).sample(collations, some)
    with (
        client_of(server) as client,
        server.connect() as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET greek")
        cursor.execute("SET sql_mode = ''")
        for number, (charset, collation) in enumerate(collations):
            # A CHAR column is no usable key if its collation compares trailing spaces.
            is_padded = not any(word in collation for word in ("_nopad_", "_0900_"))
            kind = "CHAR(9)" if number % 2 and is_padded else "VARCHAR(9)"
            cursor.execute(f"DROP TABLE IF EXISTS {DATABASE}.t")
            cursor.execute(
                f"CREATE TABLE {DATABASE}.t (a {kind} CHARACTER SET {charset} COLLATE {collation}"
                " NOT NULL, n INT, PRIMARY KEY (a))"
            )
            # Characters that the character set lacks become '?'; rows with equal keys are ignored.
            with warnings.catch_warnings(action="ignore"):
                cursor.executemany(
                    f"INSERT IGNORE INTO {DATABASE}.t VALUES (%s, %s)",
                    list(zip(TEXTS, range(len(TEXTS)), strict=True)),
                )
            key = key_of(server, client, DATABASE)
            expected = [n for (n,) in client.query(f"SELECT n FROM {DATABASE}.t ORDER BY a")]
            assert len(expected) > 9
            found = [chunk.rows for chunk in walk(client, (DATABASE, "t"), key, 2)]
            assert found == [expected[at : at + 2] for at in range(0, len(expected), 2)], collation
        cursor.execute(f"DROP DATABASE {DATABASE}")


def _rows(columns: str, values: list[str]) -> list[list[str]]:
    """Return every combination of the values, one value for each column."""
    # A comma inside a type is not followed by a space.
    count = 1 + columns.count(", ")
    rows: list[list[str]] = [[]]
    for _ in range(count):
        rows = [[*row, value] for row in rows for value in values]
    return rows


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("server_name", every_server())
def test_chunks_of_every_key_type_contain_each_row_in_key_order(
    server_name: str, name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(server_name)
    columns, key_columns, values = KEYS[name]
    not_null = ", ".join(f"{column} NOT NULL" for column in columns.split(", "))
    rows = _rows(columns, values)
    listed = ", ".join(f"({', '.join(row)}, {number})" for number, row in enumerate(rows))
    mode = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        # The database's, the table's and the connection's collations differ from the columns'.
        f"CREATE DATABASE {DATABASE} CHARACTER SET latin1 COLLATE latin1_danish_ci",
        f"USE {DATABASE}",
        f"SET sql_mode = '{mode}', time_zone = '+00:00'",
        f"CREATE TABLE t ({not_null}, n INT, PRIMARY KEY ({key_columns})) CHARSET greek",
        f"INSERT INTO t VALUES {listed}",
    )
    with client_of(server) as client:
        key = key_of(server, client, DATABASE)
        expected = [
            n for (n,) in client.query(f"SELECT n FROM {DATABASE}.t ORDER BY {by_key(key)}")
        ]
        assert sorted(expected) == list(range(len(rows)))
        for size in (1, 2, 3, len(rows)):
            chunks = list(walk(client, (DATABASE, "t"), key, size))
            assert [chunk.rows for chunk in chunks] == [
                expected[start : start + size] for start in range(0, len(rows), size)
            ]
            assert [chunk.said for chunk in chunks] == [len(chunk.rows) for chunk in chunks]
    server.execute(f"DROP DATABASE {DATABASE}")


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ("a DATE, b ENUM('1', '2', '3')", ""),
        ("a DATETIME(6), b ENUM('1', '2', '3')", ""),
        ("a DATETIME(6), b TINYINT", "PARTITION BY KEY (a, b) PARTITIONS 3"),
    ],
)
@pytest.mark.parametrize("server_name", every_server())
def test_chunks_with_invalid_dates_in_the_key_contain_each_row(
    server_name: str, columns: str, more: str, request: pytest.FixtureRequest
) -> None:
    """In a session that does not allow invalid dates, MySQL finds no row equal to one."""
    server: Server = request.getfixturevalue(server_name)
    dates = ("0000-00-00", "2026-00-00", "2026-02-28", "2026-02-31", "2026-03-01")
    rows = [(date, number) for date in dates for number in (1, 2, 3)]
    listed = ", ".join(f"('{date}', {number}, {n})" for n, (date, number) in enumerate(rows))
    server.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}",
        f"CREATE DATABASE {DATABASE}",
        f"USE {DATABASE}",
        "SET sql_mode = 'ALLOW_INVALID_DATES'",
        f"CREATE TABLE t ({columns}, n INT, PRIMARY KEY (a, b)) {more}",
        f"INSERT INTO t VALUES {listed}",
    )
    with client_of(server) as client:
        key = key_of(server, client, DATABASE)
        for size in range(1, len(rows) + 1):
            found = [chunk.rows for chunk in walk(client, (DATABASE, "t"), key, size)]
            numbers = list(range(len(rows)))
            assert found == [numbers[at : at + size] for at in range(0, len(rows), size)]
    server.execute(f"DROP DATABASE {DATABASE}")
