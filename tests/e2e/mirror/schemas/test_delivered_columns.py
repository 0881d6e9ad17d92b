"""ALTER TABLE of columns that are excluded or masked, before or after a rename.

Delta equals SELECT, masked in Python. Without reloads, tables with unknown rows stop.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from helpers.mirrors.delta_mirrors import MirroredDatabase
from helpers.servers import Server
from helpers.values.masked_rows import SECRET, masked

EXCLUDED, MASKS = ("s", "s2"), {"n": "hash", "h": "hash", "r": "redact"}
# Table -> clauses of ALTER TABLE, and whether its rows are then unknown.
CASES = {
    "excluded_is_named_otherwise": ("CHANGE s w VARCHAR(20)", True),
    "excluded_swaps_names": ("CHANGE s v VARCHAR(20), CHANGE v s VARCHAR(20)", True),
    "excluded_is_dropped": ("DROP COLUMN s", False),
    "excluded_is_altered": ("MODIFY s INT, ADD x INT", True),
    "excluded_keeps_being_so": ("CHANGE s s2 VARCHAR(20)", False),
    "becomes_excluded": ("CHANGE v s2 VARCHAR(20)", False),
    "masked_is_named_otherwise": ("CHANGE h w VARCHAR(20)", True),
    "masked_number_is_named_otherwise": ("CHANGE n w INT", True),
    "becomes_masked": ("CHANGE v r VARCHAR(20)", True),
    "number_becomes_masked": ("CHANGE i r INT", True),
    "masked_gets_another_mask": ("CHANGE h r VARCHAR(20)", True),
    "masked_is_altered": ("MODIFY n DECIMAL(8,2)", True),
    "masked_is_altered_and_another_one_comes": ("MODIFY n DECIMAL(8,2), ADD x INT", True),
    "masked_is_altered_and_moved": ("MODIFY n DECIMAL(8,2) FIRST", True),
    "masked_is_altered_and_another_one_goes": ("DROP v, MODIFY n DECIMAL(8,2)", True),
    "masked_is_widened_and_another_one_goes": ("DROP v, MODIFY n BIGINT", False),
}
COLUMNS = (
    "(id INT PRIMARY KEY, n INT, i INT, s VARCHAR(20), v VARCHAR(20), h VARCHAR(20))"
    " DEFAULT CHARSET utf8mb4"
)


@pytest.fixture
def delivered(
    spark: SparkSession, live_server: Server, database: str, tmp_path: Path
) -> MirroredDatabase:
    """Return a mirrored table with rows for each case."""
    mirrored = MirroredDatabase(
        spark,
        live_server,
        database,
        tmp_path,
        startingOffset="snapshot",
        excludeColumns=",".join(f"{database}.*.{name}" for name in EXCLUDED),
        maskColumns=json.dumps({f"{database}.*.{name}": mask for name, mask in MASKS.items()}),
        maskSecret=SECRET,
    )
    for table in CASES:
        mirrored.execute(
            f"CREATE TABLE {table} {COLUMNS}",
            f"INSERT INTO {table} VALUES (1, 5, 6, '9', 'v', 'h'), (2, NULL, 7, '8', 'ñ', NULL)",
        )
    mirrored.run()
    return mirrored


def test_renames_of_excluded_and_masked_columns_equal_select(delivered: MirroredDatabase) -> None:
    _alter(delivered)
    delivered.run()
    delivered.run()
    assert _different(delivered, [*CASES]) == []


def test_such_renames_stop_the_table_if_reload_after_ddl_is_false(
    delivered: MirroredDatabase,
) -> None:
    delivered.options["reloadAfterDdl"] = "false"
    _alter(delivered)
    delivered.run()
    unknown = [table for table, (_, is_unknown) in CASES.items() if is_unknown]
    assert _stopped(delivered) == unknown
    assert _different(delivered, [table for table in CASES if table not in unknown]) == []
    delivered.options["reload"] = f"again: {delivered.database}.*"
    delivered.run()
    delivered.run()
    assert _different(delivered, [*CASES]) == []


def _alter(mirrored: MirroredDatabase) -> None:
    """Alter each table, with a change before and a change after it."""
    for table, (clauses, _) in CASES.items():
        mirrored.execute(
            f"INSERT INTO {table} (id, n, v, h) VALUES (3, 30, 'three', 'third')",
            f"ALTER TABLE {table} {clauses}",
            f"INSERT INTO {table} (id) VALUES (4)",
        )


def _stopped(mirrored: MirroredDatabase) -> list[str]:
    properties = {name: mirrored.delta(name).metadata().configuration for name in CASES}
    return [name for name, given in properties.items() if given.get("mysqlbinlog.stopped")]


def _different(mirrored: MirroredDatabase, tables: Sequence[str]) -> list[Any]:
    """Return the tables whose rows differ between Delta and SELECT, with both."""
    found = []
    for table in tables:
        names, rows = mirrored.select(table)
        shown = [_delivered(names, row) for row in rows]
        held = mirrored.rows(table).to_pylist()
        expected, actual = (
            sorted((sorted(row.items()) for row in each), key=repr) for each in (shown, held)
        )
        if repr(actual) != repr(expected):
            found.append((table, actual, expected))
    return found


def _delivered(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {
        name: masked(value, MASKS[name]) if name in MASKS else value
        for name, value in zip(names, row, strict=True)
        if name not in EXCLUDED
    }
