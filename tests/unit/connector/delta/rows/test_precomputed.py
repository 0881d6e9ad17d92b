"""Precomputed states, which are used only for the changes that they were computed from."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ_TYPE, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore
from pyspark_mysqlbinlog.connector.delta.rows.precomputed import (
    PrecomputedStates,
    precompute_states,
)
from pyspark_mysqlbinlog.connector.delta.rows.states import final_states
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema

TABLE = TableSchema("d", "t", (C("id", "int"), C("v", "int")), ("id",))
WIDER = replace(TABLE, columns=(*TABLE.columns, C("w", "int")))
KEYLESS = replace(TABLE, primary_key=())
NAME = ("d", "t")
SCHEMA = pa.schema(
    [("op", pa.string()), ("before", pa.string()), ("after", pa.string()), ("seq", SEQ_TYPE)]
)


def change(place: int, op: str, before: str | None, after: str | None) -> dict[str, object]:
    seq = {"epoch": 0, "file": 1, "pos": place, "row": 0}
    return {"op": op, "before": before, "after": after, "seq": seq}


CHANGES = pa.Table.from_pylist(
    [
        change(10, "c", None, '{"id":1,"v":1}'),
        change(20, "c", None, '{"id":2,"v":2}'),
        change(30, "u", '{"id":1,"v":1}', '{"id":1,"v":3}'),
        change(40, "d", '{"id":2,"v":2}', None),
    ],
    SCHEMA,
)
STATEMENT = pa.Table.from_pylist([change(25, "t", None, None)], SCHEMA)


def prepared(
    changes: pa.Table, schema: TableSchema, *, last_values: bool = False
) -> PrecomputedStates | None:
    return precompute_states(
        {NAME: changes}, ImageStore(), schemas={NAME: schema}, last_values=last_values
    ).get(NAME)


@pytest.mark.parametrize("last_values", [False, True])
def test_precomputed_states_equal_final_states_of_all_changes(*, last_values: bool) -> None:
    found = prepared(CHANGES, TABLE, last_values=last_values)
    assert found is not None
    assert found.of(CHANGES, TABLE, last_values=not last_values) is None
    states = found.of(CHANGES, TABLE, last_values=last_values)
    assert states == final_states(CHANGES, TABLE, ["id"], last_values=last_values)
    assert states is not None
    tombstone, live_row = states.select(["id", "v", TOMBSTONE]).to_pylist()
    assert tombstone == {"id": 2, "v": 2 if last_values else None, TOMBSTONE: True}
    assert live_row == {"id": 1, "v": 3, TOMBSTONE: False}


def test_precomputed_states_do_not_depend_on_order_of_changes() -> None:
    found = prepared(CHANGES.take([3, 1, 2, 0]), TABLE)
    assert found is not None
    assert found.of(CHANGES, TABLE, last_values=False) == final_states(CHANGES, TABLE, ["id"])


def test_precomputed_states_are_not_used_for_part_of_the_changes() -> None:
    """The other changes are in Delta already, or a TRUNCATE is in between."""
    found = prepared(pa.concat_tables([CHANGES, STATEMENT]), TABLE)
    assert found is not None
    assert found.of(CHANGES, TABLE, last_values=False) is None
    assert found.of(CHANGES.slice(2), TABLE, last_values=False) is None


def test_precomputed_states_are_not_used_for_another_schema_version() -> None:
    found = prepared(CHANGES, TABLE)
    assert found is not None
    assert found.of(CHANGES, WIDER, last_values=False) is None


def test_table_without_key_or_schema_version_has_no_precomputed_states() -> None:
    assert prepared(CHANGES, KEYLESS) is None
    unknown = precompute_states({NAME: CHANGES}, ImageStore(), schemas={}, last_values=False)
    assert unknown == {}


@pytest.mark.parametrize("image", ['{"id":1,"x":1}', '{"id":1,"v":4294967296}'])
def test_unreadable_image_gives_no_precomputed_states(image: str) -> None:
    wrong = pa.Table.from_pylist([change(10, "c", None, image)], SCHEMA)
    assert prepared(wrong, TABLE) is None


def test_excluded_key_column_gives_no_precomputed_states() -> None:
    assert prepared(CHANGES, replace(TABLE, columns=TABLE.columns[1:])) is None
