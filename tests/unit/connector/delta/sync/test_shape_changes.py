"""Changes of columns that rewrite a Delta table: exact values, and each change once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from helpers.mirrors.table_batches import NAME, Change, TableBatches, change
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

NO_SNAPSHOT = SnapshotState(completed=frozenset({NAME}))
TEXT = ColumnSchema("v", "varchar", 10, charset="utf8mb4")


def rows_in(folder: Path) -> list[dict[str, Any]]:
    table = DeltaTable(str(folder)).to_pyarrow_table().drop_columns(["_seq"])
    return sorted(table.to_pylist(), key=repr)


@pytest.mark.parametrize("key", [("k",), ()])
def test_decimal_that_grows_beyond_38_digits_keeps_its_digits_and_its_rows(
    tmp_path: Path, key: tuple[str, ...]
) -> None:
    def table(precision: int) -> TableSchema:
        number = ColumnSchema("k", "decimal", precision, 10, nullable=False)
        return TableSchema("d", "t", (number, TEXT), key)

    target = TableBatches(tmp_path)
    target.batch(
        200,
        change("i", 150, {"k": 0.0, "v": "old"}),
        change("i", 150, {"k": 1e-7, "v": "old"}, row=1),
        change("i", 150, {"k": 1e-9, "v": "kept"}, row=2),
        versions=[(120, table(38))],
        load=NO_SNAPSHOT,
    )
    # ALTER TABLE t MODIFY k DECIMAL(40,10): the first change is of the batch before it.
    target.batch(
        400,
        change("i", 250, {"k": 1e-8, "v": "kept"}),
        change("d", 350, {"k": 0.0, "v": "old"}),
        change("i", 350, {"k": 0.0, "v": "new"}, row=1),
        change("d", 360, {"k": 1e-7, "v": "old"}),
        versions=[(0, table(38)), (300, table(40))],
        load=NO_SNAPSHOT,
    )
    assert target.table.stopped is None
    assert rows_in(tmp_path) == [
        {"k": "0.0000000000", "v": "new"},
        {"k": "0.0000000010", "v": "kept"},
        {"k": "0.0000000100", "v": "kept"},
    ]


@pytest.mark.parametrize("key", [("id",), ()])
def test_replayed_cycle_of_renames_with_changes_of_no_effect_renames_once(
    tmp_path: Path, key: tuple[str, ...]
) -> None:
    def table(*names: str) -> TableSchema:
        columns = (ColumnSchema(name, "varchar", 10, charset="utf8mb4") for name in names)
        return TableSchema("d", "t", (ColumnSchema("id", "int", nullable=False), *columns), key)

    def in_and_out(pos: int, *names: str) -> list[Change]:
        row = {"id": pos} | dict.fromkeys(names, "x")
        return [change("i", pos, row), change("d", pos + 1, row)]

    target = TableBatches(tmp_path)
    first = table("a", "b")
    target.batch(
        200,
        change("i", 150, {"id": 1, "a": "A", "b": "B"}),
        versions=[(120, first)],
        load=NO_SNAPSHOT,
    )
    # CHANGE a c; CHANGE b a; CHANGE c b
    versions = [(0, first), (220, table("c", "b")), (240, table("c", "a")), (260, table("b", "a"))]
    changes = [
        *in_and_out(210, "a", "b"),
        *in_and_out(230, "c", "b"),
        *in_and_out(250, "c", "a"),
        *in_and_out(270, "b", "a"),
    ]
    checkpoint = target.checkpoint()
    for _ in range(2):
        target.put_back(checkpoint)  # killed before Spark's commit
        target.batch(300, *changes, versions=versions, load=NO_SNAPSHOT)
        assert target.table.stopped is None
        assert rows_in(tmp_path) == [{"id": 1, "b": "A", "a": "B"}]
