// The elements of JSON text: strings, base64 and floating-point numbers. The Python reference is
// `quote` in values/codec.py, and values/numbers.py; json_value.hpp makes whole values of them.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>

#include "bytes/bytes.hpp"
#include "values/charsets.hpp"
#include "bytes/digits.hpp"
#include "values/values.hpp"

namespace mysqlbinlog {

// Whether a JSON string may contain the byte unescaped.
inline bool is_plain(uint8_t byte) { return byte >= 0x20 && byte != '"' && byte != '\\'; }

// Whether that is true for all 8 bytes.
inline bool is_plain_word(uint64_t word) {
    constexpr uint64_t EACH = 0x0101010101010101;
    const uint64_t quotes = word ^ EACH * '"';
    const uint64_t backslashes = word ^ EACH * '\\';
    // Subtracting n from a byte below n borrows from its highest bit, unless that bit was set.
    const uint64_t special = ((word - EACH * 0x20) & ~word) | ((quotes - EACH) & ~quotes) |
                             ((backslashes - EACH) & ~backslashes);
    return (special & HIGH_BITS) == 0;
}

// The number of bytes before the first that a JSON string may not contain unescaped.
inline size_t plain_bytes(const uint8_t* from, size_t size) {
    size_t at = 0;
    while (at + 8 <= size && is_plain_word(load_word(from + at))) at += 8;
    // The last 8 bytes again: faster than the remaining ones one by one.
    if (size >= 8 && at + 8 > size && is_plain_word(load_word(from + size - 8))) return size;
    while (at < size && is_plain(from[at])) ++at;
    return at;
}

inline void append_escape(Bytes& out, uint8_t byte) {
    out.push('\\');
    switch (byte) {
        case '\b': out.push('b'); break;
        case '\t': out.push('t'); break;
        case '\n': out.push('n'); break;
        case '\f': out.push('f'); break;
        case '\r': out.push('r'); break;
        case '"':
        case '\\': out.push(static_cast<char>(byte)); break;
        default:
            out.append("u00", 3);
            out.push(HEX_DIGITS[byte >> 4]);
            out.push(HEX_DIGITS[byte & 15]);
    }
}

// UTF-8 as a JSON string: quotes, backslashes and control characters escaped, no others.
inline void append_quoted(Bytes& out, std::string_view utf8) {
    const uint8_t* at = Raw::of(utf8).data;
    size_t left = utf8.size();
    size_t plain = plain_bytes(at, left);
    if (plain == left) {
        uint8_t* const to = out.room(plain + 2);
        to[0] = '"';
        copy_bytes(to + 1, at, plain);
        to[plain + 1] = '"';
        out.advance(plain + 2);
        return;
    }
    out.push('"');
    for (;; plain = plain_bytes(at, left)) {
        out.append(at, plain);
        at += plain;
        left -= plain;
        if (left == 0) break;
        append_escape(out, *at++);
        --left;
    }
    out.push('"');
}

// A JSON string of what `write` appends, which needs no escapes; always true.
template <typename Write>
inline bool in_quotes(Bytes& out, Write write) {
    out.push('"');
    write();
    out.push('"');
    return true;
}

inline void append_base64(Bytes& out, Raw bytes) {
    constexpr char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t size = (bytes.size + 2) / 3 * 4;
    uint8_t* to = out.room(size);
    const uint8_t* at = bytes.data;
    size_t left = bytes.size;
    for (; left >= 3; left -= 3, at += 3, to += 4) {
        const uint32_t three = static_cast<uint32_t>(load_big(at, 3));
        to[0] = static_cast<uint8_t>(DIGITS[three >> 18]);
        to[1] = static_cast<uint8_t>(DIGITS[three >> 12 & 63]);
        to[2] = static_cast<uint8_t>(DIGITS[three >> 6 & 63]);
        to[3] = static_cast<uint8_t>(DIGITS[three & 63]);
    }
    if (left != 0) {
        const uint32_t three = static_cast<uint32_t>(at[0] << 16 | (left == 2 ? at[1] << 8 : 0));
        to[0] = static_cast<uint8_t>(DIGITS[three >> 18]);
        to[1] = static_cast<uint8_t>(DIGITS[three >> 12 & 63]);
        to[2] = static_cast<uint8_t>(left == 2 ? DIGITS[three >> 6 & 63] : '=');
        to[3] = '=';
    }
    out.advance(size);
}

// A number's shortest digits, in the library's scientific form: d.ddde+xx.
struct Shortest {
    char digits[24];
    int count;
    int point;  // number of digits before the point; may be more than there are, or negative

    // Parses the text from `at` to `end`, which has no sign.
    Shortest(const char* at, const char* end) : count(0), point(0) {
        for (; at < end && *at != 'e'; ++at)
            if (*at != '.') digits[count++] = *at;
        int exponent = 0;
        const bool is_negative = at + 1 < end && at[1] == '-';
        for (at += 2; at < end; ++at) exponent = exponent * 10 + (*at - '0');
        point = 1 + (is_negative ? -exponent : exponent);
        while (count > 1 && digits[count - 1] == '0') --count;
    }
};

// In the form of Python's repr, but integers without ".0".
inline void append_shortest(Bytes& out, bool is_negative, const Shortest& number) {
    uint8_t* const begin = out.room(48);
    uint8_t* to = begin;
    const auto put = [&to](const char* from, int count) {
        std::memcpy(to, from, static_cast<size_t>(count));
        to += count;
    };
    if (is_negative) *to++ = '-';
    const int point = number.point;
    if (point > 16 || point <= -4) {
        put(number.digits, 1);
        if (number.count > 1) {
            *to++ = '.';
            put(number.digits + 1, number.count - 1);
        }
        const int exponent = point - 1;
        *to++ = 'e';
        *to++ = exponent < 0 ? '-' : '+';
        const uint32_t size = static_cast<uint32_t>(exponent < 0 ? -exponent : exponent);
        to = size < 100 ? write_two(to, size) : write_unsigned(to, size);
    } else if (point <= 0) {
        put("0.0000", 2 - point);
        put(number.digits, number.count);
    } else if (point < number.count) {
        put(number.digits, point);
        *to++ = '.';
        put(number.digits + point, number.count - point);
    } else {
        put(number.digits, number.count);
        put("0000000000000000", point - number.count);
    }
    out.advance(static_cast<size_t>(to - begin));
}

// An integer with no other value near it: its own digits are the shortest. False for others.
template <typename Real>
inline bool append_whole(Bytes& out, Real value) {
    constexpr auto NEIGHBOURED = static_cast<Real>(uint64_t{1} << std::numeric_limits<Real>::digits);
    if (std::fabs(value) >= NEIGHBOURED || value != std::floor(value)) return false;
    if (value == 0 && std::signbit(value)) {
        out.append("-0.0", 4);
    } else {
        append_integer(out, static_cast<int64_t>(value));
    }
    return true;
}

// The fewest digits that parse to the same number, which is positive and finite.
template <typename Real>
inline Shortest shortest(Real magnitude) {
    char text[32];
    const auto end =
        std::to_chars(text, text + sizeof text, magnitude, std::chars_format::scientific).ptr;
    return Shortest(text, end);
}

// The shortest digits that parse to the same double; -0.0 keeps its point. False for infinities and
// NaN.
inline bool append_double(Bytes& out, double value) {
    if (!std::isfinite(value)) return false;
    const double magnitude = std::fabs(value);
    if (!append_whole(out, value)) append_shortest(out, std::signbit(value), shortest(magnitude));
    return true;
}

// Digits of a float32, at most 9: the value rounded to the fewest digits, at least 6 (below the
// normal range at least 1), that give it again when parsed as a double and converted to float32, as
// JSON readers do. This defines the result, and is slow.
inline Shortest rounded_float(float magnitude) {
    char text[32];
    for (int digits = magnitude >= 0x1p-126f ? 6 : 1;; ++digits) {
        const auto end = std::to_chars(text, text + sizeof text - 1, magnitude,
                                       std::chars_format::scientific, digits - 1)
                             .ptr;
        const Shortest rounded(text, end);
        if (digits == 9) return rounded;
        // Integer digits and an exponent, because strtod expects the locale's decimal point.
        char whole[40];
        std::memcpy(whole, rounded.digits, static_cast<size_t>(rounded.count));
        char* to = whole + rounded.count;
        *to++ = 'e';
        *std::to_chars(to, whole + sizeof whole - 1, rounded.point - rounded.count).ptr = '\0';
        if (static_cast<float>(std::strtod(whole, nullptr)) == magnitude) return rounded;
    }
}

// Whether the shortest digits of a float32 are those of the definition, which is true for almost
// all. Near a power of two the nearest digits may be outside the range that parses to the value.
// And 7.038531e-26 becomes a double half-way between two float32, which is rounded to the even one,
// although the other is nearer. All others were compared, number by number.
inline bool is_shortest_rounded(float magnitude) {
    uint32_t bits = 0;
    std::memcpy(&bits, &magnitude, sizeof bits);
    return (bits & 0x7fffff) != 0 && bits != 0x15ae43fd && bits != 0x15ae43fe;
}

// The same for a float32.
inline bool append_float(Bytes& out, float value) {
    if (!std::isfinite(value)) return false;
    const float magnitude = std::fabs(value);
    if (!append_whole(out, value)) {
        append_shortest(out, std::signbit(value),
                        is_shortest_rounded(magnitude) ? shortest(magnitude)
                                                       : rounded_float(magnitude));
    }
    return true;
}

}  // namespace mysqlbinlog
