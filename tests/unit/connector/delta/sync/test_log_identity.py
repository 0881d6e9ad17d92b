"""A binlog that is not the source of a Delta table's rows is rejected."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker, LogIdentity
from pyspark_mysqlbinlog.connector.delta.store.deltars.table import DeltalakeEngine, DeltalakeTarget
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import LogIdentityCheck
from pyspark_mysqlbinlog.connector.log.server_log import is_searched
from pyspark_mysqlbinlog.errors import MirrorError

_LOG = LogIdentity("server", 0, "mysql-bin")
# A position so far into a file that the event before it is not searched.
_FAR = 1 << 30
_HEAD = PositionFingerprint(1000, 1)
_EVENT = PositionFingerprint(1000, 1, 31, 77)


def _target(path: Path, pos: int, known: PositionFingerprint) -> DeltalakeTarget:
    """Return a Delta table that is complete up to a position in file 1."""
    target = DeltalakeEngine().target(str(path))
    columns = pa.schema([pa.field("id", pa.int64()), pa.field(SEQ, SEQ_TYPE)])
    target.create(columns, {})
    place = pack_position(Position.of("binlog.000001", pos))
    target.append(columns.empty_table(), CommitMarker(_LOG, place, known))
    return target


@pytest.mark.parametrize(
    ("pos", "known", "found", "is_same"),
    [
        (500, _EVENT, _EVENT, True),
        (500, _EVENT, PositionFingerprint(1000, 1, 31, 78), False),
        (500, _EVENT, PositionFingerprint(1001, 1, 31, 77), False),
        # The binlog ends before the position, in a file with the same creation time.
        (500, _EVENT, _HEAD, False),
        (500, _HEAD, _HEAD, False),
        (500, _EVENT, None, False),
        (FIRST_EVENT, _HEAD, _HEAD, True),
        (FIRST_EVENT, _HEAD, PositionFingerprint(1001, 1), False),
        # Only the file's head is compared there; the server rejects a position after its end.
        (_FAR, _EVENT, _HEAD, True),
        (_FAR, _EVENT, PositionFingerprint(1001, 1), False),
    ],
)
def test_binlog_with_another_event_before_position_is_rejected(
    tmp_path: Path,
    pos: int,
    known: PositionFingerprint,
    found: PositionFingerprint | None,
    is_same: bool,
) -> None:
    assert is_searched(Position.of("binlog.000001", pos)) == (pos == 500)
    target = _target(tmp_path / "t", pos, known)
    start = Position.of("binlog.000001", FIRST_EVENT)
    same = LogIdentityCheck("d.t", target, lambda _: found, "load it anew")
    place = pack_position(Position.of("binlog.000001", pos))
    if is_same:
        same.check_same_log(place, start, _LOG)
    else:
        with pytest.raises(MirrorError, match="the binlog has another event before"):
            same.check_same_log(place, start, _LOG)
