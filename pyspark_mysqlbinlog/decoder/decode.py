"""The main loop: decodes verified events into Arrow batches.

Events come in binlog order, in whole transactions, without those of other tables. A TABLE_MAP is
added to the registry. A rows event finds its table there, the schema that is valid at its position,
and the plan for both, which is made once. Its images go through the plan into the payload builders;
values that its rows share go into the envelope. The same events always give the same batches:
decoding uses no server, clock or environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS, STMT_END_FLAG, RowsHead
from pyspark_mysqlbinlog.decoder.events.table_map import DUMMY_TABLE_IDS, TableMap, TableMapRegistry
from pyspark_mysqlbinlog.decoder.events.transactions import TransactionContext, valid_text
from pyspark_mysqlbinlog.decoder.payloads.envelope import RESCUED, Envelope, Run, StatementRow
from pyspark_mysqlbinlog.decoder.payloads.partial_updates import PARTIAL_UPDATE, whole_updates
from pyspark_mysqlbinlog.decoder.payloads.payload import (
    PayloadBuilder,
    PayloadFactory,
    json_payload,
)
from pyspark_mysqlbinlog.decoder.payloads.plan import ImagePlan, RowPlan
from pyspark_mysqlbinlog.decoder.payloads.table_plans import SchemaLookup, TablePlans
from pyspark_mysqlbinlog.decoder.sql.classifier import classify
from pyspark_mysqlbinlog.decoder.transforms.transforms import Transforms
from pyspark_mysqlbinlog.errors import (
    InvalidPositionError,
    MalformedEventError,
    MySQLBinlogError,
    SchemaError,
    UnsupportedEventError,
)
from pyspark_mysqlbinlog.protocol.events import Event, EventType, type_name
from pyspark_mysqlbinlog.protocol.messages import Query

__all__ = ["Decoder", "SchemaLookup"]

_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_QUERY = int(EventType.QUERY_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)

# Events that may contain rows of captured tables in an unsupported form: skipping one would lose
# its rows.
_UNREADABLE = frozenset(
    {
        EventType.PRE_GA_WRITE_ROWS_EVENT,
        EventType.PRE_GA_UPDATE_ROWS_EVENT,
        EventType.PRE_GA_DELETE_ROWS_EVENT,
        EventType.TRANSACTION_PAYLOAD_EVENT,
        EventType.MARIADB_START_ENCRYPTION_EVENT,
        EventType.MARIADB_QUERY_COMPRESSED_EVENT,
        EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1,
        EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1,
        EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1,
        EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT,
        EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT,
        EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT,
    }
)

# The words of the `operations` option, by the `op` of rows events and QUERYs.
_OPERATION_WORDS = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}


class Decoder:
    """Decodes events into batches of one Arrow schema.

    Parameters
    ----------
    schemas : names, signs, charsets and labels of the tables.
    arrow_schema : schema of the batches, as Spark's ``to_arrow_schema`` gives it.
    epoch : of `seq`.
    operations : of ``insert``, ``update``, ``delete``, ``truncate``; others are skipped.
    file_ordinal : file name -> its number in `seq`.
    statement_rows : QUERY event -> the rows without images of its statement; none for BEGIN and
        COMMIT.
    excluded : (database, table, column) -> whether the column is excluded from the row images.
    transforms : masks of columns, and conditions of rows; None if there are none.
    payload : makes the builders of `before` and `after`.
    positional : read rows of unknown columns as `@1`, `@2`, …; otherwise they are an error.
    batch_rows, batch_bytes : a batch ends at the first limit reached; it has at least one row.

    Except `statement_rows`, `excluded`, `transforms`, `payload` and `positional`, these are also
    attributes.
    """

    def __init__(
        self,
        schemas: SchemaLookup,
        arrow_schema: pa.Schema,
        epoch: int,
        operations: frozenset[str],
        *,
        file_ordinal: Callable[[str], int | None],
        statement_rows: Callable[[Event], Sequence[StatementRow]] | None = None,
        excluded: Callable[[str, str, str], bool] | None = None,
        transforms: Transforms | None = None,
        payload: PayloadFactory = json_payload,
        positional: bool = False,
        batch_rows: int = 16_384,
        batch_bytes: int = 8 << 20,
    ) -> None:
        self.schemas = schemas
        self.epoch = epoch
        self.operations = operations
        self.file_ordinal = file_ordinal
        self._statement_rows = statement_rows
        self._excluded = excluded
        self._transforms = transforms
        self._payload = payload
        self._positional = positional
        self.batch_rows = batch_rows
        self.batch_bytes = batch_bytes
        self.arrow_schema = arrow_schema
        self.start()

    def start(self) -> None:
        """Discard all state; the next `feed` begins a range."""
        self.table_maps = TableMapRegistry()
        self._plans = TablePlans(
            self.schemas,
            self._excluded,
            transforms=self._transforms,
            positional=self._positional,
        )
        self.transaction = TransactionContext()
        self._envelope = Envelope(self.arrow_schema)
        self.before: PayloadBuilder = self._payload(
            "before", self.arrow_schema.field("before").type
        )
        self.after: PayloadBuilder = self._payload("after", self.arrow_schema.field("after").type)
        self._shared_bytes = 0
        # By the number of the row in the batch.
        self._rescued: dict[int, str] = {}

    def decode(self, events: Iterable[Event]) -> Iterator[pa.RecordBatch]:
        """Decode a range; each call starts without state.

        Errors contain the file, the position and the table of their event.
        """
        self.start()
        for event in events:
            yield from self.feed(event)
        yield from self.flush()

    def feed(self, event: Event, begin: tuple[int, int] = (0, 0)) -> Iterator[pa.RecordBatch]:
        """Decode one more event; yield the batches that become full.

        begin : a row of a rows event and the offset of its images in the body, if the rows before
            it were read by the compiled kernel; (0, 0) for the whole event.
        """
        kind = event.type
        try:
            if kind == _QUERY:
                query = Query.parse(event.body)
                statement = classify(query.sql, query.database)
                self.transaction.follow(event, query, statement)
            else:
                self.transaction.follow(event)
            if kind in OPERATIONS:
                yield from self._rows(event, begin)
            elif kind == _TABLE_MAP:
                self.table_maps.add(event.file, event.body)
            elif kind == _QUERY:
                self._query(event)
            elif kind == _FORMAT_DESCRIPTION:
                # A new file, maybe of a restarted server: ids refer to other tables.
                self.table_maps.clear()
            elif kind in _UNREADABLE:
                raise UnsupportedEventError(
                    f"{type_name(kind)} is not supported; disable compression and encryption of"
                    " the server's binlog"
                )
        except MySQLBinlogError as error:
            raise error.with_location(event.file, event.start) from None
        if self._is_full():
            yield self._finish()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield the batch of the rows that were fed and not yet returned, if any."""
        if len(self._envelope):
            yield self._finish()

    @property
    def pending(self) -> int:
        """Number of rows that were fed and not yet returned."""
        return len(self._envelope)

    def _rows(self, event: Event, begin: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        """Read the rows of one event; yield the batches that become full."""
        head = RowsHead.parse(event.type, event.body)
        table_map = self.table_maps.get(event.file, head.table_id)
        if table_map is None:
            return _check_unmapped(event, head)
        if _OPERATION_WORDS[head.op] not in self.operations:
            return None
        try:
            plan = self.plan(event, table_map)
            if event.type != PARTIAL_UPDATE:
                yield from self._images(event, head, plan, begin)
                return None
            _check_columns(event, head, plan)
            for row, update in whole_updates(event, head, table_map.types, plan.columns):
                head = RowsHead.parse(update.type, update.body)
                yield from self._images(update, head, plan, (row, head.rows_start))
        except MySQLBinlogError as error:
            raise error.with_location(table=table_map.full_name) from None
        return None

    def _images(
        self, event: Event, head: RowsHead, plan: RowPlan, begin: tuple[int, int]
    ) -> Iterator[pa.RecordBatch]:
        _check_columns(event, head, plan)
        is_update = head.op == "u"
        before = None if head.before is None else plan.image(head.before, is_updated=is_update)
        after = None if head.after is None else plan.image(head.after)
        if not any(image and image.columns for image in (before, after)):
            raise UnsupportedEventError(
                f"{type_name(event.type)} has row images without columns, so the number of its rows"
                " is unknown; set binlog_row_image=FULL"
            )
        if plan.row_filter is not None:
            yield from self._filtered_images(event, head, plan, begin, (before, after))
            return
        run = self._run(event, head.op, plan, before, after)
        _, base = event.first_seq
        # Repeated for each row: a wide table with minimal images has more names than values.
        shared_bytes = len(run.query or "") + sum(map(len, run.missing or ())) + 100

        data, end = event.body, len(event.body)
        row, pos = begin if begin[1] else (0, head.rows_start)
        first = row
        invalid_before, invalid_after = self.before.invalid_dates, self.after.invalid_dates
        rescued_before, rescued_after = self.before.rescued, self.after.rescued
        more = True
        while more:
            # do-while: a rows event has at least one row.
            pos = self._image(self.before, before, data, pos)
            pos = self._image(self.after, after, data, pos)
            if rescued_before or rescued_after:
                self._rescue(len(self._envelope) + row - first)
            if invalid_before or invalid_after:
                # A group of its own, because the rows of a group share `invalid_dates`.
                if first < row:
                    self._envelope.add(run, base + first, row - first)
                invalid = (*invalid_before, *invalid_after)
                self._envelope.add(run._replace(invalid_dates=invalid), base + row, 1)
                invalid_before.clear()
                invalid_after.clear()
                first = row + 1
            row += 1
            self._shared_bytes += shared_bytes
            more = pos < end
            room = self.batch_rows - len(self._envelope)
            if not more or row - first >= room or self._bytes() >= self.batch_bytes:
                if first < row:
                    self._envelope.add(run, base + first, row - first)
                first = row
                if more and self._is_full():
                    yield self._finish()

    def _filtered_images(
        self,
        event: Event,
        head: RowsHead,
        plan: RowPlan,
        begin: tuple[int, int],
        images: tuple[ImagePlan | None, ImagePlan | None],
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows of an event that meet their table's condition, each as a run of its own.

        An update is an insert if only the new row meets it, and a delete if only the old row does.
        """
        assert plan.row_filter is not None
        passes = plan.row_filter.passes
        for image, side in zip(images, ("before", "after"), strict=True):
            if image is not None:
                plan.row_filter.check(image, side)
        data, end = event.body, len(event.body)
        row, pos = begin if begin[1] else (0, head.rows_start)
        _, base = event.first_seq
        runs: dict[str, Run] = {}
        more = True
        while more:
            # do-while: a rows event has at least one row.
            starts, kept = [0, 0], [False, False]
            for at, image in enumerate(images):
                starts[at] = pos
                if image is not None:
                    kept[at], pos = passes(image, data, pos)
            op = {(True, True): "u", (True, False): "d", (False, True): "c"}.get((kept[0], kept[1]))
            if op is not None:
                old, new = (image if kept[at] else None for at, image in enumerate(images))
                if op not in runs:
                    runs[op] = self._run(event, op, plan, old, new)
                run = runs[op]
                self._image(self.before, old, data, starts[0])
                self._image(self.after, new, data, starts[1])
                if self.before.rescued or self.after.rescued:
                    self._rescue(len(self._envelope))
                invalid = (*self.before.invalid_dates, *self.after.invalid_dates)
                if invalid:
                    run = run._replace(invalid_dates=invalid)
                    self.before.invalid_dates.clear()
                    self.after.invalid_dates.clear()
                self._envelope.add(run, base + row, 1)
                self._shared_bytes += len(run.query or "") + sum(map(len, run.missing or ())) + 100
            row += 1
            more = pos < end
            if more and self._is_full():
                yield self._finish()

    def _rescue(self, row: int) -> None:
        """Keep values without a field in the row's struct, as JSON: ``{"after":{"c":1}}``."""
        sides = []
        for side, members in (("before", self.before.rescued), ("after", self.after.rescued)):
            if members:
                sides.append(f'"{side}":{{{",".join(members)}}}')
                members.clear()
        if not self._envelope.has_rescued:
            raise SchemaError(f"the Arrow schema has no column {RESCUED}, but a row requires it")
        text = f"{{{','.join(sides)}}}"
        self._rescued[row] = text
        self._shared_bytes += len(text)

    @staticmethod
    def _image(payload: PayloadBuilder, image: ImagePlan | None, data: bytes, pos: int) -> int:
        if image is None:
            payload.append_null()
            return pos
        return payload.append(image, data, pos)

    def plan(self, event: Event, table_map: TableMap) -> RowPlan:
        """Return the plan of a table map for the schema valid here; made if either is new."""
        return self._plans.plan(event, table_map)

    def _query(self, event: Event) -> None:
        """Add a row without images for DDL, or for a TRUNCATE of a captured table."""
        if self._statement_rows is None:
            return
        for number, row in enumerate(self._statement_rows(event)):
            _check_utf8("database", row.database)
            _check_utf8("table", row.table)
            run = self._shared(event, row.op, (row.database, row.table), row.key, None)
            self.before.append_null()
            self.after.append_null()
            self._envelope.add(run._replace(query=valid_text(row.query)), number, 1)
            self._shared_bytes += len(row.query) + 100

    def _run(
        self,
        event: Event,
        op: str,
        plan: RowPlan,
        before: ImagePlan | None,
        after: ImagePlan | None,
    ) -> Run:
        missing: tuple[str, ...] = ()
        if before is not None:
            missing += tuple(f"before.{name}" for name in self.before.missing(before))
        if after is not None:
            missing += tuple(f"after.{name}" for name in self.after.missing(after))
        table_map = plan.table_map
        name = (table_map.database, table_map.table)
        return self._shared(event, op, name, plan.key, missing or None)

    def _shared(
        self,
        event: Event,
        op: str,
        name: tuple[str, str],
        key: tuple[str, ...] | None,
        missing: tuple[str, ...] | None,
    ) -> Run:
        file = event.file if event.committed is None else event.committed.file
        ordinal = self.file_ordinal(file)
        if ordinal is None:
            raise InvalidPositionError(f"expected a file name that ends in a number, found {file}")
        transaction = self.transaction
        pos = event.first_seq[0]
        return Run(
            op=op,
            ts=event.timestamp * 1_000_000,
            database=name[0],
            table=name[1],
            epoch=self.epoch,
            ordinal=ordinal,
            pos=pos,
            source_pos=pos if event.committed is None else event.start,
            server_id=event.server_id,
            file=event.file,
            tx_pos=transaction.tx_pos,
            thread_id=transaction.thread_id,
            gtid=transaction.gtid,
            query=transaction.query,
            key=key,
            missing=missing,
            invalid_dates=None,
        )

    def _bytes(self) -> int:
        return self.before.size + self.after.size + self._shared_bytes

    def _is_full(self) -> bool:
        return len(self._envelope) >= self.batch_rows or (
            len(self._envelope) > 0 and self._bytes() >= self.batch_bytes
        )

    def _finish(self) -> pa.RecordBatch:
        self._shared_bytes = 0
        rescued, self._rescued = self._rescued, {}
        return self._envelope.finish(self.before.finish(), self.after.finish(), rescued)


def _check_columns(event: Event, head: RowsHead, plan: RowPlan) -> None:
    if head.column_count != plan.table_map.column_count:
        raise MalformedEventError(
            f"{type_name(event.type)} has {head.column_count} columns, expected the"
            f" {plan.table_map.column_count} of its table map"
        )


def _check_unmapped(event: Event, head: RowsHead) -> None:
    """Raise for a rows event without a table map, unless it only ends a statement."""
    left = len(event.body) - head.rows_start
    if head.table_id in DUMMY_TABLE_IDS and head.flags & STMT_END_FLAG and left == 0:
        return
    raise MalformedEventError(
        f"{type_name(event.type)} has table id {head.table_id}, expected a TABLE_MAP with"
        " that id before it in the same file"
    )


def _check_utf8(what: str, name: str) -> None:
    """Raise for a name of a statement with bytes that no server writes; see Query.parse."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raw = name.encode("utf-8", "surrogateescape")
        raise MalformedEventError(
            f"QUERY has a {what} name that is not UTF-8: 0x{raw.hex()}"
        ) from None
