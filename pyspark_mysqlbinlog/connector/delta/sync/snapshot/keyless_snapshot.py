"""The snapshot of a keyless table: all of its rows, as they were at one binlog position.

The stream delivers them in one batch, after a row with the position (see
snapshot/reading/keyless.py). One commit replaces all rows of the Delta table with them, and records
the position as the applied position: the rows already include all earlier changes, in this batch or
a later one. Before that commit no change is applied, because the rows that it changes are unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.versions import Version, is_dropped, valid_from
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import ROW_BEFORE_ALL, SEQ, SEQ_TYPE
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack, pack_position
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader
from pyspark_mysqlbinlog.connector.delta.sync.batch_writer import delta_schema
from pyspark_mysqlbinlog.connector.delta.sync.constants import RELOAD_HINT
from pyspark_mysqlbinlog.errors import MirrorError, SchemaError, UnrepresentableValueError
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = [
    "KeylessSnapshot",
    "drops_after",
    "find_keyless_snapshot",
    "is_keyless",
    "keyless_rows",
    "last_drop_after",
    "schema_fingerprint",
    "unreadable_error",
]


# The `row` in `seq` of snapshot rows. Values up to ROW_BEFORE_ALL are before them.
_LOADED = -1


@dataclass(frozen=True, slots=True)
class KeylessSnapshot:
    """All rows of a table at one position.

    Attributes
    ----------
    seq : `seq` of the row with the position, which precedes the snapshot rows.
    rows : the snapshot rows, as changes.
    """

    seq: Mapping[str, int]
    rows: pa.Table

    @property
    def place(self) -> int:
        """The position, packed as in a commit marker."""
        return pack(self.seq["file"], self.seq["pos"])


def find_keyless_snapshot(changes: pa.Table, table: str) -> KeylessSnapshot | None:
    """Return the last complete snapshot in a batch; None if there is none.

    Raises MirrorError if the table could not be read this way.
    """
    statements = changes.filter(pc.is_in(changes.column("op"), pa.array(["t", "ddl"])))
    begins = statements.filter(
        pc.less_equal(_fields(statements.column("seq"))["row"], ROW_BEFORE_ALL)
    )
    if not begins.num_rows:
        return None
    found = sorted(begins.select(["op", "seq", "query"]).to_pylist(), key=_last_try)
    last = found[-1]
    if last["op"] == "ddl":
        raise unreadable_error(str(last["query"]), table)
    if len(found) > 1 and found[-2]["seq"] == last["seq"]:
        raise MirrorError(
            f"it was altered during its snapshot: all of it was read twice; {RELOAD_HINT}",
            table=table,
        )
    seq, its = _fields(changes.column("seq")), pc.equal(changes.column("op"), "r")
    for name, value in {**last["seq"], "row": last["seq"]["row"] + 1}.items():
        its = pc.and_(its, pc.equal(seq[name], value))
    return KeylessSnapshot(last["seq"], changes.filter(its))


def unreadable_error(problem: str, table: str) -> MirrorError:
    """Return the error for a table without a key that cannot be locked.

    problem : what is missing.
    """
    cure = f"{problem} to this account" if problem.startswith("GRANT") else problem
    return MirrorError(
        f"the table has no key, and its rows cannot be read at one binlog position: {cure}, and"
        f" {RELOAD_HINT}",
        table=table,
    )


def _fields(seq: pa.ChunkedArray[Any]) -> dict[str, Any]:
    typed: Any = seq.cast(SEQ_TYPE)
    return {field.name: pc.struct_field(typed, field.name) for field in SEQ_TYPE}


def _last_try(begin: Mapping[str, Any]) -> tuple[int, int, int]:
    seq = begin["seq"]
    return seq["file"], seq["pos"], -seq["row"]


def keyless_rows(load: KeylessSnapshot, schema: TableSchema) -> pa.Table:
    """Return the rows as the Delta table stores them.

    schema : the table's schema at the batch's end, which is not after the rows' position.
    """
    texts = load.rows.column("after")
    try:
        rows = RowImageReader(schema.columns, schema.full_name).from_json(texts)
    except (SchemaError, UnrepresentableValueError) as error:
        raise MirrorError(
            f"it was altered during its snapshot ({error.message}); {RELOAD_HINT}",
            table=schema.full_name,
        ) from None
    seq = pa.array([{**load.seq, "row": _LOADED}] * rows.num_rows, SEQ_TYPE)
    return rows.append_column(SEQ, seq).cast(delta_schema(schema))


def schema_fingerprint(schema: TableSchema) -> str:
    """Return the columns of a table's Delta table as JSON, independent of their order."""
    return json.dumps(sorted((field.name, str(field.type)) for field in delta_schema(schema)))


def is_keyless(versions: Iterable[Version]) -> bool:
    """Return whether the last version of a table has no key."""
    *_, (_, last) = versions
    return isinstance(last, TableSchema) and not last.row_key


def last_drop_after(versions: Iterable[Version], after: int) -> int | None:
    """Return the last position after `after` at which the table was dropped; None without any."""
    return max(drops_after(versions, after), default=None)


def drops_after(versions: Iterable[Version], place: int) -> list[int]:
    """Return the positions after another one at which the table was dropped, in order."""
    places = (pack_position(valid_from(version)) for version in versions if is_dropped(version))
    return [at for at in places if at > place]
