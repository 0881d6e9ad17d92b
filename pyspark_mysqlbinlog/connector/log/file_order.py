"""The order of a server's binlog files: that of its index (SHOW BINARY LOGS), not of their numbers.

Within a sequence, files of one base name with increasing numbers, positions are ordered by number.
A server that is restarted with another base name continues in another sequence, whose numbers can't
be compared with those of the first. So an order is relative to one file: positions in its sequence
are unchanged, those in later sequences are after all of them, and those in earlier ones before
(`Position.in_later_sequence`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

from pyspark_mysqlbinlog.checkpoints.position import (
    FIRST_EVENT,
    Position,
    base_name,
    continues_sequence,
)
from pyspark_mysqlbinlog.connector.server.settings import binlog_files
from pyspark_mysqlbinlog.errors import BinlogPurgedError
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = ["FileOrder", "Stretch"]

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a binlog that is in one sequence.

    Attributes
    ----------
    sequence : its distance from the origin's sequence.
    begin : where it begins, in the order's positions.
    start, end : where it begins and ends, in positions of its own sequence.
    """

    sequence: int
    begin: Position
    start: Position
    end: Position


class FileOrder:
    """The order of files relative to one of them.

    Parameters
    ----------
    ask : returns the files of the server, oldest first, and their sizes; called for a name that is
        not known yet.
    origin : the file whose sequence has unchanged positions.
    sizes : the result of `ask`; None if not known yet.
    """

    def __init__(self, ask: Callable[[], Sizes], origin: str, sizes: Sizes | None = None) -> None:
        self._ask = ask
        self._origin = origin
        self._sequences: dict[str, int] = {origin: 0}
        self._sizes: Sizes = {}
        if sizes is not None:
            self._learn(sizes)

    @classmethod
    def of_server(
        cls, settings: ServerSettings, origin: str, sizes: Sizes | None = None
    ) -> FileOrder:
        """Create the order of a server, which is queried over separate connections."""

        def ask() -> Sizes:
            with ReplicaClient.connect(settings) as client:
                return binlog_files(client)

        return cls(ask, origin, sizes)

    def seen_from(self, origin: str) -> FileOrder:
        """Return the same order relative to another file."""
        return FileOrder(self._ask, origin, self._sizes or None)

    def position(self, file: str, pos: int) -> Position:
        """Return a position in the order; BinlogPurgedError if the server has no such file."""
        sequence = self._sequences.get(file)
        if sequence is None:
            self._learn(self._ask())
            sequence = self._sequences.get(file)
        if sequence is None:
            raise BinlogPurgedError(
                f"the server no longer has a binlog {file!r} in its index; it was purged, or the"
                " index was rewritten",
                file=file,
                position=pos,
            )
        return Position.of(file, pos).in_later_sequence(sequence)

    def sizes(self) -> dict[Position, int]:
        """Return the beginning of each file that the server has, in order, and its bytes."""
        if not self._sizes:
            self._learn(self._ask())
        return {self.position(file, FIRST_EVENT): size for file, size in self._sizes.items()}

    def stretches(self, start: Position, end: Position) -> list[Stretch]:
        """Return the parts between two positions of the order, one per sequence.

        If the binlog continues in another sequence, each part ends at the end of its last file.
        """
        begin, found = start, list[Stretch]()
        for (file, size), (after, _) in pairwise(self._sizes.items()):
            following = self.position(after, FIRST_EVENT)
            if self._sequences[after] == self._sequences[file] or following <= begin:
                continue
            if following > end:
                break
            found.append(self._stretch(begin, Position.of(file, size)))
            begin = following
        found.append(self._stretch(begin, end))
        return [each for each in found if each.start < each.end]

    def _stretch(self, begin: Position, end: Position) -> Stretch:
        return Stretch(self._sequences[begin.file], begin, _plain(begin), _plain(end))

    def _learn(self, sizes: Sizes) -> None:
        self._sizes = dict(sizes)
        files = [*sizes]
        begins = (not continues_sequence(*pair) for pair in pairwise(files))
        numbered = dict(zip(files, accumulate(begins, initial=0), strict=True)) if files else {}
        origin = numbered.get(self._origin)
        if origin is None:
            # The file was purged. Files with its base name are assumed to be of its sequence, and
            # others
            # to be later: a read from it fails with the server's error.
            names = self._sequences | dict.fromkeys(files, 1)
            for file in files:
                if base_name(file) == base_name(self._origin):
                    names[file] = 0
            self._sequences = names
        else:
            self._sequences |= {file: number - origin for file, number in numbered.items()}


def _plain(position: Position) -> Position:
    return Position.of(position.file, position.pos)
