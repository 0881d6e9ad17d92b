"""Conditions of chunks, evaluated by SQLite, compared with the order of tuples."""

from __future__ import annotations

import sqlite3
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_mysqlbinlog.checkpoints.snapshot_state import Bound
from pyspark_mysqlbinlog.connector.snapshot.chunks.chunk_bounds import next_bound
from pyspark_mysqlbinlog.connector.snapshot.chunks.conditions import (
    gaps_after,
    range_condition,
    upper_bound,
)
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import ChunkKey, KeyColumn

VALUES = range(4)
KINDS = st.sampled_from(
    [KeyColumn("", "int"), KeyColumn("", "enum", None, 3), KeyColumn("", "set", None, 2)]
)


def _key(kinds: list[KeyColumn]) -> ChunkKey:
    columns = [
        KeyColumn(f"c`{number}", kind.type, None, kind.label_count)
        for number, kind in enumerate(kinds)
    ]
    return ChunkKey("k", (*columns,), "mark")


def _met(key: ChunkKey, condition: str) -> list[tuple[int, ...]]:
    names = ", ".join("`" + column.name.replace("`", "``") + "`" for column in key.columns)
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({names})")
        marks = ", ".join("?" for _ in key.columns)
        connection.executemany(
            f"INSERT INTO t VALUES ({marks})", product(VALUES, repeat=len(key.columns))
        )
        found = connection.execute(f"SELECT * FROM t WHERE {condition} ORDER BY {names}")
        rows = found.fetchall()
    connection.close()
    return rows


@settings(max_examples=300)
@given(st.data(), st.lists(KINDS, min_size=1, max_size=3))
def test_range_condition_selects_the_rows_between_its_bounds(
    data: st.DataObject, kinds: list[KeyColumn]
) -> None:
    key = _key(kinds)
    bounds = st.none() | st.tuples(*(st.sampled_from(VALUES) for _ in kinds))
    after, upto = data.draw(bounds, "after"), data.draw(bounds, "upto")
    low: Bound | None = None if after is None else tuple(map(str, after))
    high: Bound | None = None if upto is None else tuple(map(str, upto))
    assert _met(key, range_condition(key, low, high)) == [
        row
        for row in product(VALUES, repeat=len(kinds))
        if (after is None or row > after) and (upto is None or row <= upto)
    ]


@settings(max_examples=300)
@given(st.data(), st.lists(KINDS, min_size=1, max_size=3))
def test_gaps_after_a_bound_select_all_later_rows_in_order(
    data: st.DataObject, kinds: list[KeyColumn]
) -> None:
    key = _key(kinds)
    after = data.draw(st.tuples(*(st.sampled_from(VALUES) for _ in kinds)))
    found = []
    for condition, columns in gaps_after(key, tuple(map(str, after))):
        rows = _met(key, condition)
        found += rows
        same = len(kinds) - len(columns)
        assert key.columns[same:] == columns
        assert len({row[:same] for row in rows}) <= 1
    assert found == [row for row in product(VALUES, repeat=len(kinds)) if row > after]


@settings(max_examples=100)
@given(st.data(), st.lists(KINDS, min_size=1, max_size=3))
def test_upper_bound_selects_the_rows_up_to_its_key(
    data: st.DataObject, kinds: list[KeyColumn]
) -> None:
    key = _key(kinds)
    upto = data.draw(st.tuples(*(st.sampled_from(VALUES) for _ in kinds)))
    assert _met(key, upper_bound(key, tuple(map(str, upto)))) == [
        row for row in product(VALUES, repeat=len(kinds)) if row <= upto
    ]


@pytest.mark.parametrize("count", [63, 64, 65, 65535])
def test_enum_labels_after_the_first_64_are_queried_in_lists(count: int) -> None:
    key = ChunkKey("k", (KeyColumn("e", "enum", None, count),), "mark")
    conditions = [condition for condition, _ in gaps_after(key, ("0",))]
    lists = [condition.removeprefix("`e` IN (").rstrip(")") for condition in conditions]
    numbers = ",".join(lists).replace("`e` = ", "").split(",")
    assert [*map(int, numbers)] == [*range(1, count + 1)]
    assert len(conditions) == min(count, 64) + max(0, -(-(count - 64) // 64))


def test_bounds_of_equal_values_with_different_texts_select_the_right_rows() -> None:
    """Equal values can have different texts, as 'a' and 'A' in most collations."""
    key = _key([KeyColumn("", "int"), KeyColumn("", "int")])
    assert _met(key, range_condition(key, ("1", "1"), ("1.0", "2"))) == [(1, 2)]
    assert _met(key, range_condition(key, ("2", "0"), ("1", "3"))) == []


SET_64 = ChunkKey("k", (KeyColumn("s", "set", None, 64), KeyColumn("n", "int")), "mark")
ENUM = ChunkKey("k", (KeyColumn("e", "enum", None, 65535),), "mark")


@pytest.mark.parametrize(
    ("key", "after", "upto", "expected"),
    [
        (SET_64, None, None, "TRUE"),
        # Compared as signed numbers, ordered as unsigned ones.
        (
            SET_64,
            (str(2**64 - 1), "1"),
            (str(2**64 - 1), "9"),
            "`s` = -1 AND `n` > 1 AND `n` <= 9",
        ),
        (
            SET_64,
            (str(2**63 - 1), "1"),
            None,
            (
                "(CAST(`s` AS UNSIGNED) > 9223372036854775807"
                " OR (`s` = 9223372036854775807 AND `n` > 1))"
            ),
        ),
        (
            SET_64,
            (str(2**63 - 1), "1"),
            (str(2**63), "5"),
            (
                "(`s` IN (-9223372036854775808) OR (`s` = 9223372036854775807 AND `n` > 1))"
                " AND (`s` IN (9223372036854775807) OR (`s` = -9223372036854775808 AND `n` <= 5))"
            ),
        ),
        (ENUM, ("65533",), None, "`e` IN (65534,65535)"),
        (ENUM, ("60000",), ("60002",), "`e` IN (60001,60002) AND `e` IN (60000,60001,60002)"),
        # Too many to list.
        (ENUM, ("1",), None, "`e` > 1"),
        (ENUM, ("65535",), None, "FALSE"),
        (ENUM, ("7",), ("7",), "FALSE"),
    ],
)
def test_range_condition_of_enum_and_set_keys_compares_label_numbers(
    key: ChunkKey, after: Bound | None, upto: Bound | None, expected: str
) -> None:
    assert range_condition(key, after, upto) == expected


def test_chunk_of_zero_rows_is_rejected() -> None:
    with pytest.raises(ValueError, match="expected a chunk of 1 or more rows, found 0"):
        # It fails before it uses the client.
        next_bound(None, ("d", "t"), ENUM, None, ("1",), rows=0)  # type: ignore[arg-type]
