// CRC-32 as zlib's crc32() computes it (polynomial 0x04C11DB7, bits reflected): the checksum of
// every event.
//
// With carry-less multiplication (x86's PCLMULQDQ, detected at run time) 64 bytes are folded at a
// time: a remainder is linear, so 128 bits of message can be replaced by their product with
// x^n mod P, n bits later (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction"). The remaining 16 bytes are processed by tables. ARMv8 has an instruction
// for this CRC, which is used if the compiler may (__ARM_FEATURE_CRC32: not by default). Otherwise,
// 8 tables process 8 bytes at a time.
//
// Every constant is computed from the polynomial.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bytes/bytes.hpp"

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
#define MYSQLBINLOG_CRC32_PCLMUL 1
#include <immintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace mysqlbinlog {
namespace crc {

constexpr uint32_t POLYNOMIAL = 0x04C11DB7;

constexpr uint32_t reflected(uint32_t value) {
    uint32_t mirror = 0;
    for (int bit = 0; bit < 32; ++bit) mirror |= (value >> bit & 1u) << (31 - bit);
    return mirror;
}

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
    Tables tables{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) {
            value = (value >> 1) ^ (value & 1 ? reflected(POLYNOMIAL) : 0);
        }
        tables[0][byte] = value;
    }
    for (uint32_t byte = 0; byte < 256; ++byte) {
        for (size_t n = 1; n < 8; ++n) {
            const uint32_t before = tables[n - 1][byte];
            tables[n][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
    }
    return tables;
}

inline constexpr Tables TABLES = make_tables();

// `state` is the complement of the CRC so far, here and below.
inline uint32_t by_tables(uint32_t state, const uint8_t* at, size_t size) {
    for (; size >= 8; size -= 8, at += 8) {
        const uint32_t low = load32(at) ^ state;
        const uint32_t high = load32(at + 4);
        state = TABLES[7][low & 0xFF] ^ TABLES[6][low >> 8 & 0xFF] ^ TABLES[5][low >> 16 & 0xFF] ^
                TABLES[4][low >> 24] ^ TABLES[3][high & 0xFF] ^ TABLES[2][high >> 8 & 0xFF] ^
                TABLES[1][high >> 16 & 0xFF] ^ TABLES[0][high >> 24];
    }
    if (size >= 4) {
        const uint32_t word = load32(at) ^ state;
        state = TABLES[3][word & 0xFF] ^ TABLES[2][word >> 8 & 0xFF] ^
                TABLES[1][word >> 16 & 0xFF] ^ TABLES[0][word >> 24];
        size -= 4;
        at += 4;
    }
    for (; size > 0; --size, ++at) state = (state >> 8) ^ TABLES[0][(state ^ *at) & 0xFF];
    return state;
}

#ifdef MYSQLBINLOG_CRC32_PCLMUL

// x^power mod P, reflected and shifted by one, as a carry-less product of reflected numbers
// requires.
constexpr uint64_t fold_constant(unsigned power) {
    uint32_t value = 1;
    for (unsigned n = 0; n < power; ++n) value = value << 1 ^ (value >> 31 ? POLYNOMIAL : 0);
    return static_cast<uint64_t>(reflected(value)) << 1;
}

// Moving 128 bits by `distance` bits: the half with the higher powers, and the other.
constexpr uint64_t FOLD_512_HIGH = fold_constant(512 + 32);
constexpr uint64_t FOLD_512_LOW = fold_constant(512 - 32);
constexpr uint64_t FOLD_128_HIGH = fold_constant(128 + 32);
constexpr uint64_t FOLD_128_LOW = fold_constant(128 - 32);

#define MYSQLBINLOG_PCLMUL_TARGET __attribute__((target("sse4.1,pclmul")))

MYSQLBINLOG_PCLMUL_TARGET inline __m128i load_block(const uint8_t* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

MYSQLBINLOG_PCLMUL_TARGET inline __m128i fold(__m128i block, __m128i by, __m128i onto) {
    const __m128i high = _mm_clmulepi64_si128(block, by, 0x00);
    const __m128i low = _mm_clmulepi64_si128(block, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(high, low), onto);
}

// `size` is at least 16.
MYSQLBINLOG_PCLMUL_TARGET inline uint32_t by_folding(uint32_t state, const uint8_t* at,
                                                     size_t size) {
    const __m128i by_128 = _mm_set_epi64x(static_cast<long long>(FOLD_128_LOW),
                                          static_cast<long long>(FOLD_128_HIGH));
    __m128i rest = _mm_xor_si128(load_block(at), _mm_cvtsi32_si128(static_cast<int>(state)));
    if (size >= 64) {
        const __m128i by_512 = _mm_set_epi64x(static_cast<long long>(FOLD_512_LOW),
                                              static_cast<long long>(FOLD_512_HIGH));
        __m128i second = load_block(at + 16);
        __m128i third = load_block(at + 32);
        __m128i fourth = load_block(at + 48);
        at += 64;
        size -= 64;
        for (; size >= 64; size -= 64, at += 64) {
            rest = fold(rest, by_512, load_block(at));
            second = fold(second, by_512, load_block(at + 16));
            third = fold(third, by_512, load_block(at + 32));
            fourth = fold(fourth, by_512, load_block(at + 48));
        }
        rest = fold(rest, by_128, second);
        rest = fold(rest, by_128, third);
        rest = fold(rest, by_128, fourth);
    } else {
        at += 16;
        size -= 16;
    }
    for (; size >= 16; size -= 16, at += 16) rest = fold(rest, by_128, load_block(at));
    uint8_t last[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(last), rest);
    return by_tables(by_tables(0, last, sizeof last), at, size);
}

inline bool can_fold() {
    static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    return can;
}

#endif  // MYSQLBINLOG_CRC32_PCLMUL

#if defined(__ARM_FEATURE_CRC32)
inline uint32_t by_instruction(uint32_t state, const uint8_t* at, size_t size) {
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        std::memcpy(&word, at, sizeof word);
        state = __crc32d(state, word);
    }
    for (; size > 0; --size, ++at) state = __crc32b(state, *at);
    return state;
}
#endif

}  // namespace crc

inline uint32_t crc32(const uint8_t* data, size_t size, uint32_t before = 0) {
#if defined(__ARM_FEATURE_CRC32)
    return ~crc::by_instruction(~before, data, size);
#else
#ifdef MYSQLBINLOG_CRC32_PCLMUL
    if (size >= 16 && crc::can_fold()) return ~crc::by_folding(~before, data, size);
#endif
    return ~crc::by_tables(~before, data, size);
#endif
}

}  // namespace mysqlbinlog
