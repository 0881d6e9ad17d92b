"""Columns that the binlog lacks, and dates that a struct cannot store: a field for each."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.logs.live_log import log_events, schemas_of, selected
from helpers.parity.decode_parity import KINDS, Parity, Payloads
from helpers.parity.payload_faces import as_json_rows
from helpers.replay import Replay
from helpers.servers import Server
from pyspark_mysqlbinlog.protocol.blocks import pack_events

pytestmark = pytest.mark.one_server

CHANGES = (
    "SET SESSION sql_mode = '', time_zone = '+00:00'",
    "SET SESSION binlog_row_image = 'MINIMAL'",
    # A name with the sign that precedes the text of a date.
    "CREATE TABLE t (id INT PRIMARY KEY, d DATE, a INT, dt DATETIME(3), `x=y` TIMESTAMP NULL)",
    "INSERT INTO t VALUES (1, '0000-00-00', 1, '2026-11-00', '2026-11-20')",
    "INSERT INTO t VALUES (2, '2026-11-20', 2, '2026-11-20', 0)",
    "UPDATE t SET a = 3, dt = '2026-02-00' WHERE id = 1",
    # The first row's date is invalid in the image that is missing, the second row's is valid.
    "UPDATE t SET d = IF(id = 1, '2026-11-21', '2026-00-20')",
    "UPDATE t SET `x=y` = '2026-11-21' WHERE id = 2",
    "SET SESSION binlog_row_image = 'FULL'",
    "UPDATE t SET `x=y` = 0 WHERE id = 1",
    "UPDATE t SET a = 4 WHERE id = 1",
    "SET SESSION binlog_row_image = 'MINIMAL'",
    "DELETE FROM t WHERE id = 2",
)
NOT_THE_KEY = ["before.d", "before.a", "before.dt", "before.x=y"]
FEBRUARY = "dt=2026-02-00 00:00:00.000"
ZERO = "x=y=0000-00-00 00:00:00"
ONLY_D = [*NOT_THE_KEY, "after.id", "after.a", "after.dt", "after.x=y"]
# For each row: the missing columns, and the invalid dates.
EXPECTED: list[tuple[list[str] | None, list[str] | None]] = [
    (None, ["after.d=0000-00-00", "after.dt=2026-11-00 00:00:00.000"]),
    (None, [f"after.{ZERO}"]),
    ([*NOT_THE_KEY, "after.id", "after.d", "after.x=y"], [f"after.{FEBRUARY}"]),
    (ONLY_D, None),
    (ONLY_D, ["after.d=2026-00-20"]),
    ([*NOT_THE_KEY, "after.id", "after.d", "after.a", "after.dt"], None),
    (None, [f"before.{FEBRUARY}", f"after.{FEBRUARY}", f"after.{ZERO}"]),
    (None, [f"before.{FEBRUARY}", f"before.{ZERO}", f"after.{FEBRUARY}", f"after.{ZERO}"]),
    (NOT_THE_KEY, None),
]


@pytest.mark.parametrize("implementation", ["kernel", "python"])
@pytest.mark.parametrize("kind", KINDS)
def test_missing_columns_and_invalid_dates_have_separate_fields(
    any_server: Server, any_database: str, kind: str, implementation: str
) -> None:
    start = any_server.position()
    any_server.execute(*CHANGES, database=any_database)
    schemas = schemas_of(any_server, any_database)
    events = log_events(any_server, start, any_database)
    parity = Parity(schemas, Payloads(kind), file_ordinal=lambda _: 1)
    found = (
        parity.python(events) if implementation == "python" else parity.kernel(pack_events(events))
    )
    assert found.error is None
    rows: list[dict[str, Any]] = [row for batch in found.batches for row in batch.to_pylist()]
    assert [(row["source"]["missing"], row["source"]["invalid_dates"]) for row in rows] == [
        # JSON and variants store any date as a text.
        (missing, invalid if kind == "struct" else None)
        for missing, invalid in EXPECTED
    ]
    replay = Replay(schemas)
    replay.apply(rows if kind == "json" else as_json_rows(rows, schemas, kind))
    assert replay.count == len(EXPECTED)
    (shown,) = selected(any_server, *schemas)
    replay.assert_equals(any_database, "t", shown)
