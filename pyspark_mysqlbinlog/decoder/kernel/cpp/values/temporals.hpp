// DATE, TIME, DATETIME and TIMESTAMP, in the current layout and in the one from before 5.6, as
// numbers and as text. values/temporals.py describes the layouts.
#pragma once

#include "bytes/bytes.hpp"
#include "arrow/column.hpp"
#include "bytes/digits.hpp"

namespace mysqlbinlog {

inline constexpr int64_t MICROS_PER_SECOND = 1'000'000;
inline constexpr int64_t MICROS_PER_DAY = 86'400 * MICROS_PER_SECOND;
inline constexpr uint32_t MAX_TIME_HOURS = 838;

// A date as MySQL stores it; month and day may be 0.
struct Ymd {
    uint16_t year;
    uint8_t month;
    uint8_t day;

    // No month or no day: such a date's text is not ISO's.
    bool is_zero() const { return month == 0 || day == 0; }
};

struct Moment {
    Ymd date;
    int64_t micros;  // of the day
};

struct Instant {
    int64_t micros;  // since 1970 UTC; 0 for the zero date
    bool is_zero;    // '0000-00-00 00:00:00'
};

// Checks the ranges of a date's parts. Dates with zeros or such as 31 February are accepted.
inline bool make_date(uint64_t year, uint32_t month, uint32_t day, Ymd& date) {
    if (year > 9999 || month > 12 || day > 31) return false;
    date = Ymd{static_cast<uint16_t>(year), static_cast<uint8_t>(month),
               static_cast<uint8_t>(day)};
    return true;
}

inline bool make_clock(uint32_t hour, uint32_t minute, uint32_t second, uint32_t max_hour,
                       int64_t& micros) {
    micros = static_cast<int64_t>((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND;
    return (hour <= max_hour) & (minute <= 59) & (second <= 59);
}

// The fraction after a value: none, hundredths, ten-thousandths or millionths, big-endian.
inline bool make_fraction(uint32_t units, uint32_t size, int64_t& micros) {
    constexpr uint32_t UNITS[4] = {1, 100, 10'000, 1'000'000};
    constexpr uint32_t MICROS[4] = {1'000'000, 10'000, 100, 1};
    micros += static_cast<int64_t>(units) * MICROS[size];
    return units < UNITS[size];
}

inline bool read_date(Input& in, const Column&, Ymd& date) {
    const uint8_t* at;
    if (!in.take(3, at)) return false;
    const uint32_t packed = load24(at);
    return make_date(packed >> 9, packed >> 5 & 15, packed & 31, date);
}

// Time and TimeOld: microseconds, may be negative.
inline bool read_time(Input& in, const Column& column, int64_t& micros) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    bool is_negative = false;
    if (column.kind == Kind::TimeOld) {
        int32_t number = static_cast<int32_t>(load24(at) ^ 0x800000) - 0x800000;
        is_negative = number < 0;
        if (is_negative) number = -number;
        const uint32_t hms = static_cast<uint32_t>(number);
        if (!make_clock(hms / 10'000, hms / 100 % 100, hms % 100, MAX_TIME_HOURS, micros))
            return false;
    } else {
        const uint32_t fraction_size = column.size - 3;
        const uint32_t fraction_bits = 8 * fraction_size;
        int64_t packed = static_cast<int64_t>(load_big(at, column.size)) -
                         (int64_t{0x800000} << fraction_bits);
        is_negative = packed < 0;
        if (is_negative) packed = -packed;
        const uint32_t fraction =
            static_cast<uint32_t>(packed & ((int64_t{1} << fraction_bits) - 1));
        const uint32_t hms = static_cast<uint32_t>(packed >> fraction_bits);
        if (!make_clock(hms >> 12, hms >> 6 & 63, hms & 63, MAX_TIME_HOURS, micros) ||
            !make_fraction(fraction, fraction_size, micros))
            return false;
    }
    if (is_negative) micros = -micros;
    return true;
}

// The current layout, with a fraction of 0 to 3 bytes:
// sign 1 bit | year * 13 + month 17 | day 5 | hour 5 | minute 6 | second 6 | fraction
template <uint32_t FRACTION_SIZE>
inline bool unpack_datetime(const uint8_t* at, Moment& value) {
    const uint64_t packed = load_big(at, 5);
    if (packed >> 39 == 0) return false;  // a negative one
    const uint32_t months = static_cast<uint32_t>(packed >> 22) & 0x1ffff;
    const uint32_t rest = static_cast<uint32_t>(packed) & 0x3fffff;
    return make_date(months / 13, months % 13, rest >> 17, value.date) &
           make_clock(rest >> 12 & 31, rest >> 6 & 63, rest & 63, 23, value.micros) &&
           make_fraction(static_cast<uint32_t>(load_big(at + 5, FRACTION_SIZE)), FRACTION_SIZE,
                         value.micros);
}

// Datetime and DatetimeOld.
inline bool read_datetime(Input& in, const Column& column, Moment& value) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    if (column.kind == Kind::DatetimeOld) {
        const uint64_t number = load64(at);
        const uint64_t ymd = number / 1'000'000;
        const uint32_t hms = static_cast<uint32_t>(number % 1'000'000);
        return make_date(ymd / 10'000, static_cast<uint32_t>(ymd / 100 % 100),
                         static_cast<uint32_t>(ymd % 100), value.date) &&
               make_clock(hms / 10'000, hms / 100 % 100, hms % 100, 23, value.micros);
    }
    switch (column.size) {
        case 5: return unpack_datetime<0>(at, value);
        case 6: return unpack_datetime<1>(at, value);
        case 7: return unpack_datetime<2>(at, value);
        default: return unpack_datetime<3>(at, value);
    }
}

// Timestamp and TimestampOld.
inline bool read_timestamp(Input& in, const Column& column, Instant& value) {
    const uint8_t* at;
    if (!in.take(column.size, at)) return false;
    const uint32_t seconds = column.kind == Kind::TimestampOld
                                 ? load32(at)
                                 : static_cast<uint32_t>(load_big(at, 4));
    const uint32_t fraction_size = column.size - 4;
    value.micros = static_cast<int64_t>(seconds) * MICROS_PER_SECOND;
    if (!make_fraction(static_cast<uint32_t>(load_big(at + 4, fraction_size)), fraction_size,
                       value.micros))
        return false;
    value.is_zero = value.micros == 0;
    return true;
}

// Days since 1970; false for an invalid date: a zero in it, 31 February, the year 0.
inline bool day_number(Ymd date, int32_t& days) {
    // For common and leap years: days of a month, 0 for month 0, and days of the year before it.
    // (13 to 15 are possible values of 4 bits.)
    static constexpr uint8_t DAYS[2][16] = {
        {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0},
        {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0}};
    static constexpr uint16_t DAYS_BEFORE[2][16] = {
        {0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 0, 0, 0},
        {0, 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 0, 0, 0}};
    const uint32_t year = date.year, month = date.month & 15u, day = date.day;
    // Dates come in any order: values are computed, because a branch would often be mispredicted.
    const bool is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0));
    const uint32_t before = year - 1;
    const uint32_t number = 365 * before + before / 4 - before / 100 + before / 400 +
                            DAYS_BEFORE[is_leap][month] + day - 1;
    days = static_cast<int32_t>(number) - 719'162;
    return (year != 0) & (day - 1 < DAYS[is_leap][month]);
}

// The date of a day number. `days` from 0 (1970) to that of the year 9999.
inline Ymd date_of_day(uint32_t days) {
    const uint32_t since = days + 719'468;  // 1 March of the year 0
    const uint32_t era = since / 146'097;
    const uint32_t of_era = since % 146'097;
    const uint32_t y = (of_era - of_era / 1'460 + of_era / 36'524 - of_era / 146'096) / 365;
    const uint32_t of_year = of_era - (365 * y + y / 4 - y / 100);
    const uint32_t m = (5 * of_year + 2) / 153;
    const uint32_t month = m < 10 ? m + 3 : m - 9;
    return Ymd{static_cast<uint16_t>(era * 400 + y + (month <= 2)), static_cast<uint8_t>(month),
               static_cast<uint8_t>(of_year - (153 * m + 2) / 5 + 1)};
}

// 2026-11-20
inline uint8_t* write_date(uint8_t* to, Ymd date) {
    to = write_two(to, date.year / 100u);
    to = write_two(to, date.year % 100u);
    *to++ = '-';
    to = write_two(to, date.month);
    *to++ = '-';
    return write_two(to, date.day);
}

// 10:00:00.123, with `fsp` digits after the point; micros >= 0. At most 16 bytes.
inline uint8_t* write_clock(uint8_t* to, int64_t micros, uint32_t fsp) {
    const uint32_t seconds = static_cast<uint32_t>(micros / MICROS_PER_SECOND);
    const uint32_t fraction = static_cast<uint32_t>(micros % MICROS_PER_SECOND);
    const uint32_t minutes = seconds / 60;
    const uint32_t hours = minutes / 60;
    to = hours < 100 ? write_two(to, hours) : write_unsigned(to, hours);
    *to++ = ':';
    to = write_two(to, minutes % 60);
    *to++ = ':';
    to = write_two(to, seconds % 60);
    if (fsp == 0) return to;
    *to++ = '.';
    return write_digits(to, fraction / POWERS_OF_TEN[6 - fsp], fsp);
}

inline void append_date(Bytes& out, Ymd date) {
    write_date(out.room(10), date);
    out.advance(10);
}

inline void append_time(Bytes& out, int64_t micros, uint32_t fsp) {
    uint8_t* const begin = out.room(20);
    uint8_t* to = begin;
    if (micros < 0) *to++ = '-';
    to = write_clock(to, micros < 0 ? -micros : micros, fsp);
    out.advance(static_cast<size_t>(to - begin));
}

// 2026-11-20T10:00:00, or with a space: always for zero dates, so that readers do not parse them as
// ISO, and if not `iso`, as SELECT shows it.
inline void append_datetime(Bytes& out, const Moment& value, uint32_t fsp, bool iso) {
    uint8_t* const begin = out.room(32);
    uint8_t* to = write_date(begin, value.date);
    *to++ = iso && !value.date.is_zero() ? 'T' : ' ';
    to = write_clock(to, value.micros, fsp);
    out.advance(static_cast<size_t>(to - begin));
}

// 2026-11-20T10:00:00Z, or 0000-00-00 00:00:00.
inline void append_timestamp(Bytes& out, Instant value, uint32_t fsp) {
    if (value.is_zero) {
        append_datetime(out, Moment{Ymd{0, 0, 0}, 0}, fsp, true);
        return;
    }
    const Ymd date = date_of_day(static_cast<uint32_t>(value.micros / MICROS_PER_DAY));
    append_datetime(out, Moment{date, value.micros % MICROS_PER_DAY}, fsp, true);
    out.push('Z');
}

}  // namespace mysqlbinlog
