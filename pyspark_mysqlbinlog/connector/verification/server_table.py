"""One MySQL table: its rows in the form of its Delta table, and the changes of them in the binlog.

Rows are read as a snapshot reads them, and changes as a mirror's batch reads them, so that each
value is converted as the mirror converts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from pyspark_mysqlbinlog.checkpoints.offset import Offset
from pyspark_mysqlbinlog.checkpoints.position import BEGINNING, Position
from pyspark_mysqlbinlog.checkpoints.schema_history import SchemaHistory
from pyspark_mysqlbinlog.checkpoints.snapshot_state import (
    Chunk,
    SnapshotState,
    TableSnapshotState,
)
from pyspark_mysqlbinlog.connector.delta.read.spark_batch import of_batches
from pyspark_mysqlbinlog.connector.delta.rows.arrow_utils import pc
from pyspark_mysqlbinlog.connector.delta.rows.image_store import ImageStore, Side
from pyspark_mysqlbinlog.connector.delta.rows.row_images import RowImageReader
from pyspark_mysqlbinlog.connector.delta.rows.sections import packed_positions
from pyspark_mysqlbinlog.connector.delta.rows.states import key_of
from pyspark_mysqlbinlog.connector.delta.sync.excluded_rows import conditions_of
from pyspark_mysqlbinlog.connector.options.model import Options
from pyspark_mysqlbinlog.connector.ranges.planning import range_partitions
from pyspark_mysqlbinlog.connector.ranges.typed_reader import read_typed_stretches
from pyspark_mysqlbinlog.connector.server.information_schema import read_table_schema
from pyspark_mysqlbinlog.connector.server.settings import ServerFacts, current_position
from pyspark_mysqlbinlog.connector.snapshot.planning.planner import BatchLimits, ChunkPlanner
from pyspark_mysqlbinlog.connector.snapshot.reading.chunk_reader import read_chunks
from pyspark_mysqlbinlog.connector.snapshot.reading.partition import ChunkPartition
from pyspark_mysqlbinlog.connector.source.arrow_ipc import check_json
from pyspark_mysqlbinlog.connector.source.schema import arrow_schema
from pyspark_mysqlbinlog.connector.verification.digests import key_digests, row_digests
from pyspark_mysqlbinlog.connector.verification.logged_states import Image, LoggedStates
from pyspark_mysqlbinlog.errors import SchemaChangedError
from pyspark_mysqlbinlog.names import Table
from pyspark_mysqlbinlog.protocol.server.client import ReplicaClient
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["ComparedServer", "ServerTable"]

# Rows that are converted and digested at once.
_BATCH_ROWS = 1 << 15
# The time limit of one wait for the planner, which is then called again.
_PLANNING_SECONDS = 60.0
# Conditions in one transaction, of a thousand keys each.
_MAX_SELECTIONS = 100
_SIDES: Sequence[Side] = ("before", "after")
_STATEMENTS = pa.array(["t", "ddl"])


@dataclass(frozen=True, slots=True)
class ComparedServer:
    """The server, as it was when the comparison began.

    Attributes
    ----------
    uuid : empty if it has none.
    identity : its name in commit markers.
    position : the end of its binlog.
    """

    facts: ServerFacts
    uuid: str
    identity: str
    position: Position


class ServerTable:
    """A table of the server.

    Parameters
    ----------
    options : with this table as the only one.
    schema : of the table, and without the excluded columns.
    condition : of `snapshotWhere`; None without one.
    """

    def __init__(
        self,
        server: ComparedServer,
        options: Options,
        whole: TableSchema,
        schema: TableSchema,
        condition: str | None,
    ) -> None:
        self.name: Table = (schema.database, schema.table)
        self.schema = schema
        self.key: Sequence[str] = key_of(schema)
        self._server = server
        self._options = options
        self._whole = whole
        self._condition = condition
        self._reader = RowImageReader(schema.columns, schema.full_name)
        self._texts = arrow_schema(check_json(options))

    @property
    def columns(self) -> pa.Schema:
        """The columns of its Delta table without the mirror's own."""
        return self._reader.schema

    def check_unchanged(self) -> None:
        """Raise SchemaChangedError if the table was altered since the comparison began."""
        with ReplicaClient.connect(self._options.server_settings()) as client:
            case_sensitive = self._server.facts.case_sensitive
            now = read_table_schema(client, self.name, case_sensitive=case_sensitive)
        if now != self._whole:
            raise SchemaChangedError(
                "it was altered while it was compared; compare it again",
                table=self.schema.full_name,
            )

    def end_of_log(self) -> Position:
        """Return the current end of the binlog."""
        with ReplicaClient.connect(self._options.server_settings()) as client:
            return current_position(client)

    def chunks(self, parallel: int) -> Iterator[Chunk]:
        """Yield chunks that together have all rows; the first ones are small.

        parallel : how many are read at the same time.
        """
        options = self._options
        planner = ChunkPlanner(
            options.server_settings(),
            # A row that is not visible yet is found by the confirmation.
            begin_checks=lambda: lambda _, __: None,
            case_sensitive=self._server.facts.case_sensitive,
            chunk_bytes=options.target_partition_bytes,
            retry_timeout=options.retry_timeout,
        )
        limits = BatchLimits(chunks=parallel)
        state = SnapshotState(pending=(TableSnapshotState(self.name),))
        with closing(planner):
            while state.pending:
                planned = planner.next_batch(state, limits, patience=_PLANNING_SECONDS)
                if planned is not None:
                    state = planned
                    yield from state.chunks

    def rows(self, chunk: Chunk) -> Iterator[pa.Table]:
        """Yield a chunk's rows; a table without a key is not read again after an error."""
        conditions: Mapping[Table, str] = (
            {} if self._condition is None else {self.name: self._condition}
        )
        yield from self._read(chunk, conditions=conditions)

    def rows_with(self, keys: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows with these keys, and possibly rows with others."""
        selections = conditions_of(self.schema, keys)
        while some := tuple(islice(selections, _MAX_SELECTIONS)):
            yield from self._read(Chunk(self.name), selections=some)

    def _read(self, chunk: Chunk, **more: Any) -> Iterator[pa.Table]:
        server = self._server
        part = ChunkPartition(
            (chunk,),
            server.facts.case_sensitive,
            since=server.position,
            server_uuid=server.uuid,
            **more,
        )
        batches = read_chunks(self._options, part, self._texts, typed=True, retries=bool(self.key))
        held: list[pa.RecordBatch] = []
        with closing(batches):
            for batch in batches:
                held.append(batch)
                if sum(each.num_rows for each in held) >= _BATCH_ROWS:
                    yield self._rows_of(held)
                    held = []
        if held:
            yield self._rows_of(held)

    def _rows_of(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        changes, images = of_batches(batches, self._texts, with_source=False)
        return images.read(changes, "after", self._reader)

    def logged(
        self, start: Position, end: Position, place: int, wanted: set[bytes]
    ) -> LoggedStates:
        """Return the states of some rows, according to the binlog between two positions.

        place : packed position at which the rows' states are of interest.
        wanted : digests of keys, or of whole rows if the table has no key.
        """
        states = LoggedStates(place)
        if start.order >= end.order:
            return states
        server = self._server
        history = SchemaHistory().with_table(BEGINNING, self._whole)
        parts = range_partitions(
            Offset(start, server.uuid),
            Offset(end, server.uuid, history.pack()),
            None,
            facts=server.facts,
            target_bytes=self._options.target_partition_bytes,
            max_fetches=1,
        )
        for part in parts:
            with closing(read_typed_stretches(self._options, part, self._texts)) as stretches:
                for stretch in stretches:
                    changes, images = of_batches(stretch, self._texts, with_source=False)
                    if pc.any(pc.is_in(changes.column("op"), value_set=_STATEMENTS)).as_py():
                        states.is_unknown = True
                        return states
                    for side in _SIDES:
                        self._add_side(changes, images, side, wanted, states)
        return states

    def _add_side(
        self,
        changes: pa.Table,
        images: ImageStore,
        side: Side,
        wanted: set[bytes],
        states: LoggedStates,
    ) -> None:
        """Add the images on one side of changes."""
        only_key = self._reader.select(self.key) if self.key else self._reader
        its = images.of_side(changes, side, only_key)
        places = pc.indices_nonzero(its.has)
        if not len(places):
            return
        rows = its.rows(places)
        digests = key_digests(rows.select(self.key)) if self.key else row_digests(rows)
        is_wanted = pc.is_in(digests, value_set=pa.array([*wanted], digests.type))
        places, digests = places.filter(is_wanted), digests.filter(is_wanted)
        if not len(places):
            return
        whole = row_digests(images.of_side(changes, side, self._reader).rows(places))
        chosen = changes.select(["seq"]).take(places)
        at: list[Any] = packed_positions(chosen).to_pylist()
        numbers: list[Any] = pc.struct_field(chosen.column("seq"), "row").to_pylist()
        listed: list[Any] = whole.to_pylist()
        made = [
            Image(place, number, side == "after", digest)
            for place, number, digest in zip(at, numbers, listed, strict=True)
        ]
        keys: list[Any] = digests.to_pylist()
        states.add_all(keys, made)
