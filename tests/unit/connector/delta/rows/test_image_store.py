"""Row images as JSON text, typed or missing, of several parts, in the requested order."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysqlbinlog.connector.delta.rows.image_store import (
    IMAGE,
    ImagePart,
    ImageStore,
    with_image_ids,
)
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader
from pyspark_mysqlbinlog.errors import SchemaError, UnrepresentableValueError
from pyspark_mysqlbinlog.tables import ColumnSchema as C

ROWS = RowImageReader([C("a", "int"), C("b c", "decimal", 9, 2)], "d.t")


def structs(*values: dict[str, Any] | None, **types: pa.DataType) -> pa.ChunkedArray[Any]:
    """Return images with these columns, in two chunks."""
    kind = pa.struct([pa.field(name.replace("_", " "), each) for name, each in types.items()])
    half = len(values) // 2
    return pa.chunked_array([pa.array(values[:half], kind), pa.array(values[half:], kind)])


def changes_of(texts: list[str | None], part: int | None) -> pa.Table:
    return with_image_ids(pa.table({"after": pa.array(texts, pa.string())}), part)


def numbers(first: int, count: int) -> st.SearchStrategy[list[int | None]]:
    """Draw `count` numbers from `first` on, any of which may be None."""
    return st.tuples(*(st.none() | st.just(first + at) for at in range(count))).map(list)


@given(st.data())
def test_images_of_typed_parts_and_texts_are_read_in_requested_order(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 5), max_size=3))
    number, parts, tables, expected = 0, [], [], []
    for part, size in enumerate(sizes):
        found = data.draw(numbers(number, size))
        values = [None if each is None else {"a": each, "b c": Decimal(each)} for each in found]
        parts.append(structs(*values, a=pa.int32(), b_c=pa.decimal128(9, 2)))
        tables.append(changes_of([None if each is None else "" for each in found], part))
        expected += found
        number += size
    found = data.draw(numbers(number, data.draw(st.integers(0, 5))))
    texts = [None if each is None else f'{{"a":{each},"b c":1.50}}' for each in found]
    tables.append(changes_of(texts, None))
    expected += found
    places = data.draw(st.lists(st.integers(0, len(expected) - 1)) if expected else st.just([]))
    chosen = pa.concat_tables(tables).take(pa.array(places, pa.int64()))
    images = ImageStore([ImagePart(part, part) for part in parts])
    read = images.read(chosen, "after", ROWS)
    assert read.schema == ROWS.schema
    assert read.column("a").to_pylist() == [expected[place] for place in places]
    side = images.of_side(chosen, "after", ROWS)
    assert side.has.to_pylist() == [expected[place] is not None for place in places]
    assert side.columns(["a"]) == read.select(["a"])
    some = st.sets(st.integers(0, len(places) - 1)) if places else st.just(set[int]())
    again = pa.array(sorted(data.draw(some)), pa.int64())
    assert side.rows(again) == read.take(again)


def test_json_images_are_read_without_image_ids() -> None:
    changes = changes_of(['{"a":1,"b c":2}'], None).drop([IMAGE])
    assert ImageStore().read(changes, "after", ROWS).to_pylist() == [
        {"a": 1, "b_c": Decimal("2.00")}
    ]


def test_column_missing_in_images_is_read_as_null() -> None:
    images = structs({"a": 1}, {"a": None}, a=pa.int32())
    assert ROWS.from_structs(images).to_pylist() == [
        {"a": 1, "b_c": None},
        {"a": None, "b_c": None},
    ]


def test_unexpected_struct_column_is_rejected_unless_columns_are_selected() -> None:
    images = structs({"a": 1, "x": 1}, a=pa.int32(), x=pa.int32())
    with pytest.raises(SchemaError, match="lacks at this position: x"):
        ROWS.from_structs(images)
    only = RowImageReader([C("a", "int")], "d.t", only=True)
    assert only.from_structs(images).to_pylist() == [{"a": 1}]


def test_column_names_that_look_like_paths_are_read_literally() -> None:
    names = ["id", ".id", ".", "..", "a.b", ".a.b", "a", "[0]", "0", "*", '"id"', "`", "\\"]
    kind = pa.struct([(name, pa.int32()) for name in names])
    images = pa.chunked_array([pa.array([dict(zip(names, range(99), strict=False))], kind)])
    read = RowImageReader([C(name, "int") for name in names], "d.t").from_structs(images)
    assert [column[0].as_py() for column in read.columns] == list(range(len(names)))


def test_size_of_changes_is_that_of_their_typed_images() -> None:
    images = structs({"a": 1}, {"a": 2}, a=pa.int32())
    changes = pa.concat_tables([changes_of(["", ""], 0), changes_of(["{}"], None)])
    typed = ImageStore([ImagePart(images, images)])
    assert typed.size_of(changes) == 2 * images.nbytes
    assert typed.size_of(changes.slice(1)) == images.nbytes
    assert typed.size_of(changes.slice(2)) == typed.size_of(changes.drop([IMAGE])) == 0


def test_numbers_of_another_width_are_cast_to_column_type() -> None:
    images = structs({"a": 7, "b c": Decimal("1.5")}, a=pa.int64(), b_c=pa.decimal128(3, 1))
    assert ROWS.from_structs(images).to_pylist() == [{"a": 7, "b_c": Decimal("1.50")}]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1 << 40, pa.int64()),
        ("1", pa.string()),
        (1.0, pa.float64()),
        (Decimal("1.0"), pa.decimal128(3, 1)),
    ],
)
def test_struct_value_of_another_type_is_rejected(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(UnrepresentableValueError, match="does not fit its column's type"):
        ROWS.from_structs(structs({"a": value}, a=kind))
