"""How far a Delta table has come, as Delta itself keeps it: transaction identifiers.

Each commit that brings changes writes the boundary in the log up to which all of the table's
changes are in it. A change from before that boundary is in the table already, whoever brings it
again: a batch that Spark runs a second time, or a query whose checkpoint was lost and that began
anew. So each change counts once, without anything stored beside the table. The last commit of a
batch writes the batch's number, too, since rows that a first load reads have no place in the log.
Where a batch comes in steps, those before the last one write the number of the batch before.

A transaction identifier is an application's name and a number that grows. For the boundary the name
identifies the log in which positions compare, and the number is the packed position (see
`packed_position`). The fingerprint by which the log is recognised is written with it (see
checkpoints/fingerprint.py): the event before the boundary, and when its file was created.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import Fingerprint
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import base_name

__all__ = ["LogIdentity", "Mark"]

_LENGTH_BITS = 31
# (identifier, number) as Delta's transaction identifiers have them.
AppTransactions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """The log in which positions compare: one sequence of one server's files.

    Attributes
    ----------
    base : the base name of its files. A new checkpoint counts epochs from 0 again, and must not
        take the marks of one name for its own under another.
    """

    server: str
    epoch: int
    base: str

    @classmethod
    def of(cls, offset: Offset) -> LogIdentity:
        """The log of an offset. A server without a UUID is known by its id."""
        server = offset.server_uuid
        if not server and offset.fingerprint is not None:
            server = f"server_id-{offset.fingerprint.server_id}"
        return cls(server, offset.epoch, base_name(offset.position.file))

    def __str__(self) -> str:
        return f"{self.of_server}{self.epoch}:{self.base}"

    @property
    def of_server(self) -> str:
        """What the names of all logs of the server begin with."""
        return f"mysqlbinlog:{self.server}:"

    def continues(self, known: str | None) -> bool:
        """Whether another log, by its name, is an earlier one of the same server."""
        if known is None or not known.startswith(self.of_server):
            return False
        return int(known.removeprefix(self.of_server).partition(":")[0]) < self.epoch

    @property
    def event(self) -> str:
        """The identifier of the event in front of the boundary."""
        return f"{self}:event"

    @property
    def file(self) -> str:
        """The identifier of the time at which the boundary's file was begun."""
        return f"{self}:file"


@dataclass(frozen=True, slots=True)
class Mark:
    """What a commit writes down.

    Attributes
    ----------
    log : in which the boundary lies.
    version : the boundary, packed.
    fingerprint : of the boundary; None where it is not known.
    batch : the query's identifier and the batch's number, of a batch's last commit.
    more : identifiers of whoever writes the commit.
    """

    log: LogIdentity
    version: int
    fingerprint: Fingerprint | None = None
    batch: tuple[str, int] | None = None
    more: AppTransactions = ()

    @property
    def identifiers(self) -> AppTransactions:
        """As Delta keeps it."""
        kept = [(str(self.log), self.version)]
        known = self.fingerprint or Fingerprint(0, 0)
        kept.append((self.log.event, known.checksum << _LENGTH_BITS | known.length))
        kept.append((self.log.file, known.created))
        if self.batch is not None:
            kept.append(self.batch)
        return (*kept, *self.more)


def fingerprint_of(event: int | None, file: int | None) -> Fingerprint | None:
    """The fingerprint that a mark's identifiers hold; its server_id is not kept."""
    if event is None or not file:
        return None
    # Of no event where only the file's head is known: at its beginning, or far into it.
    return Fingerprint(file, 0, event & ((1 << _LENGTH_BITS) - 1), event >> _LENGTH_BITS)
