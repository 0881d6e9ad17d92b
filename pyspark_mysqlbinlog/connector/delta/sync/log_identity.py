"""Checks that a Delta table continues, in the same binlog, where a new checkpoint's query begins.

A new checkpoint does not know what was read before. The Delta table records it (see
`commit_markers`): the position up to which it is complete, and the event before that position. So a
query that begins after the position skips changes. After RESET MASTER, or on a restored server,
another event precedes the position, and new changes up to there would be taken for applied ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position, unpack_position
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity, fingerprint_of
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.constants import SOURCE_LOG
from pyspark_mysqlbinlog.connector.log.server_log import is_searched
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    LostConnectionError,
    MirrorError,
    MySQLBinlogError,
)

__all__ = ["FingerprintAt", "LogIdentityCheck", "held_fingerprint", "position_of", "source_log"]

# Returns a position's fingerprint in the current binlog.
FingerprintAt = Callable[[Position], PositionFingerprint | None]


@dataclass(frozen=True, slots=True)
class LogIdentityCheck:
    """The checks of one table; each raises MirrorError.

    Attributes
    ----------
    table : its name, for errors.
    remedy : what to do if a check fails, as the end of a sentence.
    """

    table: str
    target: DeltaTarget
    fingerprint_at: FingerprintAt
    remedy: str

    def check_no_gap(self, applied: int, start: Position) -> None:
        """Check that the table is complete up to the query's start."""
        if applied < pack_position(start):
            number, pos = unpack_position(applied)
            raise self._error(
                f"the Delta table is complete up to position {pos} of binlog file number"
                f" {number}, and the query begins after it, at {start}: begin there or earlier, or"
                f" {self.remedy}"
            )

    def check_resumable(self, applied: int, start: Position, log: LogIdentity) -> None:
        """Check the binlog if the table already has a part of a batch that is replayed.

        A restored server may have the batch's start, but not that part of it.

        start : of the batch.
        """
        if applied > pack_position(start) and held_fingerprint(self.target, log) is not None:
            self.check_same_log(applied, start, log)

    def check_same_log(self, applied: int, start: Position, log: LogIdentity) -> None:
        """Check that the binlog still has the changes that the table has from it.

        start : any position in the current binlog.
        """
        known = held_fingerprint(self.target, log)
        place = position_of(applied, start)
        try:
            found = self.fingerprint_at(place)
        except LostConnectionError:
            raise
        except InvalidPositionError:
            found = None  # no event begins there any more
        except MySQLBinlogError as error:
            raise self._error(
                f"cannot check that the binlog is still the one of its rows: {error.message};"
                f" {self.remedy}"
            ) from None
        if known is None or found is None or not _is_same(place, known, found):
            raise self._error(
                f"the binlog has another event before {place} than when its rows were written: it"
                f" was reset, or the server was restored; {self.remedy}"
            )

    def _error(self, message: str) -> MirrorError:
        return MirrorError(message, table=self.table)


def held_fingerprint(target: DeltaTarget, log: LogIdentity) -> PositionFingerprint | None:
    """Return the fingerprint that a Delta table has of its applied position."""
    return fingerprint_of(target.txn_version(log.event), target.txn_version(log.file))


def source_log(target: DeltaTarget, table: str, log: LogIdentity) -> str | None:
    """Return the binlog of the positions in a mirror's rows; None if it has no rows yet.

    MirrorError if no mirror wrote them.

    table : its name, for errors.
    log : that of the query's batch.
    """
    known, columns = target.properties().get(SOURCE_LOG), target.columns()
    is_mirror = columns is not None and SEQ in columns.names
    if known is None and is_mirror and target.txn_version(str(log)) is not None:
        return str(log)  # the writing process ended before it could record that
    if known is None and not target.is_empty():
        raise MirrorError(
            "the Delta table has rows that no mirror wrote: set another target, or remove the"
            " table",
            table=table,
        )
    return known


def position_of(place: int, like: Position) -> Position:
    """Return a packed position as a Position in the same binlog as another one."""
    number, pos = unpack_position(place)
    base, _, digits = like.file.rpartition(".")
    return Position(number, pos, f"{base}.{number:0{len(digits)}d}")


def _is_same(place: Position, known: PositionFingerprint, found: PositionFingerprint) -> bool:
    """Return whether two fingerprints of one position are of one event.

    If no event is found where one is expected, the binlog ends before it: the server was restored
    to an earlier state, and continued differently.
    """
    event = (known.length, known.checksum)
    is_same = found.length and (found.length, found.checksum) == event
    return known.created == found.created and (bool(is_same) or not is_searched(place))
