// MySQL's binary JSON: a walk over a document, and the document as JSON text.
//
// values/json_binary.py describes the layout and is the Python reference: both reject the same
// documents. The walk calls a sink value by value, in stored order; it builds no tree. Offsets are
// followed only forwards and inside their container, and all values of a document together cannot
// exceed its length. Therefore, no document can cause a loop or unbounded memory use.
//
// A sink has
//   bool null(), boolean(bool), integer(int64_t), natural(uint64_t), number(double)
//   bool text(Raw)                      UTF-8
//   bool decimal(const uint8_t* digits, precision, scale)
//   bool date(Ymd), time(int64_t micros), datetime(const Moment&), opaque(uint8_t type, Raw)
//   Frame open_object(elements, size), open_array(elements, size)
//   void key(Frame&, Raw)               before each element of an object; UTF-8, each key once
//   void element(Frame&)                before each element of an array
//   bool close_object(Frame&), close_array(Frame&)
// and returns false for values that it cannot represent.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "bytes/bytes.hpp"
#include "values/charsets.hpp"
#include "values/decimals.hpp"
#include "json/json_text.hpp"
#include "values/temporals.hpp"
#include "values/values.hpp"

namespace mysqlbinlog {

// JSON_DOCUMENT_MAX_DEPTH: the server rejects deeper documents.
inline constexpr unsigned MAX_JSON_DEPTH = 100;

namespace json_code {
enum : uint8_t {
    SmallObject = 0x00,
    LargeObject = 0x01,
    SmallArray = 0x02,
    LargeArray = 0x03,
    Literal = 0x04,
    Int16 = 0x05,
    Uint16 = 0x06,
    Int32 = 0x07,
    Uint32 = 0x08,
    Int64 = 0x09,
    Uint64 = 0x0A,
    Double = 0x0B,
    String = 0x0C,
    Opaque = 0x0F,
};
}

// Column types of opaque values that are shown by their value: FieldType's.
namespace json_opaque {
enum : uint8_t { Timestamp = 7, Date = 10, Time = 11, Datetime = 12, Decimal = 246 };
}

template <typename Sink>
class DocumentWalk {
public:
    DocumentWalk(Raw document, Sink& sink)
        : data_(document.data), size_(document.size), left_(document.size), sink_(sink) {}

    // An empty document is JSON null, as the server reads it.
    bool run() {
        if (size_ == 0) return sink_.null();
        return spend(1) && value(data_[0], 1, size_, 0);
    }

private:
    // Positions have 64 bits, so that the sum of a position and a length never wraps.
    using Pos = uint64_t;

    // An object or array: its offsets count from `start`, its values follow `head` bytes.
    struct Container {
        Pos start;
        Pos end;
        uint64_t head;
        uint32_t elements;
        uint32_t width;
        unsigned depth;
    };

    static bool has(Pos pos, uint64_t size, Pos end) { return pos <= end && size <= end - pos; }

    // Values do not overlap: together they cannot exceed the document's size.
    bool spend(uint64_t size) {
        if (size > left_) return false;
        left_ -= size;
        return true;
    }

    // A size or an offset of 2 or 4 bytes; the caller checks the bounds.
    uint32_t number_at(Pos pos, uint32_t width) const {
        return width == 2 ? load16(data_ + pos) : load32(data_ + pos);
    }

    // The value that begins at `pos` and ends before `end`.
    bool value(uint8_t code, Pos pos, Pos end, unsigned depth) {
        switch (code) {
            case json_code::SmallObject: return object(pos, end, 2, depth + 1);
            case json_code::LargeObject: return object(pos, end, 4, depth + 1);
            case json_code::SmallArray: return array(pos, end, 2, depth + 1);
            case json_code::LargeArray: return array(pos, end, 4, depth + 1);
            case json_code::Literal:
                return has(pos, 1, end) && spend(1) && literal(data_[pos]);
            case json_code::Int16:
            case json_code::Uint16:
                return has(pos, 2, end) && spend(2) && short_number(code, pos);
            case json_code::Int32:
            case json_code::Uint32:
                return has(pos, 4, end) && spend(4) && long_number(code, pos);
            case json_code::Int64:
                return has(pos, 8, end) && spend(8) &&
                       sink_.integer(static_cast<int64_t>(load64(data_ + pos)));
            case json_code::Uint64:
                return has(pos, 8, end) && spend(8) && sink_.natural(load64(data_ + pos));
            case json_code::Double: {
                if (!has(pos, 8, end) || !spend(8)) return false;
                const uint64_t bits = load64(data_ + pos);
                double number;
                std::memcpy(&number, &bits, sizeof number);
                return sink_.number(number);
            }
            case json_code::String: {
                Raw text;
                return extent(pos, end, text) && is_utf8(text.data, text.size) && sink_.text(text);
            }
            case json_code::Opaque: return opaque(pos, end);
            default: return false;
        }
    }

    bool literal(uint32_t code) {
        return code == 0 ? sink_.null() : code <= 2 && sink_.boolean(code == 1);
    }

    bool short_number(uint8_t code, Pos pos) {
        const uint16_t bits = load16(data_ + pos);
        return sink_.integer(code == json_code::Int16 ? static_cast<int16_t>(bits) : int64_t{bits});
    }

    bool long_number(uint8_t code, Pos pos) {
        const uint32_t bits = load32(data_ + pos);
        return sink_.integer(code == json_code::Int32 ? static_cast<int32_t>(bits) : int64_t{bits});
    }

    // The bytes after the length at `pos`: 7 bits a byte, the low ones first, 0x80 = more.
    bool extent(Pos pos, Pos end, Raw& found) {
        uint64_t length = 0;
        for (unsigned at = 0; at < 5; ++at) {
            if (!has(pos + at, 1, end)) return false;
            const uint8_t byte = data_[pos + at];
            length |= static_cast<uint64_t>(byte & 0x7F) << 7 * at;
            if (byte >= 0x80) continue;
            const Pos start = pos + at + 1;
            if (!has(start, length, end) || !spend(at + 1 + length)) return false;
            found = Raw{data_ + start, static_cast<size_t>(length)};
            return true;
        }
        return false;
    }

    // Reads the head of the object or array at `pos`, with `entry` bytes per element.
    bool open(Pos pos, Pos end, uint32_t width, unsigned depth, uint32_t entry, Container& found) {
        if (depth > MAX_JSON_DEPTH || !has(pos, 2 * width, end)) return false;
        const uint32_t elements = number_at(pos, width);
        const uint32_t size = number_at(pos + width, width);
        const uint64_t head = 2 * width + static_cast<uint64_t>(elements) * entry;
        if (size < head || !has(pos, size, end) || !spend(head)) return false;
        found = Container{pos, pos + size, head, elements, width, depth};
        return true;
    }

    bool object(Pos pos, Pos end, uint32_t width, unsigned depth) {
        const uint32_t key_entry = width + 2, value_entry = width + 1;
        Container container;
        if (!open(pos, end, width, depth, key_entry + value_entry, container)) return false;
        if (!check_keys(container)) return false;
        Pos keys = pos + 2 * width;
        Pos values = keys + static_cast<uint64_t>(container.elements) * key_entry;
        auto frame = sink_.open_object(container.elements, container.end - pos);
        for (uint32_t i = 0; i < container.elements; ++i) {
            sink_.key(frame, key_at(keys, container));
            if (!element(values, container)) return false;
            keys += key_entry;
            values += value_entry;
        }
        return sink_.close_object(frame);
    }

    bool array(Pos pos, Pos end, uint32_t width, unsigned depth) {
        const uint32_t value_entry = width + 1;
        Container container;
        if (!open(pos, end, width, depth, value_entry, container)) return false;
        Pos values = pos + 2 * width;
        auto frame = sink_.open_array(container.elements, container.end - pos);
        for (uint32_t i = 0; i < container.elements; ++i) {
            sink_.element(frame);
            if (!element(values, container)) return false;
            values += value_entry;
        }
        return sink_.close_array(frame);
    }

    // The key of a key entry; `check_keys` has checked its bounds.
    Raw key_at(Pos entry, const Container& container) const {
        return Raw{data_ + container.start + number_at(entry, container.width),
                   load16(data_ + entry + container.width)};
    }

    // Checks all keys of an object: inside it, UTF-8, each one once.
    bool check_keys(const Container& container) {
        const uint32_t width = container.width;
        Pos entry = container.start + 2 * width;
        Raw last{nullptr, 0};
        bool ascending = true;
        for (uint32_t i = 0; i < container.elements; ++i, entry += width + 2) {
            const uint32_t offset = number_at(entry, width);
            const uint32_t length = load16(data_ + entry + width);
            if (offset < container.head || !has(container.start + offset, length, container.end) ||
                !spend(length))
                return false;
            const Raw key{data_ + container.start + offset, length};
            if (!is_utf8(key.data, key.size)) return false;
            ascending = ascending && (i == 0 || comes_before(last, key));
            last = key;
        }
        return ascending || are_distinct(container);
    }

    // The order in which servers store keys: by length, then by bytes.
    static bool comes_before(Raw one, Raw other) {
        if (one.size != other.size) return one.size < other.size;
        return std::memcmp(one.data, other.data, one.size) < 0;
    }

    // For keys that were not stored by a server.
    bool are_distinct(const Container& container) const {
        std::vector<std::string_view> keys;
        keys.reserve(container.elements);
        Pos entry = container.start + 2 * container.width;
        for (uint32_t i = 0; i < container.elements; ++i, entry += container.width + 2) {
            keys.push_back(key_at(entry, container).text());
        }
        std::sort(keys.begin(), keys.end());
        return std::adjacent_find(keys.begin(), keys.end()) == keys.end();
    }

    // The value of the value entry at `pos`: in the entry itself, or at its offset.
    bool element(Pos pos, const Container& container) {
        const uint8_t code = data_[pos];
        const uint32_t width = container.width;
        switch (code) {
            case json_code::Literal: return literal(number_at(pos + 1, width));
            case json_code::Int16:
            case json_code::Uint16: return short_number(code, pos + 1);
            case json_code::Int32:
            case json_code::Uint32:
                if (width == 4) return long_number(code, pos + 1);
                break;
            default: break;
        }
        const uint32_t offset = number_at(pos + 1, width);
        if (offset < container.head) return false;
        return value(code, container.start + offset, container.end, container.depth);
    }

    // A value of a column type that JSON lacks.
    bool opaque(Pos pos, Pos end) {
        if (!has(pos, 1, end) || !spend(1)) return false;
        const uint8_t type = data_[pos];
        Raw raw;
        if (!extent(pos + 1, end, raw)) return false;
        switch (type) {
            case json_opaque::Decimal: {
                if (raw.size < 2) return false;
                const uint32_t precision = raw.data[0], scale = raw.data[1];
                if (precision == 0 || precision > MAX_DECIMAL_DIGITS || scale > precision ||
                    raw.size != 2 + decimal_size(precision, scale))
                    return false;
                return sink_.decimal(raw.data + 2, precision, scale);
            }
            case json_opaque::Date:
            case json_opaque::Time:
            case json_opaque::Datetime:
            case json_opaque::Timestamp: return raw.size == 8 && temporal(type, load64(raw.data));
            default: return sink_.opaque(type, raw);
        }
    }

    // TIME_from_longlong_*_packed, described in json_binary.py.
    bool temporal(uint8_t type, uint64_t packed) {
        const bool is_negative = packed >> 63 != 0;
        if (is_negative) packed = 0 - packed;
        const uint32_t fraction = packed & 0xFFFFFF;
        const uint64_t clock = packed >> 24;
        const uint32_t second = clock & 63, minute = clock >> 6 & 63;
        const uint32_t rest = static_cast<uint32_t>(clock >> 12);
        if (fraction > 999'999 || second > 59 || minute > 59) return false;
        int64_t micros = int64_t{minute * 60 + second} * MICROS_PER_SECOND + fraction;
        const uint32_t hour = type == json_opaque::Time ? rest : rest & 31;
        micros += int64_t{hour} * 3600 * MICROS_PER_SECOND;
        if (type == json_opaque::Time)
            return hour <= MAX_TIME_HOURS && sink_.time(is_negative ? -micros : micros);
        const uint32_t months = rest >> 10;
        Ymd date;
        if (is_negative || hour > 23 || !make_date(months / 13, months % 13, rest >> 5 & 31, date))
            return false;
        return type == json_opaque::Date ? sink_.date(date) : sink_.datetime(Moment{date, micros});
    }

    const uint8_t* data_;
    Pos size_;
    uint64_t left_;
    Sink& sink_;
};

template <typename Sink>
inline bool walk_document(Raw document, Sink& sink) {
    return DocumentWalk<Sink>(document, sink).run();
}

// base64:type16:BQ== ; 5.7's own TO_BASE64 breaks the line after 76 characters.
inline constexpr size_t BASE64_LINE = 76;
inline constexpr size_t BASE64_LINE_BYTES = BASE64_LINE / 4 * 3;

inline void append_opaque(Bytes& out, uint8_t type, Raw raw, std::string_view line_end) {
    out.append("base64:type");
    append_unsigned(out, type);
    out.push(':');
    while (raw.size > BASE64_LINE_BYTES) {
        append_base64(out, Raw{raw.data, BASE64_LINE_BYTES});
        out.append(line_end);
        raw = Raw{raw.data + BASE64_LINE_BYTES, raw.size - BASE64_LINE_BYTES};
    }
    append_base64(out, raw);
}

// The sink that writes JSON text: keys in stored order, every number exact, dates as SELECT's
// strings.
class JsonTextSink {
public:
    explicit JsonTextSink(Bytes& out) : out_(out) {}

    bool null() { return write("null"); }
    bool boolean(bool value) { return write(value ? "true" : "false"); }
    bool integer(int64_t value) {
        append_integer(out_, value);
        return true;
    }
    bool natural(uint64_t value) {
        append_unsigned(out_, value);
        return true;
    }
    bool number(double value) { return append_double(out_, value); }
    bool text(Raw utf8) {
        append_quoted(out_, utf8.text());
        return true;
    }
    bool decimal(const uint8_t* digits, uint32_t precision, uint32_t scale) {
        return append_decimal(digits, precision, scale, out_);
    }
    bool date(Ymd value) {
        return in_quotes(out_, [&] { append_date(out_, value); });
    }
    bool time(int64_t micros) {
        return in_quotes(out_, [&] { append_time(out_, micros, 6); });
    }
    bool datetime(const Moment& value) {
        return in_quotes(out_, [&] { append_datetime(out_, value, 6, false); });
    }
    bool opaque(uint8_t type, Raw raw) {
        return in_quotes(out_, [&] { append_opaque(out_, type, raw, "\\n"); });
    }

    struct Frame {
        bool is_first;
    };
    Frame open_object(uint32_t, uint64_t) { return open('{'); }
    Frame open_array(uint32_t, uint64_t) { return open('['); }
    void key(Frame& frame, Raw utf8) {
        element(frame);
        append_quoted(out_, utf8.text());
        out_.push(':');
    }
    void element(Frame& frame) {
        if (!frame.is_first) out_.push(',');
        frame.is_first = false;
    }
    bool close_object(Frame&) { return write("}"); }
    bool close_array(Frame&) { return write("]"); }

private:
    Frame open(char bracket) {
        out_.push(bracket);
        return Frame{true};
    }
    bool write(std::string_view text) {
        out_.append(text);
        return true;
    }

    Bytes& out_;
};

// A stored document as JSON text.
inline bool write_document_json(Raw document, Bytes& out) {
    JsonTextSink sink(out);
    return walk_document(document, sink);
}

}  // namespace mysqlbinlog
