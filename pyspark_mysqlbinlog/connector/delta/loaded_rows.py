"""Loaded rows that come typed: a batch's changes refer to them by number.

Changes are filtered and sorted a few times before anybody looks into them. A row's number goes
along; its values stay where Spark put them until they are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import compute

from pyspark_mysqlbinlog.connector.delta.typed import TypedRows

__all__ = ["LOADED", "LoadedRows", "with_numbers"]

# The stubs know neither chunked arrays beside plain values nor what comes of them.
pc: Any = compute

# The column of a change's number; null where its images are texts.
LOADED = "loaded"
# Bits of a number that say which row of a part it is; those above, which part.
_BITS = 40


def with_numbers(changes: pa.Table, part: int | None) -> pa.Table:
    """Changes with the column `LOADED`.

    part : of which they are the rows; None where they have texts.
    """
    count = changes.num_rows
    if part is None:
        return changes.append_column(LOADED, pa.nulls(count, pa.int64()))
    first = part << _BITS
    return changes.append_column(LOADED, pa.array(range(first, first + count), pa.int64()))


class LoadedRows:
    """The typed images of a batch's loaded rows, by number.

    Parameters
    ----------
    parts : of each, the images of its rows: structs with the columns of one table, or of several
        that have the same.
    """

    def __init__(self, parts: Sequence[pa.ChunkedArray[Any]] = ()) -> None:
        self._parts = tuple(parts)

    def size_of(self, changes: pa.Table) -> int:
        """Bytes of the images that changes refer to, about, as Arrow."""
        if LOADED not in changes.column_names:
            return 0
        parts = pc.value_counts(pc.shift_right(changes.column(LOADED), _BITS).drop_null())
        return sum(
            self._parts[each["values"]].nbytes
            * each["counts"]
            // max(len(self._parts[each["values"]]), 1)
            for each in parts.to_pylist()
        )

    def read(self, changes: pa.Table, rows: TypedRows) -> pa.Table:
        """What the changes' column `after` holds, none of which is null, as `TypedRows.read` does.

        changes : from `with_numbers`, or without numbers, where all are texts.
        """
        texts: Any = changes.column("after")
        if LOADED not in changes.column_names:
            return rows.read(texts)
        numbers: Any = changes.column(LOADED)
        if numbers.null_count == len(numbers):
            return rows.read(texts)
        found, places = [], []
        for chosen, read in self._read_by_part(texts, numbers, rows):
            found.append(read)
            places.append(chosen)
        if len(found) == 1:
            return found[0]
        order = pc.sort_indices(pa.chunked_array(places).combine_chunks())
        return pa.concat_tables(found).take(order)

    def _read_by_part(
        self, texts: Any, numbers: Any, rows: TypedRows
    ) -> Iterator[tuple[Any, pa.Table]]:
        """The places of each part's rows among all, and those rows; texts are a part, too."""
        parts = pc.shift_right(numbers, _BITS)
        for part in pc.unique(parts).to_pylist():
            is_its = pc.is_null(parts) if part is None else pc.equal(parts, part)
            places = pc.indices_nonzero(pc.fill_null(is_its, False))
            if part is None:
                yield places, rows.read(texts.filter(is_its))
            else:
                chosen = pc.subtract(numbers.filter(is_its), part << _BITS)
                yield places, rows.adopt(_rows_at(self._parts[part], chosen))


def _rows_at(images: pa.ChunkedArray[Any], places: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The images at these places; without a copy where the places follow one another."""
    first = places[0].as_py()
    one_by_one = pa.chunked_array([pa.array(range(first, first + len(places)), pa.int64())])
    if places.equals(one_by_one):
        return images.slice(first, len(places))
    return images.take(places)
