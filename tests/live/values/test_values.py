"""Values of every type on live servers: the streamed value equals the one that SELECT returns.

Each line of `value_lines` is inserted into a table of its type on every server. Tables of random
types are written, changed and replayed. JSON is not covered here: 5.6 has no JSON type, and
MariaDB stores JSON as text; the captured 5.7 binlogs cover it.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest

from helpers.logs.live_log import log_events, log_rows, new_database, schemas_of, selected
from helpers.parity.decoding import decoder
from helpers.replay import Number, Replay, payload_token, select_token
from helpers.schemas.random_tables import RandomTable
from helpers.servers import Server
from helpers.servers.available import every_server
from helpers.snapshots.loaded_rows import select_images
from helpers.values.value_lines import LINES
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.events.table_map import TableMap
from pyspark_mysqlbinlog.decoder.schemas.optional_metadata import described_schema
from pyspark_mysqlbinlog.errors import SchemaError, SchemaMismatchError, UnsupportedEventError
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


@pytest.fixture(scope="module", params=every_server())
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@dataclass(frozen=True)
class Line:
    """A value with its column, SELECT's text and the payload's value."""

    column: ColumnSchema
    select: str | None
    payload: Any


def write_lines(server: Server, database: str) -> dict[tuple[str, str], Line]:
    """Insert all lines, read the binlog once, SELECT each table once; return the values."""
    kinds = list(dict.fromkeys(kind for kind, _ in LINES))
    start = server.position()
    literals: dict[str, list[str]] = {kind: [] for kind in kinds}
    for kind, literal in LINES:
        literals[kind].append(literal)
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        for number, kind in enumerate(kinds):
            # MyISAM, because three hundred InnoDB tables take half a minute.
            cursor.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, v {kind}) ENGINE=MyISAM")
            for at, literal in enumerate(literals[kind]):
                cursor.execute(f"INSERT INTO t{number} VALUES ({at}, {literal})")
    schemas = {schema.table: schema for schema in schemas_of(server, database)}
    logged: dict[tuple[str, int], Any] = {}
    for row in log_rows(server, start, database, list(schemas.values())):
        after = json.loads(row["after"], parse_int=Number, parse_float=Number)
        logged[row["table"], int(after["id"])] = after["v"]
    tables = [schemas[f"t{number}"] for number in range(len(kinds))]
    lines = {}
    for kind, schema, shown in zip(kinds, tables, selected(server, *tables), strict=True):
        column = with_digits(schema.columns[1], kind)
        for at, (literal, texts) in enumerate(zip(literals[kind], shown, strict=True)):
            lines[kind, literal] = Line(column, texts[1], logged[schema.table, at])
    return lines


def with_digits(column: ColumnSchema, kind: str) -> ColumnSchema:
    """Add d to FLOAT(m,d) and DOUBLE(m,d): SELECT rounds to d digits, the stored value is exact."""
    found = re.fullmatch(r"(?:FLOAT|DOUBLE)\(\d+,(\d+)\)", kind)
    return column if found is None else replace(column, scale=int(found[1]))


@pytest.fixture(scope="module")
def lines(server: Server) -> Iterator[dict[tuple[str, str], Line]]:
    with new_database(server, "values_live") as database:
        yield write_lines(server, database)


def test_value_lines_are_distinct_and_complete() -> None:
    assert len(set(LINES)) == len(LINES) == 960
    assert len({kind for kind, _ in LINES}) == 305


@pytest.mark.parametrize(("kind", "literal"), LINES, ids=lambda text: text[:40])
def test_streamed_value_of_every_type_equals_select(
    lines: dict[tuple[str, str], Line], kind: str, literal: str
) -> None:
    line = lines[kind, literal]
    assert payload_token(line.column, line.payload) == select_token(line.column, line.select)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(40))
def test_replayed_random_table_equals_select(server: Server, seed: int) -> None:
    """The table has 2,000 rows of random types; a third are updated and a tenth deleted."""
    choices = random.Random(f"{server.name} {seed}")
    with new_database(server, f"random_{seed}") as database:
        table = RandomTable.make(choices, columns=14)
        start = server.position()
        with server.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            for statement in table.statements(choices, rows=2000):
                cursor.execute(statement)
        (schema,) = schemas_of(server, database)
        replay = Replay([schema])
        replay.apply(log_rows(server, start, database, [schema]))
        assert replay.count >= 2000 + 600 + 200
        replay.assert_equals(database, "t", selected(server, schema)[0])


# Values that other binlog readers get or once got wrong.


def written(
    server: Server, database: str, kind: str, *literals: str, setup: str = "SET sql_mode = ''"
) -> list[Any]:
    """Insert the literals into a column of this type; return its values, numbers as text."""
    start = server.position()
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute(setup)
        cursor.execute("DROP TABLE IF EXISTS t")
        cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v {kind})")
        for literal in literals:
            cursor.execute(f"INSERT INTO t (v) VALUES ({literal})")
    rows = log_rows(server, start, database, schemas_of(server, database))
    return [json.loads(row["after"], parse_int=Number, parse_float=Number)["v"] for row in rows]


@pytest.fixture
def scratch(server: Server) -> Iterator[str]:
    with new_database(server, "values_named") as database:
        yield database


def test_unsigned_integers_are_not_negative(server: Server, scratch: str) -> None:
    assert written(server, scratch, "TINYINT UNSIGNED", "255", "128") == ["255", "128"]
    assert written(server, scratch, "MEDIUMINT UNSIGNED", "16777215") == ["16777215"]
    assert written(server, scratch, "INT UNSIGNED", "4294967295") == ["4294967295"]
    largest = "18446744073709551615"
    assert written(server, scratch, "BIGINT UNSIGNED", largest) == [largest]


def test_mediumint_keeps_its_sign(server: Server, scratch: str) -> None:
    assert written(server, scratch, "MEDIUMINT", "-1", "-8388608") == ["-1", "-8388608"]


def test_negative_time_keeps_sign_and_fraction(server: Server, scratch: str) -> None:
    assert written(server, scratch, "TIME(1)", "'-00:00:01.5'") == ["-00:00:01.5"]
    assert written(server, scratch, "TIME(3)", "'-12:59:59.999'") == ["-12:59:59.999"]
    assert written(server, scratch, "TIME(6)", "'-00:00:00.000001'") == ["-00:00:00.000001"]
    assert written(server, scratch, "TIME", "'-838:59:59'") == ["-838:59:59"]


def test_year_0000_is_not_1900(server: Server, scratch: str) -> None:
    assert written(server, scratch, "YEAR", "'0000'", "1901", "2155") == ["0", "1901", "2155"]


def test_enum_and_set_values_are_their_labels(server: Server, scratch: str) -> None:
    kind = "ENUM('small','a,b','it''s')"
    assert written(server, scratch, kind, "1", "2", "3", "'no such'") == [
        "small",
        "a,b",
        "it's",
        "",
    ]
    assert written(server, scratch, "SET('x','y','z')", "'z,x'", "''") == ["x,z", ""]


def test_enum_with_more_than_255_labels_keeps_its_labels(server: Server, scratch: str) -> None:
    labels = ",".join(f"'l{number}'" for number in range(300))
    assert written(server, scratch, f"ENUM({labels})", "256", "300") == ["l255", "l299"]


def test_set_with_64_labels_keeps_its_last_label(server: Server, scratch: str) -> None:
    labels = ",".join(f"'s{number}'" for number in range(64))
    assert written(server, scratch, f"SET({labels})", "9223372036854775808") == ["s63"]


def test_gbk_texts_with_backslash_bytes_are_decoded(server: Server, scratch: str) -> None:
    kind = "VARCHAR(20) CHARACTER SET gbk"
    # Second bytes 0x5c and 0x7c, and the euro sign, which MySQL's gbk does not have.
    assert written(server, scratch, kind, "'汉字'", "'誠珅'", "'€'") == ["汉字", "誠珅", "?"]


def test_latin1_is_decoded_as_cp1252_with_control_characters(server: Server, scratch: str) -> None:
    kind = "VARCHAR(20) CHARACTER SET latin1"
    found = written(server, scratch, kind, "'naïve €‰Ÿ'", "X'818D8F909D'")
    assert found == ["naïve €‰Ÿ", "\x81\x8d\x8f\x90\x9d"]


def test_sjis_and_cp932_decode_the_same_bytes_differently(server: Server, scratch: str) -> None:
    assert written(server, scratch, "VARCHAR(9) CHARACTER SET sjis", "X'815F'", "X'5C'") == [
        "\\",
        "\\",
    ]
    assert written(server, scratch, "VARCHAR(9) CHARACTER SET cp932", "X'815F8740'") == ["＼①"]


def test_decimal_with_65_digits_keeps_all_digits(server: Server, scratch: str) -> None:
    whole, point = "9" * 65, "9" * 35 + "." + "9" * 30
    assert written(server, scratch, "DECIMAL(65,0)", whole, f"-{whole}") == [whole, f"-{whole}"]
    found = written(server, scratch, "DECIMAL(65,30)", point, "-0." + "0" * 29 + "1")
    assert [Decimal(text) for text in found] == [Decimal(point), Decimal("-1e-30")]
    assert found[0] == point


def test_bigint_beyond_double_precision_is_exact(server: Server, scratch: str) -> None:
    assert written(server, scratch, "BIGINT", "9007199254740993") == ["9007199254740993"]


def test_binary_keeps_trailing_zeros_and_blob_its_bytes(server: Server, scratch: str) -> None:
    found = written(server, scratch, "BINARY(4)", "X'4100'", "''")
    assert [base64.b64decode(text) for text in found] == [b"A\0\0\0", b"\0\0\0\0"]
    found = written(server, scratch, "BLOB", "X'00FF80'")
    assert [base64.b64decode(text) for text in found] == [b"\0\xff\x80"]


def test_char_of_255_characters_is_read_completely(server: Server, scratch: str) -> None:
    texts = ["x" * 255, "漢" * 255]
    literals = [f"'{text}'" for text in texts]
    assert written(server, scratch, "CHAR(255)", *literals) == texts


def test_zero_and_partial_dates_are_kept_as_written(server: Server, scratch: str) -> None:
    assert written(server, scratch, "DATE", "'0000-00-00'", "'2026-11-00'") == [
        "0000-00-00",
        "2026-11-00",
    ]
    assert written(server, scratch, "DATETIME(3)", "0") == ["0000-00-00 00:00:00.000"]
    assert written(server, scratch, "TIMESTAMP(2) NULL", "0") == ["0000-00-00 00:00:00.00"]


def test_timestamp_is_utc_regardless_of_session_time_zone(server: Server, scratch: str) -> None:
    setup = "SET time_zone = '+05:30'"
    assert written(
        server, scratch, "TIMESTAMP(3) NULL", "'2026-11-20 05:30:00.5'", setup=setup
    ) == ["2026-11-20T00:00:00.500Z"]


# Layouts from before MySQL 5.6 as MariaDB writes them, and its optional table-map metadata.


@pytest.fixture
def mariadb_global(mariadb: Server) -> Iterator[Any]:
    """Yield a function that sets a MariaDB global variable for the test; new sessions use it."""
    before: dict[str, Any] = {}

    def set_global(name: str, value: str) -> None:
        ((before[name],),) = mariadb.execute(f"SELECT @@GLOBAL.{name}")
        mariadb.execute(f"SET GLOBAL {name} = {value}")

    yield set_global
    for name, value in before.items():
        text = f"'{value}'" if isinstance(value, str) else str(value)
        mariadb.execute(f"SET GLOBAL {name} = {text}")


def test_temporals_in_the_layout_before_5_6_equal_select(
    mariadb: Server, mariadb_global: Any
) -> None:
    mariadb_global("mysql56_temporal_format", "0")
    with new_database(mariadb, "old_temporals") as database:
        start = mariadb.position()
        with mariadb.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            cursor.execute(
                "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, t TIME, d DATETIME,"
                " s TIMESTAMP NULL, y DATE)"
            )
            cursor.execute(
                "INSERT INTO t (t, d, s, y) VALUES"
                " ('12:34:56', '2026-11-20 10:00:01', '2026-11-20 10:00:01', '2026-11-20'),"
                " ('-838:59:59', '9999-12-31 23:59:59', '2038-01-19 03:14:07', '9999-12-31'),"
                " ('838:59:59', 0, 0, 0), ('-00:00:01', '1000-01-01', NULL, NULL)"
            )
            cursor.execute("UPDATE t SET t = '00:00:00' WHERE id = 2")
        (schema,) = schemas_of(mariadb, database)
        rows = log_rows(mariadb, start, database, [schema])
        assert table_map_types(mariadb, start, database) >= {F.TIME, F.DATETIME, F.TIMESTAMP}
        replay = Replay([schema])
        replay.apply(rows)
        replay.assert_equals(database, "t", selected(mariadb, schema)[0])


@pytest.mark.parametrize("metadata", ["NO_LOG", "FULL"])
def test_year_of_two_digits_raises_schema_error(
    mariadb: Server, mariadb_global: Any, metadata: str
) -> None:
    """SELECT shows 24 for 2024; the binlog does not distinguish YEAR(2) from YEAR."""
    mariadb_global("binlog_row_metadata", f"'{metadata}'")
    with new_database(mariadb, "short_years") as database:
        start = mariadb.position()
        mariadb.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, y YEAR(2), z YEAR(4))",
            "INSERT INTO t VALUES (1, 24, 24)",
            database=database,
        )
        (schema,) = schemas_of(mariadb, database)
        assert [column.length for column in schema.columns] == [None, 2, None]
        with pytest.raises(SchemaError, match=r"column `y` has the type YEAR\(2\).* exclude the"):
            log_rows(mariadb, start, database, [schema])
        with pytest.raises(SchemaError, match=r"column `y` has the type YEAR\(2\)"):
            select_images(mariadb, schema)


@pytest.mark.parametrize("kind", ["TIME(1)", "DATETIME(6)", "TIMESTAMP(2) NULL"])
def test_fractions_in_the_layout_before_5_6_raise_an_error_until_the_table_is_rebuilt(
    mariadb: Server, mariadb_global: Any, kind: str
) -> None:
    mariadb_global("mysql56_temporal_format", "0")
    insert = "INSERT INTO t VALUES ('2026-11-20 10:00:00.5', 7)"
    with new_database(mariadb, "old_fractions") as database:
        mariadb.execute(f"CREATE TABLE t (a {kind}, b INT)", database=database)
        start = mariadb.position()
        mariadb.execute(insert, database=database)
        schemas = schemas_of(mariadb, database)
        with pytest.raises(SchemaMismatchError, match="mysql56_temporal_format=OFF"):
            log_rows(mariadb, start, database, schemas)
        events = log_events(mariadb, start, database)
        with pytest.raises(UnsupportedEventError, match=r"`@1` has .* of mysql56_temporal_format"):
            list(decoder([], positional=True).decode(events))
        mariadb.execute("SET GLOBAL mysql56_temporal_format = 1")
        start = mariadb.position()
        mariadb.execute("ALTER TABLE t FORCE", insert, database=database)
        (row,) = log_rows(mariadb, start, database, schemas)
        assert json.loads(row["after"])["b"] == 7


def table_map_types(server: Server, start: tuple[str, int], database: str) -> set[int]:
    """Return the type bytes of the table maps, to prove that a test met the intended layout."""
    return {
        code
        for event in log_events(server, start, database)
        if event.type == EventType.TABLE_MAP_EVENT
        for code in TableMap.parse(event.body).types
    }


@pytest.fixture
def full_metadata(mysql9: Server) -> Iterator[Server]:
    """Yield a server whose metadata alone is sufficient; MariaDB's is not."""
    mysql9.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
    yield mysql9
    mysql9.execute("SET GLOBAL binlog_row_metadata = DEFAULT")


def test_optional_metadata_gives_the_schema_of_information_schema(
    mariadb: Server, mariadb_global: Any
) -> None:
    """The tables have every type of the value lines."""
    mariadb_global("binlog_row_metadata", "FULL")
    with new_database(mariadb, "row_metadata") as database:
        start = mariadb.position()
        write_lines(mariadb, database)
        expected = {schema.table: schema for schema in schemas_of(mariadb, database)}
        found = {}
        for event in log_events(mariadb, start, database):
            if event.type == EventType.TABLE_MAP_EVENT:
                table_map = TableMap.parse(event.body)
                known = expected[table_map.table]
                found[table_map.table] = described_schema(table_map, known, is_mariadb=True)
        assert len(found) == len(expected) > 250
        assert found == {name: without_sizes(schema) for name, schema in expected.items()}
        # The metadata alone gives the same rows.
        with_names = log_rows(mariadb, start, database, list(expected.values()))
        alone = [schema for schema in found.values() if schema is not None]
        assert log_rows(mariadb, start, database, alone) == with_names


def test_mariadb_uuid_and_inet_types_raise_schema_mismatch_error(
    mariadb: Server, mariadb_global: Any
) -> None:
    """The binlog describes these types as BINARY."""
    mariadb_global("binlog_row_metadata", "FULL")
    with new_database(mariadb, "row_metadata_types") as database:
        for kind, value in (("UUID", "UUID()"), ("INET6", "'::1'"), ("INET4", "'10.0.0.1'")):
            start = mariadb.position()
            mariadb.execute(
                f"CREATE TABLE {kind} (a {kind})",
                f"INSERT INTO {kind} VALUES ({value})",
                database=database,
            )
            with pytest.raises(
                SchemaMismatchError, match=f"`a` has the unknown type {kind.lower()}"
            ):
                log_rows(mariadb, start, database, schemas_of(mariadb, database))


def without_sizes(schema: TableSchema) -> TableSchema:
    """Remove m and d of FLOAT(m,d) and DOUBLE(m,d), which the binlog does not contain."""
    columns = tuple(
        replace(column, length=None, scale=None) if column.type in ("float", "double") else column
        for column in schema.columns
    )
    return replace(schema, columns=columns)


@pytest.mark.parametrize("seed", range(100, 104))
def test_random_table_with_optional_metadata_only_equals_select(
    full_metadata: Server, seed: int
) -> None:
    server = full_metadata
    choices = random.Random(seed)
    with new_database(server, f"random_{seed}") as database:
        table = RandomTable.make(choices, columns=20)
        start = server.position()
        with server.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            for statement in table.statements(choices, rows=300):
                cursor.execute(statement)
        (schema,) = schemas_of(server, database)
        replay = Replay([schema])
        replay.apply(log_rows(server, start, database, []))
        replay.assert_equals(database, "t", selected(server, schema)[0])


def test_optional_metadata_follows_alters_that_keep_the_table_map(full_metadata: Server) -> None:
    """Names, labels, signs and the key change, but the table map without metadata does not."""
    server = full_metadata
    with new_database(server, "row_metadata_ddl") as database:
        start = server.position()
        server.execute(
            "CREATE TABLE t (a INT PRIMARY KEY, b INT, e ENUM('x','y'))",
            "INSERT INTO t VALUES (1, 2, 'y')",
            "ALTER TABLE t CHANGE a b INT, CHANGE b a INT UNSIGNED NOT NULL,"
            " MODIFY e ENUM('x','z','y'), DROP PRIMARY KEY, ADD PRIMARY KEY (a)",
            "INSERT INTO t VALUES (3, 4294967295, 'z')",
            database=database,
        )
        (stale,) = schemas_of(server, database)
        rows = log_rows(server, start, database, [])
        assert [row["after"] for row in rows] == [
            '{"a":1,"b":2,"e":"y"}',
            '{"b":3,"a":4294967295,"e":"z"}',
        ]
        assert [row["source"]["key"] for row in rows] == [["a"], ["a"]]
        # The schema after the ALTER is not that of the rows before it.
        with pytest.raises(SchemaMismatchError, match="column 1 `b`: expected"):
            log_rows(server, start, database, [stale])


@pytest.mark.parametrize("image", ["minimal", "noblob"])
def test_partial_row_images_name_the_missing_columns(
    server: Server, scratch: str, image: str
) -> None:
    """`Replay` checks that exactly the columns without a value are named, in each image."""
    start = server.position()
    server.execute(
        f"SET SESSION binlog_row_image = '{image}'",
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, c VARCHAR(9) DEFAULT 'd', e BLOB)",
        "INSERT INTO t (id, a, b, e) VALUES (1, 1, 'one', 'x'), (2, 2, NULL, 'y')",
        "INSERT INTO t VALUES (3, 3, 'three', 'cc', NULL)",
        "UPDATE t SET a = 20 WHERE id = 2",
        "UPDATE t SET b = 'uno', c = NULL WHERE id = 1",
        "DELETE FROM t WHERE id = 3",
        database=scratch,
    )
    (schema,) = schemas_of(server, scratch)
    rows = log_rows(server, start, scratch, [schema])
    missing = {name for row in rows for name in row["source"]["missing"] or ()}
    assert {"before.b", "before.e", "after.b", "after.e"} <= missing
    assert ("before.a" in missing) == (image == "minimal")
    replay = Replay([schema], {(scratch, "t"): {"c": "d", "b": None, "e": None}})
    replay.apply(rows)
    replay.assert_equals(scratch, "t", selected(server, schema)[0])
