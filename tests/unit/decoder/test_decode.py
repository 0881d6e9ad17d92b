"""The decoder's main loop: transactions, batches, schemas by position, rejected events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from helpers.logs.row_logs import FILE, EventLog
from helpers.parity.decoding import (
    ALL_OPERATIONS,
    ARROW_SCHEMA,
    ByPosition,
    StaticSchemas,
    decoder,
    make_event,
    rows_of,
    simple_schema,
    table_map_body,
    table_map_body_for,
)
from helpers.parity.implementations import make_decoder
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.events.field_types import FieldType as F
from pyspark_mysqlbinlog.decoder.payloads.envelope import StatementRow
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    SchemaError,
    SchemaMismatchError,
    UnknownSchemaError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema

# Each test runs with both implementations.
pytestmark = pytest.mark.usefixtures("implementation")

T = simple_schema(C("id", "int", nullable=False), C("v", "tinyint"), key=("id",))


class Log(EventLog):
    """A log of transactions of one table, which can decode its rows."""

    def gtid(self, number: int) -> Event:
        uuid = bytes.fromhex("690a9884e53a11f19af702fc00000001")
        body = b"\x01" + uuid + number.to_bytes(8, "little")
        return self.add(EventType.GTID_LOG_EVENT, body)

    def query(self, sql: str, thread_id: int = 9) -> Event:
        body = thread_id.to_bytes(4, "little") + bytes(4) + b"\x01" + bytes(4) + b"d\x00"
        return self.add(EventType.QUERY_EVENT, body + sql.encode("latin-1"))

    def rows_query(self, sql: str) -> Event:
        return self.add(EventType.ROWS_QUERY_LOG_EVENT, bytes([len(sql) % 256]) + sql.encode())

    def table_map(self, schema: TableSchema = T, table_id: int = 7) -> Event:
        return self.add(EventType.TABLE_MAP_EVENT, table_map_body_for(schema, table_id))

    def insert(self, *ids: int, table_id: int = 7, flags: int = 1) -> Event:
        images = b"".join(b"\xfe" + number.to_bytes(4, "little") for number in ids)
        head = table_id.to_bytes(6, "little") + flags.to_bytes(2, "little")
        # Only `id` is present.
        return self.add(EventType.WRITE_ROWS_EVENT, head + b"\x02\x00\x02\x01" + images)

    def xid(self) -> Event:
        return self.add(EventType.XID_EVENT, bytes(8))

    def rows(self, **options: Any) -> list[Mapping[str, Any]]:
        return list(rows_of(decoder([T], **options).decode(self.events)))


def sources(log: Log, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row["source"][name] for name in names) for row in log.rows()]


def test_rows_carry_position_gtid_thread_and_query_of_their_transaction() -> None:
    log = Log()
    first = log.gtid(4)
    log.query("BEGIN", 5)
    log.rows_query("insert one")
    log.table_map()
    log.insert(1, flags=0)
    log.insert(2)
    log.query("SAVEPOINT `s`")
    log.table_map()  # the next statement, whose text is not logged
    log.insert(3)
    log.xid()
    second = log.add(EventType.ANONYMOUS_GTID_LOG_EVENT, bytes(25))
    log.query("BEGIN", 6)
    log.table_map()
    log.insert(4)
    log.query("COMMIT")
    third = log.query("BEGIN", 7)  # 5.5: no GTID event
    log.table_map()
    log.insert(5)
    log.xid()
    gtid = "690a9884-e53a-11f1-9af7-02fc00000001:4"
    assert sources(log, "tx_pos", "gtid", "thread_id", "query") == [
        (first.start, gtid, 5, "insert one"),
        (first.start, gtid, 5, "insert one"),
        (first.start, gtid, 5, None),
        (second.start, None, 6, None),
        (third.start, None, 7, None),
    ]


def test_mariadb_rows_carry_gtid_and_annotated_query() -> None:
    log = Log()
    body = (77).to_bytes(8, "little") + (2).to_bytes(4, "little") + b"\x00" + bytes(6)
    begin = log.add(EventType.MARIADB_GTID_EVENT, body)
    log.add(EventType.MARIADB_ANNOTATE_ROWS_EVENT, b"insert \xe9")
    log.table_map()
    log.insert(1)
    log.xid()
    assert sources(log, "tx_pos", "gtid", "thread_id", "query") == [
        (begin.start, "2-5-77", None, r"insert \xe9")
    ]


def statement_rows(event: Event) -> list[StatementRow]:
    text = Query.parse(event.body).sql
    return [StatementRow("t", "d", "t", text, ("id",))] if text.startswith("truncate") else []


def test_truncate_gives_a_statement_row_with_its_position_and_query() -> None:
    log = Log()
    gtid = log.gtid(4)
    event = log.query("truncate table t", 12)
    log.query("create table u (a int)")
    (row,) = log.rows(statement_rows=statement_rows)
    assert (row["op"], row["database"], row["table"]) == ("t", "d", "t")
    assert (row["before"], row["after"]) == (None, None)
    assert row["seq"] == {"epoch": 0, "file": 3, "pos": event.start, "row": 0}
    assert row["source"] == {
        "server_id": 5,
        "file": FILE,
        "pos": event.start,
        "row": 0,
        "tx_pos": gtid.start,
        "thread_id": 12,
        "gtid": "690a9884-e53a-11f1-9af7-02fc00000001:4",
        "query": "truncate table t",
        "key": ["id"],
        "missing": None,
        "invalid_dates": None,
    }
    assert log.rows() == []


@pytest.mark.parametrize(
    ("database", "table", "error"),
    [
        ("\udc80d", "t", "a database name that is not UTF-8: 0x8064"),
        ("d", "\udce9", "a table name that is not UTF-8: 0xe9"),
    ],
)
def test_statement_row_with_a_name_that_is_not_utf8_is_rejected(
    database: str, table: str, error: str
) -> None:
    log = Log()
    event = log.query("truncate table t")

    def rows(_: Event) -> list[StatementRow]:
        return [StatementRow("t", database, table, "truncate table t", None)]

    with pytest.raises(MalformedEventError, match=error) as caught:
        log.rows(statement_rows=rows)
    assert f"{FILE}:{event.start}" in str(caught.value)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [({"insert"}, ["c"]), ({"update", "delete"}, ["u", "d"]), ({"truncate"}, [])],
)
def test_only_selected_operations_give_rows(operations: set[str], expected: list[str]) -> None:
    log = Log()
    log.table_map()
    head = bytes.fromhex("0700000000000100020002")
    image = bytes.fromhex("fc0100000002")
    log.add(EventType.WRITE_ROWS_EVENT, head + b"\xff" + image)
    log.add(EventType.UPDATE_ROWS_EVENT, head + b"\xff\xff" + image * 2)
    log.add(EventType.DELETE_ROWS_EVENT, head + b"\xff" + image)
    assert [row["op"] for row in log.rows(operations=frozenset(operations))] == expected


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 7, 100])
def test_batches_are_split_at_batch_rows_with_rows_in_order(batch_rows: int) -> None:
    log = Log()
    for first in range(0, 40, 10):
        log.table_map()
        log.insert(*range(first, first + 10))
    batches = list(decoder([T], batch_rows=batch_rows).decode(log.events))
    sizes = [batch.num_rows for batch in batches]
    assert sizes == [batch_rows] * (40 // batch_rows) + [40 % batch_rows] * (40 % batch_rows > 0)
    rows = list(rows_of(batches))
    assert [row["after"] for row in rows] == [f'{{"id":{number}}}' for number in range(40)]
    assert [row["seq"]["row"] for row in rows] == list(range(10)) * 4


def test_query_text_shared_by_rows_counts_toward_batch_bytes() -> None:
    log = Log()
    log.rows_query("insert " + "x" * 1_000_000)
    log.table_map()
    log.insert(*range(20))
    batches = list(decoder([T], batch_bytes=5_000_000).decode(log.events))
    assert [batch.num_rows for batch in batches] == [5, 5, 5, 5]


def test_decode_repeated_with_one_decoder_gives_equal_batches() -> None:
    log = Log()
    log.gtid(1)
    log.query("BEGIN")
    log.table_map()
    log.insert(1, 2, 3)
    one = decoder([T])
    first = list(one.decode(log.events))
    assert next(iter(one.decode(log.events))) == first[0]
    assert list(one.decode(log.events)) == first


def test_rows_are_decoded_with_the_schema_at_their_position() -> None:
    log = Log()
    fields: list[tuple[int, int]] = [(F.STRING, 0xF701)]
    body = table_map_body(fields, [True])
    row = bytes.fromhex("0700000000000100020001fffe02")
    for _ in range(2):
        log.add(EventType.TABLE_MAP_EVENT, body)
        last = log.add(EventType.WRITE_ROWS_EVENT, row)
    before, after = (
        simple_schema(C("e", "enum", labels=labels, charset="utf8mb4"))
        for labels in (("a", "b"), ("x", "y"))
    )
    lookup = ByPosition(before, last.start, after)
    subject = make_decoder(lookup, ARROW_SCHEMA, 4, frozenset({"insert"}))
    rows = list(rows_of(subject.decode(log.events)))
    assert [row["after"] for row in rows] == ['{"e":"b"}', '{"e":"y"}']
    assert [row["seq"]["epoch"] for row in rows] == [4, 4]


def test_rows_event_without_a_schema_raises_unknown_schema_error() -> None:
    log = Log()
    log.table_map()
    event = log.insert(1)
    words = r"found 2 .*\(LONG, .*no schema was given; GRANT SELECT"
    with pytest.raises(UnknownSchemaError, match=words) as caught:
        list(decoder([]).decode(log.events))
    assert str(caught.value).endswith(f"(at {FILE}:{event.start}, table d.t)")


def test_table_map_mismatch_raises_error_with_position_and_table() -> None:
    log = Log()
    log.add(EventType.TABLE_MAP_EVENT, table_map_body([(F.LONG, 0), (F.SHORT, 0)], [False, True]))
    event = log.insert(1)
    with pytest.raises(SchemaMismatchError, match=r"expected TINY .*found SHORT") as caught:
        log.rows()
    assert str(caught.value).endswith(f"(at {FILE}:{event.start}, table d.t)")


def test_table_with_unknown_charset_is_rejected_at_its_first_row() -> None:
    schema = simple_schema(C("id", "int"), C("v", "text", charset="klingon"))
    log = Log()
    log.table_map(schema)
    assert list(decoder([schema]).decode(log.events)) == []
    log.insert(1)
    with pytest.raises(SchemaError, match=r"`v` \(text\).*character set klingon.*table d\.t"):
        list(decoder([schema]).decode(log.events))


def test_table_id_of_the_previous_file_is_rejected() -> None:
    log = Log()
    log.table_map()
    later = Log(file="mysql-bin.000004")
    later.insert(1)
    with pytest.raises(MalformedEventError, match="table id 7, expected a TABLE_MAP"):
        list(decoder([T]).decode(log.events + later.events))


@pytest.mark.parametrize("table_id", [0xFFFFFF, 0xFFFFFFFFFFFF])
def test_dummy_rows_event_is_accepted_only_with_the_statement_end_flag(table_id: int) -> None:
    log = Log()
    log.table_map()
    log.insert(1, flags=0)
    head = table_id.to_bytes(6, "little")
    log.add(EventType.WRITE_ROWS_EVENT, head + b"\x01\x00\x02\x00\x00")
    assert [row["after"] for row in log.rows()] == ['{"id":1}']
    log.add(EventType.WRITE_ROWS_EVENT, head + b"\x00\x00\x02\x00\x00")
    with pytest.raises(MalformedEventError, match="expected a TABLE_MAP"):
        log.rows()


@pytest.mark.parametrize(
    "kind",
    ["PRE_GA_WRITE_ROWS_EVENT", "PRE_GA_UPDATE_ROWS_EVENT", "MARIADB_START_ENCRYPTION_EVENT"],
)
def test_unsupported_event_types_raise_unsupported_event_error(kind: str) -> None:
    log = Log()
    log.add(EventType[kind], bytes(20))
    with pytest.raises(UnsupportedEventError, match=f"{kind} is not supported.*:100"):
        log.rows()


def test_transaction_payload_in_python_decoder_raises_unsupported_event_error() -> None:
    """The reader unpacks payloads; a payload that reaches the decoder is an error."""
    event = make_event(EventType.TRANSACTION_PAYLOAD_EVENT, bytes(20), 100)
    python = Decoder(StaticSchemas([]), ARROW_SCHEMA, 0, ALL_OPERATIONS, file_ordinal=lambda _: 1)
    with pytest.raises(UnsupportedEventError, match="TRANSACTION_PAYLOAD_EVENT is not supported"):
        list(python.decode([event]))


def test_binlog_name_without_number_requires_file_ordinal() -> None:
    log = Log(file="copy.binlog")
    log.table_map()
    log.insert(1)
    with pytest.raises(InvalidPositionError, match=r"ends in a number, found copy\.binlog"):
        log.rows()
    assert log.rows(file_ordinal=lambda _: 5)[0]["seq"]["file"] == 5


def test_reordered_large_string_schema_works_and_incomplete_one_is_rejected() -> None:
    large = pa.schema(
        [
            pa.field(field.name, pa.large_string()) if field.type == pa.string() else field
            for field in reversed(list(ARROW_SCHEMA))
        ]
    )
    log = Log()
    log.table_map()
    log.insert(1, 2)
    (batch,) = make_decoder(StaticSchemas([T]), large, 0, frozenset({"insert"})).decode(log.events)
    assert batch.schema.equals(large)
    assert batch.column("after").to_pylist() == ['{"id":1}', '{"id":2}']
    with pytest.raises(SchemaError, match="the Arrow schema has op, expected op, ts"):
        make_decoder(StaticSchemas([T]), pa.schema([("op", pa.string())]), 0, frozenset())
