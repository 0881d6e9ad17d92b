"""Where a file is: a path of this machine, or a URL that fsspec reads.

fsspec is imported only for a URL. It takes credentials and settings from the environment and from
its own configuration. Listings are never taken from a cache, because files grow.
"""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from zlib import crc32

from pyspark_mysqlbinlog.errors import OptionError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from fsspec import AbstractFileSystem

__all__ = ["Location", "UrlPath", "files_at", "is_url", "located"]

_FIRST_PART_BYTES = 1 << 16
_MAX_PART_BYTES = 1 << 22
# Fields that change with a file, in the file systems of fsspec.
_CHANGES = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


class _Status(NamedTuple):
    """The fields of os.stat_result that are used."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True, slots=True)
class UrlPath:
    """A file at a URL, with the part of pathlib's Path that is used."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        return PurePosixPath(self.url).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.url).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.url).suffix

    def open(self, mode: str = "rb", buffering: int = 0) -> io.RawIOBase:  # noqa: ARG002 (as Path)
        """Open for reading."""
        return _Parts(*_file_system(self.url), self.stat().st_size)

    def stat(self) -> _Status:
        """Return the size, and a number that differs if the file was changed."""
        system, path = _file_system(self.url)
        system.invalidate_cache()
        found = system.info(path)
        return _Status(int(found["size"]), _change(found))


class _Parts(io.RawIOBase):
    """A file that is fetched in parts, which grow while they are read one after another.

    Without fsspec's own buffers: files in its memory share one position.
    """

    def __init__(self, system: AbstractFileSystem, path: str, size: int) -> None:
        super().__init__()
        self._system, self._path, self._size = system, path, size
        self._here = 0
        self._part, self._begin, self._next = b"", 0, _FIRST_PART_BYTES

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, pos: int, whence: int = 0, /) -> int:
        self._here = pos + (0, self._here, self._size)[whence]
        return self._here

    def tell(self) -> int:
        return self._here

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        memory = memoryview(buffer).cast("B")
        if not self._begin <= self._here < self._begin + len(self._part):
            self._fetch()
        at = self._here - self._begin
        part = self._part[at : at + len(memory)]
        memory[: len(part)] = part
        self._here += len(part)
        return len(part)

    def _fetch(self) -> None:
        if self._here != self._begin + len(self._part):
            self._next = _FIRST_PART_BYTES
        end = min(self._here + self._next, self._size)
        self._part, self._begin = b"", self._here
        if self._here < end:
            self._part = self._system.cat_file(self._path, start=self._here, end=end)
        self._next = min(2 * self._next, _MAX_PART_BYTES)


Location: TypeAlias = Path | UrlPath


def located(text: str) -> Location:
    """Return a file's location; only a URL has a protocol."""
    return UrlPath(text) if is_url(text) else Path(text)


def is_url(text: str) -> bool:
    """Whether a text is a URL, that is, has a protocol."""
    return "://" in text


def files_at(pattern: str) -> tuple[list[Location], str]:
    """Return the files at a path, and its kind: ``file``, ``glob`` or ``folder``."""
    if is_url(pattern):
        return _files_at_url(pattern)
    path = Path(pattern)
    if path.is_dir():
        # It may have thousands of files, and a stream lists it often.
        with os.scandir(path) as children:
            return [Path(child.path) for child in children if child.is_file()], "folder"
    if path.exists():
        return [path], "file"
    paths = glob.glob(pattern)  # noqa: PTH207 (Path.glob refuses an absolute pattern)
    return [child for child in map(Path, paths) if child.is_file()], "glob"


def _files_at_url(pattern: str) -> tuple[list[Location], str]:
    system, path = _file_system(pattern)
    system.invalidate_cache()
    if system.isdir(path):
        found, what = system.ls(path, detail=True), "folder"
    elif system.exists(path):
        return [UrlPath(pattern)], "file"
    else:
        found, what = system.glob(path, detail=True).values(), "glob"
    names = [each["name"] for each in found if each["type"] == "file"]
    return [UrlPath(system.unstrip_protocol(name)) for name in names], what


def _file_system(url: str) -> tuple[AbstractFileSystem, str]:
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 (only for a URL)
    except ImportError:
        raise OptionError(
            f"option path: {url!r} is a URL, which needs fsspec: install the extra fsspec of this"
            " package on the driver and the executors"
        ) from None
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        # The text of the error names the package that the protocol needs.
        raise OptionError(f"option path: {url!r} can't be read by fsspec: {error}") from None
    return system, path


def _change(found: Mapping[str, Any]) -> int:
    return crc32(repr([found.get(name) for name in _CHANGES]).encode())
