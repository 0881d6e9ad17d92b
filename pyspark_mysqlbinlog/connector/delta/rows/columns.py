"""Column names of a Delta table: the mirror's own, and conversion of MySQL's.

MySQL column names may have characters that Delta rejects or Spark cannot write; delta-rs cannot
merge a name with a backtick. Each becomes an underscore. Columns named like the mirror's own get
another underscore at the end. Names are case-insensitive in both Delta and MySQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.names import fold

__all__ = [
    "DELETED",
    "OLDEST_SEQ",
    "ROW_BEFORE_ALL",
    "SEQ",
    "SEQ_TYPE",
    "TOMBSTONE",
    "check_distinct",
    "delta_name",
]

SEQ = "_seq"
TOMBSTONE = "_tombstone"
DELETED = "_deleted"
SEQ_TYPE = pa.struct(
    [
        pa.field("epoch", pa.int32()),
        pa.field("file", pa.int32()),
        pa.field("pos", pa.int64()),
        pa.field("row", pa.int32()),
    ]
)
# The value of each field in a `seq` that is before all others.
OLDEST_SEQ = -1
# The `row` of a `seq` before all changes at a position, and before snapshot rows at it.
ROW_BEFORE_ALL = -2

_REFUSED = re.compile(r"[ ,;{}()\n\t=`]")
# Columns of the Delta table, and of the states that are merged into it.
_OWN = frozenset({"_seq", "_deleted", "_tombstone", "_row_number"})


def delta_name(name: str) -> str:
    """Return the name in Delta of a MySQL column."""
    written = _REFUSED.sub("_", name)
    # A `_seq_` gets another underscore, too, so that it stays distinct.
    return f"{written}_" if fold(written).rstrip("_") in _OWN else written


def check_distinct(names: Iterable[str], table: str) -> None:
    """MirrorError if two of a table's columns would be one in Delta."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(fold(delta_name(name)), name)
        if other != name:
            raise MirrorError(
                f"the columns {other!r} and {name!r} would both be {delta_name(name)!r} in Delta:"
                " rename one of them, or exclude it with excludeColumns",
                table=table,
            )
