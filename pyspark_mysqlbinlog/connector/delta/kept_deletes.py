"""Deleted rows that a Delta table keeps, where the table's key becomes another.

A deleted row stays until a row with its key comes back. By another key it may be one with a row
that is there, or with other deleted ones: a merge would bring all of them back. So they go when the
key changes; the Delta table's properties tell by which one they were kept.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from pyspark_mysqlbinlog.connector.delta.engine import DeltaTarget

__all__ = ["KEY", "are_of_another_key", "forget", "note_key"]

_LOG = logging.getLogger(__name__)
# A table property: the names of the key's columns, sorted, as JSON.
KEY = "mysqlbinlog.key"


def are_of_another_key(
    target: DeltaTarget, key: Sequence[str], came_from: Mapping[str, str]
) -> bool:
    """Whether deleted rows were kept by another key than this.

    came_from : a column's name -> the one that it has in the Delta table; others have their own.
    """
    if not target.keeps_deleted or not key:
        return False
    noted = target.properties().get(KEY)
    return noted is not None and {*json.loads(noted)} != {came_from.get(name, name) for name in key}


def forget(target: DeltaTarget, table: str, key: Sequence[str]) -> None:
    """Remove them."""
    _LOG.warning(
        "%s: its key is (%s) now, by which rows that were deleted before can't be told apart: those"
        " that were kept are removed from the Delta table",
        table,
        ", ".join(key),
    )
    target.remove_deleted()


def note_key(target: DeltaTarget, key: Sequence[str]) -> None:
    """Write down by which key deleted rows are kept from here on."""
    text = json.dumps(sorted(key))
    if target.keeps_deleted and key and target.properties().get(KEY) != text:
        target.set_properties({KEY: text})
