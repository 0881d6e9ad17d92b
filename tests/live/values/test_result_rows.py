"""Rows read by SELECT equal the rows in the binlog: the same images and the same values.

Each table is copied by one INSERT … SELECT, whose events contain the server's own row images. The
copy is then read by a prepared SELECT.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from helpers.logs.live_log import client_of, log_events, new_database, schemas_of, selected
from helpers.mirrors.restored_tables import ALL_SCENARIOS, restore
from helpers.parity.decode_parity import PAYLOADS
from helpers.replay import select_tokens
from helpers.schemas.random_tables import RandomTable
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.snapshots.loaded_rows import (
    assert_same_images,
    assert_same_rows,
    copied,
    events_of,
    raw_client,
    select_images,
)
from helpers.values.value_lines import LINES
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.read import read_rows
from pyspark_mysqlbinlog.errors import SchemaMismatchError
from pyspark_mysqlbinlog.tables import TableSchema


@pytest.fixture(scope="module", params=every_server())
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def scratch(server: Server) -> Iterator[str]:
    with new_database(server, "result_rows") as database:
        yield database


def assert_loaded_as_streamed(server: Server, database: str, *names: str) -> list[TableSchema]:
    """Compare images byte by byte, and the rows that both decoders make of them per payload."""
    schemas, events = copied(server, database, names)
    assert len(schemas) == len(names)
    for schema in schemas:
        own = events_of(schema, events)
        if not any(column.type == "json" for column in schema.columns):
            images = select_images(server, schema)
            assert_same_images(server, schema, images, own)
        for kind in ("json", "struct", "variant", "struct-micros"):
            images = select_images(server, schema, PAYLOADS[kind])
            assert_same_rows(schema, own, images, PAYLOADS[kind])
    return schemas


@pytest.mark.sample(1)
def test_snapshot_rows_of_every_type_equal_streamed_rows(server: Server, scratch: str) -> None:
    kinds = list(dict.fromkeys(kind for kind, _ in LINES))
    names = [f"t{number}" for number in range(len(kinds))]
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for name, kind in zip(names, kinds, strict=True):
            cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v {kind}) ENGINE=MyISAM")
            literals = [literal for its_kind, literal in LINES if its_kind == kind]
            values = ", ".join(f"({at}, {literal})" for at, literal in enumerate(literals))
            cursor.execute(f"INSERT INTO {name} VALUES {values}")
    assert_loaded_as_streamed(server, scratch, *names)


# Not possible or different on MySQL 5.6 and MariaDB: JSON, gb18030, generated columns.
MISSING_ELSEWHERE = {
    "charsets.t_gb18030",
    "conversions.t6",
    "ddl_history.gen",
    "ddl_history.swap_old",
    "json_docs.t",
    "virtual_columns.plain",
    "virtual_columns.stamped",
    "virtual_columns.triggered",
}
# MySQL 9 rejects the labels of this table, which are too long.
MISSING_ON_MYSQL9 = {"strings.many_labels"}
# The table contains the time at which it was written.
WRITTEN_NOW = {"virtual_columns.stamped"}


@pytest.mark.sample(12)
@pytest.mark.parametrize("scenario", ALL_SCENARIOS)
def test_snapshot_rows_of_recorded_tables_equal_streamed_rows(
    server: Server, scenario: str
) -> None:
    described, refused = restore(server, scenario)
    database = described["database"]
    is_mysql9 = server.version().startswith("9.")
    with_rows = {name for name, table in described["tables"].items() if table["rows"]}
    try:
        there = {schema.table: schema for schema in schemas_of(server, database)}
        missing = {f"{scenario}.{name}" for name in with_rows - set(there)}
        if server.version().startswith("5.7"):
            assert not refused and not missing
            for name in with_rows:
                if f"{scenario}.{name}" not in WRITTEN_NOW:
                    (found,) = selected(server, there[name])
                    rows = described["tables"][name]["rows"]
                    expected = select_tokens(there[name], rows)
                    assert select_tokens(there[name], found) == expected, name
        elif is_mysql9:
            assert missing <= MISSING_ON_MYSQL9
        else:
            assert missing <= MISSING_ELSEWHERE
        restored = sorted(with_rows & set(there))
        if is_mysql9 and refused:
            # A table is empty if the server rejects the statements of 5.7 that fill it.
            count = "SELECT COUNT(*) FROM `{}`"
            filled = [server.execute(count.format(each), database=database) for each in restored]
            restored = [name for name, rows in zip(restored, filled, strict=True) if rows != [(0,)]]
        if restored:
            assert_loaded_as_streamed(server, database, *restored)
    finally:
        server.execute(f"DROP DATABASE {database}")


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(20))
def test_snapshot_rows_of_random_tables_equal_streamed_rows(
    server: Server, scratch: str, seed: int
) -> None:
    choices = random.Random(f"{server.name} {seed}")
    table = RandomTable.make(choices, columns=14)
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for statement in table.statements(choices, rows=1000):
            cursor.execute(statement)
    assert_loaded_as_streamed(server, scratch, "t")


SET_OF_64 = "SET(" + ",".join(f"'s{at}'" for at in range(64)) + ")"
# (type, SQL literals) that other readers get wrong; inserted with invalid dates allowed.
ODD = {
    "DATE": ("'2026-02-31'", "'0000-00-00'", "'2026-00-00'", "'2026-11-00'", "'0000-01-01'"),
    "DATETIME": ("'2026-02-31 23:59:59'", "'0000-00-00 00:00:00'", "'2026-00-31 00:00:01'"),
    "DATETIME(1)": (
        "'2026-04-31 00:00:00.1'",
        "'0000-00-00 00:00:00.9'",
        "'9999-12-31 23:59:59.9'",
    ),
    "DATETIME(6)": ("'2026-02-30 00:00:00.000001'", "'0001-01-01 00:00:00.999999'"),
    "TIMESTAMP NULL": ("0", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "NULL"),
    "TIMESTAMP(6) NULL": ("0", "'1970-01-01 00:00:01.000001'", "'2038-01-19 03:14:07.999999'"),
    "TIMESTAMP(3) NOT NULL DEFAULT '2020-02-29 12:00:00.5'": ("DEFAULT", "0"),
    "TIMESTAMP(5) NULL": ("'1970-01-01 00:00:00.5'", "'1970-01-01 00:00:00.00001'", "0"),
    "TIME": ("'-838:59:59'", "'838:59:59'", "'-00:00:01'", "'00:00:00'", "'24:00:00'"),
    "TIME(6)": ("'-838:59:58.999999'", "'-00:00:00.000001'", "'23:59:59.999999'", "'-24:00:00'"),
    "TIME(1)": ("'-00:00:00.1'", "'-01:00:00.9'"),
    "YEAR": ("0", "1901", "2155", "'0000'", "'00'", "70"),
    "ENUM('','a','a,b','it''s','\\\\')": ("0", "1", "'a'", "'a,b'", "'it''s'", "5", "NULL"),
    SET_OF_64: ("0", "1", "9223372036854775808", "18446744073709551615", "12345678901234567890"),
    "BIT(64)": ("0", "b'1'", "18446744073709551615", "0x0102030405060708", "NULL"),
    "BIT(1)": ("0", "1"),
    "DECIMAL(65,30)": ("99999999999999999999999999999999999.9", "-1e-30", "1e-30", "0"),
    "DECIMAL(65,0) UNSIGNED ZEROFILL": ("1", "9e64", "0"),
    "DECIMAL(30,30)": ("0.5", "-0.5", "0"),
    "DECIMAL(10,2) ZEROFILL": ("1.5", "0", "12345678.90"),
    "TINYINT(3) ZEROFILL": ("1", "255"),
    "MEDIUMINT(12) ZEROFILL": ("1", "16777215"),
    "BIGINT(30) ZEROFILL": ("1", "18446744073709551615"),
    "FLOAT(30,3) ZEROFILL": ("1.5", "16777217"),
    "FLOAT": ("1e-45", "3.4028235e38", "16777217", "0.1", "-0.0"),
    "FLOAT(7,3)": ("1234.5678", "0.0004"),
    "DOUBLE(22,4)": ("123456789012345.6789", "0.1"),
    "DOUBLE": ("5e-324", "1.7976931348623157e308", "0.1", "-0.0"),
    "CHAR(10)": ("'a   '", "'   '", "''", "' a'", "'\\0\\0'", "'ab\\t '", "'漢字'"),
    "CHAR(10) CHARACTER SET ucs2": ("'a '", "'Ġ'", "'‐ '", "' '"),
    "CHAR(3) CHARACTER SET utf32": ("'a  '", "'😀'"),
    "CHAR(0)": ("''", "NULL"),
    "CHAR(255)": ("REPEAT('漢', 255)", "REPEAT('a ', 100)"),
    "VARCHAR(10)": ("'a   '", "'   '", "''"),
    "VARCHAR(0)": ("''", "NULL"),
    "VARCHAR(63)": ("REPEAT('😀', 63)",),
    "VARCHAR(64)": ("REPEAT('😀', 64)", "'x'"),
    "BINARY(4)": ("'a'", "'a\\0 '", "''", "'\\0\\0\\0\\0'", "'    '"),
    "BINARY(255)": ("REPEAT('\\0', 255)", "REPEAT('a', 255)"),
    "VARBINARY(300)": ("'a\\0'", "REPEAT('\\0', 300)"),
    "TINYBLOB": ("''", "REPEAT('\\0', 255)"),
    "TEXT": ("REPEAT('x', 250)", "REPEAT('x', 251)", "REPEAT('x', 65535)"),
    "MEDIUMTEXT": ("REPEAT('x', 65536)", "REPEAT('😀', 70000)"),
}


def test_snapshot_rows_with_edge_values_equal_streamed_rows(server: Server, scratch: str) -> None:
    names = [f"t{number}" for number in range(len(ODD))]
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
        for name, (kind, literals) in zip(names, ODD.items(), strict=True):
            cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v {kind}) ENGINE=MyISAM")
            values = ", ".join(f"({at}, {literal})" for at, literal in enumerate(literals))
            cursor.execute(f"INSERT INTO {name} VALUES {values}")
        cursor.execute("SELECT CAST(v AS CHAR) FROM t0 WHERE id = 0")
        assert cursor.fetchall() == (("2026-02-31",),)
    assert_loaded_as_streamed(server, scratch, *names)


@pytest.mark.sample(2)
@pytest.mark.parametrize("columns", [1, 5, 6, 7, 8, 250, 251, 252, 256, 300, 2500])
def test_snapshot_rows_of_wide_tables_equal_streamed_rows(
    server: Server, scratch: str, columns: int
) -> None:
    """Column counts at which lengths and bitmaps grow, with NULLs in all columns."""
    choices = random.Random(columns)
    listed = ", ".join(f"c{at} TINYINT" for at in range(columns))
    rows = [["NULL"] * columns, ["1"] * columns] + [
        [choices.choice(("NULL", "7", "-1")) for _ in range(columns)] for _ in range(20)
    ]
    server.execute(
        f"CREATE TABLE t ({listed}) ENGINE=MyISAM",
        "INSERT INTO t VALUES " + ", ".join(f"({', '.join(row)})" for row in rows),
        database=scratch,
    )
    assert_loaded_as_streamed(server, scratch, "t")


# Bytes of a row packet before its BLOB: header, null bitmap, id, length.
HEAD = 1 + 1 + 4 + 4
LARGE = [
    *range((1 << 19) - 16, (1 << 19) + 3),  # around the buffer's size
    *range((1 << 24) - 1 - HEAD - 2, (1 << 24) - 1 - HEAD + 3),  # around the size of one packet
    (1 << 24) - 1,
    1 << 24,
    (1 << 25) - 2 - HEAD - 5,  # two packets
    40_000_000,
]


@pytest.fixture
def large_packets(server: Server) -> Iterator[None]:
    """Allow large packets in new connections."""
    ((before,),) = server.execute("SELECT @@GLOBAL.max_allowed_packet")
    server.execute("SET GLOBAL max_allowed_packet = 268435456")
    yield
    server.execute(f"SET GLOBAL max_allowed_packet = {before}")


@pytest.mark.usefixtures("large_packets")
@pytest.mark.sample(1)
def test_snapshot_rows_larger_than_a_packet_equal_binlog_images(
    server: Server, scratch: str
) -> None:
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB) ENGINE=MyISAM")
        start = server.position()
        for at, size in enumerate(LARGE):
            cursor.execute(f"INSERT INTO t VALUES ({2 * at}, REPEAT('{at % 10}', {size}))")
            cursor.execute(f"INSERT INTO t VALUES ({2 * at + 1}, '')")
    (schema,) = schemas_of(server, scratch)
    images = select_images(server, schema)
    assert sum(map(len, images)) > 120_000_000
    assert_same_images(server, schema, images, log_events(server, start, scratch))


def test_snapshot_rows_with_generated_columns_equal_streamed_rows(
    server: Server, scratch: str
) -> None:
    if server.name == "mysql56":
        pytest.skip("MySQL 5.6 has no generated columns")
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(20), v INT AS (a + 1) VIRTUAL,"
        " w VARCHAR(40) AS (CONCAT(s, '!')) PERSISTENT, x DECIMAL(9,2) AS (a / 3) VIRTUAL)".replace(
            "PERSISTENT", "PERSISTENT" if server.is_mariadb else "STORED"
        ),
        "INSERT INTO t (id, a, s) VALUES (1, 2, 'three'), (2, NULL, NULL), (3, -7, '')",
        database=scratch,
    )
    assert_loaded_as_streamed(server, scratch, "t")


def test_snapshot_of_empty_table_yields_no_rows(server: Server, scratch: str) -> None:
    server.execute("CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a'))", database=scratch)
    (schema,) = schemas_of(server, scratch)
    assert select_images(server, schema) == []


def test_snapshot_rows_leave_out_excluded_columns(server: Server, scratch: str) -> None:
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB NOT NULL, b SET('x','y'), c DATE)",
        "INSERT INTO t VALUES (1, 'aaa', 'x,y', '2026-01-01'), (2, '', NULL, NULL)",
        database=scratch,
    )
    (schema,), events = copied(server, scratch, ["t"])
    columns = ColumnFilter.parse(f"{scratch}.copy_t.a, {scratch}.copy_t.b")
    for kind in ("json", "struct", "variant"):
        payload = replace(PAYLOADS[kind], columns=columns)
        images = select_images(server, schema, payload)
        assert b"aaa" not in b"".join(images)
        assert assert_same_rows(schema, events_of(schema, events), images, payload) == 2


def test_global_settings_do_not_change_snapshot_rows(server: Server, scratch: str) -> None:
    hostile = {
        "sql_mode": "'PAD_CHAR_TO_FULL_LENGTH,ANSI_QUOTES,NO_ZERO_DATE,NO_BACKSLASH_ESCAPES'",
        "time_zone": "'+05:00'",
        "character_set_results": "latin1",
        "sql_select_limit": "1",
    }
    server.execute(
        "SET sql_mode = ''",
        "CREATE TABLE t (id INT PRIMARY KEY, c CHAR(9), u CHAR(9) CHARACTER SET utf8, d DATETIME,"
        " s TIMESTAMP NULL)",
        "INSERT INTO t VALUES (1, 'é ', '漢', 0, '2026-10-25 01:30:00'), (2, '', '', NULL, NULL)",
        database=scratch,
    )
    (schema,), events = copied(server, scratch, ["t"])
    before = server.execute(f"SELECT {', '.join(f'@@GLOBAL.{name}' for name in hostile)}")[0]
    try:
        for name, value in hostile.items():
            server.execute(f"SET GLOBAL {name} = {value}")
        images = select_images(server, schema)
    finally:
        for name, value in zip(hostile, before, strict=True):
            shown = repr(value) if isinstance(value, str) else value
            server.execute(f"SET GLOBAL {name} = {shown}")
    assert_same_images(server, schema, images, events_of(schema, events))


def test_texts_converted_by_the_server_raise_schema_mismatch_error(
    server: Server, scratch: str
) -> None:
    """The session is not set up for raw rows, so the server converts texts."""
    server.execute("CREATE TABLE t (c CHAR(9) CHARACTER SET latin1)", database=scratch)
    (schema,) = schemas_of(server, scratch)
    with (
        client_of(server) as client,
        pytest.raises(
            SchemaMismatchError,
            match=r"column `c` \(char\): expected texts in latin1 .* found utf8mb4",
        ),
    ):
        list(read_rows(client, ResultPlan.make(schema)))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("MODIFY a BIGINT", "column `a` .int.: expected LONG from SELECT, found LONGLONG"),
        ("MODIFY a VARCHAR(20)", "column `a` .int.: expected LONG from SELECT, found VAR_STRING"),
        ("MODIFY b CHAR(9) CHARACTER SET utf8", "`b` .char.: expected texts in latin1 .* utf8;"),
    ],
)
def test_column_type_changed_before_select_raises_schema_mismatch_error(
    server: Server, scratch: str, change: str, found: str
) -> None:
    server.execute(
        "CREATE TABLE t (a INT, b CHAR(9) CHARACTER SET latin1)",
        "INSERT INTO t VALUES (1, 'b')",
        database=scratch,
    )
    (schema,) = schemas_of(server, scratch)
    server.execute(f"ALTER TABLE t {change}", database=scratch)
    with raw_client(server) as client, pytest.raises(SchemaMismatchError, match=found):
        list(read_rows(client, ResultPlan.make(schema)))


def test_snapshot_temporals_in_the_layout_before_5_6_equal_streamed_ones(mariadb: Server) -> None:
    """The snapshot's images have the current layout, and the values are the same."""
    with new_database(mariadb, "result_rows_old") as database:
        mariadb.execute("SET GLOBAL mysql56_temporal_format = 0")
        try:
            mariadb.execute(
                "SET sql_mode = '', time_zone = '+00:00'",
                "CREATE TABLE t (id INT PRIMARY KEY, t TIME, d DATETIME, s TIMESTAMP NULL)",
                "INSERT INTO t VALUES (1, '-838:59:59', '9999-12-31 23:59:59', 1), (2, 0, 0, 0),"
                " (3, '12:34:56', '2026-11-20 10:00:01', '2026-11-20 10:00:01')",
                database=database,
            )
            (schema,), events = copied(mariadb, database, ["t"])
        finally:
            mariadb.execute("SET GLOBAL mysql56_temporal_format = 1")
        own = events_of(schema, events)
        assert FieldType.DATETIME in TableMap.parse(own[0].body).types
        for kind in ("json", "struct", "variant"):
            images = select_images(mariadb, schema, PAYLOADS[kind])
            assert_same_rows(schema, own, images, PAYLOADS[kind])
