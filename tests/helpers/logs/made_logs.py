"""Hypothesis strategies for tables and logs: any columns, images and order of statements."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from struct import pack

from hypothesis import strategies as st

from helpers.logs.corrupt_logs import RawEvent
from helpers.logs.events import (
    format_description_body,
    gtid_body,
    query_body,
    rows_query_body,
    xa_prepare_body,
)
from helpers.parity.decoding import table_map_body
from helpers.values.value_bytes import BAD_VALUES, VALUES, field_of
from pyspark_mysqlbinlog.protocol.events import EventType
from pyspark_mysqlbinlog.protocol.wire import lenenc_int
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

__all__ = ["MadeTable", "logs", "tables"]

_NAMES = ("id", "a", "b", "é", 'quo"te', "B", "c d", "漢字", "\uffff", "z", *"wxyÄ")


@dataclass
class _Kind:
    """A column, its type in the table map, and encoded values; those in `bad` are invalid."""

    described: ColumnSchema
    code: tuple[int, int]
    good: list[bytes] = field(default_factory=list)
    bad: list[bytes] = field(default_factory=list)


def _kinds() -> list[_Kind]:
    kinds: dict[tuple[ColumnSchema, int], _Kind] = {}
    for described, old, raw, _ in VALUES:
        kind = kinds.setdefault((described, old), _Kind(described, field_of(described, old)))
        kind.good.append(bytes.fromhex(raw))
    for described, old, raw, _ in BAD_VALUES:
        if (described, old) in kinds:
            kinds[described, old].bad.append(bytes.fromhex(raw))
    return list(kinds.values())


_KINDS = _kinds()


@dataclass(frozen=True)
class MadeTable:
    """A table, the kinds of its columns, and its table map."""

    schema: TableSchema
    kinds: list[_Kind]
    table_id: int
    map_body: bytes


@st.composite
def tables(draw: st.DrawFn) -> list[MadeTable]:
    """Draw one to three tables of database d."""
    made = []
    for number in range(draw(st.sampled_from((1, 1, 2, 3)))):
        # The length is drawn first: otherwise hypothesis makes short lists.
        count = draw(st.integers(1, len(_NAMES)))
        kinds = draw(st.lists(st.sampled_from(_KINDS), min_size=count, max_size=count))
        names = draw(st.permutations(_NAMES))[: len(kinds)]
        nullable = [draw(st.booleans()) for _ in kinds]
        columns = tuple(
            replace(kind.described, name=name, nullable=may)
            for kind, name, may in zip(kinds, names, nullable, strict=True)
        )
        key = draw(st.sampled_from(((), (names[0],))))
        schema = TableSchema("d", f"t{number}", columns, key)
        table_id = draw(st.sampled_from((7 + number, 1 << 32 | number)))
        codes = [kind.code for kind in kinds]
        body = table_map_body(codes, nullable, schema.table, table_id)
        made.append(MadeTable(schema, kinds, table_id, body))
    return made


def _bits(flags: list[bool]) -> bytes:
    number = sum(1 << at for at, flag in enumerate(flags) if flag)
    return number.to_bytes((len(flags) + 7) // 8, "little")


def _image(draw: st.DrawFn, kinds: list[_Kind], *, bad: bool) -> bytes:
    """Draw a null bitmap and the values that are not NULL; with `bad`, rarely invalid ones."""
    nulls = [draw(st.integers(0, 5)) == 5 for _ in kinds]
    values = []
    for kind, is_null in zip(kinds, nulls, strict=True):
        if not is_null:
            spoil = bad and kind.bad and draw(st.integers(0, 9)) == 9
            values.append(draw(st.sampled_from(kind.bad if spoil else kind.good)))
    return _bits(nulls) + b"".join(values)


# Images per row of write, update and delete events, of both versions.
_ROWS = {30: 1, 31: 2, 32: 1, 23: 1, 24: 2, 25: 1}


def _rows(draw: st.DrawFn, table: MadeTable, *, last: bool, bad: bool) -> RawEvent:
    kind = draw(st.sampled_from(sorted(_ROWS)))
    count = len(table.kinds)
    whole = draw(st.integers(0, 3)) > 0
    sides = []
    for _ in range(_ROWS[kind]):
        present = [whole or draw(st.booleans()) for _ in table.kinds]
        sides.append(present if any(present) else [True] * count)
    head = table.table_id.to_bytes(6, "little") + pack("<H", int(last))
    if kind >= 30:
        extra = draw(st.sampled_from((b"", b"", b"", b"\x00\x03\x01")))
        head += pack("<H", 2 + len(extra)) + extra
    head += lenenc_int(count) + b"".join(_bits(present) for present in sides)
    images = b""
    for _ in range(draw(st.sampled_from((1, 1, 2, 5)))):
        for present in sides:
            here = [each for each, is_there in zip(table.kinds, present, strict=True) if is_there]
            images += _image(draw, here, bad=bad)
    return RawEvent(kind, head + images * draw(st.sampled_from((1, 1, 1, 8))))


def _statement(draw: st.DrawFn, made: list[MadeTable], *, bad: bool) -> list[RawEvent]:
    """Draw table maps, and one or more rows events of those tables."""
    events = []
    text = draw(st.sampled_from(("", "", "", "UPDATE é", "x" * 90, "\0")))
    if text:
        events.append(RawEvent(EventType.ROWS_QUERY_LOG_EVENT, rows_query_body(text)))
    changed = draw(st.lists(st.sampled_from(made), min_size=1, max_size=2))
    events += [RawEvent(EventType.TABLE_MAP_EVENT, table.map_body) for table in changed]
    count = draw(st.sampled_from((1, 1, 2, 3)))
    for number in range(count):
        table = draw(st.sampled_from(changed))
        events.append(_rows(draw, table, last=number == count - 1, bad=bad))
    return events


def _transaction(draw: st.DrawFn, made: list[MadeTable], *, bad: bool) -> list[RawEvent]:
    events = []
    match draw(st.integers(0, 7)):
        case 0 | 1:
            number = draw(st.sampled_from((1, 99, 2**63)))
            events.append(RawEvent(EventType.GTID_LOG_EVENT, gtid_body(number)))
        case 2 | 3:
            events.append(RawEvent(EventType.ANONYMOUS_GTID_LOG_EVENT, gtid_body(0)))
        case 4:
            return [*_mariadb_begin(draw), *_statements(draw, made, bad=bad), _end(draw)]
        case 5:
            start, end = (query_body(f"XA {word} X'78',X'',1") for word in ("START", "END"))
            return [
                RawEvent(EventType.QUERY_EVENT, start),
                *_statements(draw, made, bad=bad),
                RawEvent(EventType.QUERY_EVENT, end),
                RawEvent(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"x", one_phase=True)),
            ]
    match draw(st.integers(0, 11)):
        case 10:
            table = draw(st.sampled_from(made)).schema.table
            return [*events, RawEvent(EventType.QUERY_EVENT, query_body(f"TRUNCATE TABLE {table}"))]
        case 11:
            sql = "CREATE TABLE other (a INT)"
            return [*events, RawEvent(EventType.QUERY_EVENT, query_body(sql))]
    begin = query_body(
        draw(st.sampled_from(("BEGIN", "BEGIN", "BEGIN", "begin", "START TRANSACTION"))),
        variables=draw(st.sampled_from((b"", b"", bytes(5), _VARIABLES))),
        thread=draw(st.sampled_from((7, 8))),
    )
    events.append(RawEvent(EventType.QUERY_EVENT, begin))
    return [*events, *_statements(draw, made, bad=bad), _end(draw)]


# Status variables: SQL mode, character sets, and one with an unknown code.
_VARIABLES = b"\x01" + bytes(8) + b"\x04" + bytes(6) + b"\xff"


def _mariadb_begin(draw: st.DrawFn) -> list[RawEvent]:
    """Draw MariaDB's GTID event, which begins a transaction, and perhaps the statement's text."""
    flags = bytes([draw(st.sampled_from((0, 0, 0, 1)))])
    body = pack("<QI", draw(st.integers(1, 99)), 2) + flags + bytes(6)
    events = [RawEvent(EventType.MARIADB_GTID_EVENT, body)]
    if draw(st.booleans()):
        text = b"insert \xe9\xe2\x82 \xe2\x82\xac"
        events.append(RawEvent(EventType.MARIADB_ANNOTATE_ROWS_EVENT, text))
    return events


def _statements(draw: st.DrawFn, made: list[MadeTable], *, bad: bool) -> list[RawEvent]:
    count = draw(st.sampled_from((1, 1, 1, 2, 3)))
    return [event for _ in range(count) for event in _statement(draw, made, bad=bad)]


def _end(draw: st.DrawFn) -> RawEvent:
    match draw(st.integers(0, 19)):
        case 17 | 18:
            return RawEvent(EventType.QUERY_EVENT, query_body("COMMIT"))
        case 19:
            return RawEvent(EventType.QUERY_EVENT, query_body("ROLLBACK"))
        case _:
            return RawEvent(EventType.XID_EVENT, bytes(8))


@st.composite
def logs(draw: st.DrawFn, made: list[MadeTable], *, checksum: bool) -> list[RawEvent]:
    """Draw a FORMAT_DESCRIPTION and some transactions."""
    body = format_description_body(algorithm=int(checksum))
    events = [RawEvent(EventType.FORMAT_DESCRIPTION_EVENT, body)]
    stranger = MadeTable(TableSchema("d", "stranger", ()), _KINDS[:3], 99, b"")
    codes = [kind.code for kind in stranger.kinds]
    map_body = table_map_body(codes, [True] * 3, "stranger", 99)
    known = [*made, replace(stranger, map_body=map_body)]
    # Reading ends at an error, so most logs must have none.
    odd = draw(st.sampled_from((False, False, True)))
    for _ in range(draw(st.integers(1, 6))):
        among = known if odd and draw(st.integers(0, 2)) == 2 else made
        events += _transaction(draw, among, bad=odd)
    return events
