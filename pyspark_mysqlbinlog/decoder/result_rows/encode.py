"""Rows of a binary result to row images.

A row is a null bitmap and the values that are not NULL; an image is the same, with the values in
their stored form::

    row      0x00 | null bitmap, beginning at its third bit | values
    image    null bitmap | values

The bits after an image's last column are set, as by the server. The number types selected with a
JSON column are in the row, but not in the image. An encoder is made once per column and called once
per value: (payload, pos) -> (bytes of the image, pos after the value). All reads are checked, and a
row must end where its last value does.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.values import Encode, encoders_of
from pyspark_mysqlbinlog.errors import MalformedResultError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.server.result_set import MAX_PAYLOAD

__all__ = ["IMAGES_BYTES", "Encoded", "RowImages"]

# Bytes after which `encode` stops: until they reach the decoder they stay in a processor's cache,
# and malloc has their memory ready (from 128 kB it asks the system, page by page).
IMAGES_BYTES = 1 << 16

_PACKET_HEAD = 4
_ROW, _END, _ERROR = 0x00, 0xFE, 0xFF
_MAX_HELD = 1024


class Encoded(NamedTuple):
    """The result of `RowImages.encode` for a part of a result.

    Attributes
    ----------
    consumed : bytes of the packets that were read.
    images : of `rows` rows.
    ended : the next packet is not a row: the result's end, or an error.
    """

    consumed: int
    rows: int
    images: bytes
    ended: bool


class RowImages:
    """Makes row images from one table's rows."""

    __slots__ = ("_encoders", "_held", "_unused", "plan")

    def __init__(self, plan: ResultPlan) -> None:
        self.plan = plan
        # In the order of the row; additional columns are not in the image.
        self._encoders: list[tuple[Encode, bool]] = []
        for column in plan.columns:
            *additional, encode = encoders_of(column)
            self._encoders += [*((each, False) for each in additional), (encode, True)]
        count = len(plan.columns)
        self._unused = (1 << 8 * ((count + 7) // 8)) - (1 << count)
        # Null bitmap of a row -> that of the image, and the encoders of its values.
        self._held: dict[bytes, tuple[bytes, tuple[Encode, ...]]] = {}

    def encode(self, view: memoryview) -> Encoded:
        """Make images of the rows at the beginning of `view`.

        Stops before a packet that is incomplete, that continues in the next one, or that is not a
        row, and after `IMAGES_BYTES`. Raises the errors of `encode_row`.
        """
        images: list[bytes] = []
        pos = size = 0
        ended = False
        while pos + _PACKET_HEAD < len(view) and size < IMAGES_BYTES:
            begin = pos + _PACKET_HEAD
            length = int.from_bytes(view[pos : pos + 3], "little")
            if length == MAX_PAYLOAD or begin + length > len(view):
                break
            if length and view[begin] in (_END, _ERROR):
                ended = True
                break
            image = self.encode_row(bytes(view[begin : begin + length]))
            images.append(image)
            size += len(image)
            pos = begin + length
        return Encoded(pos, len(images), b"".join(images), ended)

    def encode_row(self, payload: bytes) -> bytes:
        """Return the image of one row.

        Raises
        ------
        MalformedResultError : with the table; the row does not match the plan.
        UntypedNumbers : a document's numbers have types that were not selected.
        UnrepresentableValueError : with the table; their types cannot be selected.
        """
        try:
            return self._image(payload)
        except MySQLBinlogError as error:
            raise error.with_location(table=self.plan.schema.full_name) from None

    def _image(self, payload: bytes) -> bytes:
        begin = 1 + (len(self._encoders) + 9) // 8
        if len(payload) < begin or payload[0] != _ROW:
            raise MalformedResultError(
                f"a row of {len(payload)} bytes begins with 0x{payload[:1].hex()}, expected 0x00"
                f" and a null bitmap of {begin - 1} bytes"
            )
        nulls = payload[1:begin]
        bitmap, encoders = self._held.get(nulls) or self._hold(nulls)
        parts = [bitmap]
        pos = begin
        for encode in encoders:
            part, pos = encode(payload, pos)
            parts.append(part)
        if pos != len(payload):
            raise MalformedResultError(
                f"a row of {len(payload)} bytes has {len(payload) - pos} left over after its last"
                " value"
            )
        return b"".join(parts)

    def _hold(self, nulls: bytes) -> tuple[bytes, tuple[Encode, ...]]:
        bits = int.from_bytes(nulls, "little") >> 2
        if bits >> len(self._encoders):
            raise MalformedResultError(
                f"a row has a NULL after its {len(self._encoders)} columns (null bitmap"
                f" 0x{nulls.hex()})"
            )
        encoders: list[Encode] = []
        image_bits = self._unused
        shown = 0
        for at, (encode, is_shown) in enumerate(self._encoders):
            if not bits >> at & 1:
                encoders.append(encode)
            elif is_shown:
                image_bits |= 1 << shown
            shown += is_shown
        held = image_bits.to_bytes((shown + 7) // 8, "little"), tuple(encoders)
        if len(self._held) >= _MAX_HELD:
            self._held.clear()
        self._held[nulls] = held
        return held
