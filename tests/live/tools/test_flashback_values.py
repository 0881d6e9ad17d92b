"""Values and equal rows that could make `flashback` write a wrong row without an error.

After the undo, SELECT must show the same as before. The row images that the server logs for the
undo must be those of the changes, with before and after exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.servers import Server
from helpers.tools.flashbacks import Flashbacks, every_server_fixture

pytestmark = pytest.mark.one_server

# Column type, and SQL literals of values that another form of a statement would change.
TYPES: list[tuple[str, list[str]]] = [
    ("TINYINT", ["-128", "0", "127"]),
    ("BIGINT", ["-9223372036854775808", "9007199254740993"]),
    ("BIGINT UNSIGNED", ["18446744073709551615", "9223372036854775809"]),
    ("MEDIUMINT UNSIGNED ZEROFILL", ["0", "16777215"]),
    ("FLOAT", ["1.1", "-0e0", "0e0", "3.4028234e38", "1.4e-45", "16777217", "0.1e0", "123456.7"]),
    ("FLOAT(7,3)", ["1.1", "-0.001", "9999.999"]),
    ("DOUBLE", ["0.1", "-0e0", "0e0", "1.7976931348623157e308", "5e-324", "0.30000000000000004"]),
    ("DOUBLE(20,5)", ["0.1", "123456789012345.12345"]),
    ("DECIMAL(65,30)", ["99999999999999999999999999999999999.123456789012345678901234567891"]),
    ("DECIMAL(5,2)", ["-0.01", "0", "999.99"]),
    ("BIT(1)", ["b'0'", "b'1'"]),
    ("BIT(12)", ["b'1'", "b'101010101010'"]),
    ("BIT(64)", ["0", "18446744073709551615", "9223372036854775809"]),
    ("YEAR", ["'0000'", "2000", "1901", "2155", "1970"]),
    ("DATE", ["'0000-00-00'", "'2026-00-00'", "'2026-02-31'", "'0001-01-01'", "'9999-12-31'"]),
    ("TIME(6)", ["'-838:59:59'", "'-00:00:00.000001'", "'838:59:59'", "'00:00:00'"]),
    ("TIME", ["'-00:00:01'", "'20:26:11'"]),
    ("DATETIME(6)", ["'0000-00-00'", "'2026-02-31 01:02:03.000004'", "'9999-12-31 23:59:59.9'"]),
    ("DATETIME", ["'0000-00-00'", "'2026-11-00 01:00:00'"]),
    ("TIMESTAMP(3) NULL", ["'0000-00-00'", "'2026-10-25 01:30:00.123'", "'1970-01-01 00:00:01'"]),
    ("TIMESTAMP NULL", ["'0000-00-00'", "'2038-01-19 03:14:07'"]),
    ("CHAR(9) CHARACTER SET latin1", ["'a'", "'A'", "'a '", "''", "x'80ff'", "'it''s'"]),
    ("VARCHAR(9) CHARACTER SET latin1", ["'a'", "'A'", "'a '", "'a\t'", "'\\\\'", "'%s'"]),
    ("VARCHAR(300) CHARACTER SET utf8mb4", ["'é'", "'e'", "'E'", "'😀'", "'\0\n\r\x1a'", "'\\''"]),
    ("TEXT CHARACTER SET utf8", ["'漢字'", "''", "' '", "'ß'", "'ss'"]),
    ("VARCHAR(9) CHARACTER SET utf16", ["'a'", "'é'", "'😀'", "'a '"]),
    ("CHAR(9) CHARACTER SET ucs2", ["'a'", "'ä'"]),
    ("VARCHAR(9) CHARACTER SET utf32", ["'a'", "'😀'"]),
    ("VARCHAR(9) CHARACTER SET swe7", ["'Å'", "'a'"]),
    ("VARCHAR(9) CHARACTER SET sjis", ["'表示ソ'", "'~'"]),
    ("VARCHAR(9) CHARACTER SET gbk", ["'汉字'", "_gbk x'd75c'"]),
    ("VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ["'a'", "'a '"]),
    ("BINARY(4)", ["x'00'", "x'61'", "x'61000000'", "x'00000061'"]),
    ("VARBINARY(4)", ["x''", "x'00'", "x'6100'", "x'61'", "x'27'"]),
    ("BLOB", ["x''", "x'ff00'"]),
    ("LONGBLOB", ["REPEAT('ab', 70000)"]),
    ("MEDIUMTEXT CHARACTER SET utf8mb4", ["REPEAT('aé', 70000)"]),
    ("ENUM('b','a','2','1') CHARACTER SET utf8mb4", ["'a'", "'2'", "'1'", "0"]),
    ("ENUM('é','','x') CHARACTER SET latin1", ["'é'", "''", "0"]),
    (
        f"SET({','.join(repr(f'l{n}') for n in range(64))})",
        ["''", "'l0,l63'", "18446744073709551615", "9223372036854775809"],
    ),
    ("POINT", ["ST_GeomFromText('POINT(1 -2.5)', 4326)", "ST_GeomFromText('POINT(1 2)', 0)"]),
    ("GEOMETRY", ["ST_GeomFromText('LINESTRING(0 0,1 1)')", "ST_GeomFromText('POINT(-0.0 0)')"]),
]
JSON = [
    '\'{"a": [1, 2.5, 1.0, true, null, "é\\\\n😀"], "": {}}\'',
    "'1'",
    "'1.0'",
    "'-0.0'",
    "'\"1\"'",
    "'null'",
    "'18446744073709551615'",
    "'1e300'",
    "'0.1'",
    "'0.30000000000000004'",
    "JSON_ARRAY(CAST('2026-02-28' AS DATE), CAST('-01:02:03.5' AS TIME(6)))",
    "JSON_OBJECT('d', CAST('2026-02-28 01:02:03.000004' AS DATETIME(6)), 'n', 1.10, 'q''', 5)",
    "CAST(CAST('7' AS DECIMAL(3,0)) AS JSON)",
    "CAST(CAST('1.50' AS DECIMAL(9,2)) AS JSON)",
    "'\"2026-02-28\"'",
    "JSON_ARRAY(0.1e0, -0e0, 1e0, 'x')",
]


@pytest.fixture(params=every_server_fixture())
def flashbacks(request: pytest.FixtureRequest) -> Iterator[Flashbacks]:
    server: Server = request.getfixturevalue(request.param)
    with Flashbacks.on(server, "flashback_values") as made:
        yield made


def _types(server: Server) -> list[tuple[str, list[str]]]:
    has_json = not server.is_mariadb and not server.version().startswith("5.6")
    more = [("VECTOR(3)", ["STRING_TO_VECTOR('[1,-2.5,0.1]')"])] if server.is_mysql9() else []
    return [*TYPES, *([("JSON", JSON)] if has_json else []), *more]


@pytest.mark.parametrize("key", ["id INT PRIMARY KEY", "id INT"], ids=["keyed", "keyless"])
def test_flashback_restores_the_values_of_every_type(flashbacks: Flashbacks, key: str) -> None:
    types = _types(flashbacks.server)
    names = []
    for number, (kind, values) in enumerate(types):
        table = f"t{number}"
        names.append(table)
        flashbacks.execute(f"CREATE TABLE {table} ({key}, v {kind}) CHARSET utf8mb4")
        rows = ", ".join(f"({at}, {value})" for at, value in enumerate([*values, "NULL"]))
        flashbacks.execute(f"INSERT INTO {table} VALUES {rows}")
        # Rows that differ only in the value, so that the undo has to find the right one.
        same = ", ".join(f"(99, {value})" for value in (*values, "NULL"))
        if "PRIMARY" not in key:
            flashbacks.execute(f"INSERT INTO {table} VALUES {same}")
    before = flashbacks.shown(*names)
    flashbacks.begin()
    for table, (_, values) in zip(names, types, strict=True):
        for at, value in enumerate(values):
            flashbacks.execute(f"UPDATE {table} SET v = NULL WHERE id = {at}")
            flashbacks.execute(f"INSERT INTO {table} VALUES ({at + 1000}, {value})")
            flashbacks.execute(f"UPDATE {table} SET v = {value}, id = id + 50 WHERE id = {at}")
        if "PRIMARY" not in key:
            flashbacks.execute(f"DELETE FROM {table} WHERE id = 99")
        flashbacks.execute(f"UPDATE {table} SET v = {values[0]}", f"DELETE FROM {table}")
    flashbacks.undo_and_check()
    assert flashbacks.shown(*names) == before
