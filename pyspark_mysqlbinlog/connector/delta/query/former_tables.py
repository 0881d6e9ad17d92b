"""Tables of a batch whose Delta table belongs to a later table of the same catalog name.

MySQL tables such as `t` and `T` have one name in a catalog. They may follow one another, by RENAME
TABLE or by DROP and CREATE. Then the Delta table goes to the one that exists last, as if a table
was dropped and created again under its own name. The rows of the earlier one would be removed in
the same batch, so its changes are not applied. Two that exist at the same time are an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from pyspark_mysqlbinlog.checkpoints.versions import is_dropped, valid_from
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.store.places.names import NameTemplate, same_name_error
from pyspark_mysqlbinlog.connector.delta.sync.versions import TableVersions
from pyspark_mysqlbinlog.names import Table

__all__ = ["former_tables"]

# After every position.
_END = 1 << 127
_Span = tuple[int, int]


def former_tables(
    tables: Mapping[Table, TableVersions], template: NameTemplate
) -> dict[Table, Table]:
    """Return each former table of a catalog name -> the last table of that name.

    OptionError if two tables have one name at the same time.

    tables : all of a batch.
    """
    by_name: dict[str, list[Table]] = {}
    for table in tables:
        by_name.setdefault(str(template.render(table)).lower(), []).append(table)
    former: dict[Table, Table] = {}
    for same in by_name.values():
        if len(same) == 1:
            continue
        spans = {table: _spans(tables[table]) for table in same}
        for one, other in combinations(same, 2):
            if any(_overlap(a, b) for a in spans[one] for b in spans[other]):
                raise same_name_error(one, other, template)
        last = max(same, key=lambda table: spans[table][-1:])
        # If none of them exists any more, their changes are applied already.
        former |= {table: last for table in same if table != last or not spans[table]}
    return former


def _spans(versions: TableVersions) -> list[_Span]:
    """Return the ranges in which a table exists in a batch: (start, end) as packed positions."""
    found: list[_Span] = []
    starts = [pack_position(valid_from(version)) for version in versions.versions]
    for version, start, end in zip(versions.versions, starts, [*starts[1:], _END], strict=True):
        if not is_dropped(version):
            found.append((start, end))
    return found


def _overlap(one: _Span, other: _Span) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])
