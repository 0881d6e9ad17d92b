"""Checks that a checkpoint is used with the targets that its first batch recorded.

A checkpoint records how far its query has come, but not into which tables. If it ran for a while
without one of them, or with others, the changes of that time would be missing without an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.connector.delta.query.checkpoint.files import (
    find_lines,
    write_line,
)
from pyspark_mysqlbinlog.errors import OffsetError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_checkpoint_targets"]

_FILE = "mysqlbinlog-targets"


def check_checkpoint_targets(
    spark: SparkSession, checkpoint: str, targets: Mapping[str, str | None]
) -> None:
    """Record the targets of the changes; OptionError if they differ from the recorded ones.

    targets : an argument's name -> its URI template; None if it is not given.
    """
    location = f"{checkpoint.rstrip('/')}/{_FILE}"
    lines = find_lines(spark, location)
    if lines is None:
        write_line(spark, location, json.dumps(dict(targets)))
        return
    try:
        noted = json.loads("".join(lines))
        known = {name: noted[name] for name in targets}
    except (ValueError, KeyError, TypeError):
        raise OffsetError(f"{location}: expected the query's targets as JSON") from None
    for name, given in targets.items():
        if known[name] != given:
            raise OptionError(
                f"{name}: this checkpoint was created with {known[name]!r}, found {given!r}, where"
                " the changes so far are missing; keep the old value, or use a new checkpoint with"
                " a startingOffset that the tables have reached (applied changes are skipped)"
            )
