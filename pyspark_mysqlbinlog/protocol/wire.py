"""Checked little-endian reads from one message.

The checked read is the only read: a read past the end raises an error with what was expected and
found; it never returns a short value. Layouts: MySQL's integers are little-endian. A length-encoded
integer is one byte below 251, otherwise 0xfc + 2, 0xfd + 3 or 0xfe + 8 bytes.
"""

from __future__ import annotations

from pyspark_mysqlbinlog.errors import MalformedEventError

__all__ = ["Reader", "lenenc_int"]


class Reader:
    """A cursor over the bytes of one event or packet.

    >>> Reader(b"\\x02\\x00abc", "demo").u16()
    2
    """

    __slots__ = ("data", "end", "pos", "what")

    def __init__(self, data: bytes, what: str, pos: int = 0) -> None:
        self.data = data
        self.what = what
        self.pos = pos
        self.end = len(data)

    def take(self, length: int) -> bytes:
        """Return the next `length` bytes; `length` must not be negative.

        MalformedEventError if there are fewer; then nothing is consumed.
        """
        start = self.pos
        stop = start + length
        if stop > self.end:
            raise MalformedEventError(
                f"{self.what} is cut short: expected {length} bytes at offset {start}, found"
                f" {self.end - start}"
            )
        self.pos = stop
        return self.data[start:stop]

    def uint(self, length: int) -> int:
        """Return the little-endian integer in the next `length` bytes; errors as `take`."""
        return int.from_bytes(self.take(length), "little")

    def u8(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        return self.uint(2)

    def u32(self) -> int:
        return self.uint(4)

    def u48(self) -> int:
        return self.uint(6)

    def u64(self) -> int:
        return self.uint(8)

    def lenenc_int(self) -> int:
        """Return the next length-encoded integer.

        MalformedEventError if it is cut short, or its first byte is invalid (0xfb, 0xff).
        """
        first = self.u8()
        if first < 0xFB:
            return first
        if first == 0xFC:
            return self.uint(2)
        if first == 0xFD:
            return self.uint(3)
        if first == 0xFE:
            return self.uint(8)
        raise MalformedEventError(
            f"{self.what} has 0x{first:02x} at offset {self.pos - 1} where a length-encoded"
            " integer was expected"
        )

    def varlen(self) -> int:
        """Return the next number of MySQL's serialization library, without sign.

        The number of low 1 bits in the first byte is the number of bytes that follow it. Above them
        are a 0 bit and the low bits of the number; the bytes that follow are its high bits. After a
        first byte of 0xff, the number is the 8 bytes that follow.
        """
        first = self.u8()
        more = (~first & (first + 1)).bit_length() - 1
        return (self.uint(more) << 8 | first) >> more + 1 if more < 8 else self.uint(8)

    def lenenc_bytes(self) -> bytes:
        """Return the bytes after their length-encoded length; errors as `lenenc_int` and `take`."""
        return self.take(self.lenenc_int())

    def nul_terminated(self, length: int) -> bytes:
        """Return `length` bytes; MalformedEventError if no 0x00 follows them."""
        value = self.take(length)
        if self.u8() != 0:
            raise MalformedEventError(
                f"{self.what} has no 0x00 after its {length} bytes at offset"
                f" {self.pos - 1 - length}"
            )
        return value

    def rest(self) -> bytes:
        """Return all remaining bytes; may be empty."""
        value = self.data[self.pos : self.end]
        self.pos = self.end
        return value

    @property
    def remaining(self) -> int:
        return self.end - self.pos

    def check_end(self) -> None:
        """Raise MalformedEventError, with their number, if bytes are left over."""
        if self.pos != self.end:
            raise MalformedEventError(
                f"{self.what} has {self.end - self.pos} bytes left over after offset {self.pos}"
            )


def lenenc_int(value: int) -> bytes:
    """Encode a length-encoded integer."""
    if value < 0xFB:
        return bytes([value])
    if value < 1 << 16:
        return b"\xfc" + value.to_bytes(2, "little")
    if value < 1 << 24:
        return b"\xfd" + value.to_bytes(3, "little")
    return b"\xfe" + value.to_bytes(8, "little")
