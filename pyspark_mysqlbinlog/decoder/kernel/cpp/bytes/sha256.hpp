// SHA-256 (FIPS 180-4), and HMAC (RFC 2104) with a key that is prepared once.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace mysqlbinlog {

class Sha256 {
public:
    static constexpr size_t BLOCK = 64;
    static constexpr size_t DIGEST = 32;

    void update(const uint8_t* data, size_t size) {
        total_ += size;
        if (filled_ != 0) {
            const size_t taken = size < BLOCK - filled_ ? size : BLOCK - filled_;
            std::memcpy(block_ + filled_, data, taken);
            filled_ += taken;
            data += taken;
            size -= taken;
            if (filled_ < BLOCK) return;
            compress(block_);
            filled_ = 0;
        }
        for (; size >= BLOCK; data += BLOCK, size -= BLOCK) compress(data);
        if (size != 0) std::memcpy(block_, data, size);
        filled_ = size;
    }
    void finish(uint8_t* digest) {
        const uint64_t bits = total_ * 8;
        block_[filled_++] = 0x80;
        if (filled_ > BLOCK - 8) {
            std::memset(block_ + filled_, 0, BLOCK - filled_);
            compress(block_);
            filled_ = 0;
        }
        std::memset(block_ + filled_, 0, BLOCK - 8 - filled_);
        for (size_t at = 0; at < 8; ++at)
            block_[BLOCK - 1 - at] = static_cast<uint8_t>(bits >> (8 * at));
        compress(block_);
        for (size_t at = 0; at < DIGEST; ++at)
            digest[at] = static_cast<uint8_t>(state_[at / 4] >> (24 - 8 * (at % 4)));
    }

private:
    static uint32_t rotated(uint32_t value, int bits) {
        return value >> bits | value << (32 - bits);
    }
    void compress(const uint8_t* block) {
        uint32_t w[64];
        for (size_t at = 0; at < 16; ++at)
            w[at] = uint32_t{block[4 * at]} << 24 | uint32_t{block[4 * at + 1]} << 16 |
                    uint32_t{block[4 * at + 2]} << 8 | block[4 * at + 3];
        for (size_t at = 16; at < 64; ++at) {
            const uint32_t a = w[at - 15], b = w[at - 2];
            w[at] = w[at - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[at - 7] +
                    (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
        }
        std::array<uint32_t, 8> s = state_;
        for (size_t at = 0; at < 64; ++at) {
            const uint32_t one = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
                                 ((s[4] & s[5]) ^ (~s[4] & s[6])) + ROUNDS[at] + w[at];
            const uint32_t two = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
                                 ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s = {one + two, s[0], s[1], s[2], s[3] + one, s[4], s[5], s[6]};
        }
        for (size_t at = 0; at < 8; ++at) state_[at] += s[at];
    }

    static constexpr uint32_t ROUNDS[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};

    std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t block_[BLOCK];
    size_t filled_ = 0;
    uint64_t total_ = 0;
};

class HmacSha256 {
public:
    explicit HmacSha256(std::string_view key = {}) {
        uint8_t padded[Sha256::BLOCK] = {};
        if (key.size() > Sha256::BLOCK) {
            Sha256 hash;
            hash.update(reinterpret_cast<const uint8_t*>(key.data()), key.size());
            hash.finish(padded);
        } else if (!key.empty()) {
            std::memcpy(padded, key.data(), key.size());
        }
        for (uint8_t& byte : padded) byte ^= 0x36;
        inner_.update(padded, sizeof padded);
        for (uint8_t& byte : padded) byte ^= 0x36 ^ 0x5c;
        outer_.update(padded, sizeof padded);
    }
    void digest(const uint8_t* data, size_t size, uint8_t* out) const {
        Sha256 inner = inner_, outer = outer_;
        inner.update(data, size);
        inner.finish(out);
        outer.update(out, Sha256::DIGEST);
        outer.finish(out);
    }

private:
    Sha256 inner_;
    Sha256 outer_;
};

}  // namespace mysqlbinlog
