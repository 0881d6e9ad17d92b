"""Loaded rows that can't be read: by a statement that the log has not come to, or by themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_mysqlbinlog.checkpoints.load_state import Chunk, LoadState, Place, TableLoad
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.versions import UnknownFrom, Version
from pyspark_mysqlbinlog.connector.delta.apply import SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.deltalake_engine import DeltalakeEngine
from pyspark_mysqlbinlog.connector.delta.marks import LogName, Mark, place_of
from pyspark_mysqlbinlog.connector.delta.mirrored_table import (
    LOADING,
    Batch,
    MirroredTable,
    TableVersions,
)
from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.tables import ColumnSchema, TableSchema

NAME = ("d", "t")
KEY = ColumnSchema("id", "int", nullable=False)
BEFORE = TableSchema(*NAME, (KEY, ColumnSchema("v", "int")), ("id",))
BEHIND = TableSchema(*NAME, (KEY, ColumnSchema("v", "varchar", 9, charset="utf8mb4")), ("id",))
SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("seq", SEQ_TYPE),
        ("query", pa.string()),
        ("absent", pa.list_(pa.string())),
    ]
)
CHUNKS = (Chunk(NAME, "key"),)
WAITING = (TableLoad(NAME, "key"),)
ALTER = "ALTER TABLE t MODIFY v VARCHAR(9)"


def at(pos: int) -> Position:
    return Position.of("bin.000001", pos)


def change(op: str, pos: int, after: Any = None, query: str | None = None) -> dict[str, Any]:
    seq = {"epoch": 0, "file": 1, "pos": pos, "row": -1 if op == "r" else 0}
    image = None if after is None else json.dumps(after)
    return {"op": op, "after": image, "seq": seq, "query": query}


class Mirrored:
    """The table, and batches one behind the other."""

    def __init__(self, folder: Path) -> None:
        self.target = DeltalakeEngine().target(str(folder))
        self.table = MirroredTable(NAME, self.target, lambda _: None)
        self.number, self.start = 0, 100

    def batch(
        self,
        end: int,
        *changes: dict[str, Any],
        versions: tuple[tuple[int, TableSchema | UnknownFrom], ...] = ((4, BEFORE),),
        waiting: tuple[TableLoad, ...] = (),
        chunks: tuple[Chunk, ...] = (),
        read_until: int | None = None,
        lost: int | None = None,
    ) -> None:
        def places(pos: int | None) -> Mapping[Table, Place]:
            return {} if pos is None else {NAME: (1, pos)}

        self.number += 1
        state = LoadState(
            waiting=waiting, chunks=chunks, read_until=places(read_until), lost=places(lost)
        )
        mark = Mark(LogName("uuid", 0), place_of(at(end)), None, ("q", self.number))
        now: list[Version] = [(at(begin), what) for begin, what in versions]
        rows = pa.Table.from_pylist(list(changes), SCHEMA)
        batch = Batch(at(self.start), mark, state, reloads=True)
        self.table.apply(rows, TableVersions(tuple(now)), batch)
        self.start = end

    def rows(self) -> list[tuple[Any, ...]]:
        table = self.target._there().to_pyarrow_table().select(["id", "v"])
        return sorted(tuple(row.values()) for row in table.to_pylist())

    @property
    def is_loading(self) -> bool:
        return bool(self.target.properties().get(LOADING))


@pytest.fixture
def mirrored(tmp_path: Path) -> Mirrored:
    """A batch has loaded a row that fits, and one that does not."""
    mirrored = Mirrored(tmp_path)
    mirrored.batch(200, change("r", 200, {"id": 1, "v": 1}), chunks=CHUNKS, waiting=WAITING)
    mirrored.batch(300, change("r", 350, {"id": 2, "v": "two"}), chunks=CHUNKS, waiting=WAITING)
    return mirrored


def test_the_statement_comes_and_the_table_is_loaded_again(mirrored: Mirrored) -> None:
    # More of the same load, which does not make it whole.
    mirrored.batch(310, chunks=CHUNKS, read_until=350)
    assert mirrored.is_loading
    mirrored.batch(330, read_until=350)
    assert mirrored.is_loading
    versions = ((4, BEFORE), (340, BEHIND))
    told = change("ddl", 340, query=ALTER)
    mirrored.batch(400, told, versions=versions, waiting=WAITING, lost=340)
    rows = [change("r", 500, {"id": n, "v": text}) for n, text in ((1, "1"), (2, "two"))]
    mirrored.batch(500, *rows, versions=((4, BEHIND),), chunks=CHUNKS, lost=340)
    assert mirrored.rows() == [(1, "1"), (2, "two")]
    assert not mirrored.is_loading


def test_no_statement_comes_and_the_table_is_stopped(mirrored: Mirrored) -> None:
    mirrored.batch(310, chunks=CHUNKS, read_until=350)
    mirrored.batch(349, read_until=350)
    with pytest.raises(MirrorError, match="does not fit the table's columns"):
        mirrored.batch(350, read_until=350)


def test_a_table_that_goes_has_no_rows_to_wait_for(mirrored: Mirrored) -> None:
    gone = UnknownFrom("it was dropped", gone=True)
    mirrored.batch(360, versions=((4, BEFORE), (340, gone)))
    assert not mirrored.is_loading
    versions = ((4, gone), (370, BEFORE))
    mirrored.batch(400, change("c", 380, {"id": 3, "v": 3}), versions=versions)
    assert mirrored.rows() == [(3, 3)]
