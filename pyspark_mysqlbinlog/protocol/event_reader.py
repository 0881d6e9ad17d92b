"""From raw events to verified events with a position: positions, checksums, files.

A dump differs from the bytes of the file. It begins with an artificial ROTATE, repeats the file's
FORMAT_DESCRIPTION if it starts in mid-file, and contains heartbeats. The reader tracks the position
by adding up lengths, verifies every checksum, and returns only events that are in the binlog. A
header's log_pos wraps at 4 GiB, and is 0 in artificial events. MariaDB 11.4 and later leave it 0 in
the events between the GTID event of a transaction and its end, too (binlog_legacy_event_pos=OFF,
the default). Every log_pos that is sent is compared with the position.

A file may contain the events of another server: a relay log, or a dump that was saved. See
`relayed_positions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pyspark_mysqlbinlog.errors import (
    FormatError,
    InvalidPositionError,
    MalformedEventError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.checksum import CHECKSUM_LENGTH, ChecksumAlgorithm, verify
from pyspark_mysqlbinlog.protocol.compressed import COMPRESSED_TYPES, expand
from pyspark_mysqlbinlog.protocol.events import (
    ARTIFICIAL_FLAG,
    HEADER,
    HEADER_LENGTH,
    RELAY_LOG_FLAG,
    Event,
    EventHeader,
    EventType,
    type_name,
)
from pyspark_mysqlbinlog.protocol.messages import FormatDescription, Rotate
from pyspark_mysqlbinlog.protocol.relayed_positions import RelayedPositions

__all__ = ["EventReader", "FileHead"]

_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_ROTATE = int(EventType.ROTATE_EVENT)
_MAY_BEGIN_RELAYED = (_FORMAT_DESCRIPTION, _ROTATE)
_IGNORABLE = int(EventType.IGNORABLE_LOG_EVENT)
# Types of the events that a server repeats for a dump that starts in mid-file. A repeated
# START_ENCRYPTION has no artificial flag (MariaDB's sql_repl.cc). In the file they have positions.
_REPEATED = frozenset(
    {
        _FORMAT_DESCRIPTION,
        _ROTATE,
        int(EventType.MARIADB_GTID_LIST_EVENT),
        int(EventType.MARIADB_START_ENCRYPTION_EVENT),
    }
)
_PAYLOAD = int(EventType.TRANSACTION_PAYLOAD_EVENT)
_HEARTBEATS = (int(EventType.HEARTBEAT_LOG_EVENT), int(EventType.HEARTBEAT_LOG_EVENT_V2))


# Matches a server's version text. binlog_legacy_event_pos exists from 11.4 on (its documentation).
# 10.11 sends all positions; 11.8 sends them as described above (measured on both).
_MARIADB_VERSION = re.compile(r"(\d+)\.(\d+)\.\d+(?:[-.]\d+)*-MariaDB")
_FIRST_WITHOUT_POSITIONS = (11, 4)


class FileHead(NamedTuple):
    """The header of a file's FORMAT_DESCRIPTION, also of a repeated one.

    Attributes
    ----------
    created : seconds since 1970 UTC.
    """

    created: int
    server_id: int


class EventReader:
    """Reads the raw events of one dump or one file, in order.

    Parameters
    ----------
    file, pos : start position.
    checksum : algorithm of the events before the first FORMAT_DESCRIPTION: none in a file, the
        server's own setting in a dump (the artificial ROTATE at its start uses it).
    on_version : called with the version of the server that wrote each file, from its
        FORMAT_DESCRIPTION; also for one that is repeated for a start in mid-file.
    on_heartbeat : called for each heartbeat: the server sends it at the end of its binlog.
    on_file : called with the name of each file whose events follow, from a dump's artificial
        ROTATE; until it returns, `file` and `pos` keep their old values.
    on_head : called with the head of each file and its FORMAT_DESCRIPTION; until it returns, `head`
        is that of the previous file.
    of_file : the events come from a file, which may be a relay log; otherwise from a dump.

    Attributes
    ----------
    file, pos : end of the last event that was read, and start of the next.
    head : of the current file; None before its FORMAT_DESCRIPTION.
    may_lack_positions : the server that wrote the file leaves log_pos 0 inside transactions.
    relayed : in a file that contains another server's events, after the first of them; else None.
    """

    def __init__(
        self,
        file: str,
        pos: int,
        checksum: ChecksumAlgorithm = ChecksumAlgorithm.OFF,
        on_version: Callable[[str], None] | None = None,
        on_heartbeat: Callable[[], None] | None = None,
        *,
        on_file: Callable[[str], None] | None = None,
        on_head: Callable[[FileHead, FormatDescription], None] | None = None,
        of_file: bool = False,
    ) -> None:
        self.file = file
        self.pos = pos
        self._checksum = checksum
        self._start = pos
        self.head: FileHead | None = None
        self.may_lack_positions = False
        self.relayed: RelayedPositions | None = None
        self._of_file = of_file
        self._on_version = on_version
        self._on_heartbeat = on_heartbeat
        self._on_file = on_file
        self._on_head = on_head

    def seek(self, pos: int) -> None:
        """Continue at another position of the same file."""
        self.pos = self._start = pos

    @property
    def has_format(self) -> bool:
        """Whether a FORMAT_DESCRIPTION was read, so that the events after it can be read."""
        return self.head is not None

    @property
    def has_checksums(self) -> bool:
        """Whether events end in a CRC32."""
        return self._checksum is not ChecksumAlgorithm.OFF

    @property
    def shift(self) -> int:
        """The amount by which log_pos exceeds the position after its event, modulo 2^32."""
        return 0 if self.relayed is None else self.relayed.shift or 0

    def skip(self, header: EventHeader) -> None:
        """Skip an event of a file by its header. It must not be a FORMAT_DESCRIPTION."""
        try:
            self._follow_relayed(header.type, header.flags, header.log_pos, header.length)
        except FormatError as error:
            raise error.with_location(self.file, self.pos) from None
        self.pos += header.length

    def advance(self, pos: int) -> None:
        """Skip to `pos`: the compiled scan has read the events up to it, by the rules of `feed`."""
        self.pos = pos

    def feed(self, raw: bytes) -> Event | None:
        """Read one raw event, header and checksum included.

        Return None for events that are not in the binlog: heartbeats, artificial and repeated ones.
        """
        try:
            return self._feed(raw)
        except FormatError as error:
            if self.pos == self._start and self._start > 4:
                raise InvalidPositionError(
                    f"no event begins here ({error.message}); give a position that SHOW BINLOG"
                    f" EVENTS IN '{self.file}' lists",
                    file=self.file,
                    position=self.pos,
                ) from None
            raise error.with_location(self.file, self.pos) from None

    def _feed(self, raw: bytes) -> Event | None:
        size = len(raw)
        if size < HEADER_LENGTH:
            raise MalformedEventError(
                f"an event of {size} bytes is shorter than its header of {HEADER_LENGTH}"
            )
        timestamp, kind, server_id, length, log_pos, flags = HEADER.unpack_from(raw)
        if length != size:
            raise MalformedEventError(
                f"{type_name(kind)} has an event length of {length} bytes, found {size}"
            )
        if self._of_file and kind in _MAY_BEGIN_RELAYED:
            self._maybe_begin_relayed(kind, flags)
        is_relayed = self.relayed is not None
        if kind == _FORMAT_DESCRIPTION:
            head = FileHead(timestamp, server_id)
            body = self._format_description(raw, head, repeated=log_pos == 0)
            self.head = head
        elif self._checksum:
            verify(raw)
            body = raw[HEADER_LENGTH : size - CHECKSUM_LENGTH]
        else:
            body = raw[HEADER_LENGTH:]

        if is_relayed:
            kind, flags = self._follow_relayed(kind, flags, log_pos, size)
        elif kind in _HEARTBEATS:
            if self._on_heartbeat is not None:
                self._on_heartbeat()
            return None
        lacks_position = log_pos == 0 and not self._ends_at_a_wrap(kind, size)
        is_made = flags & ARTIFICIAL_FLAG or (lacks_position and not self._is_of_file(kind))
        if is_made and not is_relayed:
            if kind == _ROTATE:
                rotate = Rotate.parse(body)
                if self._on_file is not None:
                    self._on_file(rotate.file)
                self.file, self.pos = rotate.file, rotate.pos
                self._start = rotate.pos
            return None
        if not (self.has_format or kind == _IGNORABLE):
            raise MalformedEventError(
                f"{type_name(kind)} comes before any FORMAT_DESCRIPTION: this is not a binlog of"
                " MySQL 5.0 or later"
            )

        start = self.pos
        end = start + size
        if end & 0xFFFFFFFF != log_pos and not lacks_position and not is_relayed:
            raise MalformedEventError(
                f"{type_name(kind)} of {size} bytes has log_pos {log_pos}, expected"
                f" {end & 0xFFFFFFFF}"
            )
        if kind in COMPRESSED_TYPES:
            kind, body = expand(kind, body)
        checksum = None
        if kind == _PAYLOAD and self._checksum:
            # It may be large, and its checksum is needed after its last event.
            checksum = int.from_bytes(raw[size - CHECKSUM_LENGTH :], "little")
        event = Event(
            self.file, start, end, timestamp, kind, server_id, flags, body, None, checksum
        )
        if kind == _ROTATE:
            rotate = Rotate.parse(body)
            self.file, self.pos = rotate.file, rotate.pos
            self._start = rotate.pos
        else:
            self.pos = end
        return event

    def _maybe_begin_relayed(self, kind: int, flags: int) -> None:
        """Set `relayed` if the next event shows that the file has another server's events."""
        is_format = kind == _FORMAT_DESCRIPTION
        is_made = kind == _ROTATE and bool(flags & ARTIFICIAL_FLAG)
        if is_made or (is_format and (self.has_format or flags & RELAY_LOG_FLAG)):
            self.relayed = self.relayed or RelayedPositions()

    def _follow_relayed(self, kind: int, flags: int, log_pos: int, size: int) -> tuple[int, int]:
        if self.relayed is None:
            return kind, flags
        lacks_position = log_pos == 0 and (self.may_lack_positions or kind in _REPEATED)
        end = self.pos + size
        return self.relayed.follow(kind, flags, None if lacks_position else log_pos, end)

    def _is_of_file(self, kind: int) -> bool:
        """Whether an event without a position, and without the artificial flag, is in the file."""
        return self.may_lack_positions and kind not in _REPEATED

    def _ends_at_a_wrap(self, kind: int, size: int) -> bool:
        """Whether a log_pos of 0 is genuine: the event ends at a multiple of 4 GiB."""
        return kind != _FORMAT_DESCRIPTION and (self.pos + size) & 0xFFFFFFFF == 0

    def _format_description(self, raw: bytes, head: FileHead, *, repeated: bool) -> bytes:
        flags = EventHeader.parse(raw).flags
        format_description = FormatDescription.parse(raw[HEADER_LENGTH:])
        if format_description.binlog_version != 4 or format_description.header_length != 19:
            raise UnsupportedEventError(
                f"binlog version {format_description.binlog_version} with headers of"
                f" {format_description.header_length} bytes, expected version 4 with 19"
            )
        # It has a CRC32 even if the other events have none. A server that repeats it for a start in
        # mid-file changes its bytes, and recomputes the CRC32 only if the other events have one.
        stale = repeated and format_description.checksum is ChecksumAlgorithm.OFF
        if format_description.carries_checksum and not stale:
            verify(_without_in_use_flag(raw))
        if self._on_head is not None:
            self._on_head(head, format_description)
        self._checksum = format_description.checksum
        version = _MARIADB_VERSION.match(format_description.server_version)
        self.may_lack_positions = (
            version is not None and (int(version[1]), int(version[2])) >= _FIRST_WITHOUT_POSITIONS
        )
        if self.relayed is not None:
            self.relayed.written_by(
                format_description.server_version,
                flags,
                may_lack_positions=self.may_lack_positions,
            )
        if self._on_version is not None:
            self._on_version(format_description.server_version)
        end = -CHECKSUM_LENGTH if format_description.carries_checksum else len(raw)
        return raw[HEADER_LENGTH:end]


def _without_in_use_flag(raw: bytes) -> bytes:
    """Clear LOG_EVENT_BINLOG_IN_USE_F in a FORMAT_DESCRIPTION: its checksum is without the flag.

    The flag is set while the server writes the file, and remains set after a crash.
    """
    flags = HEADER_LENGTH - 2
    return raw if not raw[flags] & 1 else raw[:flags] + bytes([raw[flags] & ~1]) + raw[flags + 1 :]
