"""The executor's part of a snapshot: chunks as rows, in the form of binlog rows.

A row of a SELECT is encoded as the row image that the binlog would contain, and then decoded like
the binlog: so each payload returns exactly the values that the stream returns.

For each chunk, in this order:

1. the table's definition and its engine;
2. a watermark, whose visibility is verified (see `watermark.py`);
3. a transaction with one snapshot of the data, whose first SELECT pins the table's definition until
   it ends;
4. the table's definition now: if it differs from 1, all is repeated. So the rows have the columns
   that the binlog's rows have at the watermark;
5. the key: if it differs from the chunk's, the bounds are meaningless, and the whole table is read:
   more than requested, but correct;
6. the session's settings, with which VIRTUAL columns are computed (see `expression_settings.py`);
7. the rows, which a thread fetches somewhat ahead of the decoder. The SELECT is repeated if it
   lacks the types of numbers in JSON documents. Of a table without a key, the JSON columns are read
   first to find these numbers, so that no row is returned twice. The transaction ends with the last
   row, however slow the sink is: an ALTER TABLE waits for it, and later statements on the table
   wait for the ALTER TABLE.

If the binlog has begun another sequence of files since the batch was planned (see
checkpoints/position.py), the rows get the position of the batch's end. It is older than the
watermark, so everything before it is visible too, and changes after it win. Rows at an exact
position can't be read then.

After an error in these steps (a lost connection, an ALTER TABLE in 3 before that SELECT (error
1412), a KILL) the chunk is read again with a new watermark. Rows returned before remain, and are
returned again: each is correct at its own `seq`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, Self

import pyarrow as pa
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    stop_all,
    wait_random_exponential,
)

from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, FIRST_EVENT, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import Chunk
from pyspark_mysqlbinlog.connector.log.file_order import FileOrder
from pyspark_mysqlbinlog.connector.log.prefetch import CancelToken, prefetched
from pyspark_mysqlbinlog.connector.log.retry import LOG, call_with_retry
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.reader import SchemasAt, payload_factory
from pyspark_mysqlbinlog.connector.ranges.typed_rows import typed_payload, typed_schema
from pyspark_mysqlbinlog.connector.server.dictionary import (
    has_atomic_ddl,
    is_missing_table_error,
    pin_definition,
)
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schema
from pyspark_mysqlbinlog.connector.server.settings import binlog_files, check_identity
from pyspark_mysqlbinlog.connector.snapshot.chunks.chunk_bounds import range_condition
from pyspark_mysqlbinlog.connector.snapshot.chunks.keys import ChunkKey, choose_key
from pyspark_mysqlbinlog.connector.snapshot.chunks.table_stats import (
    engine_of,
    is_dropped,
)
from pyspark_mysqlbinlog.connector.snapshot.reading.expression_settings import (
    set_expression_settings,
)
from pyspark_mysqlbinlog.connector.snapshot.reading.keyless import data_row_number, marker_row
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.snapshot.visibility.checker import VisibilityChecker
from pyspark_mysqlbinlog.connector.snapshot.visibility.watermark import Watermark
from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.kernel.implementation import implementation
from pyspark_mysqlbinlog.decoder.kernel.result_rows import row_images
from pyspark_mysqlbinlog.decoder.result_rows.columns import ResultPlan
from pyspark_mysqlbinlog.decoder.result_rows.events import event_blocks
from pyspark_mysqlbinlog.decoder.result_rows.json_types import UntypedNumbers
from pyspark_mysqlbinlog.decoder.result_rows.read import read_rows
from pyspark_mysqlbinlog.decoder.sql.tokens import SqlContext
from pyspark_mysqlbinlog.errors import (
    LostConnectionError,
    SchemaError,
    SchemaMismatchError,
    ServerError,
    UnrepresentableValueError,
)
from pyspark_mysqlbinlog.names import Table, quoted
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, unpack_events
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.protocol.server.server_errors import log_replaced
from pyspark_mysqlbinlog.tables import SPATIAL_TYPES, ColumnSchema, TableSchema

__all__ = ["read_chunks"]

# Seconds, as for fetched ranges; Spark retries the task in addition. A large chunk may take longer
# before it fails, so it gets a minimum number of tries, however long they take.
_RETRY_SECONDS = 60.0
_MIN_TRIES = 5
# Row images that are fetched ahead: as many as memory allows, so that the server is done early.
_AHEAD_BYTES = 24 << 20
# Why rows at an exact position can't be read after a change of the sequence of files.
_ANOTHER_SEQUENCE = (
    "the base name of the server's binlog has changed, and the stream has not reached that position"
    " yet; wait until it has"
)
# Before everything that happened at the watermark: a TRUNCATE there has row 0.
_BEFORE_ALL_ROWS = -1

_NO_SUCH_KEY, _QUERY_INTERRUPTED, _TABLE_DEFINITION_CHANGED = 1176, 1317, 1412


def read_chunks(
    options: Options,
    partition: ChunkPartition,
    schema: pa.Schema,
    *,
    typed: bool = False,
    retries: bool = True,
) -> Generator[pa.RecordBatch]:
    """Yield the record batches of one task's chunks.

    schema : of the batches.
    typed : rows have a schema of their own instead, `typed_schema` of the table at the
        watermark. Exceptions: tables that are read at one binlog position
        (`snapshotExactKeyless`), and tables whose columns can't be typed.
    retries : read a chunk again after an error that another try may avoid. Rows that were returned
        before the error are then returned twice.

    A caller that does not consume all batches must close it: it holds a connection and a thread.

    Raises
    ------
    MySQLBinlogError : a failed query or visibility check, or rows that do not fit `schema`; see
        errors.py.
    """
    with _Connected(options, partition, typed=typed) as connected:
        for chunk in partition.chunks:
            for attempt in _tries(_MIN_TRIES if retries else 1):
                with attempt:
                    number = attempt.retry_state.attempt_number
                    yield from _read_chunk(connected, chunk, schema, number)


class _AlteredError(Exception):
    """The table, whose name this contains, was altered a moment ago."""


class _DocumentsChangedError(Exception):
    """JSON documents of the table, whose name this contains, changed between two reads.

    The reads are neither in a transaction with one snapshot nor under a lock.
    """


class _GoneError(Exception):
    """The table no longer exists."""


class _Look(NamedTuple):
    """A table's definition and engine."""

    schema: TableSchema
    engine: str


class _Connected:
    """One task's connection, reconnected when it is lost, with facts about the server."""

    def __init__(self, options: Options, partition: ChunkPartition, *, typed: bool) -> None:
        self.options = options
        self.partition = partition
        self.typed = typed
        self.excludes = options.column_filter(partition.case_sensitive).excludes
        self.transforms = options.transforms(partition.case_sensitive)
        bound = options.bound_to(partition.server_uuid)
        self.connect = partial(ReplicaClient.connect, bound.server_settings())
        self._client: ReplicaClient | None = None
        self._beside: ReplicaClient | None = None
        self._checker: VisibilityChecker | None = None
        # The definition of a table when its last chunk was read, which is before the next chunk's
        # watermark.
        self._looks: dict[Table, _Look] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def client(self) -> ReplicaClient:
        """Return a connection whose SELECTs return rows as they are stored."""
        if self._client is None:
            client = call_with_retry(_RETRY_SECONDS, self.connect)
            self._client = client
            check_identity(client, self.partition.server_uuid)
            client.begin_raw_rows()
        return self._client

    def drop(self) -> None:
        """Close the connections, in any state."""
        clients = self._client, self._beside
        self._client = self._beside = self._checker = None
        self._looks.clear()
        for client in clients:
            if client is not None:
                client.close()

    def watermark(self, client: ReplicaClient, table: Table, engine: str) -> Watermark:
        return self._visibility(client).wait_until_visible(client, self.connect, table, engine)

    def missing_lock(self, client: ReplicaClient, table: Table, engine: str) -> str | None:
        return self._visibility(client).missing_lock(table, engine)

    def in_sequence(self, client: ReplicaClient, watermark: Watermark) -> tuple[Watermark, bool]:
        """Return a watermark in the batch's sequence of files, and whether it was in a later one.

        BinlogReplacedError if it is before the batch's end.
        """
        since, found = self.partition.since, watermark.position
        here = FileOrder(lambda: binlog_files(client), since.file).position(found.file, found.pos)
        if here < since:
            end = f"it ends at {found}, before it"
            raise log_replaced(end, since.file, since.pos)
        if here.is_in_sequence_of(since):
            return watermark, False
        return replace(watermark, position=since), True

    def begin_at_exact_position(
        self, client: ReplicaClient, table: Table, engine: str
    ) -> Watermark:
        return self._visibility(client).begin_at_exact_position(client, self.connect, table, engine)

    def _visibility(self, client: ReplicaClient) -> VisibilityChecker:
        if self._checker is None:
            requested, case_sensitive = (
                self.options.snapshot_visibility_check,
                self.partition.case_sensitive,
            )
            self._checker = VisibilityChecker.ask(client, requested, case_sensitive=case_sensitive)
        return self._checker

    def look(self, client: ReplicaClient, table: Table) -> _Look:
        """Read the table's current definition; raises _GoneError."""
        schema = read_table_schema(client, table, case_sensitive=self.partition.case_sensitive)
        engine = engine_of(client, table)
        if schema is None or engine is None:
            if is_dropped(client, table):
                raise _GoneError
            raise _AlteredError(".".join(table))
        self._looks[table] = _Look(schema, engine)
        return self._looks[table]

    def look_beside(self, client: ReplicaClient, table: Table) -> _Look:
        """Read the definition that an open transaction pins; raises _GoneError.

        On MySQL 8.0 and later a query in that transaction would read the definition of its
        snapshot, because information_schema is in InnoDB (measured on 9.7.4; 5.6 and MariaDB read
        the pinned one).
        """
        if not has_atomic_ddl(client):
            return self.look(client, table)
        if self._beside is None:
            self._beside = self.connect()
        return self.look(self._beside, table)

    def last_look(self, client: ReplicaClient, table: Table) -> _Look:
        """Return the table's last known definition; raises _GoneError."""
        return self._looks.get(table) or self.look(client, table)


@contextmanager
def _expecting_table() -> Iterator[None]:
    """Convert the server's error for a missing table to _GoneError."""
    try:
        yield
    except ServerError as error:
        if is_missing_table_error(error):
            raise _GoneError from None
        raise


def _read_chunk(
    connected: _Connected, chunk: Chunk, schema: pa.Schema, attempt: int
) -> Generator[pa.RecordBatch]:
    """Read a chunk once."""
    is_done = False
    try:
        yield from _batches(connected, chunk, schema, attempt)
        is_done = True
    except _GoneError:
        # Its rows were dropped with it; the binlog contains the DROP.
        LOG.warning("%s no longer exists: its snapshot is skipped", ".".join(chunk.table))
    finally:
        if not is_done:
            # The connection may be in the middle of a result.
            connected.drop()


def _batches(
    connected: _Connected, chunk: Chunk, arrow_schema: pa.Schema, attempt: int
) -> Generator[pa.RecordBatch]:
    options, partition = connected.options, connected.partition
    client = connected.client()
    look = connected.last_look(client, chunk.table)
    is_exact = options.snapshot_exact_keyless and not chunk.key and not look.schema.row_key
    problem = connected.missing_lock(client, chunk.table, look.engine) if is_exact else None
    with _expecting_table():
        watermark = (
            connected.begin_at_exact_position(client, chunk.table, look.engine)
            if is_exact and problem is None
            else connected.watermark(client, chunk.table, look.engine)
        )
    watermark, is_later = connected.in_sequence(client, watermark)
    if is_exact and is_later and problem is None:
        problem = _ANOTHER_SEQUENCE
        # The connection holds a lock.
        connected.drop()
    begin = partial(marker_row, arrow_schema, chunk.table, watermark, epoch=partition.epoch)
    if problem is not None:
        yield begin(attempt=attempt, problem=problem)
        return
    if not is_exact:
        client.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    with _expecting_table():
        pin_definition(client, chunk.table)
    if connected.look_beside(client, chunk.table) != look:
        raise _AlteredError(".".join(chunk.table))
    typed_json = options.payload_kind == "variant" or options.json_type == "variant"
    plan = ResultPlan.make(
        look.schema,
        connected.excludes,
        typed_json=typed_json,
        doubles_have_points=SqlContext.of(0, client.server_version).server_version >= 80000,
    )
    selections = partition.selections_of(chunk.table)
    hides = None if connected.transforms is None else connected.transforms.hides
    key = choose_key(client, look.schema, hides)
    clauses = [_rows_of(plan, chunk, key, each) for each in selections]
    set_expression_settings(
        client,
        look.schema,
        compared=_compared(look.schema, chunk, key, partition),
        is_conditional=chunk.table in partition.conditions,
    )
    typed = None if is_exact else _typed(connected, look.schema, arrow_schema)
    decoder = Decoder(
        SchemasAt(SchemaHistory().with_table(BEGINNING, look.schema), _number),
        typed or arrow_schema,
        partition.epoch,
        frozenset({"insert"}),
        file_ordinal=_number,
        excluded=connected.excludes,
        transforms=connected.transforms,
        payload=typed_payload if typed else payload_factory(options, partition.case_sensitive),
    )
    if is_exact:
        yield begin(attempt=attempt)
    images = prefetched(partial(_images, client, plan, clauses, is_exact), len, _AHEAD_BYTES)
    with closing(images):
        blocks = event_blocks(
            plan,
            images,
            file=watermark.position.file,
            pos=watermark.position.pos,
            timestamp=watermark.time,
            server_id=watermark.server_id,
        )
        for batch in _decoded(decoder, blocks):
            yield _as_loaded(batch, data_row_number(attempt) if is_exact else _BEFORE_ALL_ROWS)
    if is_exact:
        # Its session may hold a lock, and must release it at once.
        connected.drop()


def _typed(connected: _Connected, table: TableSchema, arrow_schema: pa.Schema) -> pa.Schema | None:
    """Return the schema of typed rows, if requested and possible for the table's columns."""
    excludes, transforms = connected.excludes, connected.transforms
    shown = table if transforms is None else transforms.masked(table)
    columns = [
        column for column in shown.columns if not excludes(table.database, table.table, column.name)
    ]
    # A struct cannot hold an SRID above 2^31 - 1. The consumer of JSON reports it, for that table.
    has_geometry = any(column.type in SPATIAL_TYPES for column in columns)
    if not connected.typed or not columns or has_geometry:
        return None
    try:
        return typed_schema(arrow_schema, columns)
    except SchemaError:
        return None  # the consumer of the JSON reports the error


def _images(
    client: ReplicaClient,
    plan: ResultPlan,
    clauses: Sequence[str],
    is_locked: bool,
    interrupt: CancelToken,
) -> Generator[bytes]:
    """Yield the images of the rows; ends the transaction, or the lock, after the last of them."""
    interrupt.watch(client)
    # Without a key, a row that is yielded twice cannot be distinguished from two rows.
    once = not plan.schema.row_key
    try:
        for each in clauses:
            yield from read_rows(client, plan, each, row_images, once=once)
    except UntypedNumbers:
        raise _DocumentsChangedError(plan.schema.full_name) from None
    client.query("COMMIT")
    if is_locked:
        client.query("UNLOCK TABLES")
    interrupt.release()


def _rows_of(plan: ResultPlan, chunk: Chunk, key: ChunkKey | None, condition: str | None) -> str:
    """Return the SQL after FROM and the table; without bounds if the table's key changed."""
    hint, conditions = "", []
    if key is not None and key.fingerprint == chunk.key:
        hint = f"FORCE INDEX ({quoted(key.name)}) "
        conditions.append(range_condition(key, chunk.after, chunk.upto))
    elif chunk.key:
        LOG.warning(
            "the key of %s changed since this chunk was planned: the whole table is read",
            plan.schema.full_name,
        )
    if condition is not None:
        # The condition may end in a comment, which the newline ends.
        conditions.append(f"({condition}\n)")
    return f"{hint}WHERE {' AND '.join(conditions) or 'TRUE'}"


def _compared(
    schema: TableSchema, chunk: Chunk, key: ChunkKey | None, partition: ChunkPartition
) -> Sequence[ColumnSchema]:
    """Return the columns that a chunk's own conditions may compare with constants."""
    names = set[str]()
    if chunk.key and key is not None:
        names = {column.name for column in key.columns}
    if partition.selections:
        names |= {*schema.row_key} or {column.name for column in schema.columns}
    return [column for column in schema.columns if column.name in names]


def _decoded(decoder: Decoder, blocks: Iterable[EventBlock]) -> Iterator[pa.RecordBatch]:
    if implementation() == "python":
        return decoder.decode(unpack_events(blocks))
    from pyspark_mysqlbinlog.decoder.kernel.decoder import (  # noqa: PLC0415 (it needs the kernel)
        KernelDecoder,
    )

    return KernelDecoder(decoder).decode(blocks)


def _number(file: str) -> int:
    return Position.of(file, FIRST_EVENT).number


def _as_loaded(batch: pa.RecordBatch, row: int) -> pa.RecordBatch:
    """Return inserted rows as snapshot rows: `op` is ``r``, and `row` their number in `seq`."""
    rows = pa.repeat(pa.scalar(row, pa.int32()), batch.num_rows)
    columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["op"] = pa.repeat(pa.scalar("r"), batch.num_rows)
    for name in ("seq", "source"):
        struct = columns[name]
        parts = [rows if field.name == "row" else struct.field(field.name) for field in struct.type]
        columns[name] = pa.StructArray.from_arrays(parts, fields=list(struct.type))
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _tries(least: int) -> Retrying:
    """Return the tries of one chunk: only one if `least` is 1, otherwise at least `least`."""
    last = stop_after_attempt(least)
    return Retrying(
        retry=retry_if_exception(_is_worth_another_try),
        stop=last if least == 1 else stop_all(last, stop_after_delay(_RETRY_SECONDS)),
        wait=wait_random_exponential(multiplier=0.1, max=5.0),
        before_sleep=_log,
        retry_error_callback=_give_up,
    )


def _is_worth_another_try(error: BaseException) -> bool:
    if isinstance(error, ServerError) and error.code in (
        _NO_SUCH_KEY,
        _QUERY_INTERRUPTED,
        _TABLE_DEFINITION_CHANGED,
    ):
        return True
    return isinstance(error, (LostConnectionError, _AlteredError, _DocumentsChangedError))


def _log(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    reason: object = error
    if isinstance(error, _AlteredError):
        reason = f"{error} was altered"
    elif isinstance(error, _DocumentsChangedError):
        reason = f"documents of {error} changed while they were read"
    LOG.warning("try %d of a chunk failed, reading it again: %s", state.attempt_number, reason)


def _give_up(state: RetryCallState) -> NoReturn:
    error = state.outcome.exception() if state.outcome else None
    tries = f"{state.attempt_number} tries in {state.seconds_since_start or 0:.0f} s"
    if isinstance(error, _AlteredError):
        raise SchemaMismatchError(
            f"the table was altered repeatedly during its snapshot ({tries}); start again with the"
            " same checkpoint",
            table=str(error),
        ) from None
    if isinstance(error, _DocumentsChangedError):
        raise UnrepresentableValueError(
            "the types of numbers in the table's JSON documents cannot be determined, because the"
            f" documents changed while they were read ({tries}); read the table again while fewer"
            " changes are written to it, or exclude its JSON columns (excludeColumns)",
            table=str(error),
        ) from None
    assert error is not None
    raise error
