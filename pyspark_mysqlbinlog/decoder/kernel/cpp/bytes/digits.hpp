// Numbers as decimal text.
#pragma once

#include "bytes/bytes.hpp"

namespace mysqlbinlog {

inline constexpr uint32_t POWERS_OF_TEN[10] = {1,         10,         100,         1'000,
                                               10'000,    100'000,    1'000'000,   10'000'000,
                                               100'000'000, 1'000'000'000};

// "00" to "99", one after another.
inline constexpr char TWO_DIGITS[201] =
    "0001020304050607080910111213141516171819"
    "2021222324252627282930313233343536373839"
    "4041424344454647484950515253545556575859"
    "6061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

inline constexpr char HEX_DIGITS[] = "0123456789abcdef";

// Writes two digits of a number below 100; returns the position after them.
inline uint8_t* write_two(uint8_t* to, uint32_t number) {
    std::memcpy(to, TWO_DIGITS + 2 * number, 2);
    return to + 2;
}

// Exactly `digits` digits with leading zeros; the number must not have more.
inline uint8_t* write_digits(uint8_t* to, uint32_t number, size_t digits) {
    size_t at = digits;
    while (at >= 2) {
        at -= 2;
        std::memcpy(to + at, TWO_DIGITS + 2 * (number % 100), 2);
        number /= 100;
    }
    if (at == 1) to[0] = static_cast<uint8_t>('0' + number % 10);
    return to + digits;
}

// Number of digits without leading zeros.
inline size_t count_digits(uint64_t number) {
    size_t digits = 1;
    for (;; digits += 4, number /= 10'000) {
        if (number < 10) return digits;
        if (number < 100) return digits + 1;
        if (number < 1'000) return digits + 2;
        if (number < 10'000) return digits + 3;
    }
}

// Without leading zeros; at most 20 bytes.
inline uint8_t* write_unsigned(uint8_t* to, uint64_t number) {
    uint8_t* const end = to + count_digits(number);
    uint8_t* at = end;
    while (number >= 100) {
        at -= 2;
        write_two(at, static_cast<uint32_t>(number % 100));
        number /= 100;
    }
    if (number >= 10) {
        write_two(at - 2, static_cast<uint32_t>(number));
    } else {
        at[-1] = static_cast<uint8_t>('0' + number);
    }
    return end;
}

inline void append_unsigned(Bytes& out, uint64_t number) {
    uint8_t* to = out.room(20);
    out.advance(static_cast<size_t>(write_unsigned(to, number) - to));
}

inline void append_integer(Bytes& out, int64_t number) {
    uint8_t* const to = out.room(21);
    uint8_t* at = to;
    uint64_t magnitude = static_cast<uint64_t>(number);
    if (number < 0) {
        *at++ = '-';
        magnitude = 0 - magnitude;
    }
    out.advance(static_cast<size_t>(write_unsigned(at, magnitude) - to));
}

}  // namespace mysqlbinlog
