// Masked columns: a mask's text instead of the value. The Python reference is transforms/masks.py.
#pragma once

#include "arrow/column.hpp"
#include "bytes/sha256.hpp"

namespace mysqlbinlog {

struct Mask {
    enum class Kind : uint8_t { Hash, Redact, Truncate, KeepLast };

    Kind kind = Kind::Redact;
    size_t length = 0;  // characters that Truncate and KeepLast show
    HmacSha256 key;

    static constexpr std::string_view REDACTED = "***";

    // Appends the mask of a value: its text in UTF-8, or for Hash the bytes of a binary value.
    void append(const Bytes& value, Bytes& out) const {
        switch (kind) {
            case Kind::Hash: return append_hash(value, out);
            case Kind::Redact: return out.append(REDACTED);
            case Kind::Truncate: return out.append(value.data(), end_of(value, length));
            case Kind::KeepLast: {
                out.append(REDACTED);
                const size_t begin = begin_of(value, length);
                out.append(value.data() + begin, value.size() - begin);
            }
        }
    }

private:
    void append_hash(const Bytes& value, Bytes& out) const {
        constexpr char DIGITS[] = "0123456789abcdef";
        uint8_t digest[Sha256::DIGEST];
        key.digest(value.data(), value.size(), digest);
        uint8_t* to = out.room(2 * sizeof digest);
        for (const uint8_t byte : digest) {
            *to++ = static_cast<uint8_t>(DIGITS[byte >> 4]);
            *to++ = static_cast<uint8_t>(DIGITS[byte & 15]);
        }
        out.advance(2 * sizeof digest);
    }
    static bool begins_character(uint8_t byte) { return (byte & 0xc0) != 0x80; }
    // End of the first `count` characters.
    static size_t end_of(const Bytes& text, size_t count) {
        size_t at = 0;
        for (; at < text.size(); ++at)
            if (begins_character(text.data()[at]) && count-- == 0) break;
        return at;
    }
    // Start of the last `count` characters; the end of the text if it has no more than `count`.
    static size_t begin_of(const Bytes& text, size_t count) {
        for (size_t at = text.size(); at > 0; --at) {
            if (!begins_character(text.data()[at - 1]) || --count != 0) continue;
            return at == 1 ? text.size() : at - 1;
        }
        return text.size();
    }
};

// The parts of a column of Kind::Masked.
struct MaskedColumn {
    Column column;  // unmasked
    Mask mask;
};

}  // namespace mysqlbinlog
