# cython: language_level=3
# distutils: language = c++
"""Columns for the kernel, and single values for comparison with Python."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string

from pyspark_mysqlbinlog.decoder.kernel.charset_tables import charset_spec
from pyspark_mysqlbinlog.decoder.kernel.columns import column_spec
from pyspark_mysqlbinlog.decoder.values.codec import quote


cdef extern from "json/json_value.hpp" namespace "mysqlbinlog" nogil:
    cdef struct Ymd:
        int year
        int month
        int day

    cdef struct Moment:
        Ymd date
        int64_t micros

    cdef struct Instant:
        int64_t micros
        cbool is_zero

    cbool read_integer(Input&, const Column&, int64_t&)
    cbool read_float(Input&, const Column&, float&)
    cbool read_double(Input&, const Column&, double&)
    cbool append_decimal(Input&, const Column&, Bytes&) except +
    cbool read_bit(Input&, const Column&, uint64_t&)
    cbool read_year(Input&, const Column&, int32_t&)
    cbool read_date(Input&, const Column&, Ymd&)
    cbool read_time(Input&, const Column&, int64_t&)
    cbool read_datetime(Input&, const Column&, Moment&)
    cbool read_timestamp(Input&, const Column&, Instant&)
    cbool read_raw(Input&, const Column&, Raw&)
    cbool read_label(Input&, const Column&, size_t&)
    cbool read_set(Input&, const Column&, uint64_t&)
    cbool day_number(Ymd, int32_t&)
    void append_padded(const Column&, Raw, Bytes&) except +
    void append_set(Bytes&, const Column&, uint64_t, cbool) except +
    cbool append_utf8(const Column&, Raw, Bytes&) except +
    cbool write_json(Input&, const Column&, Bytes&) except +


cdef extern from *:
    """
    // A DECIMAL in two halves: Cython has no integers of 128 bits.
    static inline bool read_decimal_halves(
        mysqlbinlog::Input& in, const mysqlbinlog::Column& column, int64_t& high, uint64_t& low) {
        mysqlbinlog::Int128 value = 0;
        if (!mysqlbinlog::read_decimal(in, column, value)) return false;
        high = static_cast<int64_t>(value >> 64);
        low = static_cast<uint64_t>(value);
        return true;
    }
    """
    cbool read_decimal_halves(Input&, const Column&, int64_t&, uint64_t&) nogil


cdef extern from *:
    """
    #include "values/masks.hpp"

    static inline void set_mask(mysqlbinlog::Column& column, const mysqlbinlog::Column& unmasked,
                                mysqlbinlog::Mask::Kind kind, size_t length,
                                const std::string& key) {
        auto masked = std::make_shared<mysqlbinlog::MaskedColumn>();
        masked->column = unmasked;
        masked->mask.kind = kind;
        masked->mask.length = length;
        masked->mask.key = mysqlbinlog::HmacSha256(key);
        column.kind = mysqlbinlog::Kind::Masked;
        column.masked = std::move(masked);
    }
    """
    void set_mask(Column&, const Column&, MaskKind, size_t, const string&) except +


cdef extern from "values/masks.hpp" namespace "mysqlbinlog::Mask" nogil:
    cpdef enum class MaskKind "mysqlbinlog::Mask::Kind"(uint8_t):
        Hash
        Redact
        Truncate
        KeepLast


cdef dict _charsets = {}


cdef class Charset:
    """One character set's tables."""


cdef class ColumnProgram:
    """One column, as the kernel reads it; `spec` is its source."""


cdef Charset _charset(name):
    """Return a set's tables, made on first use."""
    cdef Charset charset = _charsets.get(name)
    if charset is None:
        spec = charset_spec(name)
        charset = Charset.__new__(Charset)
        charset.table.form = <Form><int>(<object>Form)[spec.form]
        charset.table.is_ascii = spec.is_ascii
        charset.table.one = spec.one
        charset.table.two = spec.two
        charset.table.three = spec.three
        charset.table.four = spec.four
        _charsets[name] = charset
    return charset


def column_program(code, metadata, schema, excluded=False):
    """Return the program of a column whose type, metadata and schema fit; None if unsupported.

    Arguments as `kernel.columns.column_spec`'s.
    """
    spec = column_spec(code, metadata, schema, excluded)
    if spec is None:
        return None
    cdef ColumnProgram program = ColumnProgram.__new__(ColumnProgram)
    program.spec = spec
    program.column.kind = <Kind><int>(<object>Kind)[spec.kind]
    program.column.size = spec.size
    program.column.is_unsigned = spec.is_unsigned
    program.column.precision = spec.precision
    program.column.scale = spec.scale
    program.column.fsp = spec.fsp
    program.column.bits = spec.bits
    program.column.padded = spec.padded
    program.column.name = spec.name.encode()
    program.column.labels = [label.encode() for label in spec.labels]
    program.column.json_labels = [quote(label).encode() for label in spec.labels]
    program.column.prepare(spec.json_member.encode())
    if spec.charset is not None:
        program.charset = _charset(spec.charset)
        program.column.charset = &program.charset.table
    return program


def masked_program(ColumnProgram unmasked not None, kind, size_t length, bytes secret):
    """Return the program that reads a column masked; `kind` is a name of `MaskKind`."""
    cdef ColumnProgram program = ColumnProgram.__new__(ColumnProgram)
    cdef bytes member = unmasked.spec.json_member.encode()
    program.spec, program.charset = unmasked.spec, unmasked.charset
    program.column.name = unmasked.column.name
    program.column.prepare(<string>member)
    set_mask(
        program.column, unmasked.column, <MaskKind><int>(<object>MaskKind)[kind], length, secret
    )
    return program


cdef inline Input _input(const uint8_t[::1] data, Py_ssize_t pos) except *:
    """Return `data` from `pos` on, which may be its end."""
    cdef Input begin
    if not 0 <= pos <= data.shape[0]:
        raise IndexError(f"offset {pos} of {data.shape[0]} bytes")
    begin.at = (&data[0] if data.shape[0] else NULL) + pos
    begin.end = begin.at + (data.shape[0] - pos)
    return begin


def json_text(ColumnProgram program not None, const uint8_t[::1] data, Py_ssize_t pos):
    """Return a value's JSON text, in UTF-8, and the position after it; None if rejected."""
    cdef Input value = _input(data, pos)
    cdef Bytes out
    cdef cbool is_read
    cdef const uint8_t* begin = value.at
    with nogil:
        is_read = write_json(value, program.column, out)
    return (out.data()[:out.size()], pos + (value.at - begin)) if is_read else None


def skip(ColumnProgram program not None, const uint8_t[::1] data, Py_ssize_t pos):
    """Return the position after a value; None if the kernel rejects it."""
    cdef Input value = _input(data, pos)
    cdef const uint8_t* begin = value.at
    return pos + (value.at - begin) if skip_value(value, program.column) else None


def read(ColumnProgram program not None, const uint8_t[::1] data, Py_ssize_t pos):
    """Return a value and the position after it; None if the kernel rejects it.

    Values are those of the Python codecs, except DECIMAL up to 38 digits (value * 10^scale, an
    int), BIT(1) (an int), JSON and GEOMETRY (their bytes) and dates: (the codec's number,
    `day_number` of it).
    """
    cdef Input value = _input(data, pos)
    cdef const uint8_t* begin = value.at
    found = _read(value, program)
    return None if found is None else (found[0], pos + (value.at - begin))


cdef _date(Ymd date):
    cdef int32_t days = 0
    cdef cbool is_day = day_number(date, days)
    return date.year * 10_000 + date.month * 100 + date.day, days if is_day else None


cdef _read(Input& value, ColumnProgram program):
    """(value,), or None."""
    cdef const Column* column = &program.column
    cdef Kind kind = column.kind
    cdef int64_t integer = 0
    cdef uint64_t bits = 0
    cdef int32_t small = 0
    cdef float single = 0
    cdef double number = 0
    cdef size_t label = 0
    cdef Ymd date
    cdef Moment moment
    cdef Instant instant
    cdef Raw raw
    cdef Bytes out
    if kind == Kind.Integer:
        if not read_integer(value, column[0], integer):
            return None
        return (<uint64_t>integer if column.is_unsigned else integer,)
    if kind == Kind.Float:
        return (single,) if read_float(value, column[0], single) else None
    if kind == Kind.Double:
        return (number,) if read_double(value, column[0], number) else None
    if kind == Kind.Decimal:
        if column.precision > 38:
            is_read = append_decimal(value, column[0], out)
            return (out.data()[:out.size()].decode(),) if is_read else None
        if not read_decimal_halves(value, column[0], integer, bits):
            return None
        return ((<object>integer << 64) + bits,)
    if kind == Kind.Bit:
        return (bits,) if read_bit(value, column[0], bits) else None
    if kind == Kind.Year:
        return (small,) if read_year(value, column[0], small) else None
    if kind == Kind.Date:
        return (_date(date),) if read_date(value, column[0], date) else None
    if kind == Kind.Time or kind == Kind.TimeOld:
        return (integer,) if read_time(value, column[0], integer) else None
    if kind == Kind.Datetime or kind == Kind.DatetimeOld:
        if not read_datetime(value, column[0], moment):
            return None
        return ((_date(moment.date), moment.micros),)
    if kind == Kind.Timestamp or kind == Kind.TimestampOld:
        if not read_timestamp(value, column[0], instant):
            return None
        return (None if instant.is_zero else instant.micros,)
    if kind == Kind.Enum:
        if not read_label(value, column[0], label):
            return None
        return (column.labels[label].decode(),)
    if kind == Kind.Set:
        if not read_set(value, column[0], bits):
            return None
        append_set(out, column[0], bits, False)
        return (out.data()[:out.size()].decode(),)
    if not read_raw(value, column[0], raw):
        return None
    if kind == Kind.Text:
        is_read = append_utf8(column[0], raw, out)
        return (out.data()[:out.size()].decode(),) if is_read else None
    append_padded(column[0], raw, out)
    return (out.data()[:out.size()],)
