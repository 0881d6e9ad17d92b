"""The compiled counterpart of `decode.Decoder`: blocks of events in, Arrow batches out.

The loop (kernel/cpp/loops/decode_loop.hpp) handles events that it fully supports, without the
interpreter, and stops before others. These are fed to a Python `Decoder` one by one. A new table
map, a plan, a statement or an error is therefore handled in Python, and unsupported input gives
exactly the Python decoder's rows or error.

Each batch is made by one of the two. If the Python decoder has rows, the loop's are output before
them, and Python handles the events for a while; otherwise, traffic with tables of both kinds would
give batches of a few rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.decode import Decoder
from pyspark_mysqlbinlog.decoder.events.rows import OPERATIONS
from pyspark_mysqlbinlog.decoder.events.table_map import (
    TABLE_ID_LENGTH,
    TableMap,
    TableMapRegistry,
    table_id_of,
)
from pyspark_mysqlbinlog.decoder.kernel._decode import DecodeLoop, Stop, TablePlan
from pyspark_mysqlbinlog.decoder.kernel.plan import decode_loop, table_plan
from pyspark_mysqlbinlog.errors import MalformedEventError, MySQLBinlogError
from pyspark_mysqlbinlog.protocol.blocks import EventBlock, unpack_events
from pyspark_mysqlbinlog.protocol.events import Event, EventType
from pyspark_mysqlbinlog.tables import TableSchema

__all__ = ["KernelDecoder"]

_TABLE_MAP = int(EventType.TABLE_MAP_EVENT)
_FORMAT_DESCRIPTION = int(EventType.FORMAT_DESCRIPTION_EVENT)
_END_OF_FILE = (1 << 63) - 1
# Consecutive rows events that the loop could have read, after which it is used again.
_PATIENCE = 64
_MOST_PLANS = 4096

# The key of a plan, besides the schema: the table map's body after the id, and the version of the
# rows events, which identifies MariaDB.
_Description = tuple[bytes, int]


class KernelDecoder:
    """Decodes blocks into the batches that a Python decoder would make of their events.

    Parameters
    ----------
    python : handles events that the loop does not support; must not be fed by others meanwhile.
    """

    def __init__(self, python: Decoder) -> None:
        self._python = python

    def decode(self, blocks: Iterable[EventBlock]) -> Iterator[pa.RecordBatch]:
        """Decode a range; each call starts without state.

        Errors contain the file, the position and the table of their event.
        """
        python = self._python
        python.start()
        loop = decode_loop(python)
        if loop is None:
            yield from python.decode(unpack_events(blocks))
            return
        # The loop tracks the use of maps, and returns those to remove.
        python.table_maps = TableMapRegistry(sys.maxsize)
        yield from _Range(python, loop).decode(blocks)


class _Range:
    """One range: the loop and the Python decoder.

    Before an event goes to the Python decoder, the loop's transaction state is copied to it;
    afterwards, it is copied back.
    """

    def __init__(self, python: Decoder, loop: DecodeLoop) -> None:
        self._python = python
        self._loop = loop
        # Rows events that the Python decoder still gets, although the loop could read them.
        self._patience = 0
        # Each with the schema that it was made for; None if the loop cannot read the rows. Not by
        # table id: a server with many tables reopens them again and again, with new ids.
        self._plans: dict[_Description, tuple[TableSchema | None, TablePlan | None]] = {}

    def decode(self, blocks: Iterable[EventBlock]) -> Iterator[pa.RecordBatch]:
        loop = self._loop
        for block in blocks:
            loop.open(block, self._ordinal(block))
            yield from self._block(block)
            # It may be large, and so may be the next.
            loop.close()
            del block
        if loop.pending:
            yield loop.finish()
        yield from self._python.flush()

    def _block(self, block: EventBlock) -> Iterator[pa.RecordBatch]:
        loop = self._loop
        while True:
            if self._python.pending:
                yield from self._fall_back()
                if self._python.pending:
                    if loop.offset < len(block.data):
                        raise _damaged(block, loop.offset)
                    return
            stop = loop.run()
            if stop == Stop.End:
                return
            if stop == Stop.Full:
                yield loop.finish()
            elif stop == Stop.Damaged:
                raise _damaged(block, loop.offset)
            elif stop == Stop.Plan:
                # Rows events may be large: copy only the part that is used.
                self._make_plan(loop.event(TABLE_ID_LENGTH))
            else:
                self._patience = _PATIENCE
                yield from self._decode_in_python(loop.event(), loop.stopped_at)

    def _fall_back(self) -> Iterator[pa.RecordBatch]:
        """Decode in Python for a number of events, or up to the block's end."""
        loop, python = self._loop, self._python
        while python.pending and loop.has_event():
            event = loop.event()
            if event.type in OPERATIONS:
                if self._is_refused(event):
                    self._patience = _PATIENCE
                elif self._patience == 0:
                    yield from python.flush()
                    return
                else:
                    self._patience -= 1
            yield from self._decode_in_python(event, (0, 0))

    def _decode_in_python(self, event: Event, begin: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        """Feed the next event to the Python decoder."""
        loop, python = self._loop, self._python
        loop.save(python.transaction)
        for batch in python.feed(event, begin):
            if loop.pending:
                yield loop.finish()
            yield batch
        if loop.pending and python.pending:
            yield loop.finish()
        if event.type == _TABLE_MAP:
            self._map_table(event)
        elif event.type == _FORMAT_DESCRIPTION:
            loop.clear_tables()
        loop.restore(python.transaction)
        loop.pass_event()

    def _map_table(self, event: Event) -> None:
        """Add a table map that the Python decoder has processed to the loop."""
        if self._loop.knows_table(event.body):
            return
        forgotten = self._loop.map_table(event.body)
        if forgotten is not None:
            self._python.table_maps.forget(forgotten)

    def _make_plan(self, event: Event) -> None:
        """Plan the table of the next rows; without a plan, the Python decoder reads them."""
        table_id = table_id_of(event.body)
        made: TablePlan | None = None
        first, last = event.start, event.start + 1
        table_map = self._python.table_maps.get(event.file, table_id)
        # If it cannot be planned, the Python decoder raises the error at the event.
        with suppress(MySQLBinlogError):
            if table_map is not None:
                name = (table_map.database, table_map.table)
                first, end = self._python.schemas.span(event.file, event.start, *name)
                last = _END_OF_FILE if end is None else end
                made = self._plan(event, table_map)
        self._loop.set_plan(table_id, made, first, last)

    def _plan(self, event: Event, table_map: TableMap) -> TablePlan | None:
        """Return the plan, made for a new table description or schema; None if unsupported."""
        name = (table_map.database, table_map.table)
        known = self._python.schemas.at(event.file, event.start, *name)
        described = self._description(event)
        if described in self._plans:
            planned_for, made = self._plans[described]
            if planned_for is known or planned_for == known:
                return made
        plan = self._python.plan(event, table_map)
        made = table_plan(self._loop, plan, (self._python.before, self._python.after))
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        self._plans[described] = (known, made)
        return made

    def _is_refused(self, event: Event) -> bool:
        """Whether the loop cannot read a rows event's table, under any id."""
        planned = self._plans.get(self._description(event))
        return planned is not None and planned[1] is None

    def _description(self, event: Event) -> _Description:
        """Return the table description of a rows event; the same after the table is reopened."""
        body = self._python.table_maps.body(event.file, table_id_of(event.body))
        return body[TABLE_ID_LENGTH:], OPERATIONS[event.type][1]

    def _ordinal(self, block: EventBlock) -> int | None:
        """Return the file's number in `seq`; if None, the Python decoder raises at a row."""
        with suppress(MySQLBinlogError):
            return self._python.file_ordinal(
                block.file if block.committed is None else block.committed.file
            )
        return None


def _damaged(block: EventBlock, offset: int) -> MalformedEventError:
    return MalformedEventError(
        f"a block of {len(block.data)} bytes of events is cut short: expected an event at offset"
        f" {offset}, found one that is longer than the rest; read the range again",
        file=block.file,
    )
