"""The load of a table whose rows are counted: all of them, as they were at one place in the log.

The stream brings them in one batch, behind a row that names the place (see
snapshot/reading/keyless.py). In one commit they become all that the Delta table has, and the place
becomes that up to which it is complete: what the log has from before it, in this batch or a later
one, is in the rows already. Until then no change counts, for nobody knows what there is for it to
change.
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
from pyspark_mysqlbinlog.connector.delta.sync.batch_writer import RELOAD_HINT, delta_schema
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
]


# The `row` in `seq` of loaded rows. The greatest before them is ROW_BEFORE_ALL.
_LOADED = -1


@dataclass(frozen=True, slots=True)
class KeylessSnapshot:
    """All rows of a table at one place.

    Attributes
    ----------
    seq : of what came in front of the rows.
    rows : the changes that bring them.
    """

    seq: Mapping[str, int]
    rows: pa.Table

    @property
    def place(self) -> int:
        """The place, as a mark has it."""
        return pack(self.seq["file"], self.seq["pos"])


def find_keyless_snapshot(changes: pa.Table, table: str) -> KeylessSnapshot | None:
    """The last whole load in a batch; None where there is none.

    Raises MirrorError where the table could not be read so.
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
        problem = str(last["query"])
        cure = f"{problem} to this user" if problem.startswith("GRANT") else problem
        raise MirrorError(
            f"the table has no key, and its rows can't be read at one place in the log: {cure}, and"
            f" {RELOAD_HINT}",
            table=table,
        )
    if len(found) > 1 and found[-2]["seq"] == last["seq"]:
        raise MirrorError(
            f"it was altered while it was being loaded: all of it was read twice; {RELOAD_HINT}",
            table=table,
        )
    seq, its = _fields(changes.column("seq")), pc.equal(changes.column("op"), "r")
    for name, value in {**last["seq"], "row": last["seq"]["row"] + 1}.items():
        its = pc.and_(its, pc.equal(seq[name], value))
    return KeylessSnapshot(last["seq"], changes.filter(its))


def _fields(seq: pa.ChunkedArray[Any]) -> dict[str, Any]:
    typed: Any = seq.cast(SEQ_TYPE)
    return {field.name: pc.struct_field(typed, field.name) for field in SEQ_TYPE}


def _last_try(begin: Mapping[str, Any]) -> tuple[int, int, int]:
    seq = begin["seq"]
    return seq["file"], seq["pos"], -seq["row"]


def keyless_rows(load: KeylessSnapshot, schema: TableSchema) -> pa.Table:
    """The rows, as the Delta table is to have them.

    schema : of the table where the batch ends, which is no later than the rows.
    """
    texts = load.rows.column("after")
    try:
        rows = RowImageReader(schema.columns, schema.full_name).read(texts)
    except (SchemaError, UnrepresentableValueError) as error:
        raise MirrorError(
            f"it was altered while it was being loaded ({error.message}); {RELOAD_HINT}",
            table=schema.full_name,
        ) from None
    seq = pa.array([{**load.seq, "row": _LOADED}] * rows.num_rows, SEQ_TYPE)
    return rows.append_column(SEQ, seq).cast(delta_schema(schema))


def schema_fingerprint(schema: TableSchema) -> str:
    """The columns of a table's Delta table, whatever their order."""
    return json.dumps(sorted((field.name, str(field.type)) for field in delta_schema(schema)))


def is_keyless(versions: Iterable[Version]) -> bool:
    """Whether the last version of a table has no key."""
    *_, (_, last) = versions
    return isinstance(last, TableSchema) and not last.row_key


def last_drop_after(versions: Iterable[Version], behind: int) -> int | None:
    """The last place at which a table went, behind another place; None where it did not."""
    return max(drops_after(versions, behind), default=None)


def drops_after(versions: Iterable[Version], place: int) -> list[int]:
    """The places behind another one at which a table went, ascending."""
    places = (pack_position(valid_from(version)) for version in versions if is_dropped(version))
    return [at for at in places if at > place]
