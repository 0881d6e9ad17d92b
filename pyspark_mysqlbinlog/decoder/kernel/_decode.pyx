# cython: language_level=3
# distutils: language = c++
"""The compiled main loop: kernel/cpp/loops/decode_loop.hpp, used by decoder/kernel/decoder.py."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.kernel._values cimport Column, ColumnProgram
from pyspark_mysqlbinlog.decoder.events.table_map import table_id_of
from pyspark_mysqlbinlog.protocol.events import Event

# Limit of the bytes by which events are longer in the binlog, or shorter if compressed there.
_TRAILER_LIMIT = 1 << 31


cdef extern from "loops/decode_loop.hpp" namespace "mysqlbinlog" nogil:
    cpdef enum class Stop(uint8_t):
        End
        Full
        Event
        Plan
        Damaged

    cpdef enum class Payload(uint8_t):
        Json
        Struct
        Variant
        JsonWithTexts

    cpdef enum class Operation(uint8_t):
        Insert
        Update
        Delete

    cpdef enum class Out(uint8_t):
        Bool
        Int8
        Int16
        Int32
        Int64
        Float
        Double
        Decimal
        Date
        Micros
        Duration
        Text
        Geometry
        Variant

    cpdef enum class Field(uint8_t):
        Op
        Ts
        Database
        Table
        Before
        After
        Seq
        Source
        Rescued
        Epoch
        Ordinal
        Pos
        Row
        ServerId
        File
        TxPos
        ThreadId
        Gtid
        Query
        Key
        Missing
        InvalidDates
        SourcePos

    cdef struct ArrowArray:
        pass

    cdef cppclass CStep "mysqlbinlog::Step":
        pass

    cdef cppclass TableRows:
        pass

    cdef cppclass PayloadSide:
        TableRows& add_table() except +
        void add_database(size_t, size_t) except +
        TableRows* table(size_t)

    cdef cppclass CTablePlan "mysqlbinlog::TablePlan":
        CTablePlan(Payload, string, string) except +
        cbool has_key
        vector[string] key
        void set_rows(size_t, TableRows*)
        void add_column(const CStep&, const CStep&, cbool) except +

    cdef cppclass MappedTable:
        CTablePlan* plan
        int64_t planned_from
        int64_t planned_until

    cdef cppclass TableMaps:
        MappedTable* find(uint64_t)
        void clear()

    cdef cppclass OptionalText:
        cbool is_set
        string text

    cdef cppclass TransactionState:
        cbool is_named
        cbool is_in_group
        cbool is_begun_by_gtid
        cbool are_rows_seen
        cbool is_ended

    cdef cppclass TransactionContext:
        TransactionState state
        cbool has_tx_pos
        int64_t tx_pos
        cbool has_thread_id
        uint32_t thread_id
        OptionalText gtid
        OptionalText query
        cbool is_new
        uint64_t changes

    cdef cppclass EventView:
        const uint8_t* body
        size_t size
        int64_t start
        int64_t end
        int64_t offset
        uint32_t timestamp
        uint32_t server_id
        int flags
        int type

    cdef cppclass Envelope:
        vector[uint8_t] top
        vector[uint8_t] seq
        vector[uint8_t] source
        int32_t epoch
        size_t rows()

    cdef cppclass CDecodeLoop "mysqlbinlog::DecodeLoop":
        CDecodeLoop(Payload, cbool, uint8_t, size_t, size_t) except +
        Envelope envelope
        TransactionContext transaction
        TableMaps tables
        Payload payload()
        PayloadSide& side(size_t)
        void open(const uint8_t*, size_t, int64_t, int64_t, string_view, cbool, int32_t) except +
        void commit_at(int64_t, int64_t)
        void close()
        cbool knows_table(string_view)
        void map_table(string_view, uint64_t&) except +
        size_t offset()
        cbool peek(EventView&)
        void pass_ "pass"()
        size_t stopped_row()
        size_t stopped_offset()
        Stop run() except +
        void finish(ArrowArray*) except + nogil


cdef extern from "loops/decode_loop.hpp" namespace "mysqlbinlog::Step" nogil:
    cpdef enum class Fate "mysqlbinlog::Step::Fate"(uint8_t):
        Read
        Skip
        Rescue
        Refuse


cdef extern from *:
    """
    #include "loops/decode_loop.hpp"

    // False if such a column cannot be read into the struct's.
    static inline bool make_step(mysqlbinlog::Step& step, mysqlbinlog::Step::Fate fate,
                                 const mysqlbinlog::Column* column, mysqlbinlog::TableRows* rows,
                                 size_t out, bool as_number) {
        step = mysqlbinlog::Step();
        step.fate = fate;
        step.column = column;
        if (step.fate != mysqlbinlog::Step::Fate::Read || rows == nullptr) return true;
        if (out >= rows->columns.size()) return false;
        step.out = rows->columns[out].get();
        step.cell = mysqlbinlog::choose_cell(*step.column, step.out->type(), as_number);
        if (step.cell == nullptr) return false;
        const int more = step.out->scale() - step.column->scale;
        if (step.out->type() == mysqlbinlog::Out::Decimal) {
            if (more < 0 || more > 38) return false;
            for (int i = 0; i < more; ++i) step.factor *= 10;
        }
        return true;
    }

    static inline void add_column(mysqlbinlog::TableRows& rows, mysqlbinlog::Out type, int scale,
                                  const std::string& name) {
        rows.columns.push_back(std::make_unique<mysqlbinlog::OutColumn>(
            type, static_cast<uint8_t>(scale), name));
    }
    """
    cbool make_step(CStep&, Fate, const Column*, TableRows*, size_t, cbool) nogil
    void add_column(TableRows&, Out, int, const string&) except +


cdef class TablePlan:
    """How one loop reads the rows of one table map. It keeps its columns alive."""

    cdef unique_ptr[CTablePlan] plan
    cdef list programs


cdef class DecodeLoop:
    """Decodes blocks of events into batches; stops before events for the Python decoder."""

    cdef unique_ptr[CDecodeLoop] loop
    cdef readonly object schema
    # The current block.
    cdef object file
    cdef object committed
    cdef object data
    cdef const uint8_t[::1] view
    # Plans by table id, and those that rows may still refer to.
    cdef dict plans
    cdef list retired
    cdef object mapped_file

    def __init__(
        self, schema, Payload payload, bint zero_dates_fail, int operations, size_t batch_rows,
        size_t batch_bytes,
    ):
        if self.loop:
            raise RuntimeError("a loop is initialized only once")
        self.loop.reset(
            new CDecodeLoop(
                payload, zero_dates_fail, <uint8_t>operations, batch_rows, batch_bytes
            )
        )
        self.schema = schema
        self.plans = {}
        self.retired = []
        self.mapped_file = None

    def describe_envelope(self, int epoch, bytes top, bytes seq, bytes source):
        """Set `seq.epoch`, and the `Field` of each column of the batch, `seq` and `source`."""
        cdef Envelope* envelope = &self.loop.get().envelope
        envelope.epoch = epoch
        envelope.top = list(top)
        envelope.seq = list(seq)
        envelope.source = list(source)

    def add_table(self, size_t side, list columns):
        """Payload struct: add a table to side 0 (before) or 1 (after).

        `columns`: (name, `Out`, scale) of each column.
        """
        cdef TableRows* rows = &self.loop.get().side(side).add_table()
        for name, code, scale in columns:
            add_column(rows[0], code, scale, <string>(name.encode()))

    def add_database(self, size_t side, size_t first, size_t tables):
        """Payload struct, nested: add a database of `tables` tables, beginning with `first`."""
        self.loop.get().side(side).add_database(first, tables)

    def table_plan(self, bytes database, bytes table, key, list programs, list rows, list steps,
                   list doubtful):
        """Return the plan of a table, its names in UTF-8; None if a value does not fit its column.

        `rows` is each side's table of `add_table`, `steps` each side's list of a `Step` per column,
        and `doubtful` whether a column is omitted from the before images of updates.
        """
        cdef TablePlan made = TablePlan.__new__(TablePlan)
        cdef CStep both[2]
        cdef ColumnProgram program
        cdef TableRows* places[2]
        cdef size_t side, at
        made.programs = programs
        made.plan.reset(new CTablePlan(self.loop.get().payload(), database, table))
        made.plan.get().has_key = key is not None
        if key is not None:
            made.plan.get().key = key
        for side in range(2):
            # None except for payload struct.
            places[side] = self.loop.get().side(side).table(rows[side])
            made.plan.get().set_rows(side, places[side])
        for at in range(<size_t>len(programs)):
            program = programs[at]
            for side in range(2):
                fate, out, as_number = steps[side][at]
                if not make_step(
                    both[side], fate, &program.column, places[side], out, as_number
                ):
                    return None
            made.plan.get().add_column(both[0], both[1], doubtful[at])
        return made

    def open(self, block, ordinal):
        """Begin an `EventBlock`; it is kept until `close`. Without an ordinal, no rows are read."""
        file, data = block.file, block.data
        cdef int64_t end = block.end, trailer = block.trailer
        cdef bytes name = file.encode()
        cdef bint has_ordinal = ordinal is not None and -(1 << 31) <= ordinal < 1 << 31
        if not -_TRAILER_LIMIT <= trailer < _TRAILER_LIMIT:
            raise ValueError(
                f"a block's events are {trailer} bytes longer in the binlog, expected less than"
                f" {_TRAILER_LIMIT}"
            )
        self.file, self.data, self.view = file, data, data
        self.committed = block.committed
        self.loop.get().open(
            &self.view[0] if self.view.shape[0] else NULL,
            self.view.shape[0],
            end,
            trailer,
            string_view(name, len(name)),
            has_ordinal,
            <int32_t>ordinal if has_ordinal else 0,
        )
        if block.committed is not None:
            self.loop.get().commit_at(block.committed.pos, block.committed.begin)

    def close(self):
        """Release the block."""
        self.loop.get().close()
        self.data = self.view = None

    def run(self):
        """Read on, without the interpreter, up to a `Stop`."""
        cdef CDecodeLoop* loop = self.loop.get()
        cdef Stop stop
        with nogil:
            stop = loop.run()
        return stop

    def event(self, most=None):
        """Return the next event; with `most`, at most that many bytes of its body."""
        cdef EventView event
        if not self.loop.get().peek(event):
            raise EOFError("the block has no more events")
        cdef size_t begin = event.body - &self.view[0]
        cdef size_t size = event.size if most is None else min(event.size, <size_t>most)
        return Event(
            self.file, event.start, event.end, event.timestamp, event.type, event.server_id,
            event.flags, bytes(self.data[begin : begin + size]),
            None if event.offset < 0 else event.offset, None, self.committed,
        )

    def has_event(self):
        """Whether the block has another complete event."""
        cdef EventView event
        return self.loop.get().peek(event)

    @property
    def offset(self):
        """Offset of the next event in the block's bytes."""
        return self.loop.get().offset()

    @property
    def stopped_at(self):
        """The next row of the next event, and the offset of its images in the body."""
        return self.loop.get().stopped_row(), self.loop.get().stopped_offset()

    def pass_event(self):
        """Skip the next event, which the Python decoder has processed."""
        self.loop.get().pass_()

    def knows_table(self, bytes body):
        """Whether a TABLE_MAP's body is known, byte for byte; if so, it becomes the last used."""
        return self.loop.get().knows_table(string_view(body, len(body)))

    def map_table(self, bytes body):
        """Add a TABLE_MAP's body; return the id of the one removed for it, or None."""
        cdef uint64_t forgotten = 0
        if self.file != self.mapped_file:
            self._retire_all()
            self.mapped_file = self.file
        self._retire(table_id_of(body))
        self.loop.get().map_table(string_view(body, len(body)), forgotten)
        if forgotten == <uint64_t>-1:
            return None
        self._retire(forgotten)
        return forgotten

    def clear_tables(self):
        """Remove all TABLE_MAPs and their plans."""
        self._retire_all()
        self.loop.get().tables.clear()

    def set_plan(self, table_id, plan, int64_t planned_from, int64_t planned_until):
        """Set the plan for a table's rows events that begin in these positions; None: no plan."""
        cdef MappedTable* table = self.loop.get().tables.find(table_id)
        if table == NULL:
            raise KeyError(table_id)
        self._retire(table_id)
        table.plan = NULL
        table.planned_from, table.planned_until = planned_from, planned_until
        if plan is not None:
            table.plan = (<TablePlan?>plan).plan.get()
            self.plans[table_id] = plan

    cdef _retire(self, table_id):
        plan = self.plans.pop(table_id, None)
        if plan is not None:
            self.retired.append(plan)

    cdef _retire_all(self):
        self.retired += self.plans.values()
        self.plans.clear()

    @property
    def pending(self):
        """Number of rows in the current batch."""
        return self.loop.get().envelope.rows()

    def finish(self):
        """Return the batch of the rows read; there must be at least one."""
        cdef ArrowArray array
        cdef CDecodeLoop* loop = self.loop.get()
        with nogil:
            loop.finish(&array)
        self.retired.clear()
        # Takes ownership of the array, even if it fails.
        return pa.RecordBatch._import_from_c(<uintptr_t>&array, self.schema)

    def save(self, context):
        """Copy the loop's state of the transaction to the Python decoder."""
        cdef TransactionContext* known = &self.loop.get().transaction
        context.tx_pos = known.tx_pos if known.has_tx_pos else None
        context.gtid = known.gtid.text.decode() if known.gtid.is_set else None
        context.thread_id = known.thread_id if known.has_thread_id else None
        context.query = known.query.text.decode() if known.query.is_set else None
        state = context.state
        if known.is_new:
            # Values unknown to the loop belong to another transaction.
            state.end()
        state.named = known.state.is_named
        state.in_group = known.state.is_in_group
        state.begun_by_gtid = known.state.is_begun_by_gtid
        state.rows_seen = known.state.are_rows_seen
        state.ended = known.state.is_ended

    def restore(self, context):
        """Copy the Python decoder's state of the transaction to the loop."""
        cdef TransactionContext* known = &self.loop.get().transaction
        known.is_new = False
        known.changes += 1
        known.has_tx_pos, known.tx_pos = context.tx_pos is not None, context.tx_pos or 0
        known.has_thread_id = context.thread_id is not None
        known.thread_id = context.thread_id or 0
        known.gtid.is_set, known.gtid.text = context.gtid is not None, (context.gtid or "").encode()
        known.query.is_set = context.query is not None
        known.query.text = (context.query or "").encode()
        known.state.is_named = context.state.named
        known.state.is_in_group = context.state.in_group
        known.state.is_begun_by_gtid = context.state.begun_by_gtid
        known.state.are_rows_seen = context.state.rows_seen
        known.state.is_ended = context.state.ended
