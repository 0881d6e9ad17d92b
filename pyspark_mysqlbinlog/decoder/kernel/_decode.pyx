# cython: language_level=3
# distutils: language = c++
"""The compiled main loop: kernel/decode_loop.hpp, as decoder/kernel_decoder.py drives it."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

import pyarrow as pa

from pyspark_mysqlbinlog.decoder.kernel._values cimport Column, ColumnProgram
from pyspark_mysqlbinlog.decoder.table_map import table_id_of
from pyspark_mysqlbinlog.protocol.events import Event

END, FULL, EVENT, PLAN, DAMAGED = range(5)

# What an event may be longer in the log, or shorter where it was compressed there.
_TRAILER_LIMIT = 1 << 31


cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char*, size_t)


cdef extern from "decode_loop.hpp" namespace "mysqlbinlog" nogil:
    cdef enum class Payload(uint8_t):
        pass

    cdef enum class Out(uint8_t):
        pass

    cdef struct ArrowArray:
        pass

    cdef cppclass OutColumn:
        Out type()

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
        void add_column(const CStep&, const CStep&) except +

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

    cdef cppclass Transaction:
        cbool has_tx_pos
        int64_t tx_pos
        cbool has_thread_id
        uint32_t thread_id
        OptionalText gtid
        OptionalText query
        cbool is_in_group
        cbool are_rows_seen
        cbool is_ended
        uint64_t changes

    cdef cppclass EventView:
        const uint8_t* body
        size_t size
        int64_t start
        int64_t end
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
        Transaction transaction
        TableMaps tables
        Payload payload()
        PayloadSide& side(size_t)
        void open(const uint8_t*, size_t, int64_t, int64_t, string_view, cbool, int32_t) except +
        void close()
        cbool knows_table(string_view)
        void map_table(string_view, uint64_t&) except +
        size_t offset()
        cbool peek(EventView&)
        void pass_ "pass"()
        size_t stopped_row()
        size_t stopped_offset()
        int run() except +
        void finish(ArrowArray*) except + nogil


cdef extern from *:
    """
    #include "decode_loop.hpp"

    // False where no such column can be read into the struct's.
    static inline bool make_step(mysqlbinlog::Step& step, int fate,
                                 const mysqlbinlog::Column* column, mysqlbinlog::TableRows* rows,
                                 size_t out, bool as_number) {
        step = mysqlbinlog::Step();
        step.fate = static_cast<mysqlbinlog::Step::Fate>(fate);
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

    static inline void add_column(mysqlbinlog::TableRows& rows, int type, int scale,
                                  const std::string& name) {
        rows.columns.push_back(std::make_unique<mysqlbinlog::OutColumn>(
            static_cast<mysqlbinlog::Out>(type), static_cast<uint8_t>(scale), name));
    }

    // The enumeration's number is what Python sees.
    static inline int run_loop(mysqlbinlog::DecodeLoop& loop) {
        return static_cast<int>(loop.run());
    }
    """
    cbool make_step(CStep&, int, const Column*, TableRows*, size_t, cbool) nogil
    void add_column(TableRows&, int, int, const string&) except +
    int run_loop(CDecodeLoop&) except + nogil


cdef class TablePlan:
    """How the rows of one table map are read; of one loop. It keeps its columns alive."""

    cdef unique_ptr[CTablePlan] plan
    cdef list programs


cdef class DecodeLoop:
    """Blocks of events in, batches out, and stops in front of what the Python twin must do."""

    cdef unique_ptr[CDecodeLoop] loop
    cdef readonly object schema
    # The block at hand.
    cdef object file
    cdef object data
    cdef const uint8_t[::1] view
    # Plans by table id, and those that rows may still point to.
    cdef dict plans
    cdef list retired
    cdef object mapped_file

    def __init__(
        self, schema, int payload, bint zero_dates_fail, int operations, size_t batch_rows,
        size_t batch_bytes,
    ):
        if self.loop:
            raise RuntimeError("a loop is made once")
        self.loop.reset(
            new CDecodeLoop(
                <Payload>payload, zero_dates_fail, <uint8_t>operations, batch_rows, batch_bytes
            )
        )
        self.schema = schema
        self.plans = {}
        self.retired = []
        self.mapped_file = None

    def describe_envelope(self, int epoch, bytes top, bytes seq, bytes source):
        cdef Envelope* envelope = &self.loop.get().envelope
        envelope.epoch = epoch
        envelope.top = list(top)
        envelope.seq = list(seq)
        envelope.source = list(source)

    def add_table(self, size_t side, list columns):
        cdef TableRows* rows = &self.loop.get().side(side).add_table()
        for name, code, scale in columns:
            add_column(rows[0], code, scale, <string>(name.encode("utf-8", "surrogatepass")))

    def add_database(self, size_t side, size_t first, size_t tables):
        self.loop.get().side(side).add_database(first, tables)

    def table_plan(self, bytes database, bytes table, key, list programs, list rows, list steps):
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
            # None but for payload struct.
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
            made.plan.get().add_column(both[0], both[1])
        return made

    def open(self, file, int64_t end, int64_t trailer, data, ordinal):
        cdef bytes name = file.encode("utf-8", "surrogateescape")
        cdef bint has_ordinal = ordinal is not None and -(1 << 31) <= ordinal < 1 << 31
        if not -_TRAILER_LIMIT <= trailer < _TRAILER_LIMIT:
            raise ValueError(f"a block's events were {trailer} bytes longer in the log")
        self.file, self.data, self.view = file, data, data
        self.loop.get().open(
            &self.view[0] if self.view.shape[0] else NULL,
            self.view.shape[0],
            end,
            trailer,
            string_view(name, len(name)),
            has_ordinal,
            <int32_t>ordinal if has_ordinal else 0,
        )

    def close(self):
        self.loop.get().close()
        self.data = self.view = None

    def run(self):
        cdef CDecodeLoop* loop = self.loop.get()
        cdef int stop
        with nogil:
            stop = run_loop(loop[0])
        return stop

    def event(self, most=None):
        """The next event; with `most`, no more bytes of its body than that are copied."""
        cdef EventView event
        if not self.loop.get().peek(event):
            raise EOFError("the block has no event more")
        cdef size_t begin = event.body - &self.view[0]
        cdef size_t size = event.size if most is None else min(event.size, <size_t>most)
        return Event(
            self.file, event.start, event.end, event.timestamp, event.type, event.server_id,
            event.flags, bytes(self.data[begin : begin + size]),
        )

    def has_event(self):
        cdef EventView event
        return self.loop.get().peek(event)

    @property
    def offset(self):
        return self.loop.get().offset()

    @property
    def stopped_at(self):
        return self.loop.get().stopped_row(), self.loop.get().stopped_offset()

    def pass_event(self):
        self.loop.get().pass_()

    def knows_table(self, bytes body):
        return self.loop.get().knows_table(string_view(body, len(body)))

    def map_table(self, bytes body):
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
        self._retire_all()
        self.loop.get().tables.clear()

    def set_plan(self, table_id, plan, int64_t planned_from, int64_t planned_until):
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
        return self.loop.get().envelope.rows()

    def finish(self):
        cdef ArrowArray array
        cdef CDecodeLoop* loop = self.loop.get()
        with nogil:
            loop.finish(&array)
        self.retired.clear()
        # Takes the array over, whatever it comes to.
        return pa.RecordBatch._import_from_c(<uintptr_t>&array, self.schema)

    def save(self, context):
        cdef Transaction* known = &self.loop.get().transaction
        context.tx_pos = known.tx_pos if known.has_tx_pos else None
        context.gtid = known.gtid.text.decode() if known.gtid.is_set else None
        context.thread_id = known.thread_id if known.has_thread_id else None
        context.query = known.query.text.decode() if known.query.is_set else None
        context.in_group = known.is_in_group
        context.rows_seen = known.are_rows_seen
        context.ended = known.is_ended

    def restore(self, context):
        cdef Transaction* known = &self.loop.get().transaction
        known.changes += 1
        known.has_tx_pos, known.tx_pos = context.tx_pos is not None, context.tx_pos or 0
        known.has_thread_id = context.thread_id is not None
        known.thread_id = context.thread_id or 0
        known.gtid.is_set, known.gtid.text = context.gtid is not None, (context.gtid or "").encode()
        known.query.is_set = context.query is not None
        known.query.text = (context.query or "").encode()
        known.is_in_group = context.in_group
        known.are_rows_seen = context.rows_seen
        known.is_ended = context.ended
