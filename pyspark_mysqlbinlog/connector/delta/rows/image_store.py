"""Typed row images: a batch's changes refer to them by number.

Changes are filtered and sorted a few times before their images are needed. Then only an image's
number is moved; its values stay in Spark's buffers until they are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import int_range, pc
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader

__all__ = ["IMAGE", "ImagePart", "ImageStore", "Side", "SideRows", "with_image_ids"]


# Name of the column with the number of a change's images; null if the images are texts.
IMAGE = "image"
# The low bits of a number are the row in its part; the high bits are the part.
_BITS = 40

# A column of a table: a ChunkedArray, which the stubs describe incompletely.
Column = Any
Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class ImagePart:
    """Images of one table, or of several with the same columns, as structs.

    Attributes
    ----------
    before, after : one for each change; null if a change has none.
    """

    before: pa.ChunkedArray[Any]
    after: pa.ChunkedArray[Any]

    @property
    def nbytes(self) -> int:
        """Approximate bytes of all images."""
        return self.before.nbytes + self.after.nbytes


def with_image_ids(changes: pa.Table, part: int | None) -> pa.Table:
    """Add the column `IMAGE` to changes.

    part : number of the part with their images; None if the images are texts.
    """
    count = changes.num_rows
    if part is None:
        return changes.append_column(IMAGE, pa.nulls(count, pa.int64()))
    first = part << _BITS
    return changes.append_column(IMAGE, int_range(first, count))


class ImageStore:
    """The typed images of a batch's changes, by number."""

    def __init__(self, parts: Sequence[ImagePart] = ()) -> None:
        self._parts = tuple(parts)

    def size_of(self, changes: pa.Table) -> int:
        """Return the approximate bytes, as Arrow, of the images that changes refer to."""
        if IMAGE not in changes.column_names:
            return 0
        numbers: Any = changes.column(IMAGE)
        if len(self._parts) == 1:
            (part,) = self._parts
            count: int = len(numbers) - numbers.null_count
            return part.nbytes * count // max(len(part.after), 1)
        parts = pc.value_counts(pc.shift_right(numbers, _BITS).drop_null())
        return sum(
            self._parts[each["values"]].nbytes
            * each["counts"]
            // max(len(self._parts[each["values"]].after), 1)
            for each in parts.to_pylist()
        )

    def of_side(self, changes: pa.Table, side: Side, rows: RowImageReader) -> SideRows:
        """Return the rows of one side of changes, to read in parts; see `read`."""
        return SideRows(self, changes, side, rows)

    def read(self, changes: pa.Table, side: Side, rows: RowImageReader) -> pa.Table:
        """Return each change's row on one side, as `RowImageReader` reads it; nulls for no row.

        changes : from `with_image_ids`, or without numbers if all images are texts.
        """
        texts: Any = changes.column(side)
        if IMAGE not in changes.column_names:
            return rows.from_json(texts)
        numbers: Any = changes.column(IMAGE)
        if numbers.null_count == len(numbers):
            return rows.from_json(texts)
        found, places = [], []
        for chosen, read in self._read_by_part(texts, numbers, side, rows):
            found.append(read)
            places.append(chosen)
        if len(found) == 1:
            return found[0]
        order = pc.sort_indices(pa.chunked_array(places).combine_chunks())
        return pa.concat_tables(found).take(order)

    def _read_by_part(
        self, texts: Any, numbers: Any, side: Side, rows: RowImageReader
    ) -> Iterator[tuple[Any, pa.Table]]:
        """Yield each part's rows and their indices among all; texts are one part, too."""
        parts = pc.shift_right(numbers, _BITS)
        for part in pc.unique(parts).to_pylist():
            is_its = pc.is_null(parts) if part is None else pc.equal(parts, part)
            places = pc.indices_nonzero(pc.fill_null(is_its, False))
            if part is None:
                yield places, rows.from_json(texts.filter(is_its))
            else:
                chosen = pc.subtract(numbers.filter(is_its), part << _BITS)
                images: pa.ChunkedArray[Any] = getattr(self._parts[part], side)
                yield places, rows.from_structs(images, _taker(chosen))


class SideRows:
    """The rows of changes on one side.

    Attributes
    ----------
    has : whether each change has a row.
    """

    def __init__(
        self, images: ImageStore, changes: pa.Table, side: Side, rows: RowImageReader
    ) -> None:
        self._images = images
        self._changes = changes.select(
            [name for name in (side, IMAGE) if name in changes.column_names]
        )
        self._side: Side = side
        self._rows = rows
        self.has = pc.is_valid(changes.column(side))
        # Texts are parsed once: that is most of the work.
        is_typed = IMAGE in changes.column_names and not changes.column(IMAGE).null_count
        self._read = None if is_typed else images.read(changes, side, rows)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return some columns of all rows; nulls if a change has no row."""
        if self._read is not None:
            return self._read.select(names)
        return self._images.read(self._changes, self._side, self._rows.select(names)).select(names)

    def rows(self, places: Any) -> pa.Table:
        """Return the rows of some changes; `places` must be ascending."""
        is_all = len(places) == self._changes.num_rows
        if self._read is not None:
            return self._read if is_all else self._read.take(places)
        changes = self._changes if is_all else self._changes.take(places)
        return self._images.read(changes, self._side, self._rows)


def _taker(places: pa.ChunkedArray[Any]) -> Callable[[Column], Column]:
    """Return a function that picks a column's values; without a copy if they are consecutive."""
    first = places[0].as_py()
    one_by_one = pa.chunked_array([int_range(first, len(places))])
    if places.equals(one_by_one):
        return lambda column: column.slice(first, len(places))
    return partial(pc.take, indices=places)
