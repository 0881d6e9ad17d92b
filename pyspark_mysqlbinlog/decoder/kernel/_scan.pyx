"""The compiled scan (scan.hpp) for Python.

A `Scanner` belongs to one thread. Its attributes are the results of the last scan, and `pack` reads
the chunk again: both are valid until the next scan, while the chunk's bytes are unchanged.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.pair cimport pair
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from array import array


cdef extern from "bytes/crc32.hpp" namespace "mysqlbinlog" nogil:
    uint32_t native_crc32 "mysqlbinlog::crc32"(const uint8_t*, size_t, uint32_t)
    uint32_t native_by_tables "mysqlbinlog::crc::by_tables"(uint32_t, const uint8_t*, size_t)


cdef extern from "loops/scan.hpp" namespace "mysqlbinlog" nogil:
    cdef cppclass Segment:
        int64_t end
        size_t offset
        uint32_t size
        int64_t place()

    cdef cppclass Ending:
        int64_t end
        uint64_t kept
        size_t segments
        size_t last_length
        uint32_t last_checksum

    cdef cppclass GtidRun:
        size_t transaction
        size_t count
        Segment event

    ctypedef enum Stop "mysqlbinlog::ScanStop":
        More "mysqlbinlog::ScanStop::More"
        Odd "mysqlbinlog::ScanStop::Odd"
        Pause "mysqlbinlog::ScanStop::Pause"
        Full "mysqlbinlog::ScanStop::Full"

    cdef cppclass TableIds:
        void clear()
        void set(uint64_t, cbool) except +

    cdef cppclass NativeScanner "mysqlbinlog::Scanner":
        TableIds ids
        NativeScanner(cbool) except +
        void learn(string_view, cbool) except +
        void forget_maps()
        void open(const uint8_t*, size_t, int64_t, int64_t, cbool, cbool, cbool, uint32_t, size_t, cbool)
        void scan_transactions() except +
        void scan_group(cbool, cbool, cbool, int64_t) except +
        void skip_rows()
        Stop stop()
        size_t consumed()
        int64_t pos()
        uint32_t time()
        size_t verified()
        uint64_t kept()
        size_t last_length()
        uint32_t last_checksum()
        size_t trailer()
        const vector[Segment]& segments()
        const vector[Ending]& endings()
        const vector[GtidRun]& gtids()
        const vector[Segment]& statement()
        cbool new_statement()
        cbool text_waits()
        cbool text_is_here()
        cbool rows_seen()
        uint64_t kept_rows_events()
        const vector[pair[uint64_t, cbool]]& new_ids()
        size_t packed_size(size_t, size_t)
        void pack(size_t, size_t, uint8_t*)


cdef class Scanner:
    """Finds captured events among those in memory, one chunk at a time."""

    cdef NativeScanner* native
    # The chunk of the last scan.
    cdef Py_buffer chunk
    cdef bint has_chunk

    def __cinit__(self, *, bint whole_maps):
        self.native = new NativeScanner(whole_maps)

    def __dealloc__(self):
        self._release()
        del self.native

    cdef void _release(self) noexcept:
        """Release the chunk."""
        if self.has_chunk:
            self.has_chunk = False
            PyBuffer_Release(&self.chunk)

    # --- tables

    def learn(self, bytes body, bint captured):
        """Add a table map's body that Python has parsed; its table's rows may now be passed."""
        self.native.learn(string_view(PyBytes_AS_STRING(body), len(body)), captured)

    def forget_maps(self):
        """Require every captured table's map to be parsed again."""
        self.native.forget_maps()

    # --- scanning

    def open(self, data, int64_t pos, int64_t limit, *, bint packets, bint checksum,
             bint may_lack_positions, size_t verified, uint32_t shift=0, bint in_payload=False):
        """Set the input of the next scan. `pos` is the position of `data` in its file.

        `packets`: events come as a dump's packets, else back to back; `checksum`: each has one;
        `may_lack_positions`: a log_pos of 0 is accepted; `shift`: by how much others exceed the
        position after their event, modulo 2^32.
        No event that ends after `limit` is passed. The checksums of the first `verified` bytes were
        checked before. `in_payload`: positions are offsets in the stream of a payload.
        """
        self._release()
        PyObject_GetBuffer(data, &self.chunk, PyBUF_SIMPLE)
        self.has_chunk = True
        self.native.open(<const uint8_t*>self.chunk.buf, self.chunk.len, pos, limit, packets,
                         checksum, may_lack_positions, shift, verified, in_payload)

    cdef int _check_chunk(self) except -1:
        if not self.has_chunk:
            raise ValueError("no chunk is open to be scanned")
        return 0

    def scan_transactions(self):
        """Scan whole transactions, starting between two."""
        self._check_chunk()
        with nogil:
            self.native.scan_transactions()

    def scan_group(self, dict captured_ids, *, bint frame_waits, bint text_waits, bint rows_seen,
                   int64_t pause_at):
        """Scan rows, table maps and texts, inside a transaction that has announced `captured_ids`.

        `frame_waits`: its GTID and BEGIN have not been passed on; `text_waits` and `rows_seen` as
        the attributes. It stops after the first rows event that ends at `pause_at` or later.
        """
        cdef uint64_t table_id
        cdef bint captured
        self._check_chunk()
        self.native.ids.clear()
        for table_id, captured in captured_ids.items():
            self.native.ids.set(table_id, captured)
        with nogil:
            self.native.scan_group(frame_waits, text_waits, rows_seen, pause_at)

    def skip_rows(self):
        """Skip row changes and their frames, of all tables; none of them are kept."""
        self._check_chunk()
        with nogil:
            self.native.skip_rows()

    # --- results of the last scan

    @property
    def stop(self):
        """Reason: the next event is incomplete, is for Python, or is after `pause_at`; or much was
        decompressed.
        """
        cdef Stop why = self.native.stop()
        if why == Full:
            return "full"
        return "more" if why == More else "odd" if why == Odd else "pause"

    @property
    def consumed(self):
        """Bytes of the chunk that were scanned."""
        return self.native.consumed()

    @property
    def pos(self):
        """Position after the last scanned event."""
        return self.native.pos()

    @property
    def time(self):
        """When the last scanned event was logged, in seconds; 0 if there was none."""
        return self.native.time()

    @property
    def verified(self):
        """Bytes after `consumed` whose checksums were checked."""
        return self.native.verified()

    @property
    def trailer(self):
        """Bytes after each event that are not packed: its checksum."""
        return self.native.trailer()

    @property
    def kept(self):
        """Bytes of the captured events, packed."""
        return self.native.kept()

    @property
    def last(self):
        """Bytes of the last scanned event, and the CRC32 of all but its own checksum."""
        return self.native.last_length(), self.native.last_checksum()

    def last_of(self, size_t transaction):
        """The same for the last event of one of the transactions."""
        cdef const vector[Ending]* endings = &self.native.endings()
        if transaction >= endings.size():
            raise IndexError(f"transaction {transaction} of {endings.size()}")
        return endings[0][transaction].last_length, endings[0][transaction].last_checksum

    @property
    def segment_count(self):
        """Number of captured events."""
        return self.native.segments().size()

    def endings(self):
        """(ends, kept, segments): after n transactions; the last two start with 0."""
        cdef const vector[Ending]* endings = &self.native.endings()
        cdef size_t count = endings.size(), n
        cdef Py_ssize_t size = 8 * (count + 1)
        ends = array("q")
        kept = array("q")
        segments = array("q")
        ends.frombytes(bytes(size - 8))
        kept.frombytes(bytes(size))
        segments.frombytes(bytes(size))
        cdef int64_t[::1] kept_view = kept
        cdef int64_t[::1] segments_view = segments
        cdef int64_t[::1] ends_view
        if count:
            ends_view = ends
            for n in range(count):
                ends_view[n] = endings[0][n].end
                kept_view[n + 1] = <int64_t>endings[0][n].kept
                segments_view[n + 1] = <int64_t>endings[0][n].segments
        return ends, kept, segments

    def gtids(self):
        """(transaction, count, header and body of the first GTID event) of each run of GTIDs that
        count up, in order.
        """
        self._check_chunk()
        cdef const vector[GtidRun]* found = &self.native.gtids()
        cdef const char* data = <const char*>self.chunk.buf
        cdef size_t n
        return [
            (found[0][n].transaction, found[0][n].count,
             PyBytes_FromStringAndSize(data + found[0][n].event.offset, found[0][n].event.size))
            for n in range(found.size())
        ]

    def pack(self, size_t first, size_t last):
        """Return (position after the first event, position after the last, packed events)."""
        cdef const vector[Segment]* segments = &self.native.segments()
        if not self.has_chunk or first >= last or last > segments.size():
            raise IndexError(f"segments {first} to {last} of {segments.size()}")
        cdef size_t size = self.native.packed_size(first, last)
        cdef bytes packed = PyBytes_FromStringAndSize(NULL, size)
        cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(packed)
        if size > 65536:
            with nogil:
                self.native.pack(first, last, out)
        else:
            self.native.pack(first, last, out)
        return segments[0][first].place(), segments[0][last - 1].place(), packed

    # --- inside a transaction

    def statement(self):
        """Return (position after it, header and body) of each text and table map of the statement.

        This is the statement in progress. If it began before the chunk (see `new_statement`), only
        the events in the chunk are returned.
        """
        self._check_chunk()
        cdef const vector[Segment]* found = &self.native.statement()
        cdef const char* data = <const char*>self.chunk.buf
        cdef size_t n
        return [
            (found[0][n].end,
             PyBytes_FromStringAndSize(data + found[0][n].offset, found[0][n].size))
            for n in range(found.size())
        ]

    @property
    def new_statement(self):
        """Whether the statement in progress began in the chunk."""
        return self.native.new_statement()

    @property
    def text_waits(self):
        """Whether its text has not been kept, because no captured table has been announced."""
        return self.native.text_waits()

    @property
    def text_is_here(self):
        """Whether its text is in the chunk."""
        return self.native.text_is_here()

    @property
    def rows_seen(self):
        """Whether rows have come after its table maps."""
        return self.native.rows_seen()

    @property
    def kept_rows_events(self):
        """Number of captured rows events."""
        return self.native.kept_rows_events()

    def new_ids(self):
        """Table ids of the table maps, and whether their tables are captured."""
        cdef const vector[pair[uint64_t, cbool]]* found = &self.native.new_ids()
        cdef size_t n
        return {found[0][n].first: bool(found[0][n].second) for n in range(found.size())}


cdef extern from "bytes/zstd.hpp" namespace "mysqlbinlog" nogil:
    cdef cppclass Zstd:
        @staticmethod
        cbool is_loaded()
        cbool read(const uint8_t*&, const uint8_t*, uint8_t*, size_t, size_t&) except +


def has_zstd():
    """Whether zstd's shared library is installed."""
    return Zstd.is_loaded()


cdef class ZstdStream:
    """Decompresses a buffer of zstd frames, part by part."""

    cdef Zstd native
    cdef Py_buffer compressed
    cdef const uint8_t* at
    cdef bint has_buffer

    def __cinit__(self, data):
        PyObject_GetBuffer(data, &self.compressed, PyBUF_SIMPLE)
        self.has_buffer = True
        self.at = <const uint8_t*>self.compressed.buf

    def __dealloc__(self):
        if self.has_buffer:
            PyBuffer_Release(&self.compressed)

    def readinto(self, uint8_t[::1] memory):
        """Write the next bytes; return their number: fewer than there is room for at the end.

        OSError for damaged frames.
        """
        cdef size_t room = memory.shape[0], written = 0
        cdef const uint8_t* end = <const uint8_t*>self.compressed.buf + self.compressed.len
        cdef cbool is_read
        if room == 0:
            return 0
        with nogil:
            is_read = self.native.read(self.at, end, &memory[0], room, written)
        if not is_read:
            raise OSError("damaged zstd frames")
        return written


def crc32(const uint8_t[::1] data, uint32_t before=0):
    """zlib.crc32."""
    cdef const uint8_t* at = &data[0] if data.shape[0] else NULL
    cdef size_t size = data.shape[0]
    with nogil:
        before = native_crc32(at, size, before)
    return before


def crc32_by_tables(const uint8_t[::1] data, uint32_t before=0):
    """The same without special processor instructions."""
    cdef const uint8_t* at = &data[0] if data.shape[0] else NULL
    cdef size_t size = data.shape[0]
    with nogil:
        before = ~native_by_tables(~before, at, size)
    return before
