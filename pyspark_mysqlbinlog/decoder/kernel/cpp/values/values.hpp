// Reads single values of a row image. Every function reads at `in`, with bounds checks. It returns
// false, with `in` undefined, for bytes that are cut short or not a value of that type: the caller
// passes the event to Python, which raises the error. A value that is only unusual (a zero date, an
// empty label) is read.
//
// This file has numbers, strings and labels; decimals.hpp and temporals.hpp have the rest. The
// Python reference is values/numbers.py and values/strings.py.
#pragma once

#include "bytes/bytes.hpp"
#include "arrow/column.hpp"
#include "values/decimals.hpp"
#include "values/masks.hpp"
#include "values/temporals.hpp"

namespace mysqlbinlog {

// `size` bytes, little-endian: 1, 2, 3, 4 or 8.
[[gnu::always_inline]] inline uint64_t load_little(const uint8_t* at, uint32_t size) {
    switch (size) {
        case 1: return at[0];
        case 2: return load16(at);
        case 3: return load24(at);
        case 4: return load32(at);
        default: return load64(at);
    }
}

// TINYINT to BIGINT. An UNSIGNED BIGINT is returned as its bit pattern.
[[gnu::always_inline]] inline int64_t load_integer(const uint8_t* at, uint32_t size,
                                                   bool is_unsigned) {
    const uint64_t raw = load_little(at, size);
    const uint64_t sign = is_unsigned ? 0 : uint64_t{1} << (8 * size - 1);
    return static_cast<int64_t>((raw ^ sign) - sign);
}

inline bool read_integer(Input& in, const Column& column, int64_t& value) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    value = load_integer(at, column.size, column.is_unsigned);
    return true;
}

// Infinities and NaN are read: only JSON cannot represent them.
inline bool read_float(Input& in, const Column&, float& value) {
    const uint8_t* at;
    if (!in.take(4, at)) return false;
    const uint32_t bits = load32(at);
    std::memcpy(&value, &bits, sizeof value);
    return true;
}

inline bool read_double(Input& in, const Column&, double& value) {
    const uint8_t* at;
    if (!in.take(8, at)) return false;
    const uint64_t bits = load64(at);
    std::memcpy(&value, &bits, sizeof value);
    return true;
}

// BIT(n), big-endian; false for bits above the n.
inline bool read_bit(Input& in, const Column& column, uint64_t& value) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    value = load_big(at, column.size);
    return column.bits >= 64 || value >> column.bits == 0;
}

inline bool read_year(Input& in, const Column&, int32_t& value) {
    const uint8_t* at;
    if (!in.take(1, at)) return false;
    value = *at == 0 ? 0 : 1900 + *at;
    return true;
}

// Text, Binary, Json and Geometry as stored: a length of `size` bytes, then the bytes.
// False for a BINARY(n) of more than n bytes.
inline bool read_raw(Input& in, const Column& column, Raw& value) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    const auto length = static_cast<size_t>(load_little(at, column.size));
    if (!in.take(length, at)) return false;
    value = Raw{at, length};
    return column.padded < 0 || length <= static_cast<size_t>(column.padded);
}

// BINARY(n) as SELECT shows it: its trailing zeros are not stored.
inline void append_padded(const Column& column, Raw value, Bytes& out) {
    out.append(value.data, value.size);
    if (column.padded >= 0) out.fill(0, static_cast<size_t>(column.padded) - value.size);
}

// ENUM: index of the label; label 0 is ''.
inline bool read_label(Input& in, const Column& column, size_t& label) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    label = column.size == 1 ? at[0] : load16(at);
    return label < column.labels.size();
}

// SET: one bit for each label, the first label's lowest.
inline bool read_set(Input& in, const Column& column, uint64_t& bits) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    bits = load_little(at, column.size);
    return column.labels.size() >= 64 || bits >> column.labels.size() == 0;
}

// A SET's labels with commas between them; with `json` as a JSON string, otherwise unchanged. As in
// MySQL, no comma follows a leading empty label ''.
inline void append_set(Bytes& out, const Column& column, uint64_t bits, bool json) {
    if (json) out.push('"');
    bool is_empty = true;
    for (size_t at = 0; bits != 0; ++at, bits >>= 1) {
        if ((bits & 1) == 0) continue;
        if (!is_empty) out.push(',');
        is_empty = is_empty && column.labels[at].empty();
        if (json) {
            const std::string& quoted = column.json_labels[at];
            out.append(quoted.data() + 1, quoted.size() - 2);
        } else {
            out.append(column.labels[at]);
        }
    }
    if (json) out.push('"');
}

// Skips a value of any kind. As in Python, this reads lengths only.
inline bool skip_value(Input& in, const Column& given) {
    const Column& column = given.kind == Kind::Masked ? given.masked->column : given;
    size_t length = column.size;
    switch (column.kind) {
        case Kind::Text:
        case Kind::Binary:
        case Kind::Json:
        case Kind::Geometry:
        case Kind::PrefixedSkip: {
            const uint8_t* at;
            if (!in.take(column.size, at)) return false;
            length = static_cast<size_t>(load_little(at, column.size));
            break;
        }
        default: break;
    }
    return in.skip(length);
}

}  // namespace mysqlbinlog
