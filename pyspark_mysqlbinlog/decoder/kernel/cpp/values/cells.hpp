// Converts one value of a row image into one Arrow column. The function is chosen once per column
// of a plan (`choose_cell`), so that the row loop only follows pointers. The Python reference is
// struct_payload.py and struct_match.py.
#pragma once

#include <string>
#include <vector>

#include "json/json_value.hpp"
#include "arrow/output_column.hpp"
#include "values/values.hpp"
#include "json/variant_encoding.hpp"

namespace mysqlbinlog {

// Data of a row besides its values.
struct RowNotes {
    std::string prefix;  // "before." or "after."
    bool zero_dates_fail = false;
    // Dates that became null, in the format of `source.invalid_dates`.
    std::vector<std::string> invalid_dates;
    // Members of a JSON object: values that do not fit the struct. `rescued_nulls` follow.
    Bytes rescued;
    Bytes rescued_nulls;
    Bytes scratch;
    VariantKeys keys;

    bool has_rescued() const { return rescued.size() != 0 || rescued_nulls.size() != 0; }

    void clear() {
        invalid_dates.clear();
        rescued.clear();
        rescued_nulls.clear();
    }
};

struct Step;
// Reads a value at `in` and writes it to the step's column; false for bytes that are not a value of
// the column, or a value that the column cannot hold.
using Cell = bool (*)(Input& in, const Step& step, size_t row, RowNotes& notes);

// One column of a row image.
struct Step {
    enum class Fate : uint8_t {
        Read,    // by `cell`
        Skip,    // excluded, unreliable or ignored
        Rescue,  // does not fit the struct: as JSON
        Refuse,  // Python raises the error
    };

    Fate fate = Fate::Refuse;
    const Column* column = nullptr;
    OutColumn* out = nullptr;
    Cell cell = nullptr;
    Int128 factor = 1;  // 10^(the struct's scale - the column's)
};

namespace cells {

// The target holds every value of the column: see `widening`.
template <uint32_t SIZE, bool UNSIGNED, typename Target>
bool integer(Input& in, const Step& step, size_t row, RowNotes&) {
    const uint8_t* at;
    if (!in.take(SIZE, at)) return false;
    step.out->put(row, static_cast<Target>(load_integer(at, SIZE, UNSIGNED)));
    return true;
}

template <uint32_t SIZE, bool UNSIGNED>
bool integer_is_not_zero(Input& in, const Step& step, size_t row, RowNotes&) {
    const uint8_t* at;
    if (!in.take(SIZE, at)) return false;
    step.out->put(row, static_cast<uint8_t>(load_integer(at, SIZE, UNSIGNED) != 0));
    return true;
}

template <uint32_t SIZE, bool UNSIGNED>
bool integer_decimal(Input& in, const Step& step, size_t row, RowNotes&) {
    const uint8_t* at;
    if (!in.take(SIZE, at)) return false;
    const int64_t value = load_integer(at, SIZE, UNSIGNED);
    const Int128 whole =
        UNSIGNED ? static_cast<Int128>(static_cast<uint64_t>(value)) : static_cast<Int128>(value);
    step.out->put(row, whole * step.factor);
    return true;
}

template <uint32_t SIZE, bool UNSIGNED>
bool integer_text(Input& in, const Step& step, size_t row, RowNotes&) {
    const uint8_t* at;
    if (!in.take(SIZE, at)) return false;
    const int64_t value = load_integer(at, SIZE, UNSIGNED);
    if constexpr (UNSIGNED) {
        append_unsigned(step.out->text(), static_cast<uint64_t>(value));
    } else {
        append_integer(step.out->text(), value);
    }
    return step.out->end_text(row);
}

template <uint32_t SIZE, bool UNSIGNED>
Cell choose_integer(Out type) {
    switch (type) {
        case Out::Bool: return integer_is_not_zero<SIZE, UNSIGNED>;
        case Out::Int8: return integer<SIZE, UNSIGNED, int8_t>;
        case Out::Int16: return integer<SIZE, UNSIGNED, int16_t>;
        case Out::Int32: return integer<SIZE, UNSIGNED, int32_t>;
        case Out::Int64: return integer<SIZE, UNSIGNED, int64_t>;
        case Out::Float: return integer<SIZE, UNSIGNED, float>;
        case Out::Double: return integer<SIZE, UNSIGNED, double>;
        case Out::Decimal: return integer_decimal<SIZE, UNSIGNED>;
        case Out::Text: return integer_text<SIZE, UNSIGNED>;
        default: return nullptr;
    }
}

// FLOAT, DOUBLE, YEAR, BIT and TIME as numbers, read by `READ`.
template <typename Value, bool (*READ)(Input&, const Column&, Value&), typename Target>
bool number(Input& in, const Step& step, size_t row, RowNotes&) {
    Value value = 0;
    if (!READ(in, *step.column, value)) return false;
    step.out->put(row, static_cast<Target>(value));
    return true;
}

template <typename Value, bool (*READ)(Input&, const Column&, Value&)>
bool number_decimal(Input& in, const Step& step, size_t row, RowNotes&) {
    Value value = 0;
    if (!READ(in, *step.column, value)) return false;
    step.out->put(row, static_cast<Int128>(value) * step.factor);
    return true;
}

template <typename Value, bool (*READ)(Input&, const Column&, Value&)>
bool number_text(Input& in, const Step& step, size_t row, RowNotes&) {
    Value value = 0;
    if (!READ(in, *step.column, value)) return false;
    if constexpr (std::is_signed_v<Value>) {
        append_integer(step.out->text(), value);
    } else {
        append_unsigned(step.out->text(), value);
    }
    return step.out->end_text(row);
}

template <typename Value, bool (*READ)(Input&, const Column&, Value&)>
Cell choose_number(Out type) {
    switch (type) {
        case Out::Int32: return number<Value, READ, int32_t>;
        case Out::Int64: return number<Value, READ, int64_t>;
        case Out::Double: return number<Value, READ, double>;
        case Out::Decimal: return number_decimal<Value, READ>;
        case Out::Text: return number_text<Value, READ>;
        default: return nullptr;
    }
}

inline bool decimal(Input& in, const Step& step, size_t row, RowNotes&) {
    Int128 value = 0;
    if (!read_decimal(in, *step.column, value)) return false;
    step.out->put(row, value * step.factor);
    return true;
}

inline bool decimal_text(Input& in, const Step& step, size_t row, RowNotes&) {
    return append_decimal(in, *step.column, step.out->text()) && step.out->end_text(row);
}

// Notes an invalid date, and writes a null instead.
inline bool put_invalid(const Step& step, size_t row, RowNotes& notes) {
    if (notes.zero_dates_fail) return false;
    std::string text = notes.prefix + step.column->name + "=";
    text += notes.scratch.view();
    notes.invalid_dates.push_back(std::move(text));
    step.out->put_null(row);
    return true;
}

inline bool date(Input& in, const Step& step, size_t row, RowNotes& notes) {
    Ymd ymd;
    int32_t days = 0;
    if (!read_date(in, *step.column, ymd)) return false;
    if (day_number(ymd, days)) {
        step.out->put(row, days);
        return true;
    }
    notes.scratch.clear();
    append_date(notes.scratch, ymd);
    return put_invalid(step, row, notes);
}

inline bool put_datetime(const Moment& moment, const Step& step, size_t row, RowNotes& notes) {
    int32_t days = 0;
    if (day_number(moment.date, days)) {
        step.out->put(row, days * MICROS_PER_DAY + moment.micros);
        return true;
    }
    notes.scratch.clear();
    append_datetime(notes.scratch, moment, step.column->fsp, false);
    return put_invalid(step, row, notes);
}

inline bool datetime(Input& in, const Step& step, size_t row, RowNotes& notes) {
    Moment moment;
    return read_datetime(in, *step.column, moment) && put_datetime(moment, step, row, notes);
}

template <uint32_t FRACTION_SIZE>
bool packed_datetime(Input& in, const Step& step, size_t row, RowNotes& notes) {
    constexpr size_t SIZE = 5 + FRACTION_SIZE;
    const uint8_t* at;
    Moment moment;
    if (!in.take(SIZE, at) || !unpack_datetime<FRACTION_SIZE>(at, moment)) return false;
    return put_datetime(moment, step, row, notes);
}

inline Cell choose_datetime(const Column& column) {
    if (column.kind == Kind::DatetimeOld) return datetime;
    switch (column.size) {
        case 5: return packed_datetime<0>;
        case 6: return packed_datetime<1>;
        case 7: return packed_datetime<2>;
        case 8: return packed_datetime<3>;
        default: return nullptr;
    }
}

inline bool timestamp(Input& in, const Step& step, size_t row, RowNotes& notes) {
    Instant instant;
    if (!read_timestamp(in, *step.column, instant)) return false;
    if (!instant.is_zero) {
        step.out->put(row, instant.micros);
        return true;
    }
    notes.scratch.clear();
    append_timestamp(notes.scratch, instant, step.column->fsp);
    return put_invalid(step, row, notes);
}

inline bool time_text(Input& in, const Step& step, size_t row, RowNotes&) {
    int64_t micros = 0;
    if (!read_time(in, *step.column, micros)) return false;
    append_time(step.out->text(), micros, step.column->fsp);
    return step.out->end_text(row);
}

inline bool text(Input& in, const Step& step, size_t row, RowNotes&) {
    Raw raw;
    return read_raw(in, *step.column, raw) &&
           append_utf8(*step.column, raw, step.out->text()) && step.out->end_text(row);
}

inline bool masked(Input& in, const Step& step, size_t row, RowNotes&) {
    return append_masked(in, *step.column, step.out->text()) && step.out->end_text(row);
}

inline bool binary(Input& in, const Step& step, size_t row, RowNotes&) {
    Raw raw;
    if (!read_raw(in, *step.column, raw)) return false;
    append_padded(*step.column, raw, step.out->text());
    return step.out->end_text(row);
}

inline bool label(Input& in, const Step& step, size_t row, RowNotes&) {
    size_t number = 0;
    if (!read_label(in, *step.column, number)) return false;
    step.column->shown_values[number].append_to(step.out->text());
    return step.out->end_text(row);
}

inline bool labels(Input& in, const Step& step, size_t row, RowNotes&) {
    uint64_t bits = 0;
    if (!read_set(in, *step.column, bits)) return false;
    if (bits < step.column->shown_values.size()) {
        step.column->shown_values[bits].append_to(step.out->text());
    } else {
        append_set(step.out->text(), *step.column, bits, false);
    }
    return step.out->end_text(row);
}

inline bool document_text(Input& in, const Step& step, size_t row, RowNotes&) {
    return write_json(in, *step.column, step.out->text()) && step.out->end_text(row);
}

// Each document has its own dictionary.
inline bool document_variant(Input& in, const Step& step, size_t row, RowNotes& notes) {
    Raw raw;
    OutColumn& value = step.out->child(0);
    OutColumn& metadata = step.out->child(1);
    notes.keys.cut(0);
    return read_raw(in, *step.column, raw) &&
           append_variant_document(raw, notes.keys, value.text()) &&
           notes.keys.append_metadata(metadata.text()) && value.end_text(row) &&
           metadata.end_text(row);
}

inline bool geometry(Input& in, const Step& step, size_t row, RowNotes&) {
    Raw raw;
    if (!read_raw(in, *step.column, raw)) return false;
    OutColumn& srid = step.out->child(0);
    OutColumn& wkb = step.out->child(1);
    if (raw.size < 4) {
        // Old servers may have such values: see values/geometry.py.
        srid.put_null(row);
        wkb.text().append(raw.data, raw.size);
        return wkb.end_text(row);
    }
    if (load32(raw.data) > 0x7fffffff) return false;
    srid.put(row, static_cast<int32_t>(load32(raw.data)));
    wkb.text().append(raw.data + 4, raw.size - 4);
    return wkb.end_text(row);
}

inline Cell choose_integer(const Column& column, Out type) {
    const bool is_unsigned = column.is_unsigned;
    switch (column.size) {
        case 1: return is_unsigned ? choose_integer<1, true>(type) : choose_integer<1, false>(type);
        case 2: return is_unsigned ? choose_integer<2, true>(type) : choose_integer<2, false>(type);
        case 3: return is_unsigned ? choose_integer<3, true>(type) : choose_integer<3, false>(type);
        case 4: return is_unsigned ? choose_integer<4, true>(type) : choose_integer<4, false>(type);
        case 8: return is_unsigned ? choose_integer<8, true>(type) : choose_integer<8, false>(type);
        default: return nullptr;
    }
}

inline Cell only_if(bool fits, Cell cell) { return fits ? cell : nullptr; }

}  // namespace cells

// Returns the conversion of a column's values to an Arrow column of this type; null if unsupported.
// `struct_match.widening` has already checked that the types fit.
//
// as_number : a TIME is converted to a text of its microseconds.
inline Cell choose_cell(const Column& column, Out type, bool as_number) {
    using namespace cells;
    switch (column.kind) {
        case Kind::Integer: return choose_integer(column, type);
        case Kind::Float:
            if (type == Out::Double) return number<float, read_float, double>;
            return only_if(type == Out::Float, number<float, read_float, float>);
        case Kind::Double:
            return only_if(type == Out::Double, number<double, read_double, double>);
        case Kind::Decimal:
            if (type == Out::Text) return decimal_text;
            return only_if(type == Out::Decimal && column.precision <= 38, decimal);
        case Kind::Bit:
            if (column.bits == 1)
                return only_if(type == Out::Bool, number<uint64_t, read_bit, uint8_t>);
            return choose_number<uint64_t, read_bit>(type);
        case Kind::Year: return choose_number<int32_t, read_year>(type);
        case Kind::Date: return only_if(type == Out::Date, date);
        case Kind::DatetimeOld:
        case Kind::Datetime: return only_if(type == Out::Micros, choose_datetime(column));
        case Kind::TimestampOld:
        case Kind::Timestamp: return only_if(type == Out::Micros, timestamp);
        case Kind::TimeOld:
        case Kind::Time:
            if (type == Out::Duration) return number<int64_t, read_time, int64_t>;
            if (type == Out::Text && !as_number) return time_text;
            return choose_number<int64_t, read_time>(type);
        case Kind::Text: return only_if(type == Out::Text, text);
        case Kind::Binary: return only_if(type == Out::Text, binary);
        case Kind::Enum: return only_if(type == Out::Text, label);
        case Kind::Set: return only_if(type == Out::Text, labels);
        case Kind::Json:
            if (type == Out::Variant) return document_variant;
            return only_if(type == Out::Text, document_text);
        case Kind::Geometry: return only_if(type == Out::Geometry, geometry);
        case Kind::Masked: return only_if(type == Out::Text, masked);
        case Kind::FixedSkip:
        case Kind::PrefixedSkip: break;
    }
    return nullptr;
}

}  // namespace mysqlbinlog
