// One value of any kind as JSON text, like `read_json` of the Python codecs.
#pragma once

#include "json/json_document.hpp"
#include "json/json_text.hpp"
#include "values/values.hpp"

namespace mysqlbinlog {

inline bool write_text_json(const Column& column, Raw text, Bytes& out) {
    if (column.charset->form == CharsetTable::Form::Utf8) {
        if (!is_utf8(text.data, text.size)) return false;
        append_quoted(out, text.text());
        return true;
    }
    const size_t begin = out.size();
    out.push('"');
    if (!append_utf8(column, text, out)) return false;
    const uint8_t* converted = out.data() + begin + 1;
    const size_t size = out.size() - begin - 1;
    if (plain_bytes(converted, size) == size) {
        out.push('"');
        return true;
    }
    Bytes copy;
    copy.append(converted, size);
    out.truncate(begin);
    append_quoted(out, copy.view());
    return true;
}

inline void write_binary_json(const Column& column, Raw bytes, Bytes& out) {
    if (column.padded < 0 || bytes.size >= static_cast<size_t>(column.padded)) {
        in_quotes(out, [&] { append_base64(out, bytes); });
        return;
    }
    Bytes copy;
    append_padded(column, bytes, copy);
    in_quotes(out, [&] { append_base64(out, Raw::of(copy.view())); });
}

// An SRID of 4 bytes and a WKB; a value too short for that has a null SRID (see geometry.py).
inline void write_geometry_json(Raw bytes, Bytes& out) {
    out.append("{\"srid\":");
    if (bytes.size < 4) {
        out.append("null");
    } else {
        append_unsigned(out, load32(bytes.data));
        bytes = Raw{bytes.data + 4, bytes.size - 4};
    }
    out.append(",\"wkb\":");
    in_quotes(out, [&] { append_base64(out, bytes); });
    out.push('}');
}

// Cold, so that it is not inlined where it would slow down columns without masks.
[[gnu::cold]] inline bool append_masked(Input& in, const Column& column, Bytes& out);

// Not for skipped columns.
inline bool write_json(Input& in, const Column& column, Bytes& out) {
    switch (column.kind) {
        case Kind::Integer: {
            int64_t value;
            if (!read_integer(in, column, value)) return false;
            if (column.is_unsigned) {
                append_unsigned(out, static_cast<uint64_t>(value));
            } else {
                append_integer(out, value);
            }
            return true;
        }
        case Kind::Float: {
            float value;
            return read_float(in, column, value) && append_float(out, value);
        }
        case Kind::Double: {
            double value;
            return read_double(in, column, value) && append_double(out, value);
        }
        case Kind::Decimal: return append_decimal(in, column, out);
        case Kind::Bit: {
            uint64_t value;
            if (!read_bit(in, column, value)) return false;
            if (column.bits == 1) {
                out.append(value != 0 ? "true" : "false");
            } else {
                append_unsigned(out, value);
            }
            return true;
        }
        case Kind::Year: {
            int32_t value;
            if (!read_year(in, column, value)) return false;
            append_integer(out, value);
            return true;
        }
        case Kind::Date: {
            Ymd value;
            if (!read_date(in, column, value)) return false;
            return in_quotes(out, [&] { append_date(out, value); });
        }
        case Kind::Time:
        case Kind::TimeOld: {
            int64_t value;
            if (!read_time(in, column, value)) return false;
            return in_quotes(out, [&] { append_time(out, value, column.fsp); });
        }
        case Kind::Datetime:
        case Kind::DatetimeOld: {
            Moment value;
            if (!read_datetime(in, column, value)) return false;
            return in_quotes(out, [&] { append_datetime(out, value, column.fsp, true); });
        }
        case Kind::Timestamp:
        case Kind::TimestampOld: {
            Instant value;
            if (!read_timestamp(in, column, value)) return false;
            return in_quotes(out, [&] { append_timestamp(out, value, column.fsp); });
        }
        case Kind::Enum: {
            size_t label;
            if (!read_label(in, column, label)) return false;
            out.append(column.json_labels[label]);
            return true;
        }
        case Kind::Set: {
            uint64_t bits;
            if (!read_set(in, column, bits)) return false;
            append_set(out, column, bits, true);
            return true;
        }
        case Kind::Text: {
            Raw value;
            return read_raw(in, column, value) && write_text_json(column, value, out);
        }
        case Kind::Binary: {
            Raw value;
            if (!read_raw(in, column, value)) return false;
            write_binary_json(column, value, out);
            return true;
        }
        case Kind::Json: {
            Raw value;
            return read_raw(in, column, value) && write_document_json(value, out);
        }
        case Kind::Geometry: {
            Raw value;
            if (!read_raw(in, column, value)) return false;
            write_geometry_json(value, out);
            return true;
        }
        case Kind::Masked: {
            Bytes text;
            if (!append_masked(in, column, text)) return false;
            append_quoted(out, text.view());
            return true;
        }
        case Kind::FixedSkip:
        case Kind::PrefixedSkip: break;
    }
    return false;
}

// Appends the bytes that a mask is applied to: the text of a value, without a JSON string's quotes
// and escapes; of a binary value, its bytes.
[[gnu::cold]] inline bool append_unmasked(Input& in, const Column& column, Bytes& out) {
    switch (column.kind) {
        case Kind::Text: {
            Raw value;
            return read_raw(in, column, value) && append_utf8(column, value, out);
        }
        case Kind::Binary: {
            Raw value;
            if (!read_raw(in, column, value)) return false;
            append_padded(column, value, out);
            return true;
        }
        case Kind::Enum: {
            size_t label;
            if (!read_label(in, column, label)) return false;
            out.append(column.labels[label]);
            return true;
        }
        case Kind::Set: {
            uint64_t bits;
            if (!read_set(in, column, bits)) return false;
            append_set(out, column, bits, false);
            return true;
        }
        case Kind::Json: return write_json(in, column, out);
        default: break;
    }
    Bytes json;
    if (!write_json(in, column, json)) return false;
    std::string_view text = json.view();
    // Removes the quotes of a date or time, whose text has no escapes.
    if (!text.empty() && text.front() == '"') text = text.substr(1, text.size() - 2);
    out.append(text);
    return true;
}

// The masked text of a value of Kind::Masked.
inline bool append_masked(Input& in, const Column& column, Bytes& out) {
    Bytes value;
    if (!append_unmasked(in, column.masked->column, value)) return false;
    column.masked->mask.append(value, out);
    return true;
}

}  // namespace mysqlbinlog
