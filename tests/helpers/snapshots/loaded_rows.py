"""Row images from SELECT, compared with the server's rows events of the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from helpers.logs.live_log import client_of, log_events, schemas_of
from helpers.parity.decode_parity import PAYLOADS, Decoded, Parity, Payloads
from helpers.servers import Server
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.table_map import parse_table_name, table_id_of
from pyspark_mysqlbinlog.decoder.kernel.result_rows import KernelRowImages
from pyspark_mysqlbinlog.decoder.payloads.row_counter import RowCounter
from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.encode import RowImages
from pyspark_mysqlbinlog.decoder.result_rows.events import event_blocks
from pyspark_mysqlbinlog.decoder.result_rows.read import read_rows
from pyspark_mysqlbinlog.names import quoted
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, pack_events, unpack_events
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "assert_same_rows",
    "copied",
    "events_of",
    "assert_same_images",
    "raw_client",
    "select_images",
]


def raw_client(server: Server) -> ReplicaClient:
    """Return a client whose SELECTs return the stored bytes."""
    client = client_of(server)
    client.begin_raw_rows()
    return client


def select_images(
    server: Server, schema: TableSchema, payload: Payloads = PAYLOADS["json"]
) -> list[bytes]:
    """Return a table's images ordered by primary key; both implementations must agree."""
    typed = payload.kind == "variant" or (
        payload.kind == "struct" and payload.options.json_type == "variant"
    )
    plan = ResultPlan.make(
        schema,
        payload.columns.excludes,
        typed_json=typed,
        doubles_have_points=server.is_mysql9(),
    )
    key = ", ".join(map(quoted, schema.primary_key))
    order = f"ORDER BY {key}" if key else ""
    with raw_client(server) as client:
        client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        images = list(read_rows(client, plan, order, RowImages))
        compiled = list(read_rows(client, plan, order, KernelRowImages))
    assert b"".join(compiled) == b"".join(images), schema.full_name
    return images


def copied(
    server: Server, database: str, names: Iterable[str]
) -> tuple[list[TableSchema], list[Event]]:
    """Copy tables by one INSERT … SELECT each; return the copies' schemas and their events."""
    names = list(names)
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES',"
            " time_zone = '+00:00', foreign_key_checks = 0"
        )
        for name in names:
            cursor.execute(f"CREATE TABLE `copy_{name}` LIKE `{name}`")
        start = server.position()
        for name in names:
            cursor.execute(f"SHOW COLUMNS FROM `{name}`")
            described = cursor.fetchall()
            written = [
                quoted(str(row[0]))
                for row in described
                if not {"VIRTUAL", "STORED", "PERSISTENT"} & set(str(row[5]).split())
            ]
            columns = ", ".join(written)
            key = [quoted(str(row[0])) for row in described if row[3] == "PRI"]
            order = f" ORDER BY {', '.join(key)}" if key else ""
            cursor.execute(
                f"INSERT INTO `copy_{name}` ({columns}) SELECT {columns} FROM `{name}`{order}"
            )
    wanted = {f"copy_{name}" for name in names}
    schemas = [schema for schema in schemas_of(server, database) if schema.table in wanted]
    return schemas, log_events(server, start, database)


def events_of(schema: TableSchema, events: Iterable[Event]) -> list[Event]:
    """Return one table's table maps and rows events."""
    ids: set[int] = set()
    found = []
    for event in events:
        if event.type == EventType.TABLE_MAP_EVENT:
            table_id, _, table = parse_table_name(event.body)
            if table == schema.table:
                ids.add(table_id)
        elif event.type not in OPERATIONS:
            continue
        if table_id_of(event.body) in ids:
            found.append(event)
    return found


def assert_same_images(
    server: Server, schema: TableSchema, images: Iterable[bytes], events: Iterable[Event]
) -> None:
    """Check that the images equal those of the rows events, byte for byte.

    Exception: the unused bits of the NULL bitmap are 0 in the events of MySQL 9, and 1 in the
    images and in the events of all other servers.
    """
    columns = len(schema.columns)
    last, unused = (columns - 1) // 8, 0xFF << ((columns - 1) % 8 + 1) & 0xFF
    logged_unused = 0 if server.version().startswith("9.") else unused
    counter = RowCounter()
    logged = []
    for event in events:
        body = bytearray(event.body)
        starts = list(counter.starts(event))
        for start in starts:
            assert body[start + last] & unused == logged_unused, schema.full_name
            body[start + last] |= unused
        if starts:
            logged.append(bytes(body[starts[0] :]))
    # Compared outside of `assert`: to show the difference of large rows would take minutes.
    is_same = b"".join(images) == b"".join(logged)
    assert is_same, schema.full_name


def blocks_of(plan: ResultPlan, images: Iterable[bytes]) -> list[EventBlock]:
    return list(
        event_blocks(
            plan, images, file="mysql-bin.000007", pos=(5 << 32) + 4, timestamp=7, server_id=3
        )
    )


def assert_same_rows(
    schema: TableSchema, events: Iterable[Event], images: Iterable[bytes], payload: Payloads
) -> int:
    """Check that both decoders give the logged rows for the images; return the number of rows."""
    parity = Parity([schema], payload, file_ordinal=lambda _: 7)
    logged = parity.kernel(pack_events(events))
    blocks = blocks_of(ResultPlan.make(schema, payload.columns.excludes), images)
    expected = _column(logged, "after")
    assert expected
    for found in (parity.kernel(blocks), parity.python(unpack_events(blocks))):
        rows = _column(found, "after")
        assert len(rows) == len(expected)
        for at, (one, other) in enumerate(zip(rows, expected, strict=True)):
            assert repr(one) == repr(other), f"{schema.full_name}, row {at}"
        assert set(_column(found, "seq", "pos")) == {(5 << 32) + 4}
        assert set(_column(found, "op")) == {"c"}
        assert _column(found, "source", "key") == _column(logged, "source", "key")
        for name in ("missing", "invalid_dates"):
            assert _column(found, "source", name) == _column(logged, "source", name)
    return len(expected)


def _column(decoded: Decoded, *path: str) -> list[object]:
    assert decoded.error is None, decoded.error
    found: list[object] = []
    for batch in decoded.batches:
        column: Any = batch[path[0]]
        for name in path[1:]:
            column = column.field(name)
        found += column.to_pylist()
    return found
