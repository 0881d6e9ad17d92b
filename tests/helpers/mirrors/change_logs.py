"""Change logs of a mirror's tables: their rows in order, and the table that a replay gives."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from helpers.mirrors.delta_mirrors import MirroredDatabase

__all__ = [
    "assert_keyless_replay",
    "assert_replay",
    "change_log_of",
    "log_of",
    "replayed",
    "rows_of_log",
]


def change_log_of(mirrored: MirroredDatabase) -> str:
    """Return the path template of the change logs for `DeltaMirror`."""
    return f"{mirrored.folder}/changes/{{database}}/{{table}}"


def log_of(mirrored: MirroredDatabase, table: str) -> Path:
    return mirrored.folder / "changes" / mirrored.database / table


def rows_of_log(mirrored: MirroredDatabase, table: str) -> list[dict[str, Any]]:
    """Return the rows ordered by `seq`; AssertionError if a change occurs twice."""
    rows: list[dict[str, Any]] = DeltaTable(log_of(mirrored, table)).to_pyarrow_table().to_pylist()
    rows.sort(key=lambda row: tuple(row["seq"].values()))
    changes = [tuple(row["seq"].values()) for row in rows if row["op"] not in {"r", "reset"}]
    assert len(changes) == len(set(changes)), f"{table}: a change is there twice"
    return rows


def replayed(rows: list[dict[str, Any]], *key: str) -> list[dict[str, Any]]:
    """Return the table after a replay as described in docs/reference/delta-mirror.md."""
    table: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if row["op"] in {"reset", "t"} or _drops_or_replaces(row):
            table.clear()
        before, after = (
            None if row[side] is None else json.loads(row[side], parse_float=Decimal)
            for side in ("before", "after")
        )
        if before is not None:
            table.pop(tuple(before[name] for name in key), None)
        if after is not None:
            table[tuple(after[name] for name in key)] = after
    return list(table.values())


def assert_replay(mirrored: MirroredDatabase, table: str, *key: str) -> list[dict[str, Any]]:
    """Check that the replayed change log equals SELECT; return the rows of the change log."""
    rows = rows_of_log(mirrored, table)
    names, selected = mirrored.select(table)
    # Rows from before an ALTER lack the columns that it added: these are NULL.
    found = [tuple(row.get(name) for name in names) for row in replayed(rows, *key)]
    assert repr(sorted(found, key=repr)) == repr(selected), table
    return rows


def assert_keyless_replay(mirrored: MirroredDatabase, table: str) -> None:
    """Check that the replayed change log of a table `(v INT)` equals SELECT."""
    changes = rows_of_log(mirrored, table)
    # The rows from the last reset or TRUNCATE on include all earlier changes.
    begins = [at for at, row in enumerate(changes) if row["op"] in {"reset", "t"}]
    rows: list[int] = []
    for row in changes[max(begins, default=0) :]:
        if row["before"] is not None:
            rows.remove(json.loads(row["before"])["v"])
        if row["after"] is not None:
            rows.append(json.loads(row["after"])["v"])
    assert sorted(rows) == sorted(row[0] for row in mirrored.select(table)[1]), table


def _drops_or_replaces(row: dict[str, Any]) -> bool:
    statement = str(row["source"]["query"]).removeprefix("/* data-losing */ ")
    return row["op"] == "ddl" and statement.startswith(("DROP ", "CREATE OR REPLACE "))
