"""The compiled counterpart of `result_rows.encode.RowImages`, and the selection between them.

The loop (kernel/cpp/loops/result_rows.hpp) encodes the rows in a connection's buffer without the
interpreter, and stops before a row that it does not support. Python encodes the image of that row,
or raises the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.result_rows.columns import Kind, ResultPlan, SelectedColumn
from pyspark_mysqlbinlog.decoder.result_rows.encode import IMAGES_BYTES, Encoded, RowImages

if TYPE_CHECKING:
    from pyspark_mysqlbinlog.decoder.kernel._result_rows import RowEncoder
    from pyspark_mysqlbinlog.decoder.result_rows.read import RowImageEncoder

__all__ = ["KernelRowImages", "row_images"]

_PACKET_HEAD = 4
_FRACTIONAL = (Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP)


def row_images(plan: ResultPlan) -> RowImageEncoder:
    """Return the encoder of a plan's row images for this process."""
    # Rows with an additional column for a JSON column are encoded in Python in any case.
    if implementation() == "python" or plan.has_additional_columns:
        return RowImages(plan)
    return KernelRowImages(plan)


class KernelRowImages:
    """Makes row images of one table's rows."""

    __slots__ = ("_encoder", "_python", "_stops", "plan")

    def __init__(self, plan: ResultPlan) -> None:
        from pyspark_mysqlbinlog.decoder.kernel._result_rows import (  # noqa: PLC0415 (may be missing)
            RowEncoder,
            Stop,
        )

        self.plan = plan
        self._python = RowImages(plan)
        self._stops = Stop
        self._encoder = RowEncoder()
        for column in plan.columns:
            _add_column(self._encoder, column)

    def encode(self, view: memoryview) -> Encoded:
        """Like `RowImages.encode`."""
        consumed, rows, images, stop = self._encoder.encode(view, IMAGES_BYTES)
        if stop != self._stops.Odd:
            return Encoded(consumed, rows, images, stop == self._stops.Ended)
        parts = [images]
        size = len(images)
        while stop == self._stops.Odd:
            begin = consumed + _PACKET_HEAD
            consumed = begin + int.from_bytes(view[consumed : consumed + 3], "little")
            parts.append(self._python.encode_row(bytes(view[begin:consumed])))
            size += len(parts[-1])
            more, count, images, stop = self._encoder.encode(
                view[consumed:], max(IMAGES_BYTES - size, 0)
            )
            parts.append(images)
            size += len(images)
            consumed += more
            rows += 1 + count
        return Encoded(consumed, rows, b"".join(parts), stop == self._stops.Ended)

    def encode_row(self, payload: bytes) -> bytes:
        """Like `RowImages.encode_row`."""
        image = self._encoder.encode_row(payload)
        return self._python.encode_row(payload) if image is None else image


def _add_column(encoder: RowEncoder, column: SelectedColumn) -> None:
    is_decimal = column.kind == Kind.DECIMAL
    encoder.add_column(
        column.kind.name.capitalize(),
        size=column.size,
        is_unsigned=column.schema.unsigned,
        precision=column.metadata >> 8 if is_decimal else 0,
        scale=column.metadata & 0xFF if is_decimal else 0,
        fsp=column.metadata if column.kind in _FRACTIONAL else 0,
        is_typed=column.typed,
        doubles_have_points=column.doubles_have_points,
    )
