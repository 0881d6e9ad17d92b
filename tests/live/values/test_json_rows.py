"""JSON documents read by SELECT equal those in the binlog, with the types of their numbers.

SELECT returns text; these documents contain numbers of every type that look alike in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from helpers.logs.live_log import new_database
from helpers.parity.decode_parity import PAYLOADS
from helpers.servers import Server
from helpers.snapshots.loaded_rows import (
    assert_same_images,
    assert_same_rows,
    copied,
    events_of,
    raw_client,
    select_images,
)
from pyspark_mysqlbinlog.connector.options.table_filter import ColumnFilter
from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.encode import RowImages
from pyspark_mysqlbinlog.decoder.result_rows.json_types import MOST_IN_DOCUMENT, MOST_PATHS
from pyspark_mysqlbinlog.decoder.result_rows.read import read_rows
from pyspark_mysqlbinlog.errors import UnrepresentableValueError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.result_set import ResultSet


@pytest.fixture(scope="module", params=dict.fromkeys(("live_server", "mysql9")))
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    if found.version().startswith("5.6"):
        pytest.skip(
            f"{found.name} has no JSON: start a Docker engine, or name a MySQL 5.7 by"
            " MYSQLBINLOG_TEST_URL"
        )
    return found


@pytest.fixture
def scratch(server: Server) -> Iterator[str]:
    with new_database(server, "json_rows") as database:
        yield database


def _object(**values: str) -> str:
    members = ", ".join(f"'{key}', {value}" for key, value in values.items())
    return f"JSON_OBJECT({members})"


def _parsed(document: object) -> str:
    text = json.dumps(document, ensure_ascii=False)
    return "CAST('" + text.replace("\\", "\\\\").replace("'", "\\'") + "' AS JSON)"


NUMBERS = {
    "integer": "5",
    "negative": "-70000",
    "unsigned": "CAST(5 AS UNSIGNED)",
    "largest": "18446744073709551615",
    "unsigned16": "CAST(40000 AS UNSIGNED)",
    "unsigned32": "CAST(3000000000 AS UNSIGNED)",
    "as_double": "5e0",
    "long_double": "5e9",
    "long_integer": "5000000000",
    "whole_decimal": "CAST(5 AS DECIMAL(10,0))",
    "long_decimal": "CAST(12345678901234567 AS DECIMAL(30,0))",
    "longer_decimal": "CAST(18446744073709551616 AS DECIMAL(30,0))",
    "least_decimal": "CAST(-9223372036854775809 AS DECIMAL(30,0))",
    "decimal": "19.99",
    "decimal_of_four": "12345.67",
    "double_of_four": "12345.67e0",
    "ends_in_zero": "1.50",
    "small_decimal": "0.00001",
    "small_double": "0.00001e0",
    "small_negative": "-0.00001e0",
    "least_plain": "0.0001e0",
    "least_plain_decimal": "-0.0001",
    "digits16": "0.1234567890123456e0",
    "digits17": "0.30000000000000004e0",
    "decimal17": "0.30000000000000004",
    "decimal18": "0.300000000000000041",
    "exponent": "1e300",
    "no_exponent": "1e14",
    "first_exponent": "1e15",
    "minus_zero": "-0e0 * 1",
    "half": "0.5",
    "negative_half": "-0.5",
    "digits38": "12345678901234567890123456789012345678",
    "digits65": "-12345678901234567890123456789012345.123456789012345678901234567891",
}
ODD_KEYS = ("", "a b", "q\"x'", "ké", "\n", "\\", "a.b", "$", "*", "[0]", "😀", "%s", "?", "\x00")
OTHERS = (
    "CAST('2024-02-29' AS DATE)",
    "CAST('12:34:56.789' AS TIME(3))",
    "CAST('-838:59:59' AS TIME)",
    "CAST('2024-02-29 12:34:56.789012' AS DATETIME(6))",
    "CAST('0000-00-00' AS DATE)",
    "b'101'",
    "CAST(REPEAT(x'00ff10', 100) AS BINARY)",
    "ST_GeomFromText('POLYGON((0 0, 1 0.5, 1 1, 0 0))')",
    "TRUE",
    "NULL",
    "'12'",
    "'\\\"\\\\\\n\\0\\Z'",
)


def assert_loaded_as_streamed(server: Server, database: str, documents: list[str]) -> None:
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, j JSON, s CHAR(3))")
        for document in documents:
            cursor.execute(f"INSERT INTO t (j, s) VALUES ({document}, 'end')")
        cursor.execute("INSERT INTO t (j) VALUES (NULL)")
    (schema,), events = copied(server, database, ["t"])
    own = events_of(schema, events)
    for name, payload in PAYLOADS.items():
        images = select_images(server, schema, payload)
        assert assert_same_rows(schema, own, images, payload) == len(documents) + 1, name


def test_json_numbers_in_snapshot_equal_streamed_ones(server: Server, scratch: str) -> None:
    documents = [f"CAST({value} AS JSON)" for value in NUMBERS.values()]
    documents += [_object(a=value, b=f"JSON_ARRAY({value}, 1)") for value in NUMBERS.values()]
    documents.append(f"JSON_ARRAY({', '.join(NUMBERS.values())})")
    documents.append(_object(**NUMBERS))
    assert_loaded_as_streamed(server, scratch, documents)


def test_json_numbers_under_unusual_keys_in_snapshot_equal_streamed_ones(
    server: Server, scratch: str
) -> None:
    documents = [_parsed({key: [1, 1.5, {key: 2.5}]}) for key in ODD_KEYS]
    documents.append(_parsed({"": {"": [0.5, {"": 1.5, "a": 2.5}]}, "a": {"": 7}}))
    documents.append("JSON_OBJECT('', 1.5, 'a', JSON_ARRAY(JSON_OBJECT('', 2.5), 3.5e0))")
    assert_loaded_as_streamed(server, scratch, documents)


def test_non_json_values_of_documents_in_snapshot_equal_streamed_ones(
    server: Server, scratch: str
) -> None:
    documents = [f"JSON_ARRAY({value})" for value in OTHERS]
    documents += [_object(a=value, b="1.5") for value in OTHERS]
    documents.append(f"JSON_ARRAY({', '.join(OTHERS)})")
    assert_loaded_as_streamed(server, scratch, documents)


def test_json_documents_at_layout_limits_equal_binlog_images(server: Server, scratch: str) -> None:
    """The bytes equal the binlog's: 7- and 14-bit lengths, 16-bit offsets and keys of 64 KiB."""
    documents = [
        f"{make}(REPEAT('x', {size + more}){rest})"
        for size in (127, 16_383, 65_535 - 12)
        for more in range(-4, 5)
        for make, rest in (("JSON_ARRAY", ", 70000"), ("JSON_OBJECT", ", 'y'"))
    ]
    documents += [
        f"JSON_ARRAY(JSON_ARRAY(REPEAT('x', {size}), -7), 70000)" for size in range(65_500, 65_530)
    ]
    documents += [_parsed(list(range(size))) for size in (21_840, 21_844, 21_845, 30_000)]
    documents += [_parsed([]), _parsed({}), _parsed([[], {}, [[]]]), _parsed("x" * 200_000)]
    deepest: object = 1
    for at in range(98):
        deepest = [deepest] if at % 2 else {"k": deepest}
    documents.append(_parsed(deepest))
    # Without the types of the numbers: there are more numbers than the query asks for.
    with server.connect(database=scratch) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, j JSON)")
        for document in documents:
            cursor.execute(f"INSERT INTO t (j) VALUES ({document})")
    (schema,), events = copied(server, scratch, ["t"])
    own = events_of(schema, events)
    assert_same_images(server, schema, select_images(server, schema), own)


def test_json_documents_above_number_limit_equal_streamed_ones(
    server: Server, scratch: str
) -> None:
    many = MOST_IN_DOCUMENT + 100
    documents = [
        _parsed([0.5 + at for at in range(many)]),
        _parsed([at * 70_000 for at in range(many)]),
        f"JSON_ARRAY({', '.join(f'CAST({40_000 + at} AS UNSIGNED)' for at in range(many))})",
        _parsed({"a": 1.5}),
        "JSON_OBJECT('a', 1.5)",
    ]
    assert_loaded_as_streamed(server, scratch, documents)


def test_json_documents_above_path_limit_equal_streamed_ones(server: Server, scratch: str) -> None:
    documents = [
        _parsed({f"key{number}_{at}": at + 0.5 for at in range(60)}) for number in range(50)
    ]
    assert len(documents) * 60 > MOST_PATHS
    assert_loaded_as_streamed(server, scratch, documents)


def test_too_many_decimals_in_variant_raise_unrepresentable_value_error(
    server: Server, scratch: str
) -> None:
    """Decimals beyond those that the query asks for are not guessed; JSON texts are right."""
    many = ", ".join(f"{at}.25" for at in range(MOST_IN_DOCUMENT + 100))
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
        f"INSERT INTO t VALUES (1, JSON_ARRAY({many}))",
        database=scratch,
    )
    (schema,), events = copied(server, scratch, ["t"])
    images = select_images(server, schema)
    assert_same_rows(schema, events_of(schema, events), images, PAYLOADS["json"])
    with pytest.raises(
        UnrepresentableValueError, match=r"`j` \(json\) holds a document with 1050 numbers of"
    ):
        select_images(server, schema, PAYLOADS["variant"])


class _Older:
    """A connection to a server without JSON_STORAGE_SIZE, such as MySQL before 5.7.22."""

    def __init__(self, client: ReplicaClient) -> None:
        self._client = client
        self.asked: list[str] = []

    def prepared(self, sql: str) -> ResultSet:
        self.asked.append(sql)
        return self._client.prepared(sql.replace("JSON_STORAGE_SIZE", "JSON_NO_SUCH_FUNCTION"))


def test_server_without_json_storage_size_gives_equal_documents(
    server: Server, scratch: str
) -> None:
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
        "INSERT INTO t VALUES (1, JSON_ARRAY(1.5, 1.5e0, 1, 1e0)), (2, NULL)",
        database=scratch,
    )
    (schema,), events = copied(server, scratch, ["t"])
    plan = ResultPlan.make(schema, typed_json=True, doubles_have_points=server.is_mysql9())
    with raw_client(server) as client:
        older = _Older(client)
        images = list(read_rows(older, plan, "ORDER BY id", RowImages))
    assert len(older.asked) == 3
    assert_same_rows(schema, events_of(schema, events), images, PAYLOADS["variant"])
    many = json.dumps([at + 0.5 for at in range(MOST_IN_DOCUMENT + 100)])
    server.execute(f"INSERT INTO copy_t VALUES (3, '{many}')", database=scratch)
    with raw_client(server) as client, pytest.raises(UnrepresentableValueError, match="1050 numb"):
        list(read_rows(_Older(client), plan, "ORDER BY id", RowImages))


def test_excluded_json_column_is_left_out_of_snapshot_rows(server: Server, scratch: str) -> None:
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON, k JSON)",
        "INSERT INTO t VALUES (1, '[1.5]', JSON_ARRAY(2.5)), (2, '[2.5]', NULL)",
        database=scratch,
    )
    (schema,), events = copied(server, scratch, ["t"])
    payload = replace(PAYLOADS["variant"], columns=ColumnFilter.parse(f"{scratch}.copy_t.j"))
    images = select_images(server, schema, payload)
    assert assert_same_rows(schema, events_of(schema, events), images, payload) == 2
