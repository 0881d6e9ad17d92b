"""What each Delta table had after the query's last batch, as a file in the checkpoint has it.

A Delta table says how far it has come (see `commit_markers`). It can't say that it is not the table
that the query wrote last: an older copy of its folder has older marks, which is what a quiet table
has, too. The checkpoint can't say it either, for it does not know which of its batches changed
which table. So after each batch the marks that the changed tables have are written down in the
checkpoint. When a process sees a table first, the table must have at least these marks. That needs
no request of its own: the table is opened then anyhow.

What may come between two writes:

- A batch is committed in Delta, then written down here, then committed in the checkpoint. Where the
  process ends after the first, the tables have more than is written here, and the batch comes
  again. So more is always right, and less never is. Where it ends after the second, the batch comes
  again and both have it.
- The file is in the checkpoint, so that it is copied and put back with it. An older checkpoint has
  an older file, which asks for less: a lake that was put back with it has that. Older tables under
  a newer checkpoint lack what the file names.
- A file may be written in part where it can't be renamed. There are two, written by turns, and the
  newest whole one counts. The one before it only asks for less.
- A checkpoint without a file is one from before there were any: nothing is asked for at first.

A table that is stopped has the reason here, too. The Delta table's property alone would go with the
folder, and an older copy does not have it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.connector.delta.query.checkpoint_io import find_lines, write_line
from pyspark_mysqlbinlog.connector.delta.sync.applied_state import AppliedState
from pyspark_mysqlbinlog.errors import OffsetError
from pyspark_mysqlbinlog.names import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AppliedStates"]

# Of what kind, and the table's name.
_Key = tuple[str, str, str]
_FILES = ("mysqlbinlog-applied-0", "mysqlbinlog-applied-1")


class AppliedStates:
    """Those of one query.

    Parameters
    ----------
    checkpoint : the query's checkpointLocation.
    """

    def __init__(self, checkpoint: str) -> None:
        self._locations = tuple(f"{checkpoint.rstrip('/')}/{name}" for name in _FILES)
        self._query: str | None = None
        self._states: dict[_Key, AppliedState] = {}
        # The same as text: of a thousand tables a batch changes a few.
        self._lines: dict[_Key, str] = {}
        self._written = 0
        self._is_changed = False

    def read(self, spark: SparkSession, query: str) -> None:
        """Read what was written down for a query, once."""
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
                f"{' and '.join(damaged)} do not tell what the query's Delta tables have: remove"
                " them to go on without this check of the tables"
            )
        self._written, of_query, states = max(found, key=_count, default=(0, query, {}))
        self._query = query
        self._states = states if of_query == query else {}
        self._lines = {key: _line(key, state) for key, state in self._states.items()}

    def of(self, table: Table, *, is_log: bool = False) -> AppliedState | None:
        """What was written down of a table, or of its change log; None where nothing was."""
        return self._states.get(_key(table, is_log))

    def note(self, table: Table, state: AppliedState, *, is_log: bool = False) -> None:
        """Let `write` write down what a table, or its change log, has now."""
        key = _key(table, is_log)
        if self._states.get(key) != state:
            self._states[key], self._lines[key] = state, _line(key, state)
            self._is_changed = True

    def write(self, spark: SparkSession) -> None:
        """Write down what was noted, if any of it is new. It must be in Delta."""
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
