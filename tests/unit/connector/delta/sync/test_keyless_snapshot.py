"""Keyless snapshots and the changes around them, applied to a Delta table in batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.mirrors import table_batches
from helpers.mirrors.table_batches import NAME, Change, TableBatches
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk, SnapshotState, TableSnapshotState
from pyspark_mysqlbinlog.checkpoints.versions import UnknownSchema
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

A = ColumnSchema("a", "int")
PLAIN = TableSchema(*NAME, (A,))
WIDE = TableSchema(*NAME, (ColumnSchema("a", "bigint"),))
KEYED = TableSchema(*NAME, (A,), ("a",))
DROPPED = UnknownSchema("it was dropped", is_dropped=True)


def change(
    op: str, pos: int, a: int | None = None, row: int = 0, query: str | None = None
) -> Change:
    image = None if a is None else {"a": a}
    return table_batches.change(op, pos, image, row=row, query=query)


def load(pos: int, *rows: int, attempt: int = 1) -> list[Change]:
    """Return the changes of a keyless snapshot with these rows."""
    row = -2 * attempt
    return [change("t", pos, row=row), *(change("r", pos, a, row + 1) for a in rows)]


class Mirrored(TableBatches):
    # Only the arguments that these tests vary.
    def batch(  # type: ignore[override]
        self,
        end: int,
        *changes: Change,
        versions: Sequence[tuple[int, TableSchema | UnknownSchema]] = ((4, PLAIN),),
        pending: bool = False,
        chunk: str | None = None,
    ) -> None:
        """Apply one batch.

        chunk : the key of the chunk that it reads; "" is the whole table.
        """
        state = SnapshotState(
            pending=(TableSnapshotState(NAME),) if pending else (),
            chunks=() if chunk is None else (Chunk(NAME, chunk),),
        )
        super().batch(end, *changes, versions=versions, load=state, reloads=False)


@pytest.fixture
def mirrored(tmp_path: Path) -> Mirrored:
    return Mirrored(tmp_path)


@pytest.mark.parametrize("restarts", [False, True])
def test_changes_before_keyless_snapshot_position_are_skipped(
    mirrored: Mirrored, restarts: bool
) -> None:
    mirrored.batch(200, change("c", 150, 1), change("d", 160, 7), pending=True)
    assert mirrored.rows() == []
    mirrored.batch(300, change("c", 250, 1), *load(500, 1, 1, 2), chunk="")
    assert mirrored.rows() == [1, 1, 2]
    if restarts:
        mirrored.again()
    mirrored.batch(400, change("c", 350, 2))
    assert mirrored.rows() == [1, 1, 2]
    mirrored.batch(600, change("d", 450, 9), change("c", 500, 3), change("d", 550, 1))
    assert mirrored.rows() == [1, 2, 3]
    # Changes are replayed under a new checkpoint.
    mirrored.start = 400
    mirrored.new_checkpoint("other")
    mirrored.batch(700, change("d", 450, 9), change("c", 500, 3), change("c", 650, 4))
    assert mirrored.rows() == [1, 2, 3, 4]


def test_later_keyless_snapshot_replaces_all_rows(mirrored: Mirrored) -> None:
    mirrored.batch(200, *load(300, 1, 2), *load(300, 1, 1, 2, attempt=2), chunk="")
    assert mirrored.rows() == [1, 1, 2]
    # The existing rows are not part of the next snapshot.
    mirrored.batch(400, change("c", 350, 8), pending=True)
    mirrored.batch(500, *load(500, 5), chunk="")
    mirrored.batch(600, change("c", 500, 6))
    assert mirrored.rows() == [5, 6]
    mirrored.batch(700, *load(700), chunk="")
    assert mirrored.rows() == []


def test_columns_changed_before_keyless_snapshot_position_stop_the_table(
    mirrored: Mirrored,
) -> None:
    mirrored.batch(200, *load(400, 1), chunk="")
    mirrored.batch(300, versions=[(4, PLAIN), (250, WIDE)])
    with pytest.raises(MirrorError, match="altered during its snapshot"):
        mirrored.batch(500, versions=[(4, WIDE)])


def test_columns_changed_after_keyless_snapshot_position_are_applied(mirrored: Mirrored) -> None:
    mirrored.batch(200, *load(250, 1), chunk="")
    versions = [(4, PLAIN), (280, WIDE)]
    mirrored.batch(300, change("c", 260, 2), change("c", 290, 5_000_000_000), versions=versions)
    assert mirrored.rows() == [1, 2, 5_000_000_000]


STOPPED: list[tuple[dict[str, Any], list[Change], str]] = [
    # (arguments of the batch, its changes, reason of the stop)
    (
        {"chunk": ""},
        [change("ddl", 300, row=-2, query="GRANT x")],
        "at one binlog position: GRANT x to this account",
    ),
    ({"chunk": ""}, [*load(300, 1), *load(300, 1)], "read twice"),
    ({"chunk": ""}, load(150, 1), "older than the batch"),
    ({"chunk": ""}, [change("r", 300, 1, -1)], "read by a key"),
    ({"chunk": "mark"}, [], "read by a key"),
    ({"chunk": "mark"}, [*load(300, 1), change("r", 300, 1, -1)], "read by a key"),
    ({"pending": True, "versions": [(4, PLAIN), (190, KEYED)]}, [], "got a key"),
    ({"chunk": "", "versions": [(4, UnknownSchema("x"))]}, load(300, 1), "columns are not known"),
]


@pytest.mark.parametrize(("batch", "changes", "why"), STOPPED)
def test_invalid_keyless_snapshot_stops_the_table(
    mirrored: Mirrored, batch: dict[str, Any], changes: list[Change], why: str
) -> None:
    mirrored.batch(120, pending=True)
    with pytest.raises(MirrorError, match=why):
        mirrored.batch(200, *changes, **batch)


@pytest.mark.parametrize("schema", [PLAIN, KEYED])
def test_table_recreated_before_its_keyless_snapshot_is_read_from_binlog(
    mirrored: Mirrored, schema: TableSchema
) -> None:
    """The table did not exist when its snapshot was due. All of its rows are in the binlog."""
    mirrored.batch(200, change("d", 150, 1), pending=True)
    mirrored.batch(300, change("d", 250, 1))
    assert mirrored.rows() == []
    mirrored.batch(
        400,
        change("d", 310, 1),
        change("c", 360, 2),
        change("c", 370, 3),
        versions=[(4, PLAIN), (320, DROPPED), (350, schema)],
    )
    mirrored.batch(500, change("d", 450, 2), versions=[(4, schema)])
    assert mirrored.rows() == [3]


def test_incomplete_snapshot_of_another_query_stops_the_table(mirrored: Mirrored) -> None:
    mirrored.batch(200, pending=True)
    mirrored.new_checkpoint("other")
    with pytest.raises(MirrorError, match="a snapshot by another query is incomplete"):
        mirrored.batch(300, change("c", 250, 1))
