"""The multiset of rows in a keyless Delta table, compared with a Counter of the rows."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.rows.row_bytes import (
    MultiplicityChange,
    canonical_row_bytes,
    net_changes,
)
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.multiset import apply_multiset
from pyspark_mysqlbinlog.decoder.schemas.struct_types import GEOMETRY
from pyspark_mysqlbinlog.errors import MirrorError

DAYS = ["0001-01-01", "2026-01-01", "2026-01-01T00:00:00.000001"]
# Values that a careless comparison would treat as equal.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [None, 0, 1]),
    "s": (pa.string(), [None, "", "a", "A", "a ", "1:a", "-", "ä"]),
    "f": (pa.float32(), [None, 0.0, -0.0, 1.5]),
    "d": (pa.float64(), [None, 0.0, -0.0, 0.1]),
    "b": (pa.binary(), [None, b"", b"\x00", b"1:\x00"]),
    "v": (pa.list_(pa.float32()), [None, [], [0.0], [-0.0], [0.0, 1.5]]),
    "n": (pa.decimal128(20, 3), [None, Decimal(0), Decimal("-1.25"), Decimal("1E+3")]),
    "g": (GEOMETRY, [None, {"srid": 0, "wkb": b""}, {"srid": 0, "wkb": b"\x01"}]),
    "t": (
        pa.timestamp("us"),
        [None, *map(dt.datetime.fromisoformat, ("0001-01-01", "2026-01-01T00:00:00.000001"))],
    ),
    "z": (pa.timestamp("us", tz="UTC"), [None, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)]),
    "y": (pa.date32(), [None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "o": (pa.bool_(), [None, False, True]),
}
COLUMNS = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
TABLE = COLUMNS.append(pa.field(SEQ, SEQ_TYPE))
# Rows that differ in one column or two, so that many are equal.
ROWS = st.dictionaries(st.sampled_from(sorted(VALUES)), st.integers(0, 7), max_size=2).map(
    lambda chosen: tuple(
        values[chosen.get(name, 0) % len(values)] for name, (_, values) in VALUES.items()
    )
)


def table_of(rows: list[tuple[Any, ...]], schema: pa.Schema = COLUMNS) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def final_states(changes: list[tuple[bool, tuple[Any, ...]]], pos: int) -> pa.Table:
    seq = {"epoch": 0, "file": 1, "pos": pos, "row": 0}
    rows = [(*row, seq, is_tombstone) for is_tombstone, row in changes]
    return table_of(rows, TABLE.append(pa.field(TOMBSTONE, pa.bool_())))


def mark(pos: int) -> CommitMarker:
    return CommitMarker(LogIdentity("uuid", 0, "mysql-bin"), pos)


def counted(target: DeltaTarget) -> Counter[str]:
    """Count the rows of a Delta table."""
    # The protocol has no method that returns rows; the engine's table has one.
    held = target._there().to_pyarrow_table().select(COLUMNS.names)  # type: ignore[attr-defined]
    return shown(held)


def shown(rows: pa.Table) -> Counter[str]:
    """Count rows by repr, which distinguishes -0.0 from 0.0."""
    return Counter(map(repr, rows.to_pylist()))


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.booleans()), max_size=12))
def test_net_changes_equal_counting_row_by_row(
    changes: list[tuple[bytes, bool]],
) -> None:
    expected = {}
    for row in dict(changes):
        steps = [
            (at, -1 if removed else 1) for at, (each, removed) in enumerate(changes) if each == row
        ]
        sums = [sum(step for _, step in steps[: count + 1]) for count in range(len(steps))]
        expected[row] = MultiplicityChange(steps[-1][0], sums[-1], min(0, *sums))
    found = net_changes([row for row, _ in changes], [removed for _, removed in changes])
    assert sorted(map(repr, found)) == sorted(map(repr, expected.values()))


@given(st.lists(ROWS, min_size=2, max_size=8))
def test_canonical_row_bytes_are_equal_only_for_equal_rows(rows: list[tuple[Any, ...]]) -> None:
    texts = canonical_row_bytes(table_of(rows)).to_pylist()
    assert [texts.index(text) for text in texts] == [
        [*map(repr, rows)].index(repr(row)) for row in rows
    ]


@st.composite
def batches(draw: st.DrawFn) -> list[list[tuple[bool, tuple[Any, ...]]]]:
    """Draw changes that a server could log: only existing rows are deleted."""
    pool = draw(st.lists(ROWS, min_size=1, max_size=5))
    there: Counter[str] = Counter()
    found = []
    for _ in range(3):
        batch = []
        for row in draw(st.lists(st.sampled_from(pool), max_size=10)):
            is_tombstone = there[repr(row)] > 0 and draw(st.booleans())
            there[repr(row)] += -1 if is_tombstone else 1
            batch.append((is_tombstone, row))
        found.append(batch)
    return found


@given(batches())
@settings(max_examples=25)
def test_keyless_delta_table_equals_multiset_of_random_changes(
    changes: list[list[tuple[bool, tuple[Any, ...]]]],
) -> None:
    there: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        target = DeltalakeEngine().target(f"{folder}/t")
        target.create(TABLE, {})
        for number, batch in enumerate(changes, 1):
            for is_tombstone, row in batch:
                (there.subtract if is_tombstone else there.update)(shown(table_of([row])))
            apply_multiset(target, final_states(batch, number), mark(number), "d.t")
            assert counted(target) == +there


GONE_TOO_OFTEN = [
    # (changes, rows of the Delta table before)
    ([(True, 2)], [1]),
    ([(True, 1), (True, 1)], [1]),
    # The deleted row does not exist, although it is inserted later.
    ([(True, 2), (False, 2)], [1]),
    ([(False, 1), (True, 1), (True, 1), (True, 1), (False, 1)], [1]),
]


@pytest.mark.parametrize(("changes", "before"), GONE_TOO_OFTEN)
def test_delete_of_missing_keyless_row_stops_table_without_commit(
    changes: list[tuple[bool, int]], before: list[int], tmp_path: Path
) -> None:
    def row(number: int) -> tuple[Any, ...]:
        return (number, *(None for _ in COLUMNS.names[1:]))

    target = DeltalakeEngine().target(str(tmp_path))
    target.create(TABLE, {})
    apply_multiset(target, final_states([(False, row(n)) for n in before], 1), mark(1), "d.t")
    found = counted(target)
    others = [(False, row(9)), *((removed, row(number)) for removed, number in changes)]
    with pytest.raises(MirrorError, match=r"^up to position 2 of .* it differs from the server"):
        apply_multiset(target, final_states(others, 2), mark(2), "d.t")
    # No change of the batch is applied.
    assert counted(target) == found
    assert target.txn_version(str(mark(2).log)) == 1
