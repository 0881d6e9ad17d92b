"""The offset that Spark stores: a boundary in the binlog and everything that a restart needs.

A public format. Version 1, as JSON:

================  ==================================================================================
v                 1; a newer version is rejected, and an older one would be read
epoch             increases when file numbers become incomparable (RESET MASTER, restore, failover)
file, pos         the boundary: everything before it is delivered
server_uuid       the server that wrote the file; on MariaDB ``server_id-`` and its server_id; empty
                  if it has none (before 5.6)
gtid              the GTIDs of all transactions before the boundary, as `gtid_executed` (MariaDB:
                  `gtid_binlog_state`) shows them; null if unknown, as with gtid_mode=OFF
prepared_xa       XA transactions that are prepared at the boundary, oldest first, at most 256: the
                  xid, and if it has captured rows a space and FILE:BEGIN-END, where its events are
schemas           the query's payload, a comma, a hash of its table filter, with masks or a row
                  filter a comma and a hash of these, a colon, then the packed schema history: every
                  version that is valid within the batch that ends here, with primary keys
snapshot          the state of an initial snapshot (see `snapshot_state`); empty without one
fingerprint       identifies the binlog of the boundary: an object with the names of
                  `PositionFingerprint`; empty if unknown
gap               only at the end of an empty batch after which changes are missing: FILE:POS where
                  the lost part of the binlog begins
case_insensitive  only if `lower_case_table_names` of the server is not 0: true; without it, names
                  of databases and tables are case-sensitive
================  ==================================================================================

All names but the last two are always present, in this order, so the same boundary is the same
bytes.
Offsets compare by epoch, file number and pos.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.errors import InvalidPositionError, OffsetError
from pyspark_mysqlbinlog.names import Table

__all__ = ["OFFSET_VERSION", "PAYLOADS", "Offset"]

OFFSET_VERSION = 1
PAYLOADS = ("json", "struct", "variant")
_TYPES: dict[str, type] = {
    "v": int,
    "epoch": int,
    "file": str,
    "pos": int,
    "server_uuid": str,
    "prepared_xa": list,
    "schemas": str,
    "snapshot": str,
}


@dataclass(frozen=True, slots=True)
class Offset:
    """One offset. `schemas` stays packed, because Spark passes offsets every few ms.

    payload : ``json``, ``struct`` or ``variant``, of the query that made it; empty if unknown.
    tables : differs if the query captured other tables; empty if unknown.
    transforms : differs if the query masked other columns, or filtered other rows; empty if none.
    gap : if changes before the boundary are lost: where the lost part begins; otherwise empty.
    case_insensitive : whether `lower_case_table_names` of the server is not 0; False if unknown.
    """

    position: Position
    server_uuid: str = ""
    schemas: str = ""
    prepared_xa: tuple[str, ...] = ()
    gtid: str | None = None
    epoch: int = 0
    snapshot: str = ""
    payload: str = ""
    tables: str = ""
    transforms: str = ""
    fingerprint: PositionFingerprint | None = None
    gap: str = ""
    case_insensitive: bool = False

    @property
    def executed(self) -> GtidSet | None:
        """The GTIDs of all transactions before the boundary; None if unknown."""
        return None if self.gtid is None else _parsed(self.gtid)

    @property
    def snapshot_state(self) -> SnapshotState | None:
        """The state of the query's snapshot; None if it has none."""
        return _unpacked(self.snapshot) if self.snapshot else None

    @property
    def order(self) -> tuple[int, int, int]:
        """The sort key of offsets."""
        return self.epoch, self.position.number, self.position.pos

    @property
    def read_ahead(self) -> frozenset[Table]:
        """The tables whose snapshot rows may include changes after the boundary."""
        state = self.snapshot_state
        return frozenset() if state is None else state.read_ahead_of(self.position.order)

    def reads_chunks_since(self, start: Offset) -> bool:
        """Whether the batch from `start` to here reads chunks of a snapshot."""
        return (
            self.snapshot_state is not None
            and start.snapshot != self.snapshot
            and bool(self.snapshot_state.chunks)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what Spark stores as JSON: all names of the format above, in its order."""
        more: dict[str, Any] = {"gap": self.gap} if self.gap else {}
        if self.case_insensitive:
            more["case_insensitive"] = True
        return {
            "v": OFFSET_VERSION,
            "epoch": self.epoch,
            "file": self.position.file,
            "pos": self.position.pos,
            "server_uuid": self.server_uuid,
            "gtid": self.gtid,
            "prepared_xa": list(self.prepared_xa),
            "schemas": self._head + self.schemas,
            "snapshot": self.snapshot,
            "fingerprint": {} if self.fingerprint is None else self.fingerprint.to_dict(),
            **more,
        }

    @property
    def _head(self) -> str:
        """Return the text before the packed schemas."""
        words = [self.payload, self.tables, self.transforms]
        while words and not words[-1]:
            words.pop()
        return f"{','.join(words)}:" if any(words) else ""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Offset:
        """Read an offset; OffsetError reports what is wrong with it."""
        if "v" not in value:
            raise OffsetError(
                "this is not an offset of mysqlbinlog: it has no version 'v'; the checkpoint"
                " belongs to another source"
            )
        version = value["v"]
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise OffsetError(f"the offset's version 'v' is {version!r}, expected {OFFSET_VERSION}")
        if version > OFFSET_VERSION:
            raise OffsetError(
                f"the offset has version {version}, this release reads up to {OFFSET_VERSION}; the"
                " checkpoint was written by a newer pyspark-mysqlbinlog: upgrade"
            )
        for name, kind in _TYPES.items():
            if name not in value:
                raise OffsetError(f"the offset lacks {name!r}; the checkpoint is damaged")
            if not isinstance(value[name], kind) or isinstance(value[name], bool):
                raise OffsetError(
                    f"the offset's {name!r} is {value[name]!r}, expected {kind.__name__}; the"
                    " checkpoint is damaged"
                )
        if value["pos"] < FIRST_EVENT:
            raise OffsetError(f"the offset's 'pos' is {value['pos']}, expected 4 or more")
        try:
            position = Position.of(value["file"], value["pos"])
        except InvalidPositionError as error:
            raise OffsetError(f"the offset's 'file': {error.message}") from None
        # The packed text has no colon, so the text before one is not part of it.
        head, colon, schemas = value["schemas"].rpartition(":")
        payload, tables, transforms = [*head.split(",", 2), "", ""][:3]
        if colon and payload not in PAYLOADS:
            raise OffsetError(
                f"the offset's payload is {payload!r}, expected one of {', '.join(PAYLOADS)}; the"
                " checkpoint is damaged"
            )
        return cls(
            position=position,
            server_uuid=value["server_uuid"],
            schemas=schemas,
            payload=payload,
            tables=tables,
            transforms=transforms,
            prepared_xa=tuple(value["prepared_xa"]),
            gtid=_gtid(value),
            epoch=value["epoch"],
            snapshot=value["snapshot"],
            fingerprint=_fingerprint(value, position),
            gap=_gap(value),
            case_insensitive=_case_insensitive(value),
        )


def _gap(value: Mapping[str, Any]) -> str:
    found = value.get("gap", "")
    if not isinstance(found, str):
        raise OffsetError(
            f"the offset's 'gap' is {found!r}, expected str; the checkpoint is damaged"
        )
    return found


def _case_insensitive(value: Mapping[str, Any]) -> bool:
    found = value.get("case_insensitive", False)
    if not isinstance(found, bool):
        raise OffsetError(
            f"the offset's 'case_insensitive' is {found!r}, expected bool; the checkpoint is"
            " damaged"
        )
    return found


def _gtid(value: Mapping[str, Any]) -> str | None:
    if "gtid" not in value:
        raise OffsetError("the offset lacks 'gtid'; the checkpoint is damaged")
    found = value["gtid"]
    try:
        if found is not None:
            _parsed(found)
    except (InvalidPositionError, AttributeError, TypeError):
        raise OffsetError(
            f"the offset's 'gtid' is {found!r}, expected a GTID set or null; the checkpoint is"
            " damaged"
        ) from None
    return None if found is None else str(found)


@lru_cache(maxsize=4)
def _parsed(gtid: str) -> GtidSet:
    """Parse a set; cached like `_unpacked`."""
    return GtidSet.parse(gtid)


@lru_cache(maxsize=4)
def _unpacked(snapshot: str) -> SnapshotState:
    """Unpack a state; cached, because Spark passes the same offsets repeatedly."""
    return SnapshotState.unpack(snapshot)


def _fingerprint(value: Mapping[str, Any], position: Position) -> PositionFingerprint | None:
    if "fingerprint" not in value:
        raise OffsetError("the offset lacks 'fingerprint'; the checkpoint is damaged")
    found = value["fingerprint"]
    if found == {}:
        return None
    try:
        fingerprint = PositionFingerprint.from_dict(found)
    except (KeyError, TypeError, ValueError, AttributeError):
        fingerprint = None
    # The event is between the file's beginning and the position.
    if fingerprint is None or fingerprint.length > position.pos - FIRST_EVENT:
        raise OffsetError(
            f"the offset's 'fingerprint' is {found!r}, expected integers for created,"
            " server_id, length and checksum; the checkpoint is damaged"
        )
    return fingerprint
