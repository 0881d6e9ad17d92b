"""Resolve `startingOffset`: the initial offset of a query, with the schemas known there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.gtid_set import GtidSet
from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import END_OF_SEQUENCE, FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import SnapshotState
from pyspark_mysqlbinlog.connector.gtids.executed import executed_at, executed_before, has_gtids
from pyspark_mysqlbinlog.connector.gtids.lookup import position_after
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import Log
from pyspark_mysqlbinlog.connector.log.retry import initial_retry
from pyspark_mysqlbinlog.connector.log.server_log import ServerLog
from pyspark_mysqlbinlog.connector.log.start_point import (
    canonical,
    check_before_gtid,
    check_there,
    pack_position,
)
from pyspark_mysqlbinlog.connector.log.time_lookup import first_since, last_boundary
from pyspark_mysqlbinlog.connector.options.checks import check_condition_tables
from pyspark_mysqlbinlog.connector.options.logging_setup import LOGGER
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.options.table_filter import TableFilter
from pyspark_mysqlbinlog.connector.options.values import (
    Earliest,
    ExecutedGtids,
    FilePosition,
    Latest,
    Place,
    Snapshot,
    Timestamp,
)
from pyspark_mysqlbinlog.connector.schemas.baseline import history_of_server
from pyspark_mysqlbinlog.connector.schemas.initial_history import (
    check_columns,
    check_columns_of_options,
    check_named_tables,
    history_of_files,
)
from pyspark_mysqlbinlog.connector.schemas.pattern_check import check_patterns, hidden_tables
from pyspark_mysqlbinlog.connector.schemas.schema_ddl import seeded
from pyspark_mysqlbinlog.connector.schemas.table_maps import described_tables
from pyspark_mysqlbinlog.connector.schemas.tracker import SchemaTracker
from pyspark_mysqlbinlog.connector.schemas.transform_check import check_transforms
from pyspark_mysqlbinlog.connector.server.binlog_filters import check_log_contents
from pyspark_mysqlbinlog.connector.server.replicas import preferred
from pyspark_mysqlbinlog.connector.server.settings import (
    ServerFacts,
    binlog_files,
    check_settings,
    current_position,
)
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import engines_of, unreadable_tables
from pyspark_mysqlbinlog.connector.snapshot.planning.table_set import begin_load, check_conditions
from pyspark_mysqlbinlog.connector.snapshot.visibility.checker import VisibilityChecker
from pyspark_mysqlbinlog.errors import FailoverError, InvalidPositionError, OptionError
from pyspark_mysqlbinlog.names import Table, table_folding
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient, ServerSettings

__all__ = [
    "ResolvedStart",
    "resolve_end",
    "start_of_files",
    "start_of_server",
    "table_checks",
]


@dataclass(frozen=True, slots=True)
class ResolvedStart:
    """A resolved start.

    Attributes
    ----------
    end : the end of the binlog when this was resolved.
    facts : of the server; for files, as recorded in the file of the position.
    files : the binlog files, oldest first, with their sizes in bytes.
    order : of a server's files, as seen from the start; None for files, which are one sequence.
    fingerprint : of the position; None for a batch read of files.
    executed : the GTIDs before the position; None if unknown, and for batch reads.
    settings : of the server; None for files.
    """

    log: Log
    position: Position
    end: Position
    history: SchemaHistory
    server_uuid: str
    facts: ServerFacts
    files: Mapping[str, int]
    fingerprint: PositionFingerprint | None = None
    order: FileOrder | None = None
    executed: GtidSet | None = None
    settings: ServerSettings | None = None

    @property
    def offset(self) -> Offset:
        return Offset(
            self.position,
            self.server_uuid,
            self.history.from_position(self.position).until(END_OF_SEQUENCE).pack(),
            fingerprint=self.fingerprint,
            gtid=None if self.executed is None else str(self.executed),
            case_insensitive=not self.facts.case_sensitive,
        )

    def load(self, captures: Callable[[str, str], bool]) -> SnapshotState:
        """Return the state of a snapshot of all captured tables; logs which have no primary key."""
        load = begin_load(self.history, self.position, captures)
        tables = [each.table for each in load.pending]
        known = [self.history.at(self.position, *table) for table in tables]
        keyless = [schema.full_name for schema in known if schema and not schema.primary_key]
        if keyless:
            LOGGER.warning(
                "tables without a primary key: %s. If they have no UNIQUE key of NOT NULL"
                " columns either, each is snapshotted by one SELECT, which restarts if it is"
                " interrupted",
                ", ".join(keyless),
            )
        return load


def start_of_server(options: Options, *, streaming: bool) -> ResolvedStart:
    """Query the server; raises every error about its settings, grants and tables."""
    place = options.place_to_start(streaming=streaming)
    return initial_retry()(_ask_server, options, place, streaming=streaming)


def _ask_server(options: Options, place: Place, *, streaming: bool) -> ResolvedStart:
    settings = options.server_settings()
    if options.prefer_replica:
        settings = preferred(settings)
    with ReplicaClient.connect(settings) as client:
        uuid = client.server_uuid()
        if options.can_fail_over and not uuid:
            raise OptionError(
                "option host: several servers need GTIDs, and"
                f" {settings.address} is {client.server_version}; name one server"
            )
        # Further connections must reach the same one of several servers.
        settings = replace(settings, server_uuid=uuid)
        check_settings(client)
        facts = ServerFacts.ask(client)
        case_sensitive = facts.case_sensitive
        tables = options.table_filter(case_sensitive)
        check_log_contents(client, tables)
        files = binlog_files(client)
        order = FileOrder.of_server(settings, next(iter(files)), files)
        if isinstance(place, ExecutedGtids):
            found = _after(client, settings, place.executed)
        else:
            found = pack_position(client, ServerLog(settings, order=order), files, place)
        position = Position.of(found.file, found.pos)
        order = order.seen_from(position.file)
        log = ServerLog(settings, order=order)
        fingerprint = log.fingerprint_at(position)
        if isinstance(place, FilePosition):
            check_before_gtid(log, position, fingerprint)
        executed = (
            executed_before(client, log, position) if streaming and has_gtids(client) else None
        )
        # At the end of the binlog the server's current definitions are sufficient.
        here = current_position(client)
        known = options.schema_ddl if position < order.position(here.file, here.pos) else None
        history, end = history_of_server(
            client,
            seeded(log, position, known),
            position,
            tables.captures,
            case_sensitive=case_sensitive,
            uncaptured=True,
            all_sequences=True,
        )
        knows_ddl = known is not None
        for check in table_checks(client, options, tables, history, position, knows_ddl=knows_ddl):
            check()
        if options.starts_with_snapshot:
            _check_proofs(client, options, history, position, case_sensitive=case_sensitive)
        return ResolvedStart(
            log, position, end, history, uuid, facts, files, fingerprint, order, executed, settings
        )


def table_checks(
    client: ReplicaClient,
    options: Options,
    tables: TableFilter,
    history: SchemaHistory,
    position: Position,
    *,
    knows_ddl: bool = False,
) -> Iterator[Callable[[], None]]:
    """Yield the checks of the tables in the options; each raises an error if it fails.

    history, position : the tables, and where the query begins.
    knows_ddl : `schemaDdl` defines tables there.
    """
    case_sensitive = tables.case_sensitive
    # The binlog may describe tables that the account cannot see, but it lacks their existing rows.
    reads_rows = options.starts_with_snapshot
    hidden = (lambda _: ()) if reads_rows else partial(hidden_tables, client, tables)
    yield partial(check_named_tables, tables, history, case_sensitive, hidden)
    named_anyhow = knows_ddl or options.on_unknown_schema == "positional"
    yield partial(
        check_patterns,
        client,
        tables,
        history,
        named_anyhow=named_anyhow,
        reads_rows=reads_rows,
    )
    columns = options.column_filter(case_sensitive)
    yield partial(check_columns, columns, history, case_sensitive)
    yield partial(check_transforms, options, history, case_sensitive)
    yield partial(check_condition_tables, options, case_sensitive)
    conditions = options.conditions(case_sensitive)
    yield partial(check_conditions, conditions, history, position, case_sensitive=case_sensitive)


def _after(client: ReplicaClient, settings: ServerSettings, executed: GtidSet) -> Position:
    """Return the position after exactly the transactions of a set; InvalidPositionError if none."""
    if not has_gtids(client):
        raise InvalidPositionError("gtid:SET needs gtid_mode=ON on the server; set FILE:POS")
    try:
        return position_after(client, settings, executed, may_be_position=True)
    except FailoverError as error:
        raise InvalidPositionError(
            f"the server has no position after exactly {executed}: {error.message}; set another"
            " GTID set, or FILE:POS"
        ) from None


def _not_of_files() -> OptionError:
    return OptionError("gtid:SET is for servers: with path, set FILE:POS or a time")


def _check_proofs(
    client: ReplicaClient,
    options: Options,
    history: SchemaHistory,
    position: Position,
    *,
    case_sensitive: bool,
) -> None:
    """Raise what the first chunk of a table would raise, possibly hours later.

    Raises
    ------
    AccessDeniedError : the account may not SELECT a table's rows.
    MySQLBinlogError : as `VisibilityChecker.checks`, for the first table that cannot be checked.
    """
    captures = options.table_filter(case_sensitive).captures
    tables = {each.table for each in begin_load(history, position, captures).pending}
    prover = VisibilityChecker.ask(
        client, options.snapshot_visibility_check, case_sensitive=case_sensitive
    )
    engines = engines_of(client, tables)
    for error in unreadable_tables(client, engines):
        raise error
    for table, engine in sorted(engines.items()):
        prover.checks(table, engine)


def start_of_files(options: Options, *, streaming: bool = False) -> ResolvedStart:
    """Read the files once for their DDL."""
    log = FileLog.open(str(options.path), is_numbered=streaming)
    place = options.place_to_start(streaming=streaming)
    case_sensitive = options.files_are_case_sensitive
    tables = options.table_filter(case_sensitive)
    match place:
        case ExecutedGtids():
            raise _not_of_files()
        case FilePosition(file, pos):
            position = log.position(file, pos)
            check_before_gtid(log, position, log.fingerprint_at(position))
        case Timestamp(seconds):
            position = first_since(log, log.begins(), seconds) or log.end()
        case Latest() | Snapshot():
            position = last_boundary(log) if streaming else log.end()
        case Earliest():
            position = log.begins()[0]
    if streaming:
        position = canonical(log, position)
    history = history_of_files(log, options, for_stream=streaming)
    if options.on_unknown_schema == "fail":
        # Otherwise rows need no definition, and no definition shows that a table exists.
        folded = table_folding(case_sensitive)

        def described(names: Collection[Table]) -> Collection[Table]:
            found = described_tables(log, log.begins()[0], [*map(folded, names)])
            return [name for name in names if folded(name) in found]

        check_named_tables(tables, history, case_sensitive, described)
    check_columns_of_options(options, history, case_sensitive)
    found = ResolvedStart(
        log,
        position,
        log.end(),
        history,
        "",
        ServerFacts(case_sensitive, log.server_version(position.file)),
        log.sizes(),
    )
    if not streaming:
        return found
    fingerprint = log.fingerprint_at(position)
    if fingerprint is None:
        raise InvalidPositionError(
            "the file has no beginning yet: start when its first event is there",
            file=position.file,
            position=position.pos,
        )
    tracker = SchemaTracker(history, tables.captures, case_sensitive=case_sensitive)
    # As the tail does.
    tracker.forget_before(position)
    return replace(
        found,
        history=tracker.history,
        fingerprint=fingerprint,
        executed=executed_at(log, position),
    )


def resolve_end(start: ResolvedStart, place: Place) -> Position:
    """Return the end of a batch read.

    Raises
    ------
    BinlogPurgedError : the server has no such file.
    InvalidPositionError : no such file at the path, or the position is after its end.
    MySQLBinlogError : raised by reading the binlog to look up a time.
    """
    match place:
        case FilePosition(file, pos):
            if start.order is not None:
                check_there(start.files, file, pos)
            position = start.log.position(file, pos)
            check_there(start.files, file, pos)
            return position
        case ExecutedGtids(executed):
            if start.settings is None:
                raise _not_of_files()
            with ReplicaClient.connect(start.settings) as client:
                found = _after(client, start.settings, executed)
            return start.log.position(found.file, found.pos)
        case Timestamp(seconds):
            begins = [start.log.position(file, FIRST_EVENT) for file in start.files]
            later = [begin for begin in begins if begin > start.position]
            return first_since(start.log, [start.position, *later], seconds) or start.end
        case _:
            return start.end
