"""The compiled twin of `result_rows.encode.RowImages`, and the choice between the two.

The loop (kernel/result_rows.hpp) goes through the rows that lie in a connection's buffer without
the interpreter, and stops in front of one that it does not understand. The Python twin makes the
image of that row, or says what is wrong with it.
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
    """What makes the row images of a plan in this process."""
    # Rows with answers beside a JSON column are the Python twin's anyhow.
    if implementation() == "python" or plan.asks_beside:
        return RowImages(plan)
    return KernelRowImages(plan)


class KernelRowImages:
    """Makes row images of one table's rows."""

    __slots__ = ("_encoder", "_python", "_stops", "plan")

    def __init__(self, plan: ResultPlan) -> None:
        from pyspark_mysqlbinlog.decoder.kernel._result_rows import (  # noqa: PLC0415 - may be missing
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
        """As `RowImages.encode`."""
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
        """As `RowImages.encode_row`."""
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
    )
