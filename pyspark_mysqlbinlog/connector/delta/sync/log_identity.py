"""Whether a Delta table goes on where a query without a checkpoint begins, in the same log.

A new checkpoint does not know what was read before. The Delta table does (see `commit_markers`): up
to which place it has everything, and which event lies in front of that place. So a query that
begins behind the place leaves something out; and after RESET MASTER, or where a server was
restored, another event lies in front of it, and what comes up to there would be taken for what the
table has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import Fingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position, unpack_position
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity, fingerprint_of
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.log.logs import is_looked_for
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    LostConnectionError,
    MirrorError,
    MySQLBinlogError,
)

__all__ = ["FingerprintAt", "LogIdentityCheck", "held_fingerprint", "position_of"]

# Gives a position's fingerprint in the log as it is now.
FingerprintAt = Callable[[Position], Fingerprint | None]


@dataclass(frozen=True, slots=True)
class LogIdentityCheck:
    """The checks of one table; each raises MirrorError.

    Attributes
    ----------
    table : its name, for errors.
    remedy : what to do when a check fails, as the end of a sentence.
    """

    table: str
    target: DeltaTarget
    look_at: FingerprintAt
    remedy: str

    def check_no_gap(self, applied: int, start: Position) -> None:
        """The table has everything up to where a query begins."""
        if applied < pack_position(start):
            number, pos = unpack_position(applied)
            raise self._error(
                f"the Delta table has everything up to position {pos} of binlog file number"
                f" {number}, and the query begins behind it, at {start}: begin there or earlier, or"
                f" {self.remedy}"
            )

    def check_resumable(self, applied: int, start: Position, log: LogIdentity) -> None:
        """The same, where the table has a part already of a batch that comes once more.

        What a server was put back to may have the batch's start, and not that part of it.

        start : of the batch.
        """
        if applied > pack_position(start) and held_fingerprint(self.target, log) is not None:
            self.check_same_log(applied, start, log)

    def check_same_log(self, applied: int, start: Position, log: LogIdentity) -> None:
        """The log still has what the table has from it.

        start : any position in the log as it is now.
        """
        known = held_fingerprint(self.target, log)
        place = position_of(applied, start)
        try:
            found = self.look_at(place)
        except LostConnectionError:
            raise
        except InvalidPositionError:
            found = None  # no event begins there any more
        except MySQLBinlogError as error:
            raise self._error(
                f"whether the log is still the one of its rows can't be told: {error.message};"
                f" {self.remedy}"
            ) from None
        if known is None or found is None or not _is_same(place, known, found):
            raise self._error(
                f"the log has another event in front of {place} than when its rows were written:"
                f" it was begun anew, or the server restored; {self.remedy}"
            )

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self.table)


def held_fingerprint(target: DeltaTarget, log: LogIdentity) -> Fingerprint | None:
    """What a Delta table knows of the place up to which it has everything."""
    return fingerprint_of(target.applied(log.event), target.applied(log.file))


def position_of(place: int, like: Position) -> Position:
    """A place of `packed_position` as a position in the log of another one."""
    number, pos = unpack_position(place)
    base, _, digits = like.file.rpartition(".")
    return Position(number, pos, f"{base}.{number:0{len(digits)}d}")


def _is_same(place: Position, known: Fingerprint, found: Fingerprint) -> bool:
    """Whether two fingerprints of one position are of one event.

    Where it is looked for and there is none the log ends before it: that of a server which was put
    back to an earlier state, and went on otherwise.
    """
    event = (known.length, known.checksum)
    is_same = found.length and (found.length, found.checksum) == event
    return known.created == found.created and (bool(is_same) or not is_looked_for(place))
