// DECIMAL: digits packed in groups of nine, as one number or as text. See values/decimals.py.
#pragma once

#include "bytes/bytes.hpp"
#include "arrow/column.hpp"
#include "bytes/digits.hpp"

namespace mysqlbinlog {

// A DECIMAL's digits as one number: value * 10^scale. At most 38 digits fit; longer ones are
// written by append_decimal.
using Int128 = __int128;

// More digits than any DECIMAL can have, in a column or in a JSON document.
inline constexpr uint32_t MAX_DECIMAL_DIGITS = 81;

// Bytes of a group of 0 to 9 digits.
inline constexpr uint8_t BYTES_OF_DIGITS[10] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};

inline uint32_t decimal_size(uint32_t precision, uint32_t scale) {
    const uint32_t before = precision - scale;
    return before / 9 * 4 + BYTES_OF_DIGITS[before % 9] + scale / 9 * 4 +
           BYTES_OF_DIGITS[scale % 9];
}

// The groups of one stored DECIMAL, first to last.
class DecimalGroups {
public:
    explicit DecimalGroups(const uint8_t* at)
        : at_(at), flip_((at[0] & 0x80) != 0 ? 0 : 0xffffffff), is_first_(true) {}

    bool is_negative() const { return flip_ != 0; }

    // The next group, of `digits` digits; false if it is too large for them.
    [[gnu::always_inline]] bool next(uint32_t digits, uint32_t& group) {
        const uint32_t size = BYTES_OF_DIGITS[digits];
        const uint32_t mask = 0xffffffffu >> (32 - 8 * size);
        group = (static_cast<uint32_t>(load_big(at_, size)) ^ flip_) & mask;
        // The first bit is the sign, inverted once more.
        if (is_first_) group ^= 0x80u << (8 * size - 8);
        is_first_ = false;
        at_ += size;
        return group < POWERS_OF_TEN[digits];
    }

private:
    const uint8_t* at_;
    uint32_t flip_;
    bool is_first_;
};

// Adds the digits of one side of the point to `value`: `rest` of them are a group of their own,
// before or after the full groups.
template <typename Number>
inline bool gather(DecimalGroups& groups, uint32_t rest, uint32_t full, bool rest_first,
                   Number& value) {
    uint32_t group = 0;
    if (rest_first && rest != 0) {
        if (!groups.next(rest, group)) return false;
        value = group;
    }
    for (uint32_t i = 0; i < full; ++i) {
        if (!groups.next(9, group)) return false;
        value = value * 1'000'000'000 + group;
    }
    if (!rest_first && rest != 0) {
        if (!groups.next(rest, group)) return false;
        value = value * POWERS_OF_TEN[rest] + group;
    }
    return true;
}

template <typename Number>
inline bool gather_decimal(const uint8_t* at, uint32_t precision, uint32_t scale, Number& value) {
    DecimalGroups groups(at);
    const uint32_t before = precision - scale;
    Number digits = 0;
    if (!gather(groups, before % 9, before / 9, true, digits) ||
        !gather(groups, scale % 9, scale / 9, false, digits))
        return false;
    value = groups.is_negative() ? -digits : digits;
    return true;
}

// The same for at most 18 digits in at most 8 bytes: all in one register, last group first. False
// in the same cases as gather_decimal.
inline bool split_decimal(uint64_t bytes, uint32_t size, uint32_t precision, uint32_t scale,
                          int64_t& value) {
    const uint64_t sign = uint64_t{1} << (8 * size - 1);
    const bool is_negative = (bytes & sign) == 0;
    // The complement of all bits below the sign, which is then 0.
    uint64_t rest = (is_negative ? ~bytes : bytes) & (sign - 1);
    uint64_t digits = 0, unit = 1;
    bool fits = true;
    const auto take = [&](uint64_t group, uint32_t power) {
        fits = fits & (group < POWERS_OF_TEN[power]);
        digits += group * unit;
        unit *= POWERS_OF_TEN[power];
    };
    const uint32_t before = precision - scale;
    if (const uint32_t tail = scale % 9; tail != 0) {
        const uint32_t bits = 8 * BYTES_OF_DIGITS[tail];
        take(rest & ((uint64_t{1} << bits) - 1), tail);
        rest >>= bits;
    }
    for (uint32_t full = scale / 9 + before / 9; full != 0; --full) {
        take(rest & 0xffffffff, 9);
        rest >>= 32;
    }
    take(rest, before % 9);
    value = static_cast<int64_t>(is_negative ? 0 - digits : digits);
    return fits;
}

// Precision at most 38.
inline bool read_decimal(Input& in, const Column& column, Int128& value) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    if (column.precision > 18) return gather_decimal(at, column.precision, column.scale, value);
    int64_t small = 0;
    const bool is_read =
        column.size <= 8
            ? split_decimal(load_big(at, column.size), column.size, column.precision,
                            column.scale, small)
            : gather_decimal(at, column.precision, column.scale, small);
    value = small;
    return is_read;
}

// The text of a stored DECIMAL of decimal_size(precision, scale) bytes: `scale` digits after the
// point, and no -0. 0 < precision <= MAX_DECIMAL_DIGITS, scale <= precision.
inline bool append_decimal(const uint8_t* at, uint32_t precision, uint32_t scale, Bytes& out) {
    DecimalGroups groups(at);
    const uint32_t before = precision - scale;
    // Sign, a digit, the point.
    uint8_t* const begin = out.room(precision + 3);
    uint8_t* to = begin;
    if (groups.is_negative()) *to++ = '-';
    uint8_t* const digits = to;
    bool is_zero = true;
    uint32_t group = 0;

    const uint32_t lead = before % 9;
    for (uint32_t i = 0; i < before / 9 + (lead != 0); ++i) {
        if (!groups.next(i == 0 && lead != 0 ? lead : 9, group)) return false;
        if (!is_zero) {
            to = write_digits(to, group, 9);
        } else if (group != 0) {
            is_zero = false;
            to = write_unsigned(to, group);
        }
    }
    if (to == digits) *to++ = '0';
    if (scale != 0) *to++ = '.';
    for (uint32_t left = scale; left != 0;) {
        const uint32_t size = left < 9 ? left : 9;
        if (!groups.next(size, group)) return false;
        is_zero = is_zero && group == 0;
        to = write_digits(to, group, size);
        left -= size;
    }

    size_t size = static_cast<size_t>(to - begin);
    if (is_zero && groups.is_negative()) std::memmove(begin, digits, --size);
    out.advance(size);
    return true;
}

inline bool append_decimal(Input& in, const Column& column, Bytes& out) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    return append_decimal(at, column.precision, column.scale, out);
}

}  // namespace mysqlbinlog
