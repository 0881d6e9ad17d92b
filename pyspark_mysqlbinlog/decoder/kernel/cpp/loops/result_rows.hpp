// Rows of a prepared statement's result as row images, as the binlog would contain them. The Python
// reference decoder/result_rows/encode.py describes the layouts.
//
// Whole packets are read directly from the socket's buffer. Invalid rows are never corrected: the
// encoder stops before them, and Python encodes the row or raises the error.
#pragma once

#include <vector>

#include "bytes/bytes.hpp"
#include "values/decimals.hpp"
#include "json/json_encoding.hpp"
#include "values/temporals.hpp"

namespace mysqlbinlog {

// One column of the result.
struct ResultColumn {
    // As in result_rows/columns.py.
    enum class Kind : uint8_t {
        Excluded,   // only NULL
        Fixed,      // `size` bytes, stored unchanged
        Int24,      // four bytes, three of them stored
        Labels,     // a number of eight bytes, the `size` lowest of them stored: ENUM, SET
        Year,       // two bytes, stored is one
        Date,       // this and the next three: a length and the parts up to the last that is not 0
        Time,
        Datetime,
        Timestamp,
        Decimal,    // text; stored as digits packed in groups of nine
        Bit,        // a length and `size` bytes, which are stored
        Bytes,      // a length and bytes; stored with a length of `size` bytes
        Binary,     // the same, without trailing zeros
        Json,       // text; stored as a binary document after a length of `size` bytes
    };

    Kind kind = Kind::Excluded;
    uint8_t size = 0;
    bool is_unsigned = false;
    uint8_t precision = 0;
    uint8_t scale = 0;
    uint8_t fsp = 0;
    // Json: the types of all numbers matter.
    bool is_typed = false;
    // Json: a DOUBLE without a fraction is shown as 5.0.
    bool doubles_have_points = false;
};

namespace result_rows {

inline constexpr size_t PACKET_HEAD = 4;
inline constexpr uint32_t MAX_PAYLOAD = 0xffffff;
// The first byte of a payload.
inline constexpr uint8_t ROW = 0x00, END = 0xfe, ERROR = 0xff;
// The first bit used in a row's bitmap.
inline constexpr size_t BITMAP_OFFSET = 2;

// Reads a length; false for an invalid one, such as 0xfb: NULL.
[[gnu::always_inline]] inline bool read_length(Input& in, uint64_t& length) {
    const uint8_t* at;
    if (!in.take(1, at)) return false;
    if (*at < 0xfb) {
        length = *at;
        return true;
    }
    switch (*at) {
        case 0xfc:
            if (!in.take(2, at)) return false;
            length = load16(at);
            return true;
        case 0xfd:
            if (!in.take(3, at)) return false;
            length = load24(at);
            return true;
        case 0xfe:
            if (!in.take(8, at)) return false;
            length = load64(at);
            return true;
        default: return false;
    }
}

[[gnu::always_inline]] inline bool read_text(Input& in, Raw& text) {
    uint64_t length = 0;
    if (!read_length(in, length) || length > in.left()) return false;
    text = Raw{in.at, static_cast<size_t>(length)};
    in.at += length;
    return true;
}

[[gnu::always_inline]] inline void store_little(uint8_t* to, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) to[i] = static_cast<uint8_t>(value >> (8 * i));
}
[[gnu::always_inline]] inline void store_big(uint8_t* to, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) to[i] = static_cast<uint8_t>(value >> (8 * (size - 1 - i)));
}

// Bytes of a fraction of this many digits.
inline uint32_t fraction_size(uint32_t fsp) { return (fsp + 1) / 2; }

// Microseconds in the units of a stored fraction; false for digits beyond the column's.
[[gnu::always_inline]] inline bool pack_fraction(uint32_t micros, uint32_t fsp, uint32_t& units) {
    if (micros == 0) {
        units = 0;
        return true;
    }
    constexpr uint32_t MICROS[4] = {1'000'000, 10'000, 100, 1};
    units = micros / MICROS[fraction_size(fsp)];
    return micros < 1'000'000 && micros % POWERS_OF_TEN[6 - fsp] == 0;
}

struct Clock {
    uint32_t hour, minute, second, micros;
};

// A date and a time of day: year u16, month, day | hour, minute, second | microseconds u32;
// trailing parts that are 0 are omitted.
[[gnu::always_inline]] inline bool read_datetime(Input& in, Ymd& date, Clock& clock) {
    const uint8_t* at;
    if (!in.take(1, at)) return false;
    const uint32_t length = *at;
    date = Ymd{0, 0, 0};
    clock = Clock{0, 0, 0, 0};
    if (length == 0) return true;
    if ((length != 4 && length != 7 && length != 11) || !in.take(length, at)) return false;
    if (!make_date(load16(at), at[2], at[3], date)) return false;
    if (length == 4) return true;
    clock = Clock{at[4], at[5], at[6], length == 11 ? load32(at + 7) : 0};
    return clock.hour <= 23 && clock.minute <= 59 && clock.second <= 59;
}

inline bool put_date(Input& in, uint8_t*& to) {
    Ymd date;
    Clock clock;
    if (!read_datetime(in, date, clock)) return false;
    if ((clock.hour | clock.minute | clock.second | clock.micros) != 0) return false;
    store_little(to, static_cast<uint32_t>(date.year) << 9 | date.month << 5 | date.day, 3);
    to += 3;
    return true;
}

inline bool put_datetime(Input& in, const ResultColumn& column, uint8_t*& to) {
    Ymd date;
    Clock clock;
    uint32_t units = 0;
    if (!read_datetime(in, date, clock) || !pack_fraction(clock.micros, column.fsp, units))
        return false;
    const uint64_t months = uint64_t{date.year} * 13 + date.month;
    const uint64_t packed = uint64_t{1} << 39 | months << 22 | uint64_t{date.day} << 17 |
                            clock.hour << 12 | clock.minute << 6 | clock.second;
    const uint32_t fraction = fraction_size(column.fsp);
    store_big(to, packed, 5);
    store_big(to + 5, units, fraction);
    to += 5 + fraction;
    return true;
}

// In UTC, the session's time zone.
inline bool put_timestamp(Input& in, const ResultColumn& column, uint8_t*& to) {
    Ymd date;
    Clock clock;
    uint32_t units = 0;
    if (!read_datetime(in, date, clock) || !pack_fraction(clock.micros, column.fsp, units))
        return false;
    int64_t seconds = 0;
    if (date.year == 0 && date.month == 0 && date.day == 0) {
        // The zero date is second 0.
        if ((clock.hour | clock.minute | clock.second | clock.micros) != 0) return false;
    } else {
        int32_t days = 0;
        if (date.year < 1970 || !day_number(date, days)) return false;
        seconds = int64_t{days} * 86'400 + clock.hour * 3600 + clock.minute * 60 + clock.second;
        // Without a fraction, second 0 is the zero date. MariaDB has it with one.
        if (seconds < (units == 0 ? 1 : 0) || seconds > 0xffffffff) return false;
    }
    const uint32_t fraction = fraction_size(column.fsp);
    store_big(to, static_cast<uint64_t>(seconds), 4);
    store_big(to + 4, units, fraction);
    to += 4 + fraction;
    return true;
}

// is_negative u8 | days u32 | hour, minute, second | microseconds u32; the time 0 has no parts.
inline bool put_time(Input& in, const ResultColumn& column, uint8_t*& to) {
    const uint8_t* at;
    if (!in.take(1, at)) return false;
    const uint32_t length = *at;
    uint64_t packed = 0;
    bool is_negative = false;
    const uint32_t fraction = fraction_size(column.fsp);
    if (length != 0) {
        if ((length != 8 && length != 12) || !in.take(length, at)) return false;
        const uint64_t hours = uint64_t{load32(at + 1)} * 24 + at[5];
        uint32_t units = 0;
        if (at[0] > 1 || at[5] > 23 || hours > MAX_TIME_HOURS || at[6] > 59 || at[7] > 59 ||
            !pack_fraction(length == 12 ? load32(at + 8) : 0, column.fsp, units))
            return false;
        is_negative = at[0] == 1;
        packed = (hours << 12 | at[6] << 6 | at[7]) << (8 * fraction) | units;
    }
    const uint64_t zero = uint64_t{0x800000} << (8 * fraction);
    store_big(to, is_negative ? zero - packed : zero + packed, 3 + fraction);
    to += 3 + fraction;
    return true;
}

// Text of at most nine digits as a number; false for any other character.
[[gnu::always_inline]] inline bool digits_of(const uint8_t* at, size_t size, uint32_t& value) {
    uint32_t number = 0;
    uint32_t wrong = 0;
    for (size_t i = 0; i < size; ++i) {
        const uint32_t digit = static_cast<uint32_t>(at[i]) - '0';
        wrong |= digit > 9;
        number = number * 10 + digit;
    }
    value = number;
    return wrong == 0;
}

// -123.45, with all digits of the scale, to decimal2bin's bytes; see decimals.hpp.
inline bool put_decimal(Input& in, const ResultColumn& column, uint8_t*& to) {
    Raw text;
    if (!read_text(in, text) || text.size == 0) return false;
    const uint8_t* at = text.data;
    const uint8_t* const end = at + text.size;
    const bool is_negative = *at == '-';
    at += is_negative;
    const size_t scale = column.scale;
    const size_t tail = scale == 0 ? 0 : scale + 1;
    const size_t left = static_cast<size_t>(end - at);
    if (left <= tail) return false;
    const uint8_t* const point = end - tail;
    if (scale != 0 && *point != '.') return false;
    // ZEROFILL may add more zeros than there are digits.
    while (at < point && *at == '0') ++at;
    size_t before = static_cast<size_t>(point - at);
    const size_t room = size_t{column.precision} - scale;
    if (before > room) return false;

    uint8_t* const begin = to;
    uint8_t* put = to;
    uint32_t any = 0;
    uint32_t group = 0;
    // The groups before the point: the first one may have fewer digits, or none.
    for (size_t rest = room; rest != 0;) {
        const size_t digits = rest % 9 != 0 ? rest % 9 : 9;
        rest -= digits;
        const size_t here = before > rest ? before - rest : 0;
        if (!digits_of(at, here, group)) return false;
        at += here;
        before -= here;
        any |= group;
        store_big(put, group, BYTES_OF_DIGITS[digits]);
        put += BYTES_OF_DIGITS[digits];
    }
    at = point + (scale != 0);
    for (size_t rest = scale; rest != 0;) {
        const size_t digits = rest < 9 ? rest : 9;
        rest -= digits;
        if (!digits_of(at, digits, group)) return false;
        at += digits;
        any |= group;
        store_big(put, group, BYTES_OF_DIGITS[digits]);
        put += BYTES_OF_DIGITS[digits];
    }
    // There is no -0.
    if (is_negative && any != 0)
        for (uint8_t* each = begin; each != put; ++each) *each = static_cast<uint8_t>(~*each);
    *begin ^= 0x80;
    to = put;
    return true;
}

[[gnu::always_inline]] inline bool put_value(Input& in, const ResultColumn& column, uint8_t*& to) {
    using Kind = ResultColumn::Kind;
    const uint8_t* at;
    switch (column.kind) {
        case Kind::Fixed:
            if (!in.take(column.size, at)) return false;
            switch (column.size) {
                case 1: *to = *at; break;
                case 2: std::memcpy(to, at, 2); break;
                case 4: std::memcpy(to, at, 4); break;
                default: std::memcpy(to, at, 8); break;
            }
            to += column.size;
            return true;
        case Kind::Int24: {
            if (!in.take(4, at)) return false;
            const uint32_t value = load32(at);
            // The fourth byte contains only the sign.
            const bool fits = column.is_unsigned ? value <= 0xffffff
                                                 : value + 0x800000 <= 0xffffff;
            store_little(to, value, 3);
            to += 3;
            return fits;
        }
        case Kind::Year: {
            if (!in.take(2, at)) return false;
            const uint32_t year = load16(at);
            *to++ = static_cast<uint8_t>(year == 0 ? 0 : year - 1900);
            return year == 0 || (year > 1900 && year <= 2155);
        }
        case Kind::Labels: {
            if (!in.take(8, at)) return false;
            const uint64_t value = load64(at);
            store_little(to, value, column.size);
            to += column.size;
            return column.size == 8 || value >> (8 * column.size) == 0;
        }
        case Kind::Date: return put_date(in, to);
        case Kind::Time: return put_time(in, column, to);
        case Kind::Datetime: return put_datetime(in, column, to);
        case Kind::Timestamp: return put_timestamp(in, column, to);
        case Kind::Decimal: return put_decimal(in, column, to);
        case Kind::Bit: {
            Raw bits;
            if (!read_text(in, bits) || bits.size != column.size) return false;
            std::memcpy(to, bits.data, bits.size);
            to += bits.size;
            return true;
        }
        case Kind::Bytes:
        case Kind::Binary: {
            Raw text;
            if (!read_text(in, text)) return false;
            if (column.kind == Kind::Binary)
                while (text.size != 0 && text.data[text.size - 1] == 0) --text.size;
            if (text.size >> (8 * column.size) != 0) return false;
            store_little(to, text.size, column.size);
            to += column.size;
            if (text.size != 0) std::memcpy(to, text.data, text.size);
            to += text.size;
            return true;
        }
        default: return false;
    }
}

}  // namespace result_rows

class ResultRows {
public:
    enum class Stop : uint8_t {
        More,   // the next packet is incomplete, or continues in the one after it
        Full,   // enough images for now
        Ended,  // the next packet is not a row: the end, or an error
        Odd,    // the next row must be encoded in Python
    };

    void add_column(const ResultColumn& column) {
        columns_.push_back(column);
        // A stored value is not longer than the received one, except for these kinds.
        constexpr size_t MORE = 16;
        slack_ += MORE;
        if (column.kind == ResultColumn::Kind::Decimal)
            slack_ += decimal_size(column.precision, column.scale);
    }

    // Encodes packets, from `in.at` on, until there are `enough` bytes of images. `in.at` is then
    // the first packet that was not encoded.
    Stop encode(Input& in, Bytes& images, size_t enough, size_t& rows) {
        using namespace result_rows;
        while (images.size() < enough) {
            // A payload has at least one byte, or is odd.
            if (!in.has(PACKET_HEAD + 1)) return Stop::More;
            const uint32_t length = load24(in.at);
            if (length == MAX_PAYLOAD || !in.has(PACKET_HEAD + length)) return Stop::More;
            const uint8_t* const payload = in.at + PACKET_HEAD;
            if (length != 0 && (*payload == END || *payload == ERROR)) return Stop::Ended;
            if (!encode_row(Input{payload, payload + length}, images)) return Stop::Odd;
            in.at = payload + length;
            ++rows;
        }
        return Stop::Full;
    }

    // One row's payload: 0x00 | null bitmap | values. False, without writing, if Python must encode
    // it.
    bool encode_row(Input in, Bytes& images) {
        using namespace result_rows;
        const size_t count = columns_.size();
        const size_t row_bitmap = (count + BITMAP_OFFSET + 7) / 8;
        const size_t image_bitmap = (count + 7) / 8;
        const uint8_t* nulls;
        if (!in.take(1, nulls) || *nulls != ROW || !in.take(row_bitmap, nulls)) return false;
        uint8_t* begin = images.room(image_bitmap + slack_ + in.left());
        for (size_t i = 0; i < image_bitmap; ++i) {
            const uint32_t next = i + 1 < row_bitmap ? nulls[i + 1] : 0;
            begin[i] = static_cast<uint8_t>(nulls[i] >> BITMAP_OFFSET | next << (8 - BITMAP_OFFSET));
        }
        // In the row no bit after the last column is set; in the image all of them are.
        const size_t used_bits = count + BITMAP_OFFSET - 8 * (row_bitmap - 1);
        if (nulls[row_bitmap - 1] >> used_bits != 0) return false;
        if (count % 8 != 0) begin[image_bitmap - 1] |= static_cast<uint8_t>(0xff << count % 8);
        uint8_t* to = begin + image_bitmap;
        for (size_t i = 0; i < count; ++i) {
            if ((begin[i >> 3] >> (i & 7) & 1) != 0) continue;
            const ResultColumn& column = columns_[i];
            if (column.kind != ResultColumn::Kind::Json) {
                if (!put_value(in, column, to)) return false;
                continue;
            }
            Raw text;
            if (!read_text(in, text) || !json_.read(text, column.is_typed, column.doubles_have_points)) return false;
            const size_t size = json_.size();
            if (size >> (8 * column.size) != 0) return false;
            // A document may be longer than its text. Reserving memory moves the bytes written.
            const size_t written = static_cast<size_t>(to - begin);
            begin = images.room(written + size + slack_ + in.left());
            to = begin + written;
            store_little(to, size, column.size);
            to = json_.write(to + column.size);
        }
        if (in.left() != 0) return false;
        images.advance(static_cast<size_t>(to - begin));
        return true;
    }

private:
    std::vector<ResultColumn> columns_;
    JsonEncoder json_;
    // Maximum by which an image may be longer than its row.
    size_t slack_ = 0;
};

}  // namespace mysqlbinlog
