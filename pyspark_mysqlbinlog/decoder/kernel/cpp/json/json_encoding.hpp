// Encodes a JSON document's text, as SELECT shows it, in MySQL's binary form.
//
// The Python reference decoder/result_rows/json_text.py describes the ambiguities of the text;
// values/json_binary.py describes the layout. The text is parsed once into nodes that contain their
// encoded size; then each is written to its position. Unusual documents are encoded in Python.
#pragma once

#include <charconv>
#include <vector>

#include "bytes/bytes.hpp"
#include "values/charsets.hpp"
#include "values/decimals.hpp"
#include "json/json_document.hpp"

namespace mysqlbinlog {

class JsonEncoder {
public:
    // Parses a document. False if Python must encode it: it is not JSON, or has a number whose type
    // matters and is unknown. `typed`: all types matter. `doubles_have_points`: 5.0 may be a
    // DOUBLE.
    bool read(Raw text, bool typed, bool doubles_have_points) {
        nodes_.clear();
        scratch_.clear();
        at_ = text.data;
        end_ = text.data + text.size;
        typed_ = typed;
        doubles_have_points_ = doubles_have_points;
        if (text.size > MAX_TEXT || !is_utf8(text.data, text.size)) return false;
        // A text without escapes is not longer than with them: pointers into it stay valid.
        scratch_.room(text.size + 1);
        if (!value(0)) return false;
        skip_space();
        return at_ == end_;
    }

    // Bytes of the parsed document.
    size_t size() const { return 1 + size_t{nodes_[0].bytes}; }

    // Writes it; returns the position after it.
    uint8_t* write(uint8_t* to) const {
        *to = nodes_[0].code;
        return write_value(0, to + 1);
    }

private:
    static constexpr size_t MAX_TEXT = 0x7fffffff;

    struct Node {
        // Text, key or decimal: its `length` bytes.
        const uint8_t* text;
        // Number: its bits. Container: the number of elements.
        uint64_t bits;
        uint32_t length;
        // The node after this one and its contents.
        uint32_t next;
        // Bytes of the value; a key has none.
        uint32_t bytes;
        uint8_t code;
    };

    void skip_space() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    }
    bool accept(uint8_t byte) {
        if (at_ == end_ || *at_ != byte) return false;
        ++at_;
        return true;
    }
    bool word(std::string_view expected) {
        if (static_cast<size_t>(end_ - at_) < expected.size() ||
            std::memcmp(at_, expected.data(), expected.size()) != 0)
            return false;
        at_ += expected.size();
        return true;
    }

    void add(uint8_t code, uint64_t bits, size_t bytes, Raw text = Raw{nullptr, 0}) {
        nodes_.push_back(Node{text.data, bits, static_cast<uint32_t>(text.size),
                              static_cast<uint32_t>(nodes_.size() + 1),
                              static_cast<uint32_t>(bytes), code});
    }

    bool value(unsigned depth) {
        skip_space();
        if (at_ == end_) return false;
        switch (*at_) {
            case '{': return container(depth + 1, true);
            case '[': return container(depth + 1, false);
            case '"': {
                Raw text;
                if (!string(text)) return false;
                add(json_code::String, 0, length_size(text.size) + text.size, text);
                return true;
            }
            case 'n': add(json_code::Literal, 0, 1); return word("null");
            case 't': add(json_code::Literal, 1, 1); return word("true");
            case 'f': add(json_code::Literal, 2, 1); return word("false");
            default: return number();
        }
    }

    bool container(unsigned depth, bool is_object) {
        if (depth > MAX_JSON_DEPTH) return false;
        ++at_;
        const uint8_t close = is_object ? '}' : ']';
        const size_t self = nodes_.size();
        add(is_object ? json_code::SmallObject : json_code::SmallArray, 0, 0);
        uint64_t count = 0, keys = 0;
        skip_space();
        if (!accept(close)) {
            while (true) {
                if (is_object) {
                    Raw key;
                    skip_space();
                    if (at_ == end_ || *at_ != '"' || !string(key) || key.size > 0xffff)
                        return false;
                    add(json_code::String, 0, 0, key);
                    keys += key.size;
                    skip_space();
                    if (!accept(':')) return false;
                }
                if (!value(depth)) return false;
                ++count;
                skip_space();
                if (accept(close)) break;
                if (!accept(',')) return false;
            }
        }
        // With two-byte numbers if they suffice.
        uint64_t bytes = 0;
        for (const size_t width : {2, 4}) {
            bytes = head_size(count, width, is_object) + keys;
            for (size_t each = self + 1; each < nodes_.size(); each = nodes_[each].next) {
                if (is_object) ++each;
                if (!is_inlined(nodes_[each].code, width)) bytes += nodes_[each].bytes;
            }
            if (bytes <= (width == 2 ? 0xffff : 0xffffffff)) break;
            if (width == 4) return false;
            ++nodes_[self].code;
        }
        nodes_[self].bits = count;
        nodes_[self].next = static_cast<uint32_t>(nodes_.size());
        nodes_[self].bytes = static_cast<uint32_t>(bytes);
        return true;
    }

    static uint64_t head_size(uint64_t count, size_t width, bool is_object) {
        return 2 * width + count * (width + 1 + (is_object ? width + 2 : 0));
    }
    static bool is_inlined(uint8_t code, size_t width) {
        return code == json_code::Literal || code == json_code::Int16 ||
               (width == 4 && code == json_code::Int32);
    }
    static size_t length_size(size_t size) {
        size_t bytes = 1;
        while (size >= 0x80) {
            size >>= 7;
            ++bytes;
        }
        return bytes;
    }

    // A text in quotes; returned without the quotes and escapes.
    bool string(Raw& text) {
        const uint8_t* const begin = ++at_;
        while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
        if (at_ == end_) return false;
        if (*at_ == '"') {
            text = Raw{begin, static_cast<size_t>(at_++ - begin)};
            return true;
        }
        const size_t start = scratch_.size();
        scratch_.append(begin, static_cast<size_t>(at_ - begin));
        while (at_ != end_ && *at_ != '"') {
            if (*at_ != '\\') {
                scratch_.push(static_cast<char>(*at_++));
            } else if (!escape()) {
                return false;
            }
        }
        if (!accept('"')) return false;
        text = Raw{scratch_.data() + start, scratch_.size() - start};
        return true;
    }

    bool escape() {
        if (end_ - at_ < 2) return false;
        const uint8_t what = at_[1];
        at_ += 2;
        switch (what) {
            case '"':
            case '\\':
            case '/': scratch_.push(static_cast<char>(what)); return true;
            case 'b': scratch_.push('\b'); return true;
            case 'f': scratch_.push('\f'); return true;
            case 'n': scratch_.push('\n'); return true;
            case 'r': scratch_.push('\r'); return true;
            case 't': scratch_.push('\t'); return true;
            case 'u': break;
            default: return false;
        }
        if (end_ - at_ < 4) return false;
        uint32_t code = 0;
        for (int i = 0; i < 4; ++i) {
            const uint32_t lower = at_[i] | 0x20u;
            if (at_[i] >= '0' && at_[i] <= '9') {
                code = code << 4 | (at_[i] - '0');
            } else if (lower >= 'a' && lower <= 'f') {
                code = code << 4 | (lower - 'a' + 10);
            } else {
                return false;
            }
        }
        at_ += 4;
        // Servers escape no characters beyond ASCII.
        if (code >= 0x80) return false;
        scratch_.push(static_cast<char>(code));
        return true;
    }

    static bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }
    bool digits() {
        const uint8_t* const begin = at_;
        while (at_ != end_ && is_digit(*at_)) ++at_;
        return at_ != begin;
    }

    bool number() {
        const uint8_t* const begin = at_;
        const bool is_negative = accept('-');
        const uint8_t* const whole = at_;
        if (!digits() || (*whole == '0' && at_ - whole > 1)) return false;
        const bool has_point = accept('.');
        if (has_point && !digits()) return false;
        const uint8_t* const stop = at_;
        if (at_ != end_ && (*at_ | 0x20) == 'e') {
            ++at_;
            if (!accept('-')) accept('+');
            return digits() && number_double(begin, at_);
        }
        const Raw text{begin, static_cast<size_t>(stop - begin)};
        if (!has_point) return integer(text, whole, is_negative);
        const uint8_t* significant = whole;
        while (significant != stop && (*significant == '0' || *significant == '.')) ++significant;
        if (doubles_have_points_ && stop[-1] == '0' && stop[-2] == '.') {
            // A negative zero is no DECIMAL.
            return is_negative && significant == stop && number_double(begin, stop);
        }
        size_t count = 0;
        for (const uint8_t* each = significant; each != stop; ++each) count += *each != '.';
        const bool is_tiny = stop - whole >= 6 && std::memcmp(whole, "0.0000", 6) == 0;
        const bool matters = typed_ || is_tiny;
        // As in json_text.py: a DECIMAL keeps all digits of any number.
        const size_t most = matters ? 17 : 15;
        if (stop[-1] == '0' || count > most) return decimal(text, whole);
        if (matters) return false;
        return number_double(begin, stop);
    }

    bool integer(Raw text, const uint8_t* whole, bool is_negative) {
        const uint8_t* const stop = text.data + text.size;
        if (is_negative && *whole == '0') return number_double(text.data, stop);
        uint64_t magnitude = 0;
        for (const uint8_t* each = whole; each != stop; ++each) {
            const uint64_t digit = static_cast<uint64_t>(*each - '0');
            if (magnitude > (~uint64_t{0} - digit) / 10) return decimal(text, whole);
            magnitude = magnitude * 10 + digit;
        }
        constexpr uint64_t LOWEST = uint64_t{1} << 63;
        if (is_negative && magnitude > LOWEST) return decimal(text, whole);
        if (typed_) return false;
        const uint64_t bits = is_negative ? 0 - magnitude : magnitude;
        // The negative range is larger by one.
        const uint64_t reach = magnitude - is_negative;
        if (reach < 0x8000) {
            add(json_code::Int16, bits, 2);
        } else if (reach < 0x80000000) {
            add(json_code::Int32, bits, 4);
        } else if (reach < LOWEST) {
            add(json_code::Int64, bits, 8);
        } else {
            add(json_code::Uint64, bits, 8);
        }
        return true;
    }

    bool number_double(const uint8_t* begin, const uint8_t* end) {
#if defined(__cpp_lib_to_chars)
        double number = 0;
        const auto* const last = reinterpret_cast<const char*>(end);
        const auto read = std::from_chars(reinterpret_cast<const char*>(begin), last, number);
        if (read.ec != std::errc() || read.ptr != last) return false;
        uint64_t bits = 0;
        std::memcpy(&bits, &number, sizeof bits);
        add(json_code::Double, bits, 8);
        return true;
#else
        // The library cannot parse floating-point numbers.
        (void)begin, (void)end;
        return false;
#endif
    }

    // NEWDECIMAL u8 | length | precision u8 | scale u8 | digits as in a column.
    bool decimal(Raw text, const uint8_t* whole) {
        const DecimalText parts(text, whole);
        if (parts.precision() > MAX_DECIMAL_DIGITS) return false;
        add(json_code::Opaque, 0, 4 + decimal_size(parts.precision(), parts.scale), text);
        return true;
    }

    struct DecimalText {
        bool is_negative;
        const uint8_t* whole;
        uint32_t before;
        const uint8_t* fraction;
        uint32_t scale;

        uint32_t precision() const { return before + scale; }
        explicit DecimalText(Raw text) : DecimalText(text, text.data + (*text.data == '-')) {}
        DecimalText(Raw text, const uint8_t* first)
            : is_negative(*text.data == '-'), whole(first), fraction(nullptr), scale(0) {
            const uint8_t* const end = text.data + text.size;
            const uint8_t* point = first;
            while (point != end && *point != '.') ++point;
            if (point != end) {
                fraction = point + 1;
                scale = static_cast<uint32_t>(end - fraction);
            }
            while (whole != point && *whole == '0' && (scale != 0 || point - whole > 1)) ++whole;
            before = static_cast<uint32_t>(point - whole);
        }
    };

    static uint8_t* put(uint8_t* to, uint64_t value, size_t size) {
        for (size_t i = 0; i < size; ++i) to[i] = static_cast<uint8_t>(value >> (8 * i));
        return to + size;
    }
    static uint8_t* put_length(uint8_t* to, size_t size) {
        while (size >= 0x80) {
            *to++ = static_cast<uint8_t>(size | 0x80);
            size >>= 7;
        }
        *to++ = static_cast<uint8_t>(size);
        return to;
    }
    static uint8_t* put_text(uint8_t* to, const Node& node) {
        if (node.length != 0) std::memcpy(to, node.text, node.length);
        return to + node.length;
    }

    uint8_t* write_value(size_t index, uint8_t* to) const {
        const Node& node = nodes_[index];
        switch (node.code) {
            case json_code::SmallObject: return write_container(index, to, 2, true);
            case json_code::LargeObject: return write_container(index, to, 4, true);
            case json_code::SmallArray: return write_container(index, to, 2, false);
            case json_code::LargeArray: return write_container(index, to, 4, false);
            case json_code::String: return put_text(put_length(to, node.length), node);
            case json_code::Opaque: return write_decimal(node, to);
            default: return put(to, node.bits, node.bytes);
        }
    }

    uint8_t* write_container(size_t index, uint8_t* to, size_t width, bool is_object) const {
        const Node& self = nodes_[index];
        uint8_t* const begin = to;
        uint8_t* key_entry = put(put(to, self.bits, width), self.bytes, width);
        uint8_t* value_entry = key_entry + (is_object ? self.bits * (width + 2) : 0);
        uint8_t* stop = begin + head_size(self.bits, width, is_object);
        if (is_object) {
            for (size_t key = index + 1; key < self.next; key = nodes_[key + 1].next) {
                key_entry = put(key_entry, static_cast<uint64_t>(stop - begin), width);
                key_entry = put(key_entry, nodes_[key].length, 2);
                stop = put_text(stop, nodes_[key]);
            }
        }
        for (size_t each = index + 1; each < self.next; each = nodes_[each].next) {
            if (is_object) ++each;
            const Node& node = nodes_[each];
            *value_entry++ = node.code;
            if (is_inlined(node.code, width)) {
                value_entry = put(value_entry, node.bits, width);
            } else {
                value_entry = put(value_entry, static_cast<uint64_t>(stop - begin), width);
                stop = write_value(each, stop);
            }
        }
        return stop;
    }

    static uint8_t* write_decimal(const Node& node, uint8_t* to) {
        const DecimalText parts(Raw{node.text, node.length});
        const uint32_t size = node.bytes - 4;
        *to++ = json_opaque::Decimal;
        *to++ = static_cast<uint8_t>(size + 2);
        *to++ = static_cast<uint8_t>(parts.precision());
        *to++ = static_cast<uint8_t>(parts.scale);
        uint8_t* const begin = to;
        bool is_zero = true;
        const auto group = [&](const uint8_t* at, uint32_t digits) {
            uint32_t number = 0;
            for (uint32_t i = 0; i < digits; ++i) number = number * 10 + (at[i] - '0');
            is_zero = is_zero && number == 0;
            const uint32_t bytes = BYTES_OF_DIGITS[digits];
            for (uint32_t i = 0; i < bytes; ++i)
                *to++ = static_cast<uint8_t>(number >> (8 * (bytes - 1 - i)));
        };
        const uint32_t lead = parts.before % 9;
        if (lead != 0) group(parts.whole, lead);
        for (uint32_t at = lead; at < parts.before; at += 9) group(parts.whole + at, 9);
        for (uint32_t at = 0; at < parts.scale; at += 9)
            group(parts.fraction + at, parts.scale - at < 9 ? parts.scale - at : 9);
        if (parts.is_negative && !is_zero)
            for (uint8_t* each = begin; each != to; ++each) *each = static_cast<uint8_t>(~*each);
        *begin ^= 0x80;
        return to;
    }

    const uint8_t* at_ = nullptr;
    const uint8_t* end_ = nullptr;
    bool typed_ = false;
    bool doubles_have_points_ = false;
    std::vector<Node> nodes_;
    Bytes scratch_;
};

}  // namespace mysqlbinlog
