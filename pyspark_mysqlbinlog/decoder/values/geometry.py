"""GEOMETRY and its subtypes: a 4-byte SRID, little-endian, and well-known binary (WKB).

The WKB is returned as stored (always little-endian, with the byte order mark), so that geometry
libraries can read it.
"""

from __future__ import annotations

from base64 import b64encode

from pyspark_mysqlbinlog.decoder.values.codec import Codec, make_codec
from pyspark_mysqlbinlog.decoder.values.strings import prefixed_skip

__all__ = ["geometry"]

_SRID_BYTES = 4


def geometry(what: str, length_bytes: int) -> Codec:
    """GEOMETRY, POINT, …. Value: (srid, WKB); JSON: ``{"srid":4326,"wkb":base64}``.

    On old servers, values may be too short for an SRID: an empty one if a NOT NULL column got no
    value (INSERT IGNORE), and the contents of a BLOB that ALTER made a geometry. They have no SRID,
    and their bytes replace the WKB, as SELECT shows them.
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
