"""Events at which the compiled decode loop falls back to the Python decoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import helpers.parity.require_kernel  # noqa: F401 (skips this module if there is no kernel)
from helpers.logs.events import gtid_body, query_body
from helpers.logs.row_logs import DELETE, INT, UPDATE, WRITE, RowLog, T, int_row, ints
from helpers.parity.decode_parity import KINDS, Parity, Payloads
from helpers.parity.decoding import ByPosition, StaticSchemas, simple_schema
from pyspark_mysqlbinlog.checkpoints.position import file_number
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.kernel import _values
from pyspark_mysqlbinlog.decoder.kernel import decoder as decoder_module
from pyspark_mysqlbinlog.decoder.kernel import plan as plan_module
from pyspark_mysqlbinlog.decoder.payloads.envelope import StatementRow
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    SchemaChangedError,
    SchemaMismatchError,
)
from pyspark_mysqlbinlog.protocol.blocks import pack_events
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Query
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema


def test_schema_change_under_one_table_map_applies_to_later_rows() -> None:
    """The ENUM gets other labels; the table map does not contain them and stays the same."""
    enum = ColumnSchema("e", "enum", labels=("a", "b"), charset="utf8mb4")
    log = RowLog()
    log.table_map([(enum, 0)])
    row = b"\x00\x02"
    for _ in range(3):
        log.rows(WRITE, 1, row)
    change = log.events[2].start

    before, after = simple_schema(enum), simple_schema(replace(enum, labels=("x", "y")))
    lookup = ByPosition(before, change, after)
    parity = Parity([before], Payloads("json"), lookup=lookup)
    parity.python(log.events)
    assert len(lookup.asked) == 3
    lookup.asked.clear()
    found = parity.kernel(pack_events(log.events))
    texts = [text for batch in found.batches for text in batch.column("after").to_pylist()]
    assert texts == ['{"e":"b"}', '{"e":"y"}', '{"e":"y"}']
    assert len(lookup.asked) == 2
    parity.assert_same(log.events)


def truncates(event: Event) -> list[StatementRow]:
    sql = Query.parse(event.body).sql
    return [StatementRow("t", "d", "t", sql, ("c",))] if sql.startswith("truncate") else []


@pytest.mark.parametrize("batch_rows", [1, 4, 16_384])
def test_kernel_decode_of_statement_rows_between_changes_matches_python(batch_rows: int) -> None:
    log = RowLog()
    for number in range(40):
        log.add(EventType.GTID_LOG_EVENT, gtid_body(number))
        if number % 7 == 3:
            log.add(EventType.QUERY_EVENT, query_body("truncate table t"))
            continue
        log.add(EventType.QUERY_EVENT, query_body("BEGIN"))
        ints(*range(number % 5 + 1), log=log)
        if number % 5 == 1:
            log.add(EventType.QUERY_EVENT, query_body("SAVEPOINT `a`"))
            ints(1, log=log)
        log.add(EventType.XID_EVENT, bytes(8))
    for kind in KINDS:
        parity = Parity([T], Payloads(kind), statement_rows=truncates, batch_rows=batch_rows)
        found = parity.assert_same(log.events)
        assert sum(batch.column("op").to_pylist().count("t") for batch in found.batches) == 6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [1, 2, 50, 200])
def test_tables_without_a_kernel_plan_are_decoded_in_python(
    kind: str, every: int, by_hand: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder also decodes other tables in Python for a while after such a table."""
    make = plan_module.table_plan

    def some(loop: Any, plan: Any, sides: Any) -> Any:
        return None if plan.table_map.table == "odd" else make(loop, plan, sides)

    monkeypatch.setattr(decoder_module, "table_plan", some)
    log = RowLog()
    for number in range(600):
        if number % 3 == 0:
            log.add(EventType.GTID_LOG_EVENT, gtid_body(number))
        is_odd = number % every == every - 1
        ints(number, number, table="odd" if is_odd else "t", table_id=8 + is_odd, log=log)
        if number % 3 == 2:
            log.add(EventType.XID_EVENT, bytes(8))
    schemas = [T, TableSchema("d", "odd", (INT,))]
    found = Parity(schemas, Payloads(kind)).assert_same(log.events)
    assert len(by_hand) >= 600 // every
    if every == 200:
        # There are few batches, and the loop decodes most rows.
        assert len(found.sizes) <= 7
        assert len(by_hand) < 250


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_rows", [1, 3, 16_384])
def test_kernel_falls_back_to_python_at_an_unreadable_row_without_losing_rows(
    kind: str, batch_rows: int, by_hand: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    make = _values.column_program

    def without_last_label(code: int, metadata: int, schema: Any, excluded: bool = False) -> Any:
        if schema is not None and schema.type == "enum":
            schema = replace(schema, labels=schema.labels[:-1])
        return make(code, metadata, schema, excluded)

    monkeypatch.setattr(_values, "column_program", without_last_label)
    enum = ColumnSchema("e", "enum", labels=("a", "b", "c"), charset="utf8mb4")
    text = ColumnSchema("v", "varchar", 9, charset="utf8mb4")
    date = ColumnSchema("d", "date")
    columns = [(text, 0), (date, 0), (enum, 0)]
    rows = []
    for number in range(30):
        day = bytes(3) if number % 4 == 1 else bytes.fromhex("21b70f")
        label = 3 if number in (11, 12, 25) else 1 + number % 2
        rows.append(bytes([0, 2]) + b"%02d" % number + day + bytes([label]))
    log = RowLog()
    log.table_map(columns)
    log.rows(WRITE, 3, *rows)
    log.rows(DELETE, 3, *rows[:11])
    log.rows(UPDATE, 3, *(image for row in rows for image in (rows[0], row)))
    schema = TableSchema("d", "t", (text, date, enum))
    Parity([schema], Payloads(kind), batch_rows=batch_rows).assert_same(log.events)
    assert by_hand
    # A row that is unreadable in both implementations: all rows before it are returned.
    log.rows(WRITE, 3, *rows[:10], bytes([0, 0]) + bytes(3) + b"\x04")
    parity = Parity([schema], Payloads(kind), batch_rows=1)
    found = parity.assert_same(log.events)
    assert isinstance(found.error, SchemaMismatchError)
    assert sum(found.sizes) == 30 + 11 + 30 + 10


def test_table_map_registry_has_the_same_bound_in_both_implementations() -> None:
    log = RowLog()
    for table_id in range(10, 1034):
        ints(table_id, table_id=table_id, log=log)
    ints(5, table_id=10, log=log)  # used again, so that 11 is the least recently used
    ints(6, table_id=2000, log=log)
    log.rows(WRITE, 1, int_row(7), table_id=10)
    Parity([T], Payloads("json")).assert_same(log.events)
    log.rows(WRITE, 1, int_row(8), table_id=11)
    found = Parity([T], Payloads("json")).assert_same(log.events)
    assert isinstance(found.error, MalformedEventError)


def test_kernel_makes_one_plan_for_all_ids_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with more tables than its table cache gives a table a new id at each opening."""
    made: list[object] = []
    make = plan_module.table_plan

    def counting(loop: Any, plan: Any, sides: Any) -> Any:
        made.append(plan)
        return make(loop, plan, sides)

    monkeypatch.setattr(decoder_module, "table_plan", counting)
    log = RowLog()
    for table_id in range(100, 2100):
        table = "tu"[table_id % 2]
        ints(table_id, table=table, table_id=table_id, log=log)
    schemas = [T, replace(T, table="u")]
    for kind in KINDS:
        found = Parity(schemas, Payloads(kind), batch_rows=300).assert_same(log.events)
        assert found.sizes == [300] * 6 + [200]
    assert len(made) == 2 * len(KINDS)


def test_refused_kernel_plan_is_requested_once_for_all_ids_of_a_table(
    by_hand: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are not split into a batch for each id."""
    asked: list[object] = []

    def refusing(loop: Any, plan: Any, sides: Any) -> None:
        asked.append(plan)

    monkeypatch.setattr(decoder_module, "table_plan", refusing)
    log = RowLog()
    for table_id in range(100, 1100):
        ints(table_id, table_id=table_id, log=log)
    for kind in KINDS:
        assert Parity([T], Payloads(kind)).assert_same(log.events).sizes == [1000]
    assert len(asked) == len(KINDS)
    assert len(by_hand) == 1000 * len(KINDS)


def test_refused_kernel_plan_is_requested_again_after_a_schema_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table map stays the same, but here only the schema after the change gets a plan."""
    enum = ColumnSchema("e", "enum", labels=("a",), charset="utf8mb4")
    log = RowLog()
    for table_id in range(10, 14):
        log.table_map([(enum, 0)], table_id=table_id)
        log.rows(WRITE, 1, b"\x00\x01", table_id=table_id)
    change = log.events[4].start

    before, after = simple_schema(enum), simple_schema(replace(enum, labels=("x",)))
    make = plan_module.table_plan
    made: list[object] = []

    def some(loop: Any, plan: Any, sides: Any) -> Any:
        is_odd = plan.schema.columns[0].labels == ("a",)
        made.append(None if is_odd else make(loop, plan, sides))
        return made[-1]

    monkeypatch.setattr(decoder_module, "table_plan", some)
    # Batches of one row, so that the decoder returns to the loop after each row.
    lookup = ByPosition(before, change, after)
    parity = Parity([before], Payloads("json"), lookup=lookup, batch_rows=1)
    assert parity.assert_same(log.events).sizes == [1] * 4
    assert [each is None for each in made] == [True, False]


def test_kernel_decoder_keeps_no_state_of_earlier_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The range has 100 files, each with its own table id."""
    ranges: list[Any] = []
    decode = decoder_module._Range.decode

    def noting(self: Any, blocks: Any) -> Any:
        ranges.append(self)
        return decode(self, blocks)

    monkeypatch.setattr(decoder_module._Range, "decode", noting)
    events: list[Event] = []
    for number in range(100):
        log = RowLog(4, f"mysql-bin.{number + 1:06}")
        events += ints(number, table_id=1000 + number, log=log).events
    found = Parity([T], Payloads("json")).assert_same(events)
    assert sum(found.sizes) == 100
    (whole,) = ranges
    assert len(whole._python.table_maps) == 1
    kept = [each for each in vars(whole).values() if isinstance(each, dict | set | list)]
    assert [len(each) for each in kept] == [1]


def test_kernel_plan_is_made_without_copying_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ints(*range(1000))
    seen: list[int] = []
    make = decoder_module._Range._make_plan

    def noting(self: Any, event: Event) -> None:
        seen.append(len(event.body))
        make(self, event)

    monkeypatch.setattr(decoder_module._Range, "_make_plan", noting)
    assert Parity([T], Payloads("json")).assert_same(log.events).sizes == [1000]
    assert seen == [6]


def test_table_id_of_another_file_is_rejected_by_both_implementations() -> None:
    log = ints(1)
    later = RowLog(4, "mysql-bin.000004")
    later.rows(WRITE, 1, int_row(2))
    found = Parity([T], Payloads("json")).assert_same(log.events + later.events)
    assert isinstance(found.error, MalformedEventError)
    later = ints(2, 3, log=RowLog(4, "mysql-bin.000004"))
    again = RowLog(log.pos)
    again.rows(WRITE, 1, int_row(4))
    found = Parity([T], Payloads("json")).assert_same(log.events + later.events)
    assert sum(found.sizes) == 3
    found = Parity([T], Payloads("json")).assert_same(log.events + later.events + again.events)
    assert isinstance(found.error, MalformedEventError)


def test_kernel_decode_of_a_reused_table_id_matches_python() -> None:
    log = ints(1, 2)
    log.table_map([(ColumnSchema("c", "smallint"), 0)], "u")
    log.rows(WRITE, 1, b"\x00\x01\x02")
    ints(3, log=log)
    schemas = [T, TableSchema("d", "u", (ColumnSchema("c", "smallint"),))]
    for kind in KINDS:
        assert sum(Parity(schemas, Payloads(kind)).assert_same(log.events).sizes) == 4


def test_malformed_rows_events_give_the_same_error_in_both_implementations() -> None:
    head = bytes.fromhex("070000000000")
    bodies = [
        "", "0100", "01000000", "01000100", "0100ffff", "01000200", "010002000201ff", "01000200fb",
        "01000200fcff", "01000200feffffffffffffffff", "0100020001ff", "0100020001fe",
        "0100020001ff00", "0100020001ff000000", "0100020001ff0001020304ff",
    ]  # fmt: skip
    refused = 0
    for kind in (WRITE, UPDATE, DELETE, 23, 24, 25):
        for body in bodies:
            log = ints(1)
            log.add(kind, head + bytes.fromhex(body))
            refused += Parity([T], Payloads("json")).assert_same(log.events).error is not None
    assert refused >= 6 * (len(bodies) - 2)


def test_file_without_an_ordinal_is_rejected_by_both_implementations() -> None:
    log = ints(1, log=RowLog(file="copy.binlog"))

    def refuses(file: str) -> int:
        raise InvalidPositionError(f"{file} has none")

    for ordinal in (lambda _: None, refuses):
        found = Parity([T], Payloads("json"), file_ordinal=ordinal).assert_same(log.events)
        assert isinstance(found.error, InvalidPositionError)
    found = Parity([T], Payloads("json"), file_ordinal=lambda _: 5).assert_same(log.events)
    assert found.sizes == [1]


def test_image_with_a_column_missing_from_the_struct_stops_after_earlier_rows() -> None:
    both = [(INT, 0), (ColumnSchema("d", "int"), 0)]
    log = RowLog()
    log.table_map(both)
    head = (7).to_bytes(6, "little") + b"\x01\x00\x02\x00\x02"
    log.add(WRITE, head + b"\x01" + int_row(1))
    log.add(WRITE, head + b"\x03" + int_row(1) + bytes(4))
    schema = TableSchema("d", "t", tuple(column for column, _ in both))
    found = Parity([schema], Payloads("struct", promised=[T]), batch_rows=1).assert_same(log.events)
    assert isinstance(found.error, SchemaChangedError)
    assert found.sizes == [1]


@pytest.mark.parametrize("cut", [1, 18, 19, 20])
def test_truncated_block_raises_malformed_event_error(cut: int) -> None:
    (block,) = pack_events(ints(1).events)
    parity = Parity([T], Payloads("json"))
    with pytest.raises(MalformedEventError, match=r"cut short.*at mysql-bin\.000003"):
        raise parity.kernel([block._replace(data=block.data[:-cut])]).error or AssertionError
    # After a statement row, where the Python decoder reads the events.
    log = RowLog()
    log.add(EventType.QUERY_EVENT, query_body("truncate table t"))
    (event,) = pack_events(ints(1, log=log).events)
    statements = Parity([T], Payloads("json"), statement_rows=truncates)
    with pytest.raises(MalformedEventError, match="cut short"):
        raise statements.kernel([event._replace(data=event.data[:-cut])]).error or AssertionError
    # Event lengths below that of a header, and one beyond the block.
    for length in (0, 18, 1 << 31):
        data = bytearray(block.data)
        data[9:13] = length.to_bytes(4, "little")
        with pytest.raises(MalformedEventError, match="cut short"):
            raise parity.kernel([block._replace(data=bytes(data))]).error or AssertionError


def test_kernel_decode_of_events_compressed_in_the_binlog_matches_python() -> None:
    """Such an event is longer than its space in the binlog, so it is packed into its own block."""
    log = ints(*range(300), log=ints(*range(200)))
    events = [
        event._replace(start=event.end - 100) if event.type in OPERATIONS else event
        for event in log.events
    ]
    assert [block.trailer < 0 for block in pack_events(events)] == [False, True, False, True]
    assert sum(Parity([T], Payloads("json")).assert_same(events).sizes) == 500


def test_row_positions_beyond_4_gib_increase_in_both_implementations() -> None:
    log = RowLog((1 << 32) - 150)
    for number in range(30):
        ints(number, log=log)
    found = Parity([T], Payloads("json")).assert_same(log.events)
    places = [place for batch in found.batches for place in batch["seq"].to_pylist()]
    positions = [place["pos"] for place in places if place is not None]
    assert positions[0] < 1 << 32 < positions[-1]
    assert positions == sorted(positions)


def test_kernel_decoder_supports_a_reordered_large_string_schema() -> None:
    log = ints(1, 2)
    large = pa.schema(
        [
            pa.field(field.name, pa.large_string()) if field.type == pa.string() else field
            for field in reversed(list(Payloads("json").arrow_schema([T])))
        ]
    )

    python = Decoder(StaticSchemas([T]), large, 0, frozenset({"insert"}), file_ordinal=file_number)
    decoder = decoder_module.KernelDecoder(python)
    (batch,) = decoder.decode(pack_events(log.events))
    assert batch.schema.equals(large)
    assert batch.column("after").to_pylist() == ['{"c":1}', '{"c":2}']


def test_kernel_decode_repeated_after_an_abandoned_one_gives_equal_batches() -> None:
    log = ints(*range(100))
    parity = Parity([T], Payloads("struct"), batch_rows=10)
    first = parity.kernel(pack_events(log.events)).batches
    # Abandoned after the first batch.
    assert next(parity._kernel.decode(pack_events(log.events))).equals(first[0])
    assert parity.kernel(pack_events(log.events)).batches == first
