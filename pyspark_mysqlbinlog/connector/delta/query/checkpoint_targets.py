"""What a checkpoint is for: where its changes go, as its first batch notes it there.

A checkpoint tells how far its query has come, and not into which tables. Where it ran for a while
without one of them, or into others, what came meanwhile would be missing there without a word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.connector.delta.query.checkpoint_io import find_lines, write_line
from pyspark_mysqlbinlog.errors import OffsetError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_checkpoint_targets"]

_FILE = "mysqlbinlog-targets"


def check_checkpoint_targets(
    spark: SparkSession, checkpoint: str, targets: Mapping[str, str | None]
) -> None:
    """Note where the changes go, or OptionError unless they always went there.

    targets : an option's name -> its URI template; None where it is not given.
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
        raise OffsetError(f"{location} does not tell where the query's changes go") from None
    for name, given in targets.items():
        if known[name] != given:
            raise OptionError(
                f"{name}: this checkpoint was begun with {known[name]!r}, and what came until now"
                f" is not in {given!r}: go on as before, or give another checkpoint, with a"
                " startingOffset up to which the tables reach: what they have is passed over"
            )
