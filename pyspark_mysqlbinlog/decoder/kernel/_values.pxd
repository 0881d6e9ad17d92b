# cython: language_level=3
"""Columns for the kernel's other modules: `&program.column` is what the C++ functions take."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "bytes/bytes.hpp" namespace "mysqlbinlog" nogil:
    cdef cppclass Input:
        const uint8_t* at
        const uint8_t* end

    cdef cppclass Bytes:
        const uint8_t* data() const
        size_t size() const
        void clear()


cdef extern from "arrow/column.hpp" namespace "mysqlbinlog" nogil:
    cpdef enum class Kind(uint8_t):
        Integer
        Float
        Double
        Decimal
        Bit
        Year
        Date
        TimeOld
        DatetimeOld
        TimestampOld
        Time
        Datetime
        Timestamp
        Text
        Binary
        Enum
        Set
        Json
        Geometry
        FixedSkip
        PrefixedSkip
        Masked

    cdef cppclass Column:
        Kind kind
        uint32_t size
        cbool is_unsigned
        uint8_t precision
        uint8_t scale
        uint8_t fsp
        uint8_t bits
        int32_t padded
        string name
        vector[string] labels
        vector[string] json_labels
        const CharsetTable* charset
        cbool is_skipped() const
        void prepare(const string&) except +


cdef extern from "values/charsets.hpp" namespace "mysqlbinlog::CharsetTable" nogil:
    cpdef enum class Form "mysqlbinlog::CharsetTable::Form"(uint8_t):
        Utf8
        Utf16
        Utf16le
        Utf32
        Ucs2
        OneByte
        ManyBytes


cdef extern from "values/charsets.hpp" namespace "mysqlbinlog" nogil:
    cdef cppclass CharsetTable:
        Form form
        cbool is_ascii
        vector[uint32_t] one
        vector[uint32_t] two
        vector[uint32_t] three
        vector[uint32_t] four


cdef extern from "values/values.hpp" namespace "mysqlbinlog" nogil:
    cdef struct Raw:
        const uint8_t* data
        size_t size

    cbool skip_value(Input&, const Column&)


cdef class Charset:
    cdef CharsetTable table


cdef class ColumnProgram:
    cdef Column column
    # Kept alive for `column`, which points into it.
    cdef Charset charset
    cdef readonly object spec
