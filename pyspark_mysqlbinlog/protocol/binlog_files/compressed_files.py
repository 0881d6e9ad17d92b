"""Files that are compressed as a whole, with gzip or zstd, read as their decompressed content.

The first bytes show how a file is compressed, whatever its name. It is decompressed as a stream, in
bounded memory. A later position is reached by decompressing everything before it.
"""

from __future__ import annotations

import gzip
import io
import zlib
from typing import IO, TYPE_CHECKING, cast

import pyarrow as pa

from pyspark_mysqlbinlog.errors import MalformedEventError
from pyspark_mysqlbinlog.protocol.binlog_files.locations import Location

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["binlog_name", "is_compressed", "open_content"]

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SUFFIXES = (".gz", ".zst", ".zstd")
_SKIPPED_BYTES = 1 << 18


def binlog_name(path: Location) -> str:
    """Return the binlog's name: the file's name without the suffix of a compressed file."""
    return path.stem if path.suffix.lower() in _SUFFIXES else path.name


def is_compressed(path: Location) -> bool:
    """Whether the file begins like a gzip or zstd file."""
    with path.open("rb") as file:
        return file.read(len(_ZSTD)).startswith((_GZIP, _ZSTD))


def open_content(path: Location) -> io.RawIOBase:
    """Open a file's content, decompressed. Only `read`, `readinto`, `seek`, `close` are supported.

    Reading raises MalformedEventError if the compressed data is damaged or cut short.
    """
    return _Decompressed(path) if is_compressed(path) else path.open("rb", buffering=0)


class _Decompressed(io.RawIOBase):
    """The content of a compressed file."""

    def __init__(self, path: Location) -> None:
        super().__init__()
        self._path = path
        self._open()

    def _open(self) -> None:
        self._here = 0
        self._file = cast("IO[bytes]", self._path.open("rb"))
        magic = self._file.read(len(_ZSTD))
        self._file.seek(0)
        self._source: IO[bytes]
        if magic == _ZSTD:
            opened = pa.PythonFile(cast("io.IOBase", self._file), mode="r")
            self._source = cast("IO[bytes]", pa.CompressedInputStream(opened, "zstd"))
        else:
            self._source = cast("IO[bytes]", gzip.GzipFile(fileobj=self._file))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        try:
            # IO[bytes] has no readinto, but both sources do.
            size: int = self._source.readinto(buffer)  # type: ignore[attr-defined]
        except (EOFError, zlib.error, pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise MalformedEventError(
                f"the compressed file can't be decompressed after {self._here} bytes of content"
                f" ({str(error)[:80]}): it is cut short or damaged; copy it again",
                file=binlog_name(self._path),
            ) from None
        self._here += size
        return size

    def seek(self, pos: int, whence: int = 0, /) -> int:
        assert whence == 0
        if pos < self._here:
            self._source.close()
            self._file.close()
            self._open()
        memory = memoryview(bytearray(min(_SKIPPED_BYTES, max(pos - self._here, 1))))
        while self._here < pos and self.readinto(memory[: pos - self._here]):
            pass
        return self._here

    def close(self) -> None:
        if not self.closed:
            self._source.close()
            self._file.close()
        super().close()
