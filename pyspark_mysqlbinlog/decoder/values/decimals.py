"""DECIMAL: digits packed in groups of nine, decoded to exact text.

strings/decimal.c, decimal2bin: the digits before the point are divided into groups of nine from the
point leftwards, those after it from the point rightwards. A full group takes 4 bytes big-endian; a
group of 1..8 digits takes 1, 1, 2, 2, 3, 3, 4, 4 bytes. The first bit is inverted so that the bytes
sort; in a negative number every bit is inverted. decimal(14,4) with 1234567890.1234::

    81 0d fb 38 d2 04 d2       81 -> 1 | 0d fb 38 d2 -> 234567890 | 04 d2 -> 1234

The whole value is read as one big integer, from which the groups are shifted out; floats are not
used.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.decoder.values.codec import Codec, cut_short, fixed_skip, make_codec
from pyspark_mysqlbinlog.errors import MalformedEventError

__all__ = ["BYTES_OF_DIGITS", "decimal", "decimal_size", "digit_groups"]

# By the number of digits in a group.
BYTES_OF_DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def digit_groups(precision: int, scale: int) -> tuple[list[int], list[int]]:
    """Return the digits of each group, before and after the point."""
    before, after = precision - scale, scale
    left = ([before % 9] if before % 9 else []) + [9] * (before // 9)
    right = [9] * (after // 9) + ([after % 9] if after % 9 else [])
    return left, right


def decimal_size(precision: int, scale: int) -> int:
    """Return the bytes of a stored DECIMAL(precision, scale)."""
    left, right = digit_groups(precision, scale)
    return sum(BYTES_OF_DIGITS[digits] for digits in left + right)


def decimal(what: str, precision: int, scale: int) -> Codec:
    """NEWDECIMAL. Value: text, with exactly `scale` digits after the point, as SELECT shows it."""
    size = decimal_size(precision, scale)
    left, right = digit_groups(precision, scale)
    shift = size * 8
    fields: list[tuple[int, int, int]] = []  # (shift, mask, 10 ** digits), first group first
    for digits in left + right:
        width = BYTES_OF_DIGITS[digits] * 8
        shift -= width
        fields.append((shift, (1 << width) - 1, 10**digits))
    whole_fields, fraction_fields = fields[: len(left)], fields[len(left) :]
    sign_bit = 1 << (size * 8 - 1)
    all_bits = (1 << (size * 8)) - 1

    def read(data: bytes, pos: int) -> tuple[str, int]:
        end = pos + size
        if end > len(data):
            raise cut_short(what, size, data, pos)
        packed = int.from_bytes(data[pos:end], "big") ^ sign_bit
        negative = packed & sign_bit
        if negative:
            packed ^= all_bits
        whole = fraction = 0
        for shift, mask, limit in whole_fields:
            group = packed >> shift & mask
            if group >= limit:
                raise _bad_group(what, group, limit, data[pos:end])
            whole = whole * limit + group
        for shift, mask, limit in fraction_fields:
            group = packed >> shift & mask
            if group >= limit:
                raise _bad_group(what, group, limit, data[pos:end])
            fraction = fraction * limit + group
        # MySQL has no -0: decimal.c clears the sign of a zero.
        sign = "-" if negative and (whole or fraction) else ""
        return (f"{sign}{whole}.{fraction:0{scale}d}" if scale else f"{sign}{whole}"), end

    return make_codec(read, fixed_skip(what, size), str, read)


def _bad_group(what: str, group: int, limit: int, raw: bytes) -> MalformedEventError:
    return MalformedEventError(
        f"{what} has a digit group of {group}, expected less than {limit}, in 0x{raw.hex()}"
    )
