"""The columns of a Delta table: the mirror's own, and the names of MySQL's.

Delta refuses some characters that a column's name may have in MySQL, and Spark writes no table with
them; delta-rs merges none with a backtick. Each becomes an underscore. The names of the mirror's
own columns get one behind. Neither Delta nor MySQL tells upper case from lower in names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from pyspark_mysqlbinlog.errors import MirrorError
from pyspark_mysqlbinlog.names import fold

__all__ = ["DELETED", "GONE", "ROW_BEFORE_ALL", "SEQ", "SEQ_TYPE", "check_distinct", "delta_name"]

SEQ = "_seq"
GONE = "_tombstone"
DELETED = "_deleted"
SEQ_TYPE = pa.struct(
    [
        pa.field("epoch", pa.int32()),
        pa.field("file", pa.int32()),
        pa.field("pos", pa.int64()),
        pa.field("row", pa.int32()),
    ]
)
# The `row` of a `seq` before all changes at a place, and before rows that were loaded there.
ROW_BEFORE_ALL = -2

_REFUSED = re.compile(r"[ ,;{}()\n\t=`]")
# Columns of the Delta table, and of the states on their way into it.
_OWN = frozenset({"_seq", "_deleted", "_tombstone", "_row_number"})


def delta_name(name: str) -> str:
    """The name in Delta of a column of MySQL."""
    written = _REFUSED.sub("_", name)
    # `_seq_`, too, so that it stays another one.
    return f"{written}_" if fold(written).rstrip("_") in _OWN else written


def check_distinct(names: Iterable[str], table: str) -> None:
    """MirrorError where two of a table's columns would be one in Delta."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(fold(delta_name(name)), name)
        if other != name:
            raise MirrorError(
                f"the columns {other!r} and {name!r} would both be {delta_name(name)!r} in Delta:"
                " rename one of them, or leave it out with excludeColumns",
                table=table,
            )
