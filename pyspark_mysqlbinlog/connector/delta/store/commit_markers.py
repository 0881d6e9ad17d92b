"""Commit markers: the applied binlog position, stored in Delta transaction identifiers.

Each commit that applies changes writes the boundary in the binlog up to which the table has all of
its changes. A change before that boundary is in the table already, whatever delivers it again: a
batch that Spark replays, or a query that lost its checkpoint and started with a new one. So each
change is applied once, and nothing is stored outside the table. The last commit of a batch also
writes the batch's number, because snapshot rows have no position in the binlog. If a batch is split
into sub-batches, those before the last one write the number of the previous batch.

A transaction identifier is an application's name and a number that grows. For the boundary, the
name identifies the binlog in which positions are comparable, and the number is the packed position
(see `packed_position`). The fingerprint that identifies the binlog's contents is written with it
(see checkpoints/fingerprint.py): the event before the boundary, and the creation time of its file.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import base_name

__all__ = ["CommitMarker", "LogIdentity"]

_LENGTH_BITS = 31
# Delta's transaction identifiers: (identifier, number).
AppTransactions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """The binlog in which positions are comparable: one sequence of one server's files.

    Attributes
    ----------
    base : the base name of its files. A new checkpoint counts epochs from 0 again, and must not use
        the commit markers of another base name.
    """

    server: str
    epoch: int
    base: str

    @classmethod
    def of(cls, offset: Offset) -> LogIdentity:
        """Return the binlog of an offset."""
        number = None if offset.fingerprint is None else offset.fingerprint.server_id
        return cls.of_file(offset.server_uuid, number, offset.epoch, offset.position.file)

    @classmethod
    def of_file(cls, uuid: str, server_id: int | None, epoch: int, file: str) -> LogIdentity:
        """Return the binlog that a file is of. A server without a UUID is identified by its id.

        uuid : as `ReplicaClient.server_uuid` returns it; empty if there is none.
        """
        server = uuid if uuid or server_id is None else f"server_id-{server_id}"
        return cls(server, epoch, base_name(file))

    def __str__(self) -> str:
        return f"{self.of_server}{self.epoch}:{self.base}"

    @property
    def of_server(self) -> str:
        """The common prefix of all binlogs of the server."""
        return f"mysqlbinlog:{self.server}:"

    def continues(self, known: str | None) -> bool:
        """Return whether another binlog, by its name, is an earlier one of the same server."""
        if known is None or not known.startswith(self.of_server):
            return False
        return int(known.removeprefix(self.of_server).partition(":")[0]) < self.epoch

    @property
    def event(self) -> str:
        """Identifier of the event before the boundary."""
        return f"{self}:event"

    @property
    def file(self) -> str:
        """Identifier of the creation time of the boundary's file."""
        return f"{self}:file"


@dataclass(frozen=True, slots=True)
class CommitMarker:
    """Commit marker.

    Attributes
    ----------
    log : the boundary's binlog.
    position : the boundary, packed.
    fingerprint : of the boundary; None if not known.
    batch : the query's identifier and the batch's number, in a batch's last commit.
    extra_transactions : further identifiers of the writer.
    """

    log: LogIdentity
    position: int
    fingerprint: PositionFingerprint | None = None
    batch: tuple[str, int] | None = None
    extra_transactions: AppTransactions = ()

    @property
    def app_transactions(self) -> AppTransactions:
        """The marker as Delta's transaction identifiers."""
        kept = [(str(self.log), self.position)]
        known = self.fingerprint or PositionFingerprint(0, 0)
        kept.append((self.log.event, known.checksum << _LENGTH_BITS | known.length))
        kept.append((self.log.file, known.created))
        if self.batch is not None:
            kept.append(self.batch)
        return (*kept, *self.extra_transactions)


def fingerprint_of(event: int | None, file: int | None) -> PositionFingerprint | None:
    """Return the fingerprint in a marker's identifiers; its server_id is not stored."""
    if event is None or not file:
        return None
    # No event is known at a file's start or far into it, where only the file's head was read.
    return PositionFingerprint(file, 0, event & ((1 << _LENGTH_BITS) - 1), event >> _LENGTH_BITS)
