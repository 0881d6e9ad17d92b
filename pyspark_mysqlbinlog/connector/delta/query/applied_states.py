"""Applied states: what each Delta table contained after the query's last batch.

A Delta table records its own position (see `commit_markers`). It cannot show that it is the table
that the query wrote last: an older copy of its folder has older commit markers, and so has a quiet
table. Nor can the checkpoint, which does not record which batch changed which table. So after each
batch the commit markers of the changed tables are written to a file in the checkpoint. When a
process first opens a table, the table must have at least these markers. The check needs no request
of its own, because the table is opened in any case.

What may happen between two writes:

- A batch is committed in Delta, then recorded here, then committed in the checkpoint. If the
  process ends after the first commit, the tables are newer than the record, and the batch is
  replayed. So a table that is newer than its record is correct, and an older one never is. If the
  process ends after the second write, the batch is replayed and both have it.
- The file is in the checkpoint, so it is copied and restored with it. An older checkpoint has an
  older file, which requires less: a lake that was restored with it has that. Older tables under a
  newer checkpoint lack what the file records.
- A file may be written in part on storage without renames. There are two files, written
  alternately, and the newest complete one counts. The older one only requires less.
- A checkpoint without a file is older than this check: at first, nothing is required.

The reason of a stopped table is recorded here, too. The Delta table's property alone would be lost
with the folder, and an older copy does not have it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.connector.delta.query.checkpoint.files import (
    find_lines,
    write_line,
)
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.names import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AppliedStates"]

# Kind ("table" or "change log"), database, table.
_Key = tuple[str, str, str]
_FILES = ("mysqlbinlog-applied-0", "mysqlbinlog-applied-1")


class AppliedStates:
    """The applied states of one query.

    Parameters
    ----------
    checkpoint : the query's checkpointLocation.
    """

    def __init__(self, checkpoint: str) -> None:
        self._locations = tuple(f"{checkpoint.rstrip('/')}/{name}" for name in _FILES)
        self._query: str | None = None
        self._states: dict[_Key, AppliedState] = {}
        # The states as JSON, kept because a batch changes only a few of many tables.
        self._lines: dict[_Key, str] = {}
        self._written = 0
        self._is_changed = False

    def read(self, spark: SparkSession, query: str) -> None:
        """Read the recorded states of a query, once."""
        if self._query == query:
            return
        found: list[tuple[int, str, dict[_Key, AppliedState]]] = []
        damaged = []
        for location in self._locations:
            lines = find_lines(spark, location)
            if lines is None:
                continue
            try:
                kept = json.loads("".join(lines))
                states = {(k, d, t): AppliedState(**state) for k, d, t, state in kept["tables"]}
                found.append((int(kept["count"]), str(kept["query"]), states))
            except (ValueError, KeyError, TypeError, AttributeError):
                damaged.append(location)
        if len(damaged) == len(self._locations):
            raise OffsetError(
                f"{' and '.join(damaged)}: expected the states of the query's Delta tables as JSON;"
                " remove the files to continue without this check of the tables"
            )
        self._written, of_query, states = max(found, key=_count, default=(0, query, {}))
        self._query = query
        self._states = states if of_query == query else {}
        self._lines = {key: _line(key, state) for key, state in self._states.items()}

    def of(self, table: Table, *, is_log: bool = False) -> AppliedState | None:
        """Return the recorded state of a table or its change log; None if there is none."""
        return self._states.get(_key(table, is_log))

    def note(self, table: Table, state: AppliedState, *, is_log: bool = False) -> None:
        """Let `write` record the current state of a table or its change log."""
        key = _key(table, is_log)
        if self._states.get(key) != state:
            self._states[key], self._lines[key] = state, _line(key, state)
            self._is_changed = True

    def write(self, spark: SparkSession) -> None:
        """Record the noted states if any is new. They must be committed in Delta."""
        if not self._is_changed:
            return
        count = self._written + 1
        head = json.dumps({"query": self._query, "count": count})
        line = f'{head[:-1]}, "tables": [{", ".join(self._lines.values())}]}}'
        write_line(spark, self._locations[count % len(self._locations)], line)
        self._written, self._is_changed = count, False


def _key(table: Table, is_log: bool) -> _Key:
    return ("change log" if is_log else "table", *table)


def _line(key: _Key, state: AppliedState) -> str:
    return json.dumps([*key, asdict(state)])


def _count(found: tuple[int, str, Mapping[_Key, AppliedState]]) -> int:
    return found[0]
