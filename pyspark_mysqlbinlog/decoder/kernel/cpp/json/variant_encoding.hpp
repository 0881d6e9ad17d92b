// Encodes values as Spark's VARIANT: Parquet's variant format, version 1. The Python reference
// decoder/payloads/variant.py describes the format; the results are equal byte for byte. A value
// that is too large for Spark is rejected as soon as a part of it is too large, otherwise at its
// end.
#pragma once

#include <algorithm>
#include <vector>

#include "bytes/bytes.hpp"
#include "values/decimals.hpp"
#include "json/json_document.hpp"
#include "values/temporals.hpp"
#include "values/values.hpp"
#include "json/variant_keys.hpp"

namespace mysqlbinlog {

// The first byte of a primitive.
namespace variant_code {
enum : uint8_t {
    Null = 0,
    True = 1 << 2,
    False = 2 << 2,
    Int8 = 3 << 2,
    Int16 = 4 << 2,
    Int32 = 5 << 2,
    Int64 = 6 << 2,
    Double = 7 << 2,
    Decimal4 = 8 << 2,
    Decimal8 = 9 << 2,
    Decimal16 = 10 << 2,
    Date = 11 << 2,
    Timestamp = 12 << 2,
    TimestampNtz = 13 << 2,
    Float = 14 << 2,
    Binary = 15 << 2,
    String = 16 << 2,
};
}

inline constexpr uint32_t VARIANT_DECIMAL_DIGITS = 38;
inline constexpr size_t VARIANT_SHORT_STRING = 64;

// A code and the low `size` bytes of a number.
inline void append_variant_primitive(Bytes& out, uint8_t code, uint64_t bits, uint32_t size) {
    uint8_t* to = out.room(9);
    to[0] = code;
    write_little(to + 1, bits, size);
    out.advance(1 + size);
}

inline void append_variant_decimal(Bytes& out, Int128 unscaled, uint32_t scale) {
    const Int128 magnitude = unscaled < 0 ? -unscaled : unscaled;
    const uint64_t low = static_cast<uint64_t>(unscaled);
    uint8_t* to = out.room(18);
    to[1] = static_cast<uint8_t>(scale);
    if (magnitude < 1'000'000'000 && scale <= 9) {
        to[0] = variant_code::Decimal4;
        write_little(to + 2, low, 4);
        out.advance(6);
    } else if (magnitude < 1'000'000'000'000'000'000 && scale <= 18) {
        to[0] = variant_code::Decimal8;
        write_little(to + 2, low, 8);
        out.advance(10);
    } else {
        to[0] = variant_code::Decimal16;
        write_little(to + 2, low, 8);
        write_little(to + 10, static_cast<uint64_t>(unscaled >> 64), 8);
        out.advance(18);
    }
}

// Spark requires the narrowest type.
inline void append_variant_integer(Bytes& out, int64_t value) {
    const uint64_t bits = static_cast<uint64_t>(value);
    if (value == static_cast<int8_t>(value)) {
        append_variant_primitive(out, variant_code::Int8, bits, 1);
    } else if (value == static_cast<int16_t>(value)) {
        append_variant_primitive(out, variant_code::Int16, bits, 2);
    } else if (value == static_cast<int32_t>(value)) {
        append_variant_primitive(out, variant_code::Int32, bits, 4);
    } else {
        append_variant_primitive(out, variant_code::Int64, bits, 8);
    }
}

// A decimal beyond 2^63.
inline void append_variant_natural(Bytes& out, uint64_t value) {
    if (value >> 63 != 0) {
        append_variant_decimal(out, static_cast<Int128>(value), 0);
    } else {
        append_variant_integer(out, static_cast<int64_t>(value));
    }
}

inline void append_variant_double(Bytes& out, double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    append_variant_primitive(out, variant_code::Double, bits, 8);
}

inline void append_variant_float(Bytes& out, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    append_variant_primitive(out, variant_code::Float, bits, 4);
}

inline void append_variant_boolean(Bytes& out, bool value) {
    out.push(value ? variant_code::True : variant_code::False);
}

inline bool append_variant_binary(Bytes& out, Raw raw) {
    if (raw.size > VARIANT_SIZE_LIMIT) return false;
    append_variant_primitive(out, variant_code::Binary, raw.size, 4);
    out.append(raw.data, raw.size);
    return true;
}

inline bool append_variant_string(Bytes& out, Raw utf8) {
    if (utf8.size > VARIANT_SIZE_LIMIT) return false;
    if (utf8.size < VARIANT_SHORT_STRING) {
        out.push(static_cast<char>(utf8.size << 2 | 1));
    } else {
        append_variant_primitive(out, variant_code::String, utf8.size, 4);
    }
    out.append(utf8.data, utf8.size);
    return true;
}

// A string whose length is known only after writing: what `write(out)` appends.
template <typename Write>
inline bool append_variant_written(Bytes& out, Write write) {
    const size_t begin = out.size();
    out.push(0);
    if (!write(out)) return false;
    const size_t size = out.size() - begin - 1;
    if (size < VARIANT_SHORT_STRING) {
        out.data()[begin] = static_cast<uint8_t>(size << 2 | 1);
        return true;
    }
    if (size > VARIANT_SIZE_LIMIT) return false;
    out.fill(0, 4);
    uint8_t* at = out.data() + begin;
    std::memmove(at + 5, at + 1, size);
    at[0] = variant_code::String;
    write_little(at + 1, size, 4);
    return true;
}

// A container is written after a gap for its head, whose size is known when all values are written.
// Adjusts the gap, which begins at `start`, to the size of `head`.
inline void settle_head(Bytes& out, size_t start, size_t gap, size_t head) {
    if (head == gap) return;
    const size_t values = out.size() - start - gap;
    if (head > gap) out.room(head - gap);
    uint8_t* at = out.data() + start;
    std::memmove(at + head, at + gap, values);
    out.truncate(start + head + values);
}

// Bytes before the values.
inline size_t object_head(size_t count, uint32_t id_width, uint32_t width) {
    return 1 + (count > 0xFF ? 4 : 1) + count * id_width + (count + 1) * width;
}
inline size_t array_head(size_t count, uint32_t width) {
    return 1 + (count > 0xFF ? 4 : 1) + (count + 1) * width;
}

// Writes header byte and count of an object; returns the position after them.
inline uint8_t* write_object_head(uint8_t* to, size_t count, uint32_t id_width, uint32_t width) {
    const uint32_t large = count > 0xFF;
    *to++ = static_cast<uint8_t>((large << 4 | (id_width - 1) << 2 | (width - 1)) << 2 | 2);
    return write_little(to, count, large ? 4 : 1);
}

// The order of an object's keys: Java's String.compareTo, by UTF-16 units. That is the order of the
// UTF-8 bytes, except that characters beyond U+FFFF, which begin with 0xF0 or more, come before
// those from U+E000 on, which begin with 0xEE or 0xEF.
inline bool key_comes_before(Raw one, Raw other) {
    const size_t shared = one.size < other.size ? one.size : other.size;
    for (size_t i = 0; i < shared; ++i) {
        const uint8_t a = one.data[i], b = other.data[i];
        if (a == b) continue;
        if (a >= 0xEE && b >= 0xEE && (a >= 0xF0) != (b >= 0xF0)) return a >= 0xF0;
        return a < b;
    }
    return one.size < other.size;
}

// The sink that writes the values of a document, or of any other caller.
class VariantSink {
public:
    VariantSink(VariantKeys& keys, Bytes& out)
        : keys_(keys), fields_(keys.fields), starts_(keys.starts), out_(out) {
        // Discards the state of a rejected document.
        fields_.clear();
        starts_.clear();
    }

    bool null() {
        out_.push(variant_code::Null);
        return true;
    }
    bool boolean(bool value) {
        append_variant_boolean(out_, value);
        return true;
    }
    bool integer(int64_t value) {
        append_variant_integer(out_, value);
        return true;
    }
    bool natural(uint64_t value) {
        append_variant_natural(out_, value);
        return true;
    }
    bool number(double value) {
        append_variant_double(out_, value);
        return true;
    }
    bool text(Raw utf8) { return append_variant_string(out_, utf8); }

    // A DECIMAL of more than 38 digits, including a zero before the point, is a string.
    bool decimal(const uint8_t* digits, uint32_t precision, uint32_t scale) {
        const size_t begin = out_.size();
        uint32_t count = 0;
        Int128 unscaled = 0;
        const bool written = append_variant_written(out_, [&](Bytes& out) {
            if (!append_decimal(digits, precision, scale, out)) return false;
            const std::string_view text = out.view().substr(begin + 1);
            for (const char c : text) {
                if (c < '0' || ++count > VARIANT_DECIMAL_DIGITS) continue;
                unscaled = unscaled * 10 + (c - '0');
            }
            if (text[0] == '-') unscaled = -unscaled;
            return true;
        });
        if (!written) return false;
        if (count <= VARIANT_DECIMAL_DIGITS) {
            out_.truncate(begin);
            append_variant_decimal(out_, unscaled, scale);
        }
        return true;
    }

    // Dates and opaque values in documents are strings, as SELECT shows them.
    bool date(Ymd value) {
        return append_variant_written(out_, [value](Bytes& out) {
            append_date(out, value);
            return true;
        });
    }
    bool time(int64_t micros) {
        return append_variant_written(out_, [micros](Bytes& out) {
            append_time(out, micros, 6);
            return true;
        });
    }
    bool datetime(const Moment& value) {
        return append_variant_written(out_, [&value](Bytes& out) {
            append_datetime(out, value, 6, false);
            return true;
        });
    }
    bool opaque(uint8_t type, Raw raw) {
        return append_variant_written(out_, [type, raw](Bytes& out) {
            append_opaque(out, type, raw, "\n");
            return true;
        });
    }

    struct Frame {
        size_t start;  // of the container in the output
        size_t gap;    // bytes reserved for its head
        size_t first;  // of its fields, or of its elements' starts
    };

    // The widths are estimated; a wrong estimate costs a move of the values.
    Frame open_object(size_t elements, size_t size) {
        return open(object_head(elements, variant_width(keys_.size() + elements),
                                variant_width(size)),
                    fields_.size());
    }
    Frame open_array(size_t elements, size_t size) {
        return open(array_head(elements, variant_width(size)), starts_.size());
    }
    void key(const Frame& frame, Raw utf8) {
        fields_.push_back(
            VariantField{utf8.data, static_cast<uint32_t>(utf8.size), written(frame), 0});
    }
    void element(const Frame& frame) { starts_.push_back(written(frame)); }

    // Keys get their ids after all keys inside their values, in their order.
    bool close_object(const Frame& frame) {
        VariantField* const fields = fields_.data() + frame.first;
        const size_t count = fields_.size() - frame.first;
        const size_t total = out_.size() - frame.start - frame.gap;
        if (total > VARIANT_SIZE_LIMIT) return false;
        sort_by_key(fields, count);
        uint32_t last_id = 0;
        for (size_t i = 0; i < count; ++i) {
            fields[i].id = keys_.id(fields[i].raw());
            last_id = std::max(last_id, fields[i].id);
        }
        const uint32_t id_width = variant_width(last_id), width = variant_width(total);
        settle_head(out_, frame.start, frame.gap, object_head(count, id_width, width));
        uint8_t* to = write_object_head(out_.data() + frame.start, count, id_width, width);
        for (size_t i = 0; i < count; ++i) to = write_little(to, fields[i].id, id_width);
        for (size_t i = 0; i < count; ++i) to = write_little(to, fields[i].start, width);
        write_little(to, total, width);
        fields_.resize(frame.first);
        return true;
    }

    bool close_array(const Frame& frame) {
        const size_t count = starts_.size() - frame.first;
        const size_t total = out_.size() - frame.start - frame.gap;
        if (total > VARIANT_SIZE_LIMIT) return false;
        const uint32_t width = variant_width(total);
        const uint32_t large = count > 0xFF;
        settle_head(out_, frame.start, frame.gap, array_head(count, width));
        uint8_t* to = out_.data() + frame.start;
        *to++ = static_cast<uint8_t>((large << 2 | (width - 1)) << 2 | 3);
        to = write_little(to, count, large ? 4 : 1);
        for (size_t i = frame.first; i < starts_.size(); ++i)
            to = write_little(to, starts_[i], width);
        write_little(to, total, width);
        starts_.resize(frame.first);
        return true;
    }

private:
    // Bytes of values so far. An overflow is rejected when the container is closed.
    uint32_t written(const Frame& frame) const {
        return static_cast<uint32_t>(out_.size() - frame.start - frame.gap);
    }

    Frame open(size_t gap, size_t first) {
        const Frame frame{out_.size(), gap, first};
        out_.room(gap);
        out_.advance(gap);
        return frame;
    }

    static void sort_by_key(VariantField* fields, size_t count) {
        const auto before = [](const VariantField& one, const VariantField& other) {
            return key_comes_before(one.raw(), other.raw());
        };
        if (count > 16) {
            std::sort(fields, fields + count, before);
            return;
        }
        for (size_t i = 1; i < count; ++i) {
            const VariantField field = fields[i];
            size_t at = i;
            for (; at > 0 && before(field, fields[at - 1]); --at) fields[at] = fields[at - 1];
            fields[at] = field;
        }
    }

    VariantKeys& keys_;
    std::vector<VariantField>& fields_;
    std::vector<uint32_t>& starts_;
    Bytes& out_;
};

// A JSON column's document; also false if it is too large for Spark.
inline bool append_variant_document(Raw document, VariantKeys& keys, Bytes& out) {
    const size_t begin = out.size();
    VariantSink sink(keys, out);
    return walk_document(document, sink) && out.size() - begin <= VARIANT_SIZE_LIMIT;
}

}  // namespace mysqlbinlog
