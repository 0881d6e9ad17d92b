"""Masked values of the kernel equal those of the Python codecs, which use Python's hmac."""

from __future__ import annotations

from random import Random

import pytest

from pyspark_mysqlbinlog.decoder.transforms.masks import (
    Mask,
    Masking,
    check_mask,
    masked_codec,
)
from pyspark_mysqlbinlog.decoder.values.select_codec import codec_for
from pyspark_mysqlbinlog.errors import MySQLBinlogError, OptionError
from pyspark_mysqlbinlog.tables import ColumnSchema

_values = pytest.importorskip("pyspark_mysqlbinlog.decoder.kernel._values")

MASKS = (Mask("hash"), Mask("redact"), *(Mask("truncate", n) for n in (1, 3, 64)))
MASKS += tuple(Mask("keepLast", n) for n in (1, 4, 63))
TEXT = ColumnSchema("c", "varchar", 300, charset="utf8mb4")
LATIN = ColumnSchema("c", "varchar", 300, charset="latin1")
BINARY = ColumnSchema("c", "varbinary", 300)
PADDED = ColumnSchema("c", "binary", 70)
VARCHAR, STRING, LONGLONG, DOUBLE = 15, 254, 8, 5


def check(code: int, metadata: int, column: ColumnSchema, data: bytes, secret: bytes) -> None:
    """Check that both implementations mask the value equally, or both reject it."""
    unmasked = _values.column_program(code, metadata, column)
    assert unmasked is not None
    for mask in MASKS:
        try:
            check_mask(column, mask)
        except OptionError:
            continue
        codec = masked_codec(codec_for(code, metadata, column), Masking(mask, column, secret))
        kind = mask.kind[0].upper() + mask.kind[1:]
        program = _values.masked_program(unmasked, kind, mask.length, secret)
        found = _values.json_text(program, data, 0)
        try:
            text, end = codec.read_json(data, 0)
        except MySQLBinlogError:
            assert found is None
            continue
        assert found == (text.encode(), end), (mask, data)
        assert _values.skip(program, data, 0) == codec.skip(data, 0)


@pytest.mark.parametrize("size", [16, 63, 64, 65, 200])
def test_kernel_masks_values_and_secrets_of_many_lengths_like_python(size: int) -> None:
    random = Random(size)
    secret = random.randbytes(size)
    for length in (*range(140), 250):
        text = "".join(random.choice('aZ"\\\n\0é漢😀') for _ in range(length)).encode()[:250]
        text = text.decode(errors="ignore").encode()
        raw = random.randbytes(length)
        check(VARCHAR, 300, TEXT, len(text).to_bytes(2, "little") + text, secret)
        check(VARCHAR, 300, LATIN, length.to_bytes(2, "little") + raw, secret)
        check(VARCHAR, 300, BINARY, length.to_bytes(2, "little") + raw, secret)
        check(STRING, 254 << 8 | 70, PADDED, length.to_bytes(1, "little") + raw, secret)


def test_kernel_masks_integers_like_python_and_rejects_invalid_texts() -> None:
    unsigned = ColumnSchema("c", "bigint", unsigned=True)
    for number in (0, 7, 12_345, (1 << 64) - 1):
        check(LONGLONG, 0, unsigned, number.to_bytes(8, "little"), b"k" * 16)
    for data in (b"", b"\x05", b"\x05\x00abc", b"\x02\x00\xff\xfe", b"\x03\x00\xed\xa0\x80"):
        unmasked = _values.column_program(VARCHAR, 300, TEXT)
        program = _values.masked_program(unmasked, "Hash", 0, b"k" * 16)
        # The kernel rejects such values; Python then decodes them or raises the error.
        assert _values.json_text(program, data, 0) is None
