"""Logs of rows events, made event by event, or at random: tables of any columns, any images."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

from decoding import make_event, table_map_body
from events import gtid_body, query_body, rows_query_body, xa_prepare_body
from value_bytes import BAD_VALUES, VALUES, field_of

__all__ = [
    "DELETE",
    "FILE",
    "INT",
    "UPDATE",
    "VALUES_OF",
    "WRITE",
    "RowLog",
    "T",
    "int_row",
    "ints",
    "random_log",
]

FILE = "mysql-bin.000003"


class RowLog:
    """Writes events, of made-up positions."""

    def __init__(self, pos: int = 100, file: str = FILE) -> None:
        self.pos = pos
        self.file = file
        self.events: list[Event] = []

    def add(self, kind: int, body: bytes) -> Event:
        event = make_event(EventType(kind), body, self.pos, self.file)
        self.pos = event.end
        self.events.append(event)
        return event

    def table_map(
        self, columns: list[tuple[ColumnSchema, int]], table: str = "t", table_id: int = 7
    ) -> None:
        fields = [field_of(*each) for each in columns]
        nullable = [column.nullable for column, _ in columns]
        self.add(EventType.TABLE_MAP_EVENT, table_map_body(fields, nullable, table, table_id))

    def rows(
        self,
        kind: int,
        columns: int,
        *images: bytes,
        table_id: int = 7,
        present: bytes | None = None,
    ) -> Event:
        """present : the lowest bytes of the bitmap of the images' columns; all are there unless
        given.
        """
        size = (columns + 7) // 8
        bitmap = b"\xff" * size if present is None else present.ljust(size, b"\x00")
        head = table_id.to_bytes(6, "little") + b"\x01\x00\x02\x00" + bytes([columns]) + bitmap
        if kind == EventType.UPDATE_ROWS_EVENT:
            head += bitmap
        return self.add(kind, head + b"".join(images))


WRITE, UPDATE, DELETE = 30, 31, 32
INT = ColumnSchema("c", "int")
T = TableSchema("d", "t", (INT,), ("c",))


def int_row(number: int) -> bytes:
    return b"\x00" + number.to_bytes(4, "little")


def ints(*numbers: int, table: str = "t", table_id: int = 7, log: RowLog | None = None) -> RowLog:
    log = log or RowLog()
    log.table_map([(INT, 0)], table, table_id)
    log.rows(WRITE, 1, *map(int_row, numbers), table_id=table_id)
    return log


# (column, old layout?) -> bytes of its values, and bytes that are none.
VALUES_OF: dict[tuple[ColumnSchema, int], list[bytes]] = {}
for _column, _old, _raw, _ in VALUES:
    VALUES_OF.setdefault((_column, _old), []).append(bytes.fromhex(_raw))
BAD_VALUES_OF: dict[tuple[ColumnSchema, int], list[bytes]] = {}
for _column, _old, _raw, _error in BAD_VALUES:
    BAD_VALUES_OF.setdefault((_column, _old), []).append(bytes.fromhex(_raw))


def random_image(
    random: Random, columns: list[tuple[ColumnSchema, int]], present: list[bool], bad: float
) -> bytes:
    held = [each for each, is_present in zip(columns, present, strict=True) if is_present]
    nulls = [random.random() < 0.2 for _ in held]
    bits = sum(1 << at for at, is_null in enumerate(nulls) if is_null)
    values = [
        random.choice(BAD_VALUES_OF[each])
        if each in BAD_VALUES_OF and random.random() < bad
        else random.choice(VALUES_OF[each])
        for each, is_null in zip(held, nulls, strict=True)
        if not is_null
    ]
    return bits.to_bytes((len(held) + 7) // 8, "little") + b"".join(values)


def random_present(random: Random, columns: int) -> list[bool]:
    if random.random() < 0.6:
        return [True] * columns
    present = [random.random() < 0.5 for _ in range(columns)]
    return present if any(present) else [True] * columns


def bitmap_of(present: list[bool]) -> bytes:
    bits = sum(1 << at for at, is_present in enumerate(present) if is_present)
    return bits.to_bytes((len(present) + 7) // 8, "little")


def random_log(random: Random, bad: float) -> tuple[list[TableSchema], list[Event]]:
    """Tables of random columns, and statements on them in transactions of all kinds."""
    log = RowLog()
    pool = list(VALUES_OF)
    tables: list[list[tuple[ColumnSchema, int]]] = []
    schemas = []
    for number in range(random.randint(1, 3)):
        chosen = random.choices(pool, k=random.randint(1, 14))
        tables.append(chosen)
        columns = tuple(replace(column, name=f"Col {at}é") for at, (column, _) in enumerate(chosen))
        key = random.choice(((), (columns[0].name,)))
        schemas.append(TableSchema("d", f"t{number}", columns, key))
    for number in range(random.randint(1, 12)):
        begin_transaction(random, log, number)
        for _ in range(random.randint(0, 3)):
            if random.random() < 0.4:
                text = random.choice(["insert é", "x" * 90, "\x00"])
                log.add(EventType.ROWS_QUERY_LOG_EVENT, rows_query_body(text))
            at = random.randrange(len(tables))
            log.table_map(tables[at], f"t{at}", 7 + at)
            for _ in range(random.randint(1, 3)):
                random_rows(random, log, tables[at], 7 + at, bad)
        if random.random() < 0.2:
            log.add(EventType.QUERY_EVENT, query_body("COMMIT", thread=number))
        elif random.random() < 0.2:
            log.add(EventType.XA_PREPARE_LOG_EVENT, xa_prepare_body(b"x", one_phase=True))
        else:
            log.add(EventType.XID_EVENT, bytes(8))
    return schemas, log.events


def begin_transaction(random: Random, log: RowLog, number: int) -> None:
    kind = random.randrange(4)
    if kind == 0:
        log.add(EventType.GTID_LOG_EVENT, gtid_body(2**63 + number))
    elif kind == 1:
        log.add(EventType.ANONYMOUS_GTID_LOG_EVENT, gtid_body(0))
    elif kind == 2:
        flags = bytes([random.choice((0, 1))])
        body = number.to_bytes(8, "little") + b"\x02\x00\x00\x00" + flags + bytes(6)
        log.add(EventType.MARIADB_GTID_EVENT, body)
        if random.random() < 0.5:
            log.add(EventType.MARIADB_ANNOTATE_ROWS_EVENT, b"insert \xe9\xe2\x82 \xe2\x82\xac")
        return
    variables = random.choice((b"", bytes(5), b"\x01" + bytes(8) + b"\x04" + bytes(6) + b"\xff"))
    sql = random.choice(("BEGIN", "BEGIN", "begin", "START TRANSACTION", "XA START 'x'"))
    log.add(EventType.QUERY_EVENT, query_body(sql, variables=variables, thread=number))


def random_rows(
    random: Random, log: RowLog, columns: list[tuple[ColumnSchema, int]], table_id: int, bad: float
) -> None:
    kind = random.choice((WRITE, UPDATE, DELETE, 23, 24, 25))
    sides = 2 if kind in (UPDATE, 24) else 1
    present = [random_present(random, len(columns)) for _ in range(sides)]
    head = table_id.to_bytes(6, "little") + b"\x01\x00"
    if kind >= WRITE:
        head += random.choice((b"\x02\x00", b"\x04\x00\x00\x01"))
    head += bytes([len(columns)]) + b"".join(map(bitmap_of, present))
    rows = [
        random_image(random, columns, each, bad)
        for _ in range(random.choice((1, 1, 2, 5, 40)))
        for each in present
    ]
    log.add(kind, head + b"".join(rows))
