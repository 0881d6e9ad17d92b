"""The executor's part: decode one range to record batches. Stateless and repeatable."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING

from pyspark_mysqlbinlog.checkpoints.fingerprint import PositionFingerprint
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.connector.log.files.file_log import FileLog
from pyspark_mysqlbinlog.connector.log.log_protocol import Log, ScannedLog
from pyspark_mysqlbinlog.connector.log.reconnecting import ReconnectingLog
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.blocks import captured_blocks
from pyspark_mysqlbinlog.connector.ranges.range_end import RangeBounds, check_between
from pyspark_mysqlbinlog.connector.ranges.split import RangePartition
from pyspark_mysqlbinlog.connector.ranges.statement_rows import StatementRows
from pyspark_mysqlbinlog.connector.ranges.sub_batches import SubBatchBoundaries
from pyspark_mysqlbinlog.connector.ranges.transactions import range_filter, unpacked
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.payloads.payload import (
    PayloadFactory,
    json_payload,
    json_with_texts,
)
from pyspark_mysqlbinlog.decoder.payloads.struct_payload import StructPayload, Unplaced
from pyspark_mysqlbinlog.decoder.payloads.variant_payload import VariantPayload
from pyspark_mysqlbinlog.errors import OptionError
from pyspark_mysqlbinlog.protocol.blocks import unpack_events
from pyspark_mysqlbinlog.protocol.events import Event
from pyspark_mysqlbinlog.tables import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "SchemasAt",
    "captured_events",
    "events_between",
    "payload_factory",
    "read_range",
    "unpacked_schemas",
]

# By schemaEvolutionMode. With addNewColumns, the driver stops the stream (see `evolution`).
_UNPLACED: dict[str, Unplaced] = {
    "addNewColumns": "rescue",
    "rescue": "rescue",
    "failOnNewColumns": "stop",
    "none": "ignore",
}


def events_between(
    log: Log,
    start: Position,
    end: Position,
    known: PositionFingerprint | None = None,
    *,
    offset: int = 0,
    end_offset: int = 0,
) -> Iterator[Event]:
    """Yield a log's events from `start` to `end`; InvalidPositionError if it ends before.

    known : the fingerprint of `end`: BinlogReplacedError if a different event ends there.
    offset, end_offset : see `RangePartition`.
    """
    bounds = RangeBounds(log, start, end, known, offset=end_offset)
    for event in log.events(start):
        if event.start == start.pos and event.offset is not None and event.offset < offset:
            continue
        offset = 0
        if not bounds.admits(event):
            return
        yield event
        if bounds.reached:
            return
    bounds.check_reached()


def read_range(
    options: Options,
    partition: RangePartition,
    schema: pa.Schema,
    payload: PayloadFactory | None = None,
    *,
    boundaries: SubBatchBoundaries | None = None,
) -> Generator[pa.RecordBatch]:
    """Yield the record batches of one range, in binlog order.

    A caller that does not consume all batches must close it: it may hold a thread and a connection.

    Parameters
    ----------
    schema : of each batch.
    payload : builds `before` and `after`; None for the options' own.
    boundaries : records how far the log was read; by the kernel only.

    Raises
    ------
    OptionError : a file of the range no longer exists, or can't be read here.
    MySQLBinlogError : the binlog can't be read or decoded, or does not fit `schema`; raised after
        the rows before it; see errors.py.
    """
    batches = _read_range(options, partition, schema, payload, boundaries)
    try:
        if options.has_transforms:
            with closing(batches):
                for batch in batches:
                    yield without_row_queries(batch)
        else:
            yield from batches
    except OSError as error:
        if partition.log is None:
            raise
        file = error.filename or options.path
        problem = f"{file!r} can't be read: {error.strerror or type(error).__name__}"
    else:
        return
    raise OptionError(
        f"option path: {problem}; it existed when the read was planned, and must remain until"
        " the read has ended, under this name on driver and executors"
    )


def without_row_queries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without `source.query` of row changes, which has their values as literals.

    A statement of one table can also contain values of others, so no row keeps it.
    """
    import pyarrow as pa  # noqa: PLC0415 (the driver's processes do without it)
    from pyarrow import compute as pc  # noqa: PLC0415 (see above)

    source = batch.column("source")
    assert isinstance(source, pa.StructArray)
    queries = source.field("query")
    if queries.null_count == len(queries):
        return batch
    is_statement = pc.is_in(batch.column("op"), pa.array(["t", "ddl"]))
    nulls = pa.nulls(len(queries), queries.type)
    arrays = [
        pc.if_else(is_statement, queries, nulls) if field.name == "query" else source.field(at)
        for at, field in enumerate(source.type)
    ]
    made = pa.StructArray.from_arrays(arrays, fields=list(source.type))
    at = batch.schema.get_field_index("source")
    return batch.set_column(at, batch.schema.field(at), made)


def _read_range(
    options: Options,
    partition: RangePartition,
    schema: pa.Schema,
    payload: PayloadFactory | None,
    boundaries: SubBatchBoundaries | None,
) -> Generator[pa.RecordBatch]:
    captures = options.table_filter(partition.case_sensitive).captures
    log = None if partition.blocks is not None else _log_of(options, partition)
    number = _numbers(log)
    history = unpacked_schemas(partition.schemas)
    statements = StatementRows(
        captures,
        history,
        number,
        options.operations,
        server_version=_versions(log, partition),
        case_sensitive=partition.case_sensitive,
        hides_literals=options.has_transforms,
    )
    decoder = Decoder(
        SchemasAt(history, number, partition.start),
        schema,
        partition.epoch,
        options.operations,
        file_ordinal=number,
        statement_rows=statements.of,
        excluded=options.column_filter(partition.case_sensitive).excludes,
        transforms=options.transforms(partition.case_sensitive),
        payload=payload or payload_factory(options, partition.case_sensitive),
        positional=options.on_unknown_schema == "positional",
    )
    if implementation() == "python":
        if log is None:
            events = unpack_events(partition.blocks or ())
        else:
            events = _captured_events(log, partition, captures, operations=options.operations)
        yield from decoder.decode(events)
        return
    from pyspark_mysqlbinlog.decoder.kernel.decoder import (  # noqa: PLC0415 (it needs the kernel)
        KernelDecoder,
    )

    kernel = KernelDecoder(decoder)
    if log is None:
        yield from kernel.decode(partition.blocks or ())
        return
    # An error references its frames, and with them a thread and a connection.
    blocks = captured_blocks(
        log, partition, captures, operations=options.operations, boundaries=boundaries
    )
    with closing(blocks):
        yield from kernel.decode(blocks)


def _log_of(options: Options, partition: RangePartition) -> ScannedLog:
    """Return the log of a range: files as the planner listed them, even if they have changed."""
    if partition.log is not None:
        # The files here may differ from those that the planner saw.
        partition.log.check_chain(is_whole=False)
        if partition.fingerprint is not None:
            partition.log.verify(partition.start, partition.fingerprint)
        return partition.log
    known = partition.start, partition.fingerprint
    settings = options.bound_to(partition.server_uuid).server_settings()
    return ReconnectingLog(settings, known, server_uuid=partition.server_uuid)


def payload_factory(options: Options, case_sensitive: bool) -> PayloadFactory:
    """Return the factory that builds `before` and `after`."""
    kind = options.payload_kind
    if kind == "json":
        return json_with_texts if options.json_type == "text" else json_payload
    if kind == "variant":
        return lambda _, arrow_type: VariantPayload(arrow_type)
    nested = options.table_filter(case_sensitive).nests
    unplaced = _UNPLACED[options.schema_evolution_mode]
    return lambda side, arrow_type: StructPayload(
        side, arrow_type, options.struct_options, nested=nested, unplaced=unplaced
    )


def captured_events(
    log: ScannedLog,
    partition: RangePartition,
    captures: Callable[[str, str], bool],
    *,
    operations: frozenset[str],
) -> Iterator[Event]:
    """Yield the captured events of a fetched range that count, in commit order."""
    if implementation() == "python":
        yield from _captured_events(log, partition, captures, operations=operations)
        return
    blocks = captured_blocks(log, partition, captures, operations=operations)
    with closing(blocks):
        yield from unpack_events(blocks)


def _captured_events(
    log: Log,
    partition: RangePartition,
    captures: Callable[[str, str], bool],
    *,
    operations: frozenset[str],
) -> Iterator[Event]:
    filtering, transactions = range_filter(log, partition, captures, operations=operations)
    for event in unpack_events(partition.prelude):
        yield from unpacked(transactions.prelude(event))
    events = events_between(
        log,
        partition.start,
        partition.end,
        partition.end_fingerprint,
        offset=partition.offset,
        end_offset=partition.end_offset,
    )
    for event in events:
        yield from unpacked(transactions.take(event))
    if partition.ends_inside:
        yield from unpacked(transactions.rest(partition.end.pos, partition.end_offset))
    else:
        check_between(filtering, partition.end)


def _versions(log: Log | None, partition: RangePartition) -> Callable[[str], str]:
    """Return the mapping from a file to the version of the server that wrote it."""
    if isinstance(log, FileLog):
        # Cached, because it is called at each transaction.
        return lru_cache(maxsize=4)(log.server_version)
    return lambda _: partition.server_version


def _numbers(log: Log | None) -> Callable[[str], int]:
    """Return the mapping from a file to its number; inline events are a server's."""
    position = Position.of if log is None else log.position
    return lambda file: position(file, FIRST_EVENT).number


@lru_cache(maxsize=4)
def unpacked_schemas(schemas: str) -> SchemaHistory:
    """Unpack a range's history, which a worker receives batch after batch."""
    return SchemaHistory.unpack(schemas)


class SchemasAt:
    """The decoder's view of a schema history (see `decode.SchemaLookup`).

    Parameters
    ----------
    number : file -> its number, by which the history orders files.
    start : of the range. Rows before it were prepared by XA. Tables that the history does not know
        there have the schema of the start: no DDL is in between, or the history would have it.
    """

    def __init__(
        self,
        history: SchemaHistory,
        number: Callable[[str], int],
        start: Position = BEGINNING,
    ) -> None:
        self._history = history
        self._number = number
        self._start = start

    def at(self, file: str, pos: int, database: str, table: str) -> TableSchema | None:
        """Return the schema of rows at this position; None if it is not known there."""
        found = self._history.at(self._position(file, pos), database, table)
        return found or self._at_start(file, pos, database, table)

    def reason(self, file: str, pos: int, database: str, table: str) -> str:
        """Return why `at` returns None, as part of a sentence; empty if it does not."""
        return self._history.unknown_reason(self._position(file, pos), database, table)

    def is_known_later(self, file: str, pos: int, database: str, table: str) -> bool:
        """Whether the columns become known after this position, or the table is dropped."""
        return self._history.is_known_later(self._position(file, pos), database, table)

    def span(self, file: str, pos: int, database: str, table: str) -> tuple[int, int | None]:
        """Return the byte range of this file in which `at` returns the same schema.

        The second value is exclusive; None is the end of the file.
        """
        return self._history.valid_range(self._position(file, pos), database, table)

    def _at_start(self, file: str, pos: int, database: str, table: str) -> TableSchema | None:
        position = self._position(file, pos)
        if position >= self._start or self._history.state(position, database, table) is not None:
            return None
        return self._history.at(self._start, database, table)

    def _position(self, file: str, pos: int) -> Position:
        return Position(self._number(file), pos, file)
