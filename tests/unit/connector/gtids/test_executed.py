"""The GTIDs at a position of recorded files, by both implementations."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.connector.gtids.executed import executed_at
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.decoder.kernel.implementation import Implementation, using

DATA = Path(__file__).parents[3] / "data"
TAGGED = "4a4208bf-e9fd-11f1-8fee-02fc00000001"

# (file, position or None for the end, GTID set or None without GTIDs). The sets at the beginnings
# of files are those of the server; the last one of tagged_gtid follows from its transactions.
POSITIONS: list[tuple[str, int | None, str | None]] = [
    ("binlogs97/tagged_gtid.001.binlog", 4, f"{TAGGED}:1-2"),
    ("binlogs97/tagged_gtid.001.binlog", None, f"{TAGGED}:1-5:audit_1:1:billing:1"),
    ("binlogs97/tagged_gtid.002.binlog", 4, f"{TAGGED}:1-5:audit_1:1:billing:1"),
    ("binlogs97/tagged_gtid.002.binlog", None, f"{TAGGED}:1-9:audit_1:1:billing:1"),
    ("binlogs97/compressed.001.binlog", None, "44f2513c-e9fd-11f1-b692-02fc00000001:1-17"),
    ("binlogs57/transactions.001.binlog", None, None),
]


@pytest.mark.parametrize("implementation", ["c", "python"])
@pytest.mark.parametrize(("file", "pos", "executed"), POSITIONS)
def test_executed_gtids_at_a_position_match_the_recorded_log(
    file: str, pos: int | None, executed: str | None, implementation: Implementation
) -> None:
    log = FileLog.open(str(DATA / file))
    end = log.end()
    with using(implementation):
        found = executed_at(log, end if pos is None else Position(end.number, pos, end.file))
    assert (None if found is None else str(found)) == executed
