"""Confirms that rows differ, while both sides change.

The first pass reads the sides at different times, so a row that was written in between looks
different. Such candidates are read again. A candidate is a difference only if the binlog proves
that both sides are comparable:

1. The newest version of the Delta table is selected. It is complete up to a position A.
2. The end of the binlog, B, is read, then the candidates' rows on the server, of which each SELECT
   sees everything before B (see snapshot/visibility/watermark.py), then the end of the binlog
   again, C. Everything in the SELECTs and in the Delta table is before C.
3. The binlog from the smaller one of A and B to C is read. If it does not change a row, the row was
   the same on the server all the time. If Delta's row is another one, it is a difference.
4. If it does, its images show how the row was at A (see `logged_states`). If Delta's row is the
   same, both are equal, and the change is on its way. If it is another one, it is a difference,
   provided that its `_seq` is before A, because a snapshot writes rows that are newer than A.

Other rows are tried again, because the mirror continues, until the time is over; then it remains
unknown whether they differ. These are rows that Delta lacks and the binlog changes, changed rows of
a table without a key, and all rows after a statement without row images. Nothing is assumed about
the mirror: it may run, lag, or be stopped.

Rows without a key are counted. A count is the server's at one moment between B and C, because one
SELECT reads the table, and the same proof holds for all copies of a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
from pyarrow import dataset

from pyspark_mysqlbinlog.checkpoints.position import Position
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.columns import SEQ
from pyspark_mysqlbinlog.connector.delta.rows.packed_position import pack_position
from pyspark_mysqlbinlog.connector.delta.rows.sections import packed_positions
from pyspark_mysqlbinlog.connector.delta.store.commit_markers import LogIdentity
from pyspark_mysqlbinlog.connector.delta.sync.constants import RELOAD_HINT
from pyspark_mysqlbinlog.connector.delta.sync.log_identity import FingerprintAt, LogIdentityCheck
from pyspark_mysqlbinlog.connector.verification.delta_rows import DeltaRows
from pyspark_mysqlbinlog.connector.verification.digests import KEY, ROW, digests_of
from pyspark_mysqlbinlog.connector.verification.logged_states import LoggedStates
from pyspark_mysqlbinlog.connector.verification.results import Difference, Kind
from pyspark_mysqlbinlog.connector.verification.server_table import ServerTable
from pyspark_mysqlbinlog.errors import MirrorError

__all__ = ["Confirmation", "Found"]

_PAUSE_SECONDS = 1.0
_NEWEST = 1 << 63
# Types whose equal values are equal for pyarrow. `_condition` has the integers.
_COMPARABLE = (
    pa.types.is_string,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_binary,
)
_NO_ROWS: Counter[bytes] = Counter()


@dataclass(slots=True)
class Found:
    """The differences of a table so far, and the candidates that are left.

    pending : rows that are equal at the position up to which the Delta table is complete, and are
        changed after it.
    reason : why the last round could not be completed; None if it was.
    """

    counts: Counter[Kind] = field(default_factory=Counter)
    shown: list[Difference] = field(default_factory=list)
    left: pa.Table | None = None
    pending: int = 0
    applied: Position | None = None
    reason: str | None = None


class Confirmation:
    """Confirms the candidates of one table.

    Parameters
    ----------
    log : the binlog of both sides.
    fingerprint_at : returns a position's fingerprint in it.
    shown : how many differences are listed. Values are kept of the first `10 * shown` rows that are
        compared again; of others, the key is listed without the columns that differ.
    """

    def __init__(
        self,
        server: ServerTable,
        delta: DeltaRows,
        log: LogIdentity,
        fingerprint_at: FingerprintAt,
        *,
        shown: int,
    ) -> None:
        self._server = server
        self._delta = delta
        self._log = log
        self._fingerprint_at = fingerprint_at
        self._shown = shown
        # The position at which the binlog was found to be the one of the Delta table's rows.
        self._checked: Position | None = None

    def confirm(self, candidates: pa.Table, seconds: float) -> Found:
        """Confirm candidates, from `differing_keys`, for at most so many seconds.

        A round that has begun is completed.
        """
        found = Found(left=candidates)
        deadline = monotonic() + seconds
        while found.left is not None and found.left.num_rows:
            try:
                self._round(found)
                found.reason = None
            except MirrorError as error:
                # The mirror may be about to remove the cause.
                found.reason = error.message
            if monotonic() + _PAUSE_SECONDS >= deadline:
                break
            if found.left.num_rows:
                sleep(_PAUSE_SECONDS)
        return found

    def _round(self, found: Found) -> None:
        """Read all candidates that are left once."""
        candidates = found.left
        assert candidates is not None
        server = self._server
        self._delta.pin()
        self._delta.check_columns(server.columns)
        before = server.end_of_log()
        applied = found.applied = self._delta.applied(self._log, before)
        self._check_log(applied, before)
        listed: list[Any] = candidates.column(KEY).to_pylist()
        wanted = set(listed)
        # Values are kept for rows that may be shown; for the others, only digests.
        sampled = set(listed[: 10 * (self._shown - len(found.shown))])
        on_delta = _Rows.read(self._delta_rows(candidates), server.key, wanted, sampled)
        on_server = _Rows.read(self._server_rows(candidates), server.key, wanted, sampled)
        after = server.end_of_log()
        server.check_unchanged()
        start = min(applied, before, key=lambda position: position.order)
        place = pack_position(applied)
        logged = server.logged(start, after, place, wanted)
        left: list[bytes] = []
        for digest in listed:
            here = on_server.of(digest)
            if logged.is_changed(digest):
                there = on_delta.of(digest)
                before_change = self._at_place(digest, logged)
                is_older = on_delta.newest.get(digest, -1) < place
                if before_change is None or (before_change != there and not (there and is_older)):
                    left.append(digest)
                    continue
                if before_change == there:
                    found.pending += here != there
                    continue
                here = before_change
            self._judge(found, digest, here, on_server, on_delta)
        is_left = pc.is_in(candidates.column(KEY), value_set=pa.array(left, pa.binary(16)))
        found.left = candidates.filter(is_left)

    def _at_place(self, digest: bytes, logged: LoggedStates) -> Counter[bytes] | None:
        """Return a changed row as it was at the Delta table's position; None if that is unknown."""
        if logged.is_unknown or not self._server.key:
            return None
        row = logged.at_place(digest)
        return Counter() if row is None else Counter([row])

    def _check_log(self, applied: Position, like: Position) -> None:
        """Raise MirrorError unless the binlog is still the one of the Delta table's rows."""
        if applied != self._checked:
            name, target = self._server.schema.full_name, self._delta.target
            check = LogIdentityCheck(name, target, self._fingerprint_at, RELOAD_HINT)
            check.check_same_log(pack_position(applied), like, self._log)
            self._checked = applied

    def _delta_rows(self, candidates: pa.Table) -> Iterator[pa.Table]:
        columns, condition = self._server.columns, _condition(candidates)
        for part in self._delta.batches(columns, condition, with_seq=True):
            yield _possible(part, candidates)

    def _server_rows(self, candidates: pa.Table) -> Iterator[pa.Table]:
        if self._server.key:
            return self._server.rows_with(candidates.drop([KEY]))
        return self._server.rows(Chunk(self._server.name))

    def _judge(
        self, found: Found, digest: bytes, here: Counter[bytes], server: _Rows, delta: _Rows
    ) -> None:
        """Add the difference of a row in `found.left`, if there is one.

        here : the row's copies on the server where the Delta table is complete.
        """
        there = delta.of(digest)
        if self._server.key:
            # A chunk that was read again returns its rows again.
            here = Counter(dict.fromkeys(here, 1))
        kind = _kind(here, there, has_key=bool(self._server.key))
        if kind is None:
            return
        found.counts[kind] += 1
        if len(found.shown) >= self._shown:
            return
        rows = [each for each in (server.rows.get(digest), delta.rows.get(digest)) if each]
        if not self._server.key:
            if not rows:
                return
            counts = here.total(), there.total()
            found.shown.append(Difference(kind, rows[0], (), *counts))
            return
        columns: tuple[str, ...] = ()
        if kind == "different" and len(rows) == 2:
            one, other = rows
            columns = tuple(name for name in one if repr(one[name]) != repr(other[name]))
        # The key is known also if the values were not kept.
        assert found.left is not None
        place = pc.index(found.left.column(KEY), digest).as_py()
        key = {name: found.left.column(name)[place].as_py() for name in self._server.key}
        found.shown.append(Difference(kind, key, columns))


def _kind(server: Counter[bytes], delta: Counter[bytes], *, has_key: bool) -> Kind | None:
    """Return how two sides of a key differ; the counters have the copies of each row."""
    if server == delta:
        return None
    here, there = server.total(), delta.total()
    if there > 1 and has_key:
        return "duplicate"
    if here == there:
        return "different"
    return "missing" if here > there else "extra"


@dataclass(slots=True)
class _Rows:
    """One side's rows of the candidates, by the digest of their keys.

    Attributes
    ----------
    copies : the number of copies of each row, by its digest; see `of`.
    rows : the values of some.
    newest : on the side of Delta, the packed position of each row's last change.
    """

    copies: dict[bytes, Counter[bytes]]
    rows: dict[bytes, Mapping[str, Any]]
    newest: dict[bytes, int]

    def of(self, digest: bytes) -> Counter[bytes]:
        """Return the number of copies of each row with this key, by the row's digest."""
        return self.copies.get(digest, _NO_ROWS)

    @classmethod
    def read(
        cls,
        parts: Iterable[pa.Table],
        key: Sequence[str],
        wanted: set[bytes],
        sampled: set[bytes],
    ) -> _Rows:
        copies: dict[bytes, Counter[bytes]] = {}
        rows: dict[bytes, Mapping[str, Any]] = {}
        newest: dict[bytes, int] = {}
        for whole in parts:
            part, places = _without_seq(whole)
            digests = digests_of(part, key)
            keys: list[Any] = digests.column(KEY).to_pylist()
            contents: list[Any] = digests.column(ROW).to_pylist()
            for place, (digest, row) in enumerate(zip(keys, contents, strict=True)):
                if digest not in wanted:
                    continue
                copies.setdefault(digest, Counter())[row] += 1
                if places is not None:
                    newest[digest] = max(newest.get(digest, 0), places[place])
                if digest in sampled and digest not in rows:
                    rows[digest] = part.slice(place, 1).to_pylist()[0]
        return cls(copies, rows, newest)


def _without_seq(rows: pa.Table) -> tuple[pa.Table, list[int] | None]:
    """Return rows without `seq`, and the packed position of each; None if they have no `seq`."""
    if SEQ not in rows.column_names:
        return rows, None
    places: list[Any] = packed_positions(rows.select([SEQ]).rename_columns(["seq"])).to_pylist()
    # A row that another program wrote may have none.
    return rows.drop([SEQ]), [_NEWEST if place is None else place for place in places]


def _condition(candidates: pa.Table) -> Any:
    """Return a pyarrow expression that all candidates meet, to skip other rows early; else None.

    Only integers: pyarrow 26.0.1 fails to compare a condition on texts with the files' statistics.
    """
    for name in candidates.drop([KEY]).column_names:
        values: Any = candidates.column(name)
        if pa.types.is_integer(values.type):
            return dataset.field(name).isin(pc.unique(values.combine_chunks()))
    return None


def _possible(part: pa.Table, candidates: pa.Table) -> pa.Table:
    """Return the rows that may be candidates: digests of all rows would take longer."""
    for name in candidates.drop([KEY]).column_names:
        values: Any = candidates.column(name)
        if any(is_type(values.type) for is_type in _COMPARABLE):
            return part.filter(pc.is_in(part.column(name), value_set=pc.unique(values)))
    return part
