"""Detection of a RESTORE among the latest operations of a Delta table."""

from __future__ import annotations

import pytest

from pyspark_mysqlbinlog.connector.delta.store.foreign_writes import is_restored


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (["RESTORE", "MERGE"], True),
        (["SET TBLPROPERTIES", "VACUUM END", "VACUUM START", "RESTORE", "MERGE"], True),
        (["OPTIMIZE", "MERGE", "RESTORE"], False),
        (["MERGE", "RESTORE"], False),
        (["CREATE TABLE"], False),
        (["OPTIMIZE"], False),
    ],
)
def test_restore_is_detected_unless_a_later_operation_changed_rows(
    operations: list[str], found: bool
) -> None:
    assert is_restored(lambda count: operations[:count]) is found
