"""Final states of changes, compared with a dict that is updated row by row."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE, TOMBSTONE
from pyspark_mysqlbinlog.connector.delta.rows.states import (
    final_states,
    latest_per_key,
    sorted_by_seq,
)
from pyspark_mysqlbinlog.tables import ColumnSchema as C
from pyspark_mysqlbinlog.tables import TableSchema

TABLE = TableSchema(
    "d",
    "t",
    (C("a", "int"), C("b", "varchar", 9, charset="utf8mb4"), C("v", "decimal", 9, 2)),
    ("b", "a"),
)
KEYS = st.tuples(st.integers(0, 2), st.sampled_from("xy"))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[Any, Any]]:
    """Draw changes that a server could log, and the final state of each key in them."""
    rows: dict[Any, Any] = {}
    touched: dict[Any, Any] = {}
    changes: list[tuple[str, Any, Any]] = []
    for number in range(draw(st.integers(0, 12))):
        key = draw(KEYS)
        value = f"{number}.25"
        if key not in rows:
            changes.append(("c", None, (key, value)))
            rows[key] = touched[key] = (value, number)
            continue
        before = key, rows.pop(key)[0]
        to = draw(st.one_of(st.none(), st.just(key), KEYS))
        if to is None or to in rows:
            changes.append(("d", before, None))
            touched[key] = (None, number)
            continue
        changes.append(("u", before, (to, value)))
        touched[key] = (None, number)
        rows[to] = touched[to] = (value, number)
    return [_change(number, *each) for number, each in enumerate(changes)], touched


def _change(number: int, op: str, before: Any, after: Any) -> dict[str, Any]:
    return {
        "op": op,
        "before": _text(before),
        "after": _text(after),
        # Several events with several rows each.
        "seq": {"epoch": 0, "file": 1 + number // 8, "pos": 4 + number // 3, "row": number % 3},
    }


def _text(image: Any) -> str | None:
    if image is None:
        return None
    (a, b), v = image
    return '{"a":%d,"b":%s,"v":%s}' % (a, json.dumps(b), v)  # noqa: UP031 (braces)


SCHEMA = pa.schema(
    [("op", pa.string()), ("before", pa.string()), ("after", pa.string()), ("seq", SEQ_TYPE)]
)


@given(histories(), st.randoms(use_true_random=False))
def test_latest_states_per_key_equal_rows_left_by_random_changes(
    history: tuple[list[dict[str, Any]], dict[Any, Any]], random: Any
) -> None:
    changes, touched = history
    random.shuffle(changes)
    ordered = sorted_by_seq(pa.Table.from_pylist(changes, SCHEMA))
    states = latest_per_key(final_states(ordered, TABLE, TABLE.primary_key), TABLE.primary_key)
    found = {
        (row["a"], row["b"]): (None if row[TOMBSTONE] else str(row["v"]), row[SEQ])
        for row in states.to_pylist()
    }
    assert len(found) == states.num_rows
    assert found == {
        key: (value, _change(number, "", None, None)["seq"])
        for key, (value, number) in touched.items()
    }


def test_float_keys_0_and_minus_0_are_one_key() -> None:
    """The server has one row for both, whichever of them it shows."""
    seq = pa.array([{"epoch": 0, "file": 1, "pos": at, "row": 0} for at in range(4)], SEQ_TYPE)
    for kind in (pa.float64(), pa.float32()):
        keys = pa.array([0.0, 1.0, -0.0, 0.5], kind)
        states = pa.table({"k": keys, "v": [1, 2, 3, 4], SEQ: seq, TOMBSTONE: [False] * 4})
        last = latest_per_key(states, ["k"])
        assert last.column("v").to_pylist() == [2, 3, 4]
        assert str(last.column("k")[1]) == "-0.0"


@given(
    st.one_of(
        st.lists(st.integers(0, 5), min_size=1),
        st.lists(st.sampled_from(["", "a", "ab", "ñ"]), min_size=1),
        st.lists(st.floats(width=32, allow_nan=False), min_size=1, unique=True).map(sorted),
        st.lists(st.dates(), min_size=1, unique=True).map(sorted),
    ),
    st.integers(0, 9),
)
def test_latest_states_of_single_column_key_are_its_last_values(keys: list[Any], cut: int) -> None:
    kind = pa.array(keys).type
    seq = pa.array(
        [{"epoch": 0, "file": 1, "pos": at, "row": 0} for at in range(len(keys))], SEQ_TYPE
    )
    states = pa.table(
        {
            "k": pa.chunked_array([keys[:cut], keys[cut:]], kind),
            "v": [*range(len(keys))],
            SEQ: seq,
            TOMBSTONE: [False] * len(keys),
        }
    )
    # 0.0 and -0.0 are the same key.
    last = {key + 0.0 if isinstance(key, float) else key: at for at, key in enumerate(keys)}
    assert latest_per_key(states, ["k"]).column("v").to_pylist() == sorted(last.values())
