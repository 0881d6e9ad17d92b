"""Removes soft-deleted rows from a Delta table when the table's key changes.

A soft-deleted row stays until a row with its key is inserted again. Under another key it may be
equal to a live row or to other soft-deleted rows, and a merge would restore all of them. So they
are removed when the key changes. A property of the Delta table records the key they were kept by.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from pyspark_mysqlbinlog.connector.delta.store.commit_markers import CommitMarker
from pyspark_mysqlbinlog.connector.delta.store.interface import DeltaTarget
from pyspark_mysqlbinlog.connector.delta.sync.constants import MERGE_KEY

__all__ = ["merge_key_recorded", "record_merge_key"]

_LOG = logging.getLogger(__name__)


def merge_key_recorded(target: DeltaTarget, key: Sequence[str]) -> bool:
    """Return whether a table has no soft-deleted rows, or has recorded this key for them."""
    return not target.soft_deletes or not key or target.properties().get(MERGE_KEY) == _text(key)


def record_merge_key(
    target: DeltaTarget,
    table: str,
    key: Sequence[str],
    came_from: Mapping[str, str],
    marker: CommitMarker | None,
) -> None:
    """Record the key, with a commit marker, after removing rows soft-deleted by another key.

    came_from : a column's name -> its name in the Delta table, if that is another one.
    """
    noted = target.properties().get(MERGE_KEY)
    if noted is not None and {*json.loads(noted)} != {came_from.get(name, name) for name in key}:
        _LOG.warning(
            "%s: the key changed to (%s); soft-deleted rows cannot be matched by the new key and"
            " are removed from the Delta table",
            table,
            ", ".join(key),
        )
        target.remove_deleted()
    target.set_properties({MERGE_KEY: _text(key)}, marker)


def _text(key: Sequence[str]) -> str:
    return json.dumps(sorted(key))
