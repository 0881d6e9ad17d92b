"""The row images of a whole result, a part at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.encode import IMAGES_BYTES, Encoded
from pyspark_mysqlbinlog.protocol.result_set import ResultSet

__all__ = ["MakesImages", "read_images"]


class MakesImages(Protocol):
    """Both implementations: `encode.RowImages` and the kernel's."""

    @property
    def plan(self) -> ResultPlan: ...

    def encode(self, view: memoryview) -> Encoded:
        """See `encode.RowImages.encode`."""
        ...

    def encode_row(self, payload: bytes) -> bytes:
        """See `encode.RowImages.encode_row`."""
        ...


def read_images(result: ResultSet, images: MakesImages) -> Iterator[bytes]:
    """The images of a result's rows, about `IMAGES_BYTES` in each part, or one row that is larger.

    Raises
    ------
    SchemaMismatchError : the result has other columns than the plan; nothing has been given.
    MalformedResultError : a row can't be read.
    LostConnectionError, ServerError : what `ResultSet.next_row` raises.
    """
    images.plan.check(result.columns)
    parts: list[bytes] = []
    size = 0
    while True:
        encoded = images.encode(result.view())
        result.consume(encoded.consumed)
        if encoded.rows:
            parts.append(encoded.images)
        elif encoded.ended or not result.fill():
            # The end, an error, or a row that the buffer has no room for.
            payload = result.next_row()
            if payload is None:
                break
            parts.append(images.encode_row(payload))
        else:
            continue
        size += len(parts[-1])
        if size >= IMAGES_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)
