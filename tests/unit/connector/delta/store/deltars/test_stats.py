"""A filter by the value of a long decimal finds its row, however its column was changed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import dataset

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine, DeltalakeTarget

_KIND = pa.decimal128(20, 0)
_LONG, _SHORT = Decimal(2**63 + 1), Decimal(7)
_MANY = 40


def _columns(*names: str) -> pa.Schema:
    fields: list[pa.Field[Any]] = [pa.field(name, _KIND) for name in names]
    return pa.schema([*fields, pa.field(SEQ, SEQ_TYPE)])


def _append(target: DeltalakeTarget, place: int, **values: Decimal) -> None:
    row = values | {SEQ: {"epoch": 0, "file": 1, "pos": place, "row": 0}}
    mark = CommitMarker(
        LogIdentity("s", 0, "mysql-bin"),
        place,
        PositionFingerprint(1000 + place, 1, 10 + place, 100 + place),
        None,
    )
    columns = target.columns()
    assert columns is not None
    target.append(pa.Table.from_pylist([row], columns), mark)


def _assert_found(path: Path) -> None:
    table = DeltaTable(path)
    held, rows = table.to_pyarrow_dataset(), table.to_pyarrow_table().drop([SEQ])
    for name in rows.column_names:
        for value in rows.column(name).drop_null():
            same = dataset.field(name) == pa.scalar(value.as_py(), _KIND)
            assert held.count_rows(filter=same), f"{name} = {value}"


def _target(path: Path, *names: str, **properties: str) -> DeltalakeTarget:
    target = DeltalakeEngine(properties=properties).target(str(path))
    target.create(_columns(*names), {})
    return target


def test_long_decimals_are_found_after_columns_swap_names(tmp_path: Path) -> None:
    target = _target(tmp_path / "t", "a", "b")
    _append(target, 1, a=_LONG, b=_SHORT)
    target.rewrite_columns(_columns("a", "b"), {"a": "b", "b": "a", SEQ: SEQ})
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().column("b").to_pylist() == [_LONG]
    _assert_found(tmp_path / "t")


def test_long_decimal_is_found_after_its_column_moves_to_the_front(tmp_path: Path) -> None:
    """Only the first 32 columns have statistics."""
    names = [f"c{number}" for number in range(_MANY)]
    target = _target(tmp_path / "t", *names)
    _append(target, 1, **dict.fromkeys(names[:-1], _SHORT), **{names[-1]: _LONG})
    kept = names[20:]
    target.rewrite_columns(_columns(*kept), {name: name for name in [*kept, SEQ]})
    _assert_found(tmp_path / "t")


@pytest.mark.parametrize("count", ["-1", "40", "0"])
def test_long_decimal_is_found_with_any_number_of_statistics_columns(
    tmp_path: Path, count: str
) -> None:
    names = [f"c{number}" for number in range(_MANY)]
    properties = {"delta.dataSkippingNumIndexedCols": count}
    target = _target(tmp_path / "t", *names, **properties)
    _append(target, 1, **dict.fromkeys(names[:-1], _SHORT), **{names[-1]: _LONG})
    _assert_found(tmp_path / "t")


def test_long_decimal_is_found_after_table_is_recreated(tmp_path: Path) -> None:
    target = _target(tmp_path / "t", "a")
    _append(target, 1, a=_LONG)
    for file in sorted((tmp_path / "t").rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    target.create(_columns("a"), {})
    _append(target, 1, a=_LONG)
    _assert_found(tmp_path / "t")


def test_short_decimals_keep_their_statistics(tmp_path: Path) -> None:
    target = _target(tmp_path / "t", "a", "b")
    _append(target, 1, a=Decimal(10**15 - 1), b=_SHORT)
    _append(target, 2, a=_SHORT, b=Decimal(10**15))
    files = pa.table(DeltaTable(tmp_path / "t").get_add_actions(flatten=True)).to_pylist()
    assert {file["max.a"] for file in files} == {Decimal(10**15 - 1), _SHORT}
    assert {file.get("max.b") for file in files} <= {_SHORT, None}
