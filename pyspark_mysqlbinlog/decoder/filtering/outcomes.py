"""What an event decides about captured events of its transaction, or of a prepared one.

`EventFilter.outcome` has it after the event. Most events decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.protocol.blocks import PackedEvents
from pyspark_mysqlbinlog.protocol.events import (
    HEADER_LENGTH,
    TRANSACTION_GTID_TYPES,
    CommitPlace,
    Event,
    EventType,
)

__all__ = [
    "Outcome",
    "Part",
    "Prepared",
    "PreparedXa",
    "RolledBack",
    "SavepointSet",
    "XaCommitted",
    "XaRolledBack",
    "size_of",
    "without_rows_since",
]

# Captured events as they were read.
Part = Event | PackedEvents

# Types of the events of a transaction that do not belong to one of its statements.
_FRAME = TRANSACTION_GTID_TYPES | {EventType.QUERY_EVENT}
_PREPARED = re.compile(r"(X'[0-9a-f]*',X'[0-9a-f]*',\d+) (.+):(\d+)-(\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PreparedXa:
    """A prepared XA transaction with captured rows, and where they are.

    Attributes
    ----------
    file, begin, end : from the start of its first event up to the end of its XA_PREPARE.
    """

    xid: str
    file: str
    begin: int
    end: int

    def __str__(self) -> str:
        """Return the text in offsets; a transaction without captured rows is its xid there."""
        return f"{self.xid} {self.file}:{self.begin}-{self.end}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read such a text; None for a transaction without captured rows."""
        if " " not in text:
            return None
        found = _PREPARED.fullmatch(text)
        if found is None:
            raise OffsetError(
                f"a prepared XA transaction is {text!r}, expected XID FILE:BEGIN-END; the"
                " checkpoint is damaged"
            )
        xid, file, begin, end = found.groups()
        return cls(xid, file, int(begin), int(end))


@dataclass(frozen=True, slots=True)
class SavepointSet:
    """A savepoint, to which the transaction may be rolled back."""

    name: str


@dataclass(frozen=True, slots=True)
class RolledBack:
    """Captured rows of this transaction are rolled back, so they are not delivered.

    to : the savepoint since which rows are rolled back; None for all rows.
    """

    to: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """This transaction is prepared: its rows are delivered if it is committed later."""

    xa: PreparedXa


@dataclass(frozen=True, slots=True)
class XaRolledBack:
    """A prepared transaction is rolled back."""

    xid: str


@dataclass(frozen=True, slots=True)
class XaCommitted:
    """A prepared transaction with captured rows is committed.

    gtid : of the XA COMMIT; None if the server writes none.
    event : the XA COMMIT.
    """

    xa: PreparedXa
    gtid: Event | None
    event: Event

    def placed(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield the transaction's captured events at their place in the commit order.

        Their GTID is that of the XA COMMIT. Therefore, a GTID set with this GTID shows that the
        rows were delivered.
        """
        place = CommitPlace(self.event.file, self.event.start, self.xa.begin)
        if self.gtid is not None:
            begin = self.xa.begin
            # Not longer than the event that it replaces, because ends must not decrease.
            end = begin + HEADER_LENGTH
            yield self.gtid._replace(file=self.xa.file, start=begin, end=end, committed=place)
        for part in parts:
            if isinstance(part, PackedEvents):
                yield part._replace(block=part.block._replace(committed=place))
            elif part.type not in TRANSACTION_GTID_TYPES:
                yield part._replace(committed=place)
                if part.offset is None:
                    # An event that MariaDB compresses may have more rows than bytes in the binlog.
                    longer = HEADER_LENGTH + len(part.body) - (part.end - part.start)
                    place = place._replace(begin=place.begin - max(longer, 0))


def size_of(part: Part) -> int:
    """Return the number of bytes that events take when packed."""
    if isinstance(part, PackedEvents):
        return len(part.block.data)
    return HEADER_LENGTH + len(part.body)


def without_rows_since(parts: Sequence[Part], mark: int) -> list[Part]:
    """Return a transaction's captured events without those of its statements from `mark` on."""
    frame = (part for part in parts[mark:] if isinstance(part, Event) and part.type in _FRAME)
    return [*parts[:mark], *frame]


Outcome = SavepointSet | RolledBack | Prepared | XaCommitted | XaRolledBack
