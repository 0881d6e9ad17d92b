"""What an executor does: one range to record batches. Stateless: the same range, the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.checkpoints.position import FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log import FileLog, Log, ServerLog, dump_events
from pyspark_mysqlbinlog.connector.options import Options
from pyspark_mysqlbinlog.connector.ranges import RangePartition
from pyspark_mysqlbinlog.connector.retry import lost_connection
from pyspark_mysqlbinlog.connector.server import check_identity
from pyspark_mysqlbinlog.connector.statement_rows import StatementRows
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.event_filter import EventFilter
from pyspark_mysqlbinlog.decoder.payload import PayloadFactory, json_payload
from pyspark_mysqlbinlog.decoder.struct_payload import StructPayload, Unplaced
from pyspark_mysqlbinlog.decoder.variant_payload import VariantPayload
from pyspark_mysqlbinlog.errors import InvalidPositionError
from pyspark_mysqlbinlog.protocol.blocks import unpack_events
from pyspark_mysqlbinlog.protocol.client import ReplicaClient, ServerSettings
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.protocol.messages import Rotate
from pyspark_mysqlbinlog.protocol.server_errors import LostConnectionError
from pyspark_mysqlbinlog.tables import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["events_between", "log_of", "read_range"]

_ROTATE = int(EventType.ROTATE_EVENT)
# By schemaEvolutionMode. What addNewColumns stops at is the driver's affair (see `evolution`).
_UNPLACED: dict[str, Unplaced] = {
    "addNewColumns": "rescue",
    "rescue": "rescue",
    "failOnNewColumns": "stop",
    "none": "ignore",
}
# Spark runs a failed task again by itself (but not in local mode), so a pull need not be patient.
_PULL_RETRY_TIMEOUT = 60.0


def log_of(options: Options, server_uuid: str = "") -> Log:
    """The log that the options name, as an executor reads it."""
    if options.path is not None:
        return FileLog.find(options.path)
    return ResumingLog(options.server_settings(), server_uuid)


@dataclass(frozen=True, slots=True)
class ResumingLog(ServerLog):
    """A server's log whose reader does not notice a broken connection.

    Attributes
    ----------
    server_uuid : the server that it must be; empty when that is not known.
    """

    server_uuid: str = ""

    def events(self, start: Position) -> Iterator[Event]:
        here = start
        while True:
            client, events, first = lost_connection(_PULL_RETRY_TIMEOUT)(
                _open, self.settings, here, self.server_uuid
            )
            with client:
                try:
                    while first is not None:
                        here = _behind(first)
                        yield first
                        first = next(events, None)
                    return
                except LostConnectionError:
                    # Any event is a place to go on from: whoever reads keeps the table maps.
                    continue


def _open(
    settings: ServerSettings, start: Position, server_uuid: str
) -> tuple[ReplicaClient, Iterator[Event], Event | None]:
    """A dump that has given its first event; a server that refuses does so before that."""
    client = ReplicaClient.connect(settings)
    try:
        # A file of this name on another server has other rows in it.
        check_identity(client, server_uuid)
        events = dump_events(client, start, blocking=False)
        return client, events, next(events, None)
    except BaseException:
        client.close()
        raise


def _behind(event: Event) -> Position:
    if event.type == _ROTATE:
        return Position.of(Rotate.parse(event.body).file, FIRST_EVENT)
    return Position.of(event.file, event.end)


def events_between(log: Log, start: Position, end: Position) -> Iterator[Event]:
    """A log's events from `start` up to `end`; InvalidPositionError when it ends before."""
    last = start
    for event in log.events(start):
        here = log.position(event.file, event.start)
        if here >= end:
            return
        last = here._replace(pos=event.end)
        if last > end:
            raise InvalidPositionError(
                f"the end lies inside an event that begins at {here}; give a position that SHOW"
                " BINLOG EVENTS lists",
                file=end.file,
                position=end.pos,
            )
        yield event
        if event.type == _ROTATE and (last >= end or end.number > here.number):
            last = Position(here.number + 1, FIRST_EVENT, Rotate.parse(event.body).file)
        if last >= end:
            return
    if last < end:
        raise InvalidPositionError(
            f"the log ends at {last}, expected to read up to here: the server lost its tail or was"
            " restored; start again with a new checkpoint",
            file=end.file,
            position=end.pos,
        )


def read_range(
    options: Options, partition: RangePartition, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Record batches of one range."""
    wants = options.table_filter(partition.case_sensitive).wants
    number: Callable[[str], int]
    events: Iterable[Event]
    if partition.blocks is not None:
        number = _server_number
        events = unpack_events(partition.blocks)
    else:
        log = log_of(options, partition.server_uuid)
        number = _numbers(log)
        events = _wanted(log, partition, wants, ddl="ddl" in options.operations)
    history = _unpacked(partition.schemas)
    statements = StatementRows(
        wants,
        history,
        number,
        options.operations,
        server_version=partition.server_version,
        case_sensitive=partition.case_sensitive,
    )
    decoder = Decoder(
        SchemasAt(history, number),
        schema,
        partition.epoch,
        options.operations,
        file_ordinal=number,
        statement_rows=statements.of,
        excluded=options.column_filter(partition.case_sensitive).excludes,
        payload=_payload_of(options, partition.case_sensitive),
        positional=options.on_unknown_schema == "positional",
    )
    yield from decoder.decode(events)


def _payload_of(options: Options, case_sensitive: bool) -> PayloadFactory:
    """What builds `before` and `after`."""
    kind = options.payload_kind
    if kind == "json":
        return json_payload
    if kind == "variant":
        return lambda _, arrow_type: VariantPayload(arrow_type)
    nested = len(options.table_filter(case_sensitive).literals) > 1
    unplaced = _UNPLACED[options.schema_evolution_mode]
    return lambda side, arrow_type: StructPayload(
        side, arrow_type, options.struct_options, nested=nested, unplaced=unplaced
    )


def _wanted(
    log: Log, partition: RangePartition, wants: Callable[[str, str], bool], *, ddl: bool
) -> Iterator[Event]:
    filtering = EventFilter(wants, partition.pending_xa, partition.server_version, ddl=ddl)
    for event in unpack_events(partition.prelude):
        yield from filtering.feed(event)
    for event in events_between(log, partition.start, partition.end):
        yield from filtering.feed(event)
    if filtering.in_transaction and not partition.ends_inside:
        end = partition.end
        raise InvalidPositionError(
            "the end lies inside a transaction; give a position between two transactions",
            file=end.file,
            position=end.pos,
        )


def _server_number(file: str) -> int:
    return Position.of(file, FIRST_EVENT).number


def _numbers(log: Log) -> Callable[[str], int]:
    @lru_cache(maxsize=64)
    def number(file: str) -> int:
        return log.position(file, FIRST_EVENT).number

    return number


@lru_cache(maxsize=4)
def _unpacked(schemas: str) -> SchemaHistory:
    """A worker gets the same history batch after batch."""
    return SchemaHistory.unpack(schemas)


class SchemasAt:
    """The decoder's view of a schema history."""

    def __init__(self, history: SchemaHistory, number: Callable[[str], int]) -> None:
        self._history = history
        self._number = number

    def at(self, file: str, pos: int, database: str, table: str) -> TableSchema | None:
        return self._history.at(self._position(file, pos), database, table)

    def reason(self, file: str, pos: int, database: str, table: str) -> str:
        return self._history.reason(self._position(file, pos), database, table)

    def _position(self, file: str, pos: int) -> Position:
        return Position(self._number(file), pos, file)
