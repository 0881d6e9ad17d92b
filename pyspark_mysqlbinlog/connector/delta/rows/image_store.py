"""Row images that come typed: a batch's changes refer to them by number.

Changes are filtered and sorted a few times before anybody looks into them. An image's number goes
along; its values stay where Spark put them until they are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import counted, pc
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader

__all__ = ["IMAGE", "ImagePart", "ImageStore", "Side", "SideRows", "with_image_ids"]


# The column of a change's number; null where its images are texts.
IMAGE = "image"
# Bits of a number that say which row of a part it is; those above, which part.
_BITS = 40

# A column of a table: a ChunkedArray, of which the stubs tell too little.
Column = Any
Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class ImagePart:
    """Images of one table, or of several that have the same columns, as structs of them.

    Attributes
    ----------
    before, after : one for each change; null where a change has none.
    """

    before: pa.ChunkedArray[Any]
    after: pa.ChunkedArray[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of all images, about."""
        return self.before.nbytes + self.after.nbytes


def with_image_ids(changes: pa.Table, part: int | None) -> pa.Table:
    """Changes with the column `IMAGE`.

    part : that has their images; None where they have texts.
    """
    count = changes.num_rows
    if part is None:
        return changes.append_column(IMAGE, pa.nulls(count, pa.int64()))
    first = part << _BITS
    return changes.append_column(IMAGE, counted(first, count))


class ImageStore:
    """The typed images of a batch's changes, by number."""

    def __init__(self, parts: Sequence[ImagePart] = ()) -> None:
        self._parts = tuple(parts)

    def size_of(self, changes: pa.Table) -> int:
        """Bytes of the images that changes refer to, about, as Arrow."""
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
        """The rows of one side of changes, to be looked at in parts; see `read`."""
        return SideRows(self, changes, side, rows)

    def read(self, changes: pa.Table, side: Side, rows: RowImageReader) -> pa.Table:
        """Return each change's row on one side, as `RowImageReader.read` does; nulls for no row.

        changes : from `with_image_ids`, or without numbers, where all are texts.
        """
        texts: Any = changes.column(side)
        if IMAGE not in changes.column_names:
            return rows.read(texts)
        numbers: Any = changes.column(IMAGE)
        if numbers.null_count == len(numbers):
            return rows.read(texts)
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
        """The places of each part's rows among all, and those rows; texts are a part, too."""
        parts = pc.shift_right(numbers, _BITS)
        for part in pc.unique(parts).to_pylist():
            is_its = pc.is_null(parts) if part is None else pc.equal(parts, part)
            places = pc.indices_nonzero(pc.fill_null(is_its, False))
            if part is None:
                yield places, rows.read(texts.filter(is_its))
            else:
                chosen = pc.subtract(numbers.filter(is_its), part << _BITS)
                images: pa.ChunkedArray[Any] = getattr(self._parts[part], side)
                yield places, rows.adopt(images, _picking(chosen))


class SideRows:
    """The rows that changes have on one side.

    Attributes
    ----------
    has : of each change, whether it has one.
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
        # Texts are read once: that is most of the work.
        is_typed = IMAGE in changes.column_names and not changes.column(IMAGE).null_count
        self._read = None if is_typed else images.read(changes, side, rows)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns of all; nulls where a change has no row."""
        if self._read is not None:
            return self._read.select(names)
        return self._images.read(self._changes, self._side, self._rows.only(names)).select(names)

    def rows(self, places: Any) -> pa.Table:
        """The rows of some changes, whose numbers grow."""
        is_all = len(places) == self._changes.num_rows
        if self._read is not None:
            return self._read if is_all else self._read.take(places)
        changes = self._changes if is_all else self._changes.take(places)
        return self._images.read(changes, self._side, self._rows)


def _picking(places: pa.ChunkedArray[Any]) -> Callable[[Column], Column]:
    """What gives a column's values at these places; without a copy where they are neighbours."""
    first = places[0].as_py()
    one_by_one = pa.chunked_array([counted(first, len(places))])
    if places.equals(one_by_one):
        return lambda column: column.slice(first, len(places))
    return partial(pc.take, indices=places)
