"""The compiled tally (tally.hpp) for Python."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.pair cimport pair
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector


cdef extern from "<array>" namespace "std" nogil:
    cdef cppclass Types "std::array<std::pair<uint64_t, uint64_t>, 256>":
        pair[uint64_t, uint64_t]& operator[](size_t)
    cdef cppclass Counts "std::array<mysqlbinlog::TableCount, 3>":
        TableCount& operator[](size_t)


cdef extern from "loops/tally.hpp" namespace "mysqlbinlog" nogil:
    cdef cppclass StoredColumn:
        uint32_t size
        cbool is_prefix

    cdef cppclass OpenTransaction:
        cbool is_named
        cbool is_in_group
        int64_t begin
        int64_t rows
        int64_t events

    cdef cppclass TableCount:
        uint64_t rows
        uint64_t events
        uint64_t bytes

    cdef cppclass NativeTally "mysqlbinlog::Tally":
        OpenTransaction open
        void learn(string_view, size_t, vector[StoredColumn]) except +
        void forget_ids()
        void forget_id(uint64_t)
        string_view body_of(uint64_t)
        void scan(const uint8_t*, size_t, size_t&, int64_t&, cbool, size_t, int64_t) except +
        const Types& types()
        const vector[Counts]& counts()
        vector[int64_t]& ended()


cdef class Tally:
    """Counts events that the scan has passed."""

    cdef NativeTally native

    def learn(self, bytes body, table, list columns):
        """Add a table map's body, and (size, is a prefix) of its columns.

        `table`: its index; None if its rows do not count.
        """
        cdef size_t index = <size_t>-1 if table is None else table
        cdef vector[StoredColumn] stored
        cdef StoredColumn column
        for size, is_prefix in columns:
            column.size = size
            column.is_prefix = is_prefix
            stored.push_back(column)
        self.native.learn(string_view(PyBytes_AS_STRING(body), len(body)), index, stored)

    def forget_ids(self):
        """Forget the table maps of all ids, because a new file begins."""
        self.native.forget_ids()

    def forget_id(self, uint64_t table_id):
        """Forget the table map of an id, because another one was not scanned."""
        self.native.forget_id(table_id)

    def scan(self, data, size_t at, int64_t pos, *, bint packets, size_t trailer,
             int64_t payload_end):
        """Count the events in `data` from an offset on; return the offset and position reached.

        `pos`: of the event there; `packets`, `trailer`: as the scanner; `payload_end`: the
        position after the payload that has these events; -1 outside of one.
        """
        cdef Py_buffer chunk
        PyObject_GetBuffer(data, &chunk, PyBUF_SIMPLE)
        try:
            with nogil:
                self.native.scan(<const uint8_t*>chunk.buf, chunk.len, at, pos, packets,
                                 trailer, payload_end)
        finally:
            PyBuffer_Release(&chunk)
        return at, pos

    def body_of(self, uint64_t table_id):
        """Return the body of the table map of an id; empty without one."""
        cdef string_view body = self.native.body_of(table_id)
        return body.data()[:body.size()]

    @property
    def open(self):
        """(named, in group, begin, rows, events) of the transaction in progress."""
        cdef OpenTransaction* it = &self.native.open
        return bool(it.is_named), bool(it.is_in_group), it.begin, it.rows, it.events

    @open.setter
    def open(self, tuple value):
        cdef OpenTransaction* it = &self.native.open
        it.is_named, it.is_in_group, it.begin, it.rows, it.events = value

    @property
    def ended_count(self):
        """Number of transactions that have ended since `take_ended`."""
        return self.native.ended().size() // 5

    def take_ended(self):
        """Return begin, bytes, rows, events and time of each ended transaction, as int64 values."""
        cdef vector[int64_t]* ended = &self.native.ended()
        cdef bytes taken = (<const char*>ended.data())[:8 * ended.size()] if ended.size() else b""
        ended.clear()
        return taken

    def types(self):
        """Return the number of events and their bytes, by type."""
        cdef size_t kind
        return {
            kind: (self.native.types()[kind].first, self.native.types()[kind].second)
            for kind in range(256) if self.native.types()[kind].first
        }

    def tables(self):
        """Return rows, events and bytes of inserts, updates and deletes, by the tables' indexes."""
        cdef size_t table, operation
        found = []
        for table in range(self.native.counts().size()):
            found.append([
                (
                    self.native.counts()[table][operation].rows,
                    self.native.counts()[table][operation].events,
                    self.native.counts()[table][operation].bytes,
                )
                for operation in range(3)
            ])
        return found
