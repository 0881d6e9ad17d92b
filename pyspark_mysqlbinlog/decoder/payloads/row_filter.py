"""Whether a row image meets the condition of its table (option `rowFilter`).

The condition is tested on the image as it is in the binlog: before any mask, and whichever columns
the payload excludes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark_mysqlbinlog.decoder.transforms.bound_conditions import BoundCondition
from pyspark_mysqlbinlog.decoder.transforms.concealed import read_concealed
from pyspark_mysqlbinlog.decoder.values.codec import Read, cut_short
from pyspark_mysqlbinlog.errors import UnsupportedEventError

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.decoder.payloads.plan import ImagePlan

__all__ = ["RowFilter"]


class RowFilter:
    """The filter of one table.

    Parameters
    ----------
    condition : bound to the table.
    reads : column -> the function that reads its unmasked value; at least the condition's columns.
    """

    def __init__(self, condition: BoundCondition, reads: Mapping[str, Read]) -> None:
        self._test = condition.test
        # A column's reader, its conversion, and its name in errors.
        self._columns: dict[str, tuple[Read, Callable[[Any], Any], str]] = {
            name: (
                reads[name],
                prepare,
                f"column `{name}`, which the condition of rowFilter needs,",
            )
            for name, prepare in condition.columns.items()
        }

    def check(self, image: ImagePlan, side: str) -> None:
        """Raise UnsupportedEventError if an image lacks a column of the condition."""
        held = {column.name for column in image.columns}
        missing = sorted(self._columns.keys() - held)
        if missing:
            raise UnsupportedEventError(
                f"the {side} image lacks column `{missing[0]}`, which the condition of rowFilter"
                " needs; set binlog_row_image=FULL globally and in every session, then start again"
                " with a new checkpoint after this position"
            )

    def passes(self, image: ImagePlan, data: bytes, pos: int) -> tuple[bool, int]:
        """Return whether the image at `pos` meets the condition, and the position after it."""
        end = pos + image.bitmap_length
        if end > len(data):
            raise cut_short("its null bitmap", image.bitmap_length, data, pos)
        nulls = int.from_bytes(data[pos:end], "little")
        values: dict[str, Any] = {}
        for at, column in enumerate(image.columns):
            needed = self._columns.get(column.name)
            if nulls >> at & 1:
                values[column.name] = None
            elif needed is None:
                end = column.skip(data, end)
            else:
                read, prepare, shown_as = needed
                values[column.name], end = read_concealed(read, prepare, data, end, shown_as)
        return self._test(values) is True, end
