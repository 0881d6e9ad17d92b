# cython: language_level=3
# distutils: language = c++
"""Rows of a result as row images; see result_rows.hpp."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libcpp cimport bool as cbool

from pyspark_mysqlbinlog.decoder.kernel._values cimport Bytes, Input


cdef extern from "loops/result_rows.hpp" namespace "mysqlbinlog" nogil:
    cpdef enum class Kind "mysqlbinlog::ResultColumn::Kind"(uint8_t):
        Excluded
        Fixed
        Int24
        Labels
        Year
        Date
        Time
        Datetime
        Timestamp
        Decimal
        Bit
        Bytes
        Binary
        Json

    cpdef enum class Stop "mysqlbinlog::ResultRows::Stop"(uint8_t):
        More
        Full
        Ended
        Odd

    cdef cppclass ResultColumn:
        Kind kind
        uint8_t size
        cbool is_unsigned
        uint8_t precision
        uint8_t scale
        uint8_t fsp
        cbool is_typed
        cbool doubles_have_points

    cdef cppclass ResultRows:
        void add_column(const ResultColumn&) except +
        Stop encode(Input&, Bytes&, size_t, size_t&) except +
        cbool encode_row(Input, Bytes&) except +


cdef inline Input _input(const uint8_t[::1] data):
    cdef Input all_of_it
    all_of_it.at = &data[0] if data.shape[0] else NULL
    all_of_it.end = all_of_it.at + data.shape[0]
    return all_of_it


cdef class RowEncoder:
    """Encodes the rows of one plan, as many at a time as are in memory."""

    cdef ResultRows _rows
    # Its memory is reused.
    cdef Bytes _images

    def add_column(self, kind, *, uint8_t size, bint is_unsigned, uint8_t precision, uint8_t scale,
                   uint8_t fsp, bint is_typed, bint doubles_have_points):
        """Add the next column of the plan; arguments that its kind does not use are 0."""
        cdef ResultColumn column
        column.kind = <Kind><int>(<object>Kind)[kind]
        column.size = size
        column.is_unsigned = is_unsigned
        column.precision = precision
        column.scale = scale
        column.fsp = fsp
        column.is_typed = is_typed
        column.doubles_have_points = doubles_have_points
        self._rows.add_column(column)

    def encode(self, const uint8_t[::1] packets, size_t enough):
        """Return (bytes consumed, rows, images, reason), up to `enough` bytes of images."""
        cdef Input left = _input(packets)
        cdef const uint8_t* begin = left.at
        cdef size_t rows = 0
        cdef Stop stop
        self._images.clear()
        with nogil:
            stop = self._rows.encode(left, self._images, enough, rows)
        return left.at - begin, rows, self._images.data()[:self._images.size()], stop

    def encode_row(self, const uint8_t[::1] payload):
        """Return the image of one row; None if the Python implementation must encode it."""
        cdef Input row = _input(payload)
        cdef cbool is_encoded
        self._images.clear()
        with nogil:
            is_encoded = self._rows.encode_row(row, self._images)
        return self._images.data()[:self._images.size()] if is_encoded else None
