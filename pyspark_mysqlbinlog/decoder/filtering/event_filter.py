"""Which events are captured, and where the binlog may be split.

A transaction is GTID?, BEGIN, then per statement ROWS_QUERY?, TABLE_MAPs and rows events, then XID
or COMMIT; a DDL statement is a transaction of its own. MySQL 5.1 logs a statement on tables without
transactions alone: TABLE_MAPs and rows events, the last of which has STMT_END.

The filter keeps the events of captured tables and the frame around them (GTID, BEGIN, their
ROWS_QUERY, the end), and drops all others. It reads headers, table names and statements, but
decodes no row images.

`TransactionState` tracks the state within the transaction; `unsafe_events` has the checks that stop
the stream.

Kept events of a transaction may turn out not to be delivered: XA prepares the transaction, and a
later statement commits it or rolls it back; or it is rolled back, to a savepoint or completely.
`outcome` reports these decisions, and the caller holds the events while `is_held` is true. A
rollback is in the binlog only if the transaction dropped a temporary table, or on MariaDB. Rows of
tables that are not transactional are never in a transaction that is rolled back: with row format,
the server writes them into a transaction of their own, which ends in COMMIT (measured on 5.6.24,
5.7.41, MariaDB 10.11 and 11.8; 9.7.4 logs no rollback).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from pyspark_mysqlbinlog.decoder.events.rows import STMT_END_FLAG
from pyspark_mysqlbinlog.decoder.events.statements import DDL_KINDS, Statement, StatementKind
from pyspark_mysqlbinlog.decoder.events.table_map import (
    DUMMY_TABLE_IDS,
    parse_table_name,
    table_id_of,
)
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionState
from pyspark_mysqlbinlog.decoder.filtering import unsafe_events
from pyspark_mysqlbinlog.decoder.filtering.outcomes import (
    Outcome,
    Prepared,
    PreparedXa,
    RolledBack,
    SavepointSet,
    XaCommitted,
    XaRolledBack,
)
from pyspark_mysqlbinlog.decoder.sql.logged_statement import LoggedStatement
from pyspark_mysqlbinlog.errors import MySQLBinlogError
from pyspark_mysqlbinlog.names import SYSTEM_DATABASES
from pyspark_mysqlbinlog.protocol.events import (
    ARTIFICIAL_FLAG,
    IGNORABLE_FLAG,
    MYSQL_GTID_TYPES,
    ROWS_EVENT_TYPES,
    THREAD_SPECIFIC_FLAG,
    Event,
    EventType,
)
from pyspark_mysqlbinlog.protocol.messages import (
    MariadbGtid,
    XaPrepare,
    begins_at_start,
    parse_server_version,
)

__all__ = ["EventFilter", "TransactionScanState"]


def _types(*kinds: EventType) -> frozenset[int]:
    return frozenset(int(kind) for kind in kinds)


_ROWS = _types(*ROWS_EVENT_TYPES)
_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_QUERY = int(EventType.QUERY_EVENT)
_XID = int(EventType.XID_EVENT)
_XA_PREPARE = int(EventType.XA_PREPARE_LOG_EVENT)
_INCIDENT = int(EventType.INCIDENT_EVENT)
_EXECUTE_LOAD_QUERY = int(EventType.EXECUTE_LOAD_QUERY_EVENT)
_MARIADB_GTID = int(EventType.MARIADB_GTID_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_STATEMENT_TEXTS = _types(EventType.ROWS_QUERY_LOG_EVENT, EventType.MARIADB_ANNOTATE_ROWS_EVENT)
# Part of a file, not of a transaction.
_FILE_EVENTS = _types(
    EventType.FORMAT_DESCRIPTION_EVENT,
    EventType.ROTATE_EVENT,
    EventType.STOP_EVENT,
    EventType.PREVIOUS_GTIDS_LOG_EVENT,
    EventType.MARIADB_GTID_LIST_EVENT,
)
_PASSED_OVER = _types(
    # Parts of a statement in statement format; the QUERY after them determines its effect.
    EventType.INTVAR_EVENT,
    EventType.RAND_EVENT,
    EventType.USER_VAR_EVENT,
    EventType.BEGIN_LOAD_QUERY_EVENT,
    EventType.APPEND_BLOCK_EVENT,
    EventType.DELETE_FILE_EVENT,
    # Of group replication.
    EventType.TRANSACTION_CONTEXT_EVENT,
    EventType.VIEW_CHANGE_EVENT,
    EventType.MARIADB_BINLOG_CHECKPOINT_EVENT,
)
_KIND = StatementKind


class TransactionScanState(NamedTuple):
    """State of the transaction in progress, for the compiled scan.

    Attributes
    ----------
    captured_ids : ids of the tables announced in it, and whether these are captured.
    frame_waits : GTID and BEGIN have not been kept yet.
    text_waits : the statement's text has not been kept yet.
    rows_seen : the statement already has rows: the next table map begins another statement.
    """

    captured_ids: dict[int, bool]
    frame_waits: bool
    text_waits: bool
    rows_seen: bool


class EventFilter:
    """Filters the events of a binlog, fed in order from a boundary on.

    Parameters
    ----------
    captures : whether changes of (database, table) are captured.
    pending_xa : prepared XA transactions, in the order in which they were prepared: an xid, or the
        text of a `PreparedXa` for one with captured rows.
    server_version : of the server that wrote the binlog, until a FORMAT_DESCRIPTION contains it.
    operations : ``ddl`` also keeps the DDL of captured tables; without ``truncate``, a TRUNCATE of
        an uncertain table is ignored.
    earlier_xa : called with the xid and the event of an XA COMMIT that is not in `pending_xa`;
        returns where its captured rows are, or None if it has none. Without it, such a commit is
        an error.
    check_others : called with the event of a change in statement format that names no captured
        table.

    Attributes
    ----------
    ended : the last event ended a transaction: the binlog may be split after it.
    outcome : what the last event decides about captured events; mostly None.
    statement : the statement of the last event, if it is DDL or TRUNCATE; otherwise None.
    pending_xa : as above, kept up to date.
    """

    def __init__(
        self,
        captures: Callable[[str, str], bool],
        pending_xa: tuple[str, ...] = (),
        server_version: str = "",
        *,
        operations: frozenset[str] = frozenset({"truncate"}),
        earlier_xa: Callable[[str, Event], PreparedXa | None] | None = None,
        check_others: Callable[[Event, LoggedStatement], None] | None = None,
    ) -> None:
        self._captures = captures
        self._check_others = check_others
        self._keeps_ddl = "ddl" in operations
        self._truncates = "truncate" in operations
        # Prepared XA transactions with captured rows whose tables the server may no longer lock.
        self._unlocked = _with_rows(pending_xa)
        self._earlier_xa = earlier_xa or unsafe_events.check_unknown_xid
        # Results of the last event, which callers read.
        self.ended = False
        self.statement: LoggedStatement | None = None
        self.outcome: Outcome | None = None
        self.pending_xa = pending_xa
        self.written_by(server_version)
        self._transaction = TransactionState()
        # The transaction in progress is an XA transaction: prepared, or committed in one phase.
        self._is_xa = False
        # The transaction in progress comes from a payload.
        self._is_in_payload = False
        # GTID, BEGIN and ROWS_QUERY are held here until a captured table requires them.
        self._frame: list[Event] = []
        self._rows_query: Event | None = None
        # The events that a reader starting inside the transaction needs first.
        self._group_events: list[Event] = []
        self._statement_events: list[Event] = []
        self._captured_ids: dict[int, bool] = {}
        self._kept_rows_events = 0

    def written_by(self, server_version: str) -> None:
        """Set the version of the server that wrote the following events."""
        self._server_version = server_version
        self._is_5_1 = server_version.startswith("5.1.")

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._transaction.in_progress

    @property
    def between_transactions(self) -> bool:
        """Whether the next event begins a transaction, and no event is held."""
        transaction = self._transaction
        return not (transaction.in_progress or self._rows_query or transaction.savepoints)

    @property
    def is_held(self) -> bool:
        """Whether captured events of the transaction in progress may still be rolled back."""
        return self._is_xa or bool(self._transaction.savepoints)

    @property
    def has_xa(self) -> bool:
        """Whether the transaction in progress is an XA transaction."""
        return self._is_xa

    @property
    def group(self) -> TransactionScanState | None:
        """The state of the transaction in progress; None before its BEGIN, or without one."""
        transaction = self._transaction
        if not transaction.in_group or transaction.is_statement:
            return None
        return TransactionScanState(
            self._captured_ids,
            bool(self._frame),
            self._rows_query is not None,
            transaction.rows_seen,
        )

    def is_captured_id(self, table_id: int) -> bool:
        """Whether the table that a table map announced under this id is captured."""
        return self._captured_ids[table_id]

    def advance_transactions(self) -> None:
        """Record that the compiled scan has passed whole transactions, by the rules of `feed`."""
        self.statement = self.outcome = None
        self._transaction.end()
        self.ended = True

    def advance_group(
        self,
        new_ids: dict[int, bool],
        statement: Sequence[Event],
        *,
        is_new_statement: bool,
        text_waits: bool,
        text: Event | None,
        rows_seen: bool,
        kept_rows_events: int,
    ) -> None:
        """Record that the compiled scan has passed rows, table maps and texts of this transaction.

        Parameters
        ----------
        new_ids : ids of the tables that these table maps announced, and whether they are captured.
        statement : text and table maps of the statement in progress, without those before the
            scan, unless `is_new_statement`.
        text_waits : the statement's text has not been kept yet.
        text : that text; None if it came before the scan.
        """
        self.statement = self.outcome = None
        self.ended = False
        self._captured_ids.update(new_ids)
        if is_new_statement:
            self._statement_events = []
        self._statement_events.extend(statement)
        if not text_waits:
            self._rows_query = None
        elif text is not None:
            self._rows_query = text
        self._transaction.rows_seen = rows_seen
        self._kept_rows_events += kept_rows_events

    def feed(self, event: Event) -> list[Event]:
        """Return the events to keep, in order: none, this one, or this one after its held frame."""
        try:
            if event.offset is None:
                if self._is_in_payload:
                    unsafe_events.check_whole_payload(event)
                return self._feed(event)
            return self._feed_inner(event)
        except MySQLBinlogError as error:
            raise error.with_location(event.file, event.start) from None

    def _feed_inner(self, event: Event) -> list[Event]:
        """Feed an event of a payload, which must be a whole transaction except for its GTID."""
        if not event.offset:
            unsafe_events.check_payload_begins(self._transaction, event)
        self._is_in_payload = True
        kept = self._feed(event)
        unsafe_events.check_in_payload(event, self.statement, ended=self.ended)
        self._is_in_payload = not self.ended
        return kept

    def prelude(self) -> list[Event]:
        """Return the events to feed to another filter so that it can continue after the last event.

        These are the first events of the transaction in progress, and the text and the table maps
        of its statement, captured or not.
        """
        return [*self._group_events, *self._statement_events]

    def _feed(self, event: Event) -> list[Event]:
        kind = event.type
        self.statement = self.outcome = None
        self.ended = False
        transaction = self._transaction
        if kind in _ROWS:
            return self._rows(event)
        if kind == _TABLE_MAP:
            return self._table_map(event)
        if kind == _QUERY:
            return self._query(event)
        if kind == _XID:
            if not transaction.in_group:
                unsafe_events.check_outside(event)
            return self._end(event)
        if kind in MYSQL_GTID_TYPES:
            self._gtid(event, begins=False)
        elif kind == _MARIADB_GTID:
            gtid = MariadbGtid.parse(event.body)
            self._gtid(event, begins=gtid.begins)
            self._is_xa = gtid.prepares
        elif kind in _STATEMENT_TEXTS:
            self._rows_query = event
            self._statement_events = [event]
            transaction.text()
        elif kind in _FILE_EVENTS:
            if not event.flags & ARTIFICIAL_FLAG:
                unsafe_events.check_whole_file(transaction, event)
            if kind == _FORMAT_DESCRIPTION:
                self.written_by(parse_server_version(event.body))
                if begins_at_start(event.body):
                    # A start of the server; until 8.0.28, it does not lock those tables again.
                    self._unlocked |= _with_rows(self.pending_xa)
        elif kind == _XA_PREPARE:
            return self._xa_prepare(event)
        elif kind == _INCIDENT:
            unsafe_events.check_incident(event)
        elif kind == _EXECUTE_LOAD_QUERY:
            logged = LoggedStatement.read(event.body, self._server_version, loads_data=True)
            self._check_statement(event, logged)
        elif kind not in _PASSED_OVER and not event.flags & IGNORABLE_FLAG:
            unsafe_events.check_unknown_event(event)
        return []

    def _gtid(self, event: Event, *, begins: bool) -> None:
        unsafe_events.check_no_transaction(self._transaction, event)
        self._transaction.gtid(begins=begins)
        self._add_to_frame(event)

    def _add_to_frame(self, event: Event) -> None:
        """Keep a first event of the transaction, which a statement's text cannot precede.

        Events are passed on in the order of their positions, which blocks of events rely on.
        """
        self._rows_query = None
        self._statement_events = []
        self._frame.append(event)
        self._group_events.append(event)

    def _rows(self, event: Event) -> list[Event]:
        transaction = self._transaction
        if not transaction.in_group:
            unsafe_events.check_outside(event)
        transaction.rows_seen = True
        table_id = table_id_of(event.body)
        captured = self._captured_ids.get(table_id)
        if captured is None:
            if table_id in DUMMY_TABLE_IDS:  # has no rows: it only ends the statement
                return []
            unsafe_events.check_unmapped_rows(event, table_id)
        self._kept_rows_events += bool(captured)
        if transaction.is_statement and int.from_bytes(event.body[6:8], "little") & STMT_END_FLAG:
            self._forget()
        return [event] if captured else []

    def _table_map(self, event: Event) -> list[Event]:
        transaction = self._transaction
        if self._is_5_1:
            unsafe_events.check_not_alpha(event, self._server_version)
        if not transaction.in_group:
            if not self._is_5_1:
                unsafe_events.check_outside(event)
            transaction.begin_statement()
        if transaction.table_map():
            self._statement_events = []
            self._rows_query = None
        self._statement_events.append(event)
        table_id, database, table = parse_table_name(event.body)
        captured = database not in SYSTEM_DATABASES and self._captures(database, table)
        self._captured_ids[table_id] = captured
        if not captured:
            return []
        return [*self._take_frame(), event]

    def _take_frame(self) -> list[Event]:
        frame = self._frame
        self._frame = []
        if self._rows_query is not None:
            frame.append(self._rows_query)
            self._rows_query = None
        return frame

    def _query(self, event: Event) -> list[Event]:
        logged = LoggedStatement.read(event.body, self._server_version)
        statement = logged.statement
        kind = statement.kind
        transaction = self._transaction
        if kind is _KIND.BEGIN or kind is _KIND.XA_START:
            unsafe_events.check_begin(transaction, statement)
            transaction.begin(statement.xid)
            self._is_xa = kind is _KIND.XA_START
            self._add_to_frame(event)
            return []
        if kind is _KIND.COMMIT:
            if not transaction.in_group:
                unsafe_events.check_outside(event)
            return self._end(event)
        if kind is _KIND.ROLLBACK:
            return self._rolled_back()
        if kind is _KIND.SAVEPOINT:
            self._savepoint(statement.savepoint or "")
            return []
        if kind is _KIND.ROLLBACK_TO:
            self._rolled_back_to(statement.savepoint or "")
            return []
        if kind is _KIND.XA_COMMIT or kind is _KIND.XA_ROLLBACK:
            if not transaction.in_group:
                self._xa_decided(kind, statement.xid or "", event)
                return self._end(event)
            # 5.7 writes XA ROLLBACK here if the transaction has dropped a temporary table.
            if kind is _KIND.XA_COMMIT:
                unsafe_events.check_ended(self._kept_rows_events, kind.value)
            return self._rolled_back()
        return self._other_statement(event, logged)

    def _other_statement(self, event: Event, logged: LoggedStatement) -> list[Event]:
        statement = logged.statement
        kind = statement.kind
        is_alone = self._transaction.is_standalone(kind)
        kept: list[Event] = []
        if statement.renames and (pending := self._unlocked.intersection(self.pending_xa)):
            unsafe_events.check_renamed(statement, self._captures, pending)
        if kind is _KIND.DML and statement.whole_table and is_alone:
            # A client's statement is between BEGIN and COMMIT. A standalone one is from the server,
            # which emptied a MEMORY table at startup.
            kind = _KIND.TRUNCATE
        if kind is _KIND.DML or statement.selects:
            self._check_statement(event, logged)
        elif kind is _KIND.UNKNOWN:
            unsafe_events.check_unknown_statement(logged)
        if kind is _KIND.TRUNCATE or kind in DDL_KINDS:
            if kind is _KIND.TRUNCATE and self._truncates and event.flags & THREAD_SPECIFIC_FLAG:
                unsafe_events.check_flagged_truncate(statement, self._captures)
            self.statement = logged
            if self._keeps(statement):
                kept = [*self._take_frame(), event]
        if is_alone:
            self._forget()
        return kept

    def _check_statement(self, event: Event, logged: LoggedStatement) -> None:
        check = None if self._check_others is None else partial(self._check_others, event)
        unsafe_events.check_statement(logged, self._captures, check)

    def _keeps(self, statement: Statement) -> bool:
        """Whether a TRUNCATE or DDL may give rows (see connector/ranges/statement_rows.py)."""
        if statement.kind in DDL_KINDS and not statement.truncated_partitions:
            if not self._keeps_ddl:
                return False
            if statement.drops_database:
                return True  # its text does not name the tables
        return any(self._captures(*name) for name in statement.tables or ())

    def _savepoint(self, name: str) -> None:
        if self._transaction.in_group:
            self._transaction.savepoint(_folded(name), self._kept_rows_events)
            self.outcome = SavepointSet(_folded(name))

    def _rolled_back_to(self, name: str) -> None:
        name = _folded(name)
        savepoints = self._transaction.savepoints
        unsafe_events.check_known_savepoint(self._kept_rows_events, name, savepoints)
        kept = savepoints.get(name, 0)
        if self._kept_rows_events > kept:
            self._kept_rows_events = kept
            self.outcome = RolledBack(name)

    def _rolled_back(self) -> list[Event]:
        """End a transaction that is rolled back completely."""
        if self._kept_rows_events:
            self.outcome = RolledBack()
        self._forget()
        return []

    def _end(self, event: Event) -> list[Event]:
        """End a transaction, and keep its last event if any other event of it was kept."""
        kept = [event] if self._transaction.in_group and not self._frame else []
        self._forget()
        return kept

    def _forget(self) -> None:
        """Reset the state after the end of a transaction."""
        self._transaction.end()
        self.ended = True
        self._is_xa = False
        self._frame = []
        self._rows_query = None
        self._group_events = []
        self._statement_events = []
        self._kept_rows_events = 0
        self._captured_ids.clear()

    def _xa_prepare(self, event: Event) -> list[Event]:
        if not self._transaction.in_group:
            unsafe_events.check_outside(event)
        prepare = XaPrepare.parse(event.body)
        if prepare.one_phase:
            return self._end(event)
        unsafe_events.check_prepared(self._kept_rows_events, prepare.xid, is_xa=self._is_xa)
        text = prepare.xid
        if self._kept_rows_events:
            xa = PreparedXa(prepare.xid, event.file, self._group_events[0].start, event.end)
            self.outcome, text = Prepared(xa), str(xa)
        others = (known for known in self.pending_xa if _xid(known) != prepare.xid)
        self.pending_xa = (*others, text)
        return self._end(event)

    def _xa_decided(self, kind: StatementKind, xid: str, event: Event) -> None:
        found = next((known for known in self.pending_xa if _xid(known) == xid), None)
        if found is not None:
            self.pending_xa = tuple(known for known in self.pending_xa if known != found)
        if kind is _KIND.XA_ROLLBACK:
            self.outcome = XaRolledBack(xid)
        else:
            xa = self._earlier_xa(xid, event) if found is None else PreparedXa.parse(found)
            if xa is not None:
                gtid = self._frame[0] if self._frame else None
                self.outcome = XaCommitted(xa, gtid, event)


def _with_rows(pending_xa: Iterable[str]) -> frozenset[str]:
    return frozenset(each for each in pending_xa if " " in each)


def _xid(pending: str) -> str:
    return pending.partition(" ")[0]


def _folded(savepoint: str) -> str:
    """Return the name as servers compare it, except for letters that are not ASCII."""
    return savepoint.lower()
