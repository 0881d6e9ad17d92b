// Text in any of MySQL's character sets, as UTF-8. The characters are those of values/charsets.py:
// kernel/charset_tables.py makes the tables from its decoders. Bytes that the decoder rejects are
// also rejected here.
#pragma once

#include "bytes/bytes.hpp"
#include "arrow/column.hpp"
#include "values/values.hpp"

namespace mysqlbinlog {

// Conversion of a character set's bytes to UTF-8.
//
// A character in a table is its UTF-8 bytes, at most 4, the first one lowest; 0 is an invalid code
// (and U+0000 at the index of the byte 0).
struct CharsetTable {
    enum class Form : uint8_t { Utf8, Utf16, Utf16le, Utf32, Ucs2, OneByte, ManyBytes };

    Form form = Form::Utf8;
    bool is_ascii = true;          // bytes below 0x80 are ASCII's
    std::vector<uint32_t> one;     // [byte]; 256 entries if the form is OneByte or ManyBytes
    std::vector<uint32_t> two;     // [first << 8 | second]
    std::vector<uint32_t> three;   // [second << 8 | third] after 0x8f: EUC-JP
    std::vector<uint32_t> four;    // GB 18030 below U+10000, by four_byte_index

    // Whether a text of bytes below 0x80 is ASCII.
    bool has_ascii_bytes() const {
        return form == Form::Utf8 ||
               (is_ascii && (form == Form::OneByte || form == Form::ManyBytes));
    }
};

inline bool is_continuation(uint8_t byte) { return (byte & 0xc0) == 0x80; }

// Whether it is valid UTF-8: no surrogates, no overlong codes, nothing beyond U+10FFFF.
inline bool is_utf8(const uint8_t* at, size_t size) {
    const uint8_t* const end = at + size;
    // If the last 8 bytes are ASCII, the remaining ones need no check.
    const bool ends_in_ascii = size >= 8 && (load_word(end - 8) & HIGH_BITS) == 0;
    while (at < end) {
        if (end - at >= 8) {
            if ((load_word(at) & HIGH_BITS) == 0) {
                at += 8;
                continue;
            }
        } else if (ends_in_ascii) {
            return true;
        }
        const uint8_t first = *at;
        if (first < 0x80) {
            ++at;
        } else if (first < 0xe0) {
            if (first < 0xc2 || end - at < 2 || !is_continuation(at[1])) return false;
            at += 2;
        } else if (first < 0xf0) {
            if (end - at < 3 || !is_continuation(at[1]) || !is_continuation(at[2])) return false;
            if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f)) return false;
            at += 3;
        } else {
            if (first > 0xf4 || end - at < 4 || !is_continuation(at[1]) ||
                !is_continuation(at[2]) || !is_continuation(at[3]))
                return false;
            if ((first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f)) return false;
            at += 4;
        }
    }
    return true;
}

inline bool is_surrogate(uint32_t code) { return code >= 0xd800 && code <= 0xdfff; }

// A character as UTF-8; at most 4 bytes.
inline uint8_t* write_character(uint8_t* to, uint32_t code) {
    if (code < 0x80) {
        *to++ = static_cast<uint8_t>(code);
    } else if (code < 0x800) {
        *to++ = static_cast<uint8_t>(0xc0 | code >> 6);
        *to++ = static_cast<uint8_t>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = static_cast<uint8_t>(0xe0 | code >> 12);
        *to++ = static_cast<uint8_t>(0x80 | (code >> 6 & 0x3f));
        *to++ = static_cast<uint8_t>(0x80 | (code & 0x3f));
    } else {
        *to++ = static_cast<uint8_t>(0xf0 | code >> 18);
        *to++ = static_cast<uint8_t>(0x80 | (code >> 12 & 0x3f));
        *to++ = static_cast<uint8_t>(0x80 | (code >> 6 & 0x3f));
        *to++ = static_cast<uint8_t>(0x80 | (code & 0x3f));
    }
    return to;
}

// Writes a table's entry that is not 0.
inline uint8_t* write_entry(uint8_t* to, uint32_t entry) {
    do {
        *to++ = static_cast<uint8_t>(entry);
        entry >>= 8;
    } while (entry != 0);
    return to;
}

inline bool append_utf16(Raw text, bool is_little, bool has_pairs, Bytes& out) {
    if (text.size % 2 != 0) return false;
    const uint8_t* at = text.data;
    const uint8_t* const end = at + text.size;
    const auto unit = [is_little](const uint8_t* from) -> uint32_t {
        return is_little ? load16(from) : static_cast<uint32_t>(load_big(from, 2));
    };
    uint8_t* const begin = out.room(text.size / 2 * 3);
    uint8_t* to = begin;
    for (; at < end; at += 2) {
        uint32_t code = unit(at);
        if (is_surrogate(code)) {
            if (!has_pairs || code >= 0xdc00 || end - at < 4) return false;
            at += 2;
            const uint32_t low = unit(at);
            if (low < 0xdc00 || low > 0xdfff) return false;
            code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
        }
        to = write_character(to, code);
    }
    out.advance(static_cast<size_t>(to - begin));
    return true;
}

inline bool append_utf32(Raw text, Bytes& out) {
    if (text.size % 4 != 0) return false;
    uint8_t* const begin = out.room(text.size);
    uint8_t* to = begin;
    for (size_t at = 0; at < text.size; at += 4) {
        const uint32_t code = static_cast<uint32_t>(load_big(text.data + at, 4));
        if (code > 0x10ffff || is_surrogate(code)) return false;
        to = write_character(to, code);
    }
    out.advance(static_cast<size_t>(to - begin));
    return true;
}

// Index of GB 18030's codes of four bytes: 0x81-0xfe, 0x30-0x39, 0x81-0xfe, 0x30-0x39.
inline bool four_byte_index(const uint8_t* at, uint32_t& index) {
    const uint32_t a = at[0] - 0x81u, b = at[1] - 0x30u, c = at[2] - 0x81u, d = at[3] - 0x30u;
    index = ((a * 10 + b) * 126 + c) * 10 + d;
    return a < 126 && b < 10 && c < 126 && d < 10;
}

// Those from 0x90308130 on are the characters from U+10000 on; other codes beyond the table have no
// character.
inline constexpr uint32_t FOUR_BYTE_U10000 = 189'000;

// Writes one code of more than one byte; returns its length, 0 if invalid.
inline size_t write_code(const CharsetTable& table, const uint8_t* at, size_t left, uint8_t*& to) {
    if (left < 2) return 0;
    uint32_t entry = table.two[static_cast<size_t>(at[0] << 8 | at[1])];
    size_t size = 2;
    if (entry == 0 && at[0] == 0x8f && left >= 3 && !table.three.empty()) {
        entry = table.three[static_cast<size_t>(at[1] << 8 | at[2])];
        size = 3;
    }
    if (entry == 0 && left >= 4 && !table.four.empty()) {
        uint32_t index = 0;
        if (!four_byte_index(at, index)) return 0;
        if (index < table.four.size()) {
            entry = table.four[index];
        } else if (index >= FOUR_BYTE_U10000 && index - FOUR_BYTE_U10000 < 0x100000) {
            to = write_character(to, index - FOUR_BYTE_U10000 + 0x10000);
            return 4;
        } else {
            entry = '?';
        }
        size = 4;
    }
    if (entry == 0) return 0;
    to = write_entry(to, entry);
    return size;
}

inline bool append_by_table(const CharsetTable& table, Raw text, Bytes& out) {
    const uint8_t* at = text.data;
    const uint8_t* const end = at + text.size;
    // Each byte of a code becomes at most three.
    uint8_t* const begin = out.room(text.size * 3);
    uint8_t* to = begin;
    while (at < end) {
        if (table.is_ascii && end - at >= 8 && (load_word(at) & HIGH_BITS) == 0) {
            std::memcpy(to, at, 8);
            at += 8;
            to += 8;
            continue;
        }
        const uint32_t entry = table.one[*at];
        if (entry != 0) {
            to = write_entry(to, entry);
            ++at;
        } else if (*at == 0) {
            *to++ = *at++;
        } else {
            if (table.form != CharsetTable::Form::ManyBytes) return false;
            const size_t size = write_code(table, at, static_cast<size_t>(end - at), to);
            if (size == 0) return false;
            at += size;
        }
    }
    out.advance(static_cast<size_t>(to - begin));
    return true;
}

// Copies a text and returns whether it was ASCII: short texts need one pass without a call.
inline bool copy_ascii(uint8_t* to, const uint8_t* from, size_t size) {
    uint64_t all = 0;
    if (size >= 8) {
        for (size_t at = 0; at + 8 <= size; at += 8) {
            const uint64_t word = load_word(from + at);
            all |= word;
            store_word(to + at, word);
        }
        const uint64_t last = load_word(from + size - 8);
        all |= last;
        store_word(to + size - 8, last);
    } else {
        for (size_t at = 0; at < size; ++at) all |= to[at] = from[at];
    }
    return (all & HIGH_BITS) == 0;
}

// Longer texts are worth the calls that copy and check by vectors.
inline constexpr size_t SHORT_TEXT = 256;

// Any text of a character set as UTF-8; see append_utf8.
inline bool append_converted(const CharsetTable& table, Raw text, Bytes& out) {
    switch (table.form) {
        case CharsetTable::Form::Utf8:
            if (!is_utf8(text.data, text.size)) return false;
            out.append(text.data, text.size);
            return true;
        case CharsetTable::Form::Utf16: return append_utf16(text, false, true, out);
        case CharsetTable::Form::Utf16le: return append_utf16(text, true, true, out);
        case CharsetTable::Form::Ucs2: return append_utf16(text, false, false, out);
        case CharsetTable::Form::Utf32: return append_utf32(text, out);
        default: return append_by_table(table, text, out);
    }
}

// Appends a Text column's bytes as UTF-8; false if no column of the character set can hold them.
inline bool append_utf8(const Column& column, Raw text, Bytes& out) {
    const CharsetTable& table = *column.charset;
    if (table.has_ascii_bytes() && text.size <= SHORT_TEXT &&
        copy_ascii(out.room(text.size), text.data, text.size)) {
        out.advance(text.size);
        return true;
    }
    return append_converted(table, text, out);
}

}  // namespace mysqlbinlog
