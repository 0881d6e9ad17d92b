"""GEOMETRY and kin: a 4-byte SRID, little-endian, and the well-known binary form (WKB).

The WKB is passed on as it is stored (always little-endian, byte order mark included): every
geometry library reads it.
"""

from __future__ import annotations

from base64 import b64encode

from pyspark_mysqlbinlog.decoder.values.codec import Codec, make_codec
from pyspark_mysqlbinlog.decoder.values.strings import prefixed_skip

__all__ = ["geometry"]

_SRID_BYTES = 4


def geometry(what: str, length_bytes: int) -> Codec:
    """GEOMETRY, POINT, …. Value: (srid, WKB); JSON: ``{"srid":4326,"wkb":base64}``.

    Old servers hold values that are too short for an SRID: an empty one where a NOT NULL column
    got none (INSERT IGNORE), and what a BLOB held when ALTER made it a geometry. They have no SRID,
    and their bytes stand in place of a WKB, as SELECT shows them.
    """
    skip = prefixed_skip(what, length_bytes)

    def read(data: bytes, pos: int) -> tuple[tuple[int | None, bytes], int]:
        end = skip(data, pos)
        start = pos + length_bytes
        wkb = start + _SRID_BYTES
        if wkb > end:
            return (None, data[start:end]), end
        return (int.from_bytes(data[start:wkb], "little"), data[wkb:end]), end

    def json(value: tuple[int | None, bytes]) -> str:
        srid, wkb = value
        number = "null" if srid is None else srid
        return f'{{"srid":{number},"wkb":"{b64encode(wkb).decode("ascii")}"}}'

    return make_codec(read, skip, json)
