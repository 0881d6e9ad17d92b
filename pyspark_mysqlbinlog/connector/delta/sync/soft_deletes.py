"""Deleted rows that a Delta table keeps, where the table's key becomes another.

A deleted row stays until a row with its key comes back. By another key it may be one with a row
that is there, or with other deleted ones: a merge would bring all of them back. So they go when the
key changes; the Delta table's properties tell by which one they were kept.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from pyspark_mysqlbinlog.connector.delta.store.commit_markers import Mark
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget

__all__ = ["KEY", "merge_key_recorded", "record_merge_key"]

_LOG = logging.getLogger(__name__)
# A table property: the names of the key's columns, sorted, as JSON.
KEY = "mysqlbinlog.mergeKey"


def merge_key_recorded(target: DeltaTarget, key: Sequence[str]) -> bool:
    """Whether a table keeps no deleted rows, or has written down that it keeps them by this key."""
    return not target.soft_deletes or not key or target.properties().get(KEY) == _text(key)


def record_merge_key(
    target: DeltaTarget,
    table: str,
    key: Sequence[str],
    came_from: Mapping[str, str],
    mark: Mark | None,
) -> None:
    """Write down the key, with a mark; deleted rows that were kept by another one go before.

    came_from : a column's name -> the one that it had when the batch began; others have their own.
    """
    noted = target.properties().get(KEY)
    if noted is not None and {*json.loads(noted)} != {came_from.get(name, name) for name in key}:
        _LOG.warning(
            "%s: its key is (%s) now, by which rows that were deleted before can't be told apart:"
            " those that were kept are removed from the Delta table",
            table,
            ", ".join(key),
        )
        target.remove_deleted()
    target.set_properties({KEY: _text(key)}, mark)


def _text(key: Sequence[str]) -> str:
    return json.dumps(sorted(key))
