"""Check that files on disk follow one another, as their server wrote them.

A file's last event is a ROTATE that names the next file, if the server rotated. A server that
stopped or crashed leaves none, and continues with the next number. So the neighbours of a missing
file show it: the previous one names it. The check reads only the files' first and last events, some
kilobytes of each, before any row is returned. The executor of a range repeats it, because its files
may differ under the same names. A scan finds the ROTATE as well, but only after the rows of its
file.

Files were renamed if a name differs from the one in the previous ROTATE. Then the numbers in the
ROTATEs count: in two neighbours they differ by one. Names that end in numbers, as a server's do,
must have those numbers. If neither names nor ROTATEs show a file's number, nothing can be compared,
and the file is assumed to be where its name sorts.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from zlib import crc32

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, file_number
from pyspark_mysqlbinlog.errors import BinlogGapError, FormatError
from pyspark_mysqlbinlog.protocol.binlog_files.compressed_files import binlog_name, open_content
from pyspark_mysqlbinlog.protocol.binlog_files.files import FileEnds, FileStream, file_ends
from pyspark_mysqlbinlog.protocol.binlog_files.locations import Location, located
from pyspark_mysqlbinlog.protocol.checksum import CHECKSUM_LENGTH, ChecksumAlgorithm
from pyspark_mysqlbinlog.protocol.events import HEADER_LENGTH, EventHeader, EventType
from pyspark_mysqlbinlog.protocol.messages import FormatDescription, Rotate

__all__ = ["ChainFile", "FileChain", "check_chain", "check_numbered_successor"]

_LOG = logging.getLogger("pyspark_mysqlbinlog")
# LOG_EVENT_BINLOG_IN_USE_F: the server had the file open when it was copied, or when it crashed.
_IN_USE_FLAG = 0x01
# A ROTATE's position, which is always 4; its name follows, of at most FN_REFLEN bytes.
_ROTATE_POS = FIRST_EVENT.to_bytes(8, "little")
_MAX_ROTATE_BYTES = HEADER_LENGTH + len(_ROTATE_POS) + 512 + CHECKSUM_LENGTH
# Two files with equal beginnings and ends are compared in full.
_COMPARED_BYTES = 1024
_PART_BYTES = 1 << 16
# Maximum seconds between a ROTATE and the next file's first event. The server writes both in
# sequence with the same time: that of the statement that caused the rotation, if there was one
# (sql/log_event.h, get_time). Measured on 5.6, 5.7 and MariaDB: equal, also under SET timestamp.
_MAX_APART_SECONDS = 60

# A file as its server named it: its name up to the number, and the number.
_Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Rotation:
    """A file's last event, if that is a ROTATE."""

    target: str
    timestamp: int
    server_id: int


@dataclass(frozen=True, slots=True)
class ChainFile:
    """The contents of a file's first and last bytes.

    Attributes
    ----------
    head : of its first event; None without a FORMAT_DESCRIPTION, which its reader will report.
    created : when its server was started, if the start began it; 0 in files begun by a rotation.
    ends : size, beginning and end, by which copies are found.
    """

    path: Location
    head: EventHeader | None
    created: int
    rotation: _Rotation | None
    ends: FileEnds

    @property
    def name(self) -> str:
        return binlog_name(self.path)

    @classmethod
    def read(cls, path: Location) -> ChainFile:
        head, created, has_checksums = _head(path)
        ends = file_ends(path, _COMPARED_BYTES, max(_COMPARED_BYTES, _MAX_ROTATE_BYTES))
        rotation = _rotation(ends.end, ends.size, has_checksums=has_checksums)
        return cls(path, head, created, rotation, ends)


def check_chain(paths: Sequence[str], *, is_whole: bool) -> None:
    """Raise BinlogGapError if one of the files does not follow the previous one.

    Parameters
    ----------
    is_whole : these are all files; otherwise others were found to follow the last.

    Also raises UnsupportedEventError and FormatError as `FileStream` does, and OSError.
    """
    if len(paths) < 2:
        return
    files = [ChainFile.read(located(path)) for path in paths]
    _check_no_copies(files)
    is_numbered = all(file_number(file.name) is not None for file in files)
    place: _Place | None = None
    for before, after in pairwise(files):
        place = _check_pair(before, after, place, is_numbered=is_numbered)
        if lacking := _missing_end(before, after):
            _LOG.warning("%s", lacking)
    if is_numbered and is_whole:
        _check_own_number(files[-1])


def check_numbered_successor(before: ChainFile, after: ChainFile) -> None:
    """Raise BinlogGapError unless a file follows another one, as their server numbered them."""
    _check_pair(before, after, None, is_numbered=True)


class FileChain:
    """Checks files as they are read, one after the other: each must follow the previous one."""

    def __init__(self) -> None:
        self._place: _Place | None = None

    def check(self, before: Location, after: Location) -> None:
        """Raise BinlogGapError unless a file follows the previous one, with nothing in between.

        Also raises what `check_chain` does.
        """
        place, self._place = self._place, None
        pair = ChainFile.read(before), ChainFile.read(after)
        _check_no_copies(pair)
        is_numbered = all(file_number(file.name) is not None for file in pair)
        self._place = _check_pair(*pair, place, is_numbered=is_numbered)
        if is_numbered:
            # Any file may be the last one.
            _check_own_number(pair[1])
        if lacking := _missing_end(*pair):
            raise BinlogGapError(lacking, file=pair[0].name)


# --- reading


def _head(path: Location) -> tuple[EventHeader | None, int, bool]:
    """Read the first event's header, `created`, and whether the file's events have checksums."""
    with FileStream(path) as stream:
        try:
            raw = stream.next_event()
            if raw is None or raw[4] != EventType.FORMAT_DESCRIPTION_EVENT:
                return None, 0, False
            described = FormatDescription.parse(raw[HEADER_LENGTH:])
        except FormatError:
            return None, 0, False
    has_checksums = described.checksum is not ChecksumAlgorithm.OFF
    return EventHeader.parse(raw), described.created, has_checksums


def _rotation(end: bytes, size: int, *, has_checksums: bool) -> _Rotation | None:
    """Return the ROTATE that a file of `size` bytes ends with, from its last bytes."""
    at = end.find(_ROTATE_POS)
    while at >= 0:
        raw = end[max(at - HEADER_LENGTH, 0) :]
        if at >= HEADER_LENGTH and len(raw) <= _MAX_ROTATE_BYTES:
            header = EventHeader.parse(raw)
            if header.type == EventType.ROTATE_EVENT and header.length == len(raw):
                # A change of binlog_checksum ends the old file with either kind.
                is_checked = has_checksums or crc32(raw[:-4]) == int.from_bytes(raw[-4:], "little")
                stop = len(raw) - CHECKSUM_LENGTH * is_checked
                if header.log_pos == size & 0xFFFFFFFF:
                    rotate = Rotate.parse(raw[HEADER_LENGTH:stop])
                    return _Rotation(rotate.file, header.timestamp, header.server_id)
        at = end.find(_ROTATE_POS, at + 1)
    return None


def _place_of(name: str) -> _Place | None:
    number = file_number(name)
    return None if number is None else (name.rpartition(".")[0], number)


# --- checks


def _check_no_copies(files: Sequence[ChainFile]) -> None:
    found: dict[FileEnds, ChainFile] = {}
    for file in files:
        other = found.setdefault(file.ends, file)
        # A file without events can't be read twice.
        if other is not file and file.ends.size > FIRST_EVENT and _are_equal(other.path, file.path):
            raise BinlogGapError(
                f"{other.name} and {file.name} have the same bytes: one file's changes would be"
                " read twice; remove one of them from the path",
                file=file.name,
            )


def _are_equal(one: Location, other: Location) -> bool:
    if isinstance(one, Path) and isinstance(other, Path) and one.samefile(other):
        return True
    with open_content(one) as first, open_content(other) as second:
        parts, others = io.BufferedReader(first), io.BufferedReader(second)
        while part := parts.read(_PART_BYTES):
            if part != others.read(_PART_BYTES):
                return False
    return True


def _check_own_number(last: ChainFile) -> None:
    """Check a file of which no successor is known against the number in its ROTATE."""
    if last.rotation is None:
        return
    number, target = file_number(last.name), file_number(last.rotation.target)
    if number is not None and target is not None and target != number + 1:
        raise BinlogGapError(
            f"expected {last.name} to end with a ROTATE to number {number + 1}, found"
            f" {last.rotation.target}: it is another file of its server, renamed, and files may be"
            f" missing before it; {_CURE}",
            file=last.name,
        )


_CURE = (
    "give the files the names that SHOW BINARY LOGS has, and complete the path, or read each"
    " unbroken part separately"
)


def _check_pair(
    before: ChainFile, after: ChainFile, place: _Place | None, *, is_numbered: bool
) -> _Place | None:
    """Check two neighbours; return the next file's number as `_next_place` does.

    is_numbered : their names have numbers, which are compared then.
    """
    if is_numbered:
        _check_next_name(before, after)
    else:
        place = _next_place(before, after, place)
    _check_one_server(before, after)
    _check_one_moment(before, after)
    return place


def _check_next_name(before: ChainFile, after: ChainFile) -> None:
    """Check two files whose names have numbers."""
    if before.rotation is None:
        base, number = _place_of(before.name) or ("", 0)
        if _place_of(after.name) != (base, number + 1):
            digits = len(before.name) - len(base) - 1
            expected = f"{base}.{number + 1:0{digits}}"
            raise BinlogGapError(
                f"{before.name} ends without a ROTATE (its server stopped or crashed there, or the"
                f" file was copied while it was written), so only {expected} can follow; found"
                f" {after.name}: files between them are missing at the path; {_CURE}",
                file=before.name,
            )
    elif after.name != before.rotation.target and not _is_next_by_another_base(before, after):
        raise BinlogGapError(
            f"{before.name} ends with a ROTATE to {before.rotation.target}, which is missing at"
            f" the path; found {after.name} as the next file; {_CURE}",
            file=before.name,
        )


def _is_next_by_another_base(before: ChainFile, after: ChainFile) -> bool:
    """Whether both have kept their numbers and have the same different base name."""
    mine, next_ = _place_of(before.name), _place_of(after.name)
    target = _place_of(before.rotation.target) if before.rotation else None
    if mine is None or next_ is None or target is None:
        return False
    base, number = target
    if mine[0] != next_[0] or mine[0] == base or (mine[1], next_[1]) != (number - 1, number):
        return False
    target = _place_of(after.rotation.target) if after.rotation else None
    return target is None or target == (base, number + 1)


def _next_place(before: ChainFile, after: ChainFile, place: _Place | None) -> _Place | None:
    """Return the next file's number on its server, for any names, if the ROTATEs show it.

    place : of the previous file.
    """
    expected: _Place | None
    if before.rotation is not None:
        expected = _place_of(before.rotation.target)
        if after.name == before.rotation.target:
            return expected
        ending = f"ends with a ROTATE to {before.rotation.target}"
    else:
        expected = None if place is None else (place[0], place[1] + 1)
        ending = "ends without a ROTATE"
        if expected is not None:
            ending += f", so only {expected[0]}.{expected[1]:06} can follow"
    target = _place_of(after.rotation.target) if after.rotation is not None else None
    found = None if target is None else (target[0], target[1] - 1)
    if expected is not None and found is not None and expected != found:
        raise BinlogGapError(
            f"{before.name} {ending}; found {after.name} as the next file, which was"
            f" {found[0]}.{found[1]:06} by its own ROTATE: files are missing between them,"
            f" or their names do not sort as the server's did; {_CURE}",
            file=before.name,
        )
    return found or expected


def _check_one_server(before: ChainFile, after: ChainFile) -> None:
    if before.head is None or after.head is None:
        return
    # A server id that is changed at run time applies from the ROTATE on.
    ids = {before.head.server_id}
    if before.rotation is not None:
        ids.add(before.rotation.server_id)
    if after.head.server_id not in ids:
        raise BinlogGapError(
            f"{before.name} was written by the server with server_id {max(ids)}, and"
            f" {after.name} by {after.head.server_id}: the files are of two servers, or the id was"
            " changed between them; read the files of each separately",
            file=after.name,
        )


def _check_one_moment(before: ChainFile, after: ChainFile) -> None:
    if before.rotation is None or after.head is None:
        return
    apart = abs(after.head.timestamp - before.rotation.timestamp)
    if apart > _MAX_APART_SECONDS:
        raise BinlogGapError(
            f"expected {after.name} to begin when {before.name} ends, in a ROTATE, as its server"
            f" writes both at once; found {apart} seconds between them: the file is of another"
            f" server, or another file of the same server, renamed; {_CURE}",
            file=after.name,
        )


def _missing_end(before: ChainFile, after: ChainFile) -> str:
    """Return what a file lacks if its server must have ended it with a ROTATE; else empty.

    Only a rotation begins the next file without `created`.
    """
    in_use = before.head is not None and before.head.flags & _IN_USE_FLAG
    if in_use and before.rotation is None and after.head is not None and not after.created:
        return (
            f"{before.name} was copied while its server wrote it, and the server wrote more to it"
            f" before it began {after.name}: changes between the copy and the rotation are missing"
            " at the path; copy the file again"
        )
    return ""
