// Columns and row images as variants; the Python reference is decoder/payloads/variant_payload.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "bytes/bytes.hpp"
#include "values/charsets.hpp"
#include "arrow/column.hpp"
#include "values/decimals.hpp"
#include "json/json_value.hpp"
#include "values/temporals.hpp"
#include "values/values.hpp"
#include "json/variant_encoding.hpp"
#include "json/variant_keys.hpp"

namespace mysqlbinlog {

// An SRID and a WKB; a value too short for that has a null SRID (see values/geometry.py).
inline bool write_geometry_variant(Raw bytes, VariantKeys& keys, Bytes& out) {
    VariantSink sink(keys, out);
    const auto frame = sink.open_object(2, bytes.size + 10);
    sink.key(frame, Raw::of("srid"));
    if (bytes.size < 4) {
        sink.null();
    } else {
        sink.natural(load32(bytes.data));
        bytes = Raw{bytes.data + 4, bytes.size - 4};
    }
    sink.key(frame, Raw::of("wkb"));
    return append_variant_binary(out, bytes) && sink.close_object(frame);
}

// One value of any kind; not for skipped columns.
inline bool write_variant(Input& in, const Column& column, VariantKeys& keys, Bytes& out) {
    switch (column.kind) {
        case Kind::Integer: {
            int64_t value;
            if (!read_integer(in, column, value)) return false;
            if (column.is_unsigned) {
                append_variant_natural(out, static_cast<uint64_t>(value));
            } else {
                append_variant_integer(out, value);
            }
            return true;
        }
        case Kind::Float: {
            float value;
            // A NaN may change when it passes through a Python float, so Python encodes it.
            if (!read_float(in, column, value) || std::isnan(value)) return false;
            append_variant_float(out, value);
            return true;
        }
        case Kind::Double: {
            double value;
            if (!read_double(in, column, value)) return false;
            append_variant_double(out, value);
            return true;
        }
        case Kind::Decimal: {
            if (column.precision > VARIANT_DECIMAL_DIGITS)
                return append_variant_written(
                    out, [&](Bytes& text) { return append_decimal(in, column, text); });
            Int128 value;
            if (!read_decimal(in, column, value)) return false;
            append_variant_decimal(out, value, column.scale);
            return true;
        }
        case Kind::Bit: {
            uint64_t value;
            if (!read_bit(in, column, value)) return false;
            if (column.bits == 1) {
                append_variant_boolean(out, value != 0);
            } else {
                append_variant_natural(out, value);
            }
            return true;
        }
        case Kind::Year: {
            int32_t value;
            if (!read_year(in, column, value)) return false;
            append_variant_integer(out, value);
            return true;
        }
        case Kind::Date: {
            Ymd value;
            if (!read_date(in, column, value)) return false;
            int32_t days;
            if (!day_number(value, days))
                return append_variant_written(out, [value](Bytes& text) {
                    append_date(text, value);
                    return true;
                });
            append_variant_primitive(out, variant_code::Date, static_cast<uint32_t>(days), 4);
            return true;
        }
        case Kind::Time:
        case Kind::TimeOld: {
            int64_t value;
            return read_time(in, column, value) && append_variant_written(out, [&](Bytes& text) {
                       append_time(text, value, column.fsp);
                       return true;
                   });
        }
        case Kind::Datetime:
        case Kind::DatetimeOld: {
            Moment value;
            if (!read_datetime(in, column, value)) return false;
            int32_t days;
            if (!day_number(value.date, days))
                return append_variant_written(out, [&](Bytes& text) {
                    append_datetime(text, value, column.fsp, false);
                    return true;
                });
            append_variant_primitive(out, variant_code::TimestampNtz,
                                     static_cast<uint64_t>(days * MICROS_PER_DAY + value.micros),
                                     8);
            return true;
        }
        case Kind::Timestamp:
        case Kind::TimestampOld: {
            Instant value;
            if (!read_timestamp(in, column, value)) return false;
            if (value.is_zero)
                return append_variant_written(out, [&](Bytes& text) {
                    append_timestamp(text, value, column.fsp);
                    return true;
                });
            append_variant_primitive(out, variant_code::Timestamp,
                                     static_cast<uint64_t>(value.micros), 8);
            return true;
        }
        case Kind::Enum: {
            size_t label;
            if (!read_label(in, column, label)) return false;
            return append_variant_string(out, Raw::of(column.labels[label]));
        }
        case Kind::Set: {
            uint64_t bits;
            return read_set(in, column, bits) && append_variant_written(out, [&](Bytes& text) {
                       append_set(text, column, bits, false);
                       return true;
                   });
        }
        case Kind::Text: {
            Raw value;
            if (!read_raw(in, column, value)) return false;
            if (column.charset->form == CharsetTable::Form::Utf8)
                return is_utf8(value.data, value.size) && append_variant_string(out, value);
            return append_variant_written(
                out, [&](Bytes& text) { return append_utf8(column, value, text); });
        }
        case Kind::Binary: {
            Raw value;
            if (!read_raw(in, column, value)) return false;
            const size_t size = column.padded < 0 ? value.size : static_cast<size_t>(column.padded);
            if (size > VARIANT_SIZE_LIMIT) return false;
            append_variant_primitive(out, variant_code::Binary, size, 4);
            append_padded(column, value, out);
            return true;
        }
        case Kind::Json: {
            Raw value;
            return read_raw(in, column, value) && append_variant_document(value, keys, out);
        }
        case Kind::Geometry: {
            Raw value;
            return read_raw(in, column, value) && write_geometry_variant(value, keys, out);
        }
        case Kind::Masked:
            return append_variant_written(
                out, [&](Bytes& text) { return append_masked(in, column, text); });
        case Kind::FixedSkip:
        case Kind::PrefixedSkip: break;
    }
    return false;
}

// Row images of one kind as variant objects: the values of the output columns, in the table's
// order. Their keys, the keys' order and the metadata are made once; only documents and geometries
// add keys, row by row. After a failure, the caller must remove the row's bytes.
class VariantImage {
public:
    // The output columns, in the table's order. They may be destroyed afterwards.
    explicit VariantImage(const std::vector<const Column*>& columns) : starts_(columns.size()) {
        for (const Column* column : columns) keys_.id(key_of(*column));
        ids_.resize(columns.size());
        std::iota(ids_.begin(), ids_.end(), 0);
        std::sort(ids_.begin(), ids_.end(), [&](uint32_t one, uint32_t other) {
            return key_comes_before(key_of(*columns[one]), key_of(*columns[other]));
        });
        id_width_ = variant_width(columns.empty() ? 0 : columns.size() - 1);
        has_metadata_ = keys_.size() == columns.size() && keys_.append_metadata(metadata_);
    }

    // False if such images cannot be written, because a name occurs twice.
    bool is_possible() const { return has_metadata_; }

    void begin(Bytes& value) {
        if (keys_.size() > ids_.size()) keys_.cut(ids_.size());
        value_ = &value;
        begin_ = value.size();
        gap_ = head(width_);
        value.room(gap_);
        value.advance(gap_);
        added_ = 0;
    }

    // Adds the next column, which is NULL.
    void add_null() {
        start();
        value_->push(variant_code::Null);
    }

    // Adds the next column; reads its value.
    bool add(Input& in, const Column& column) {
        start();
        return write_variant(in, column, keys_, *value_);
    }

    // To be called after all columns. False if the row is too large for Spark.
    bool finish(Bytes& metadata) {
        Bytes& value = *value_;
        const size_t total = value.size() - begin_ - gap_;
        const uint32_t width = variant_width(total);
        if (head(width) + total > VARIANT_SIZE_LIMIT) return false;
        settle_head(value, begin_, gap_, head(width));
        width_ = width;
        const size_t count = ids_.size();
        uint8_t* to = write_object_head(value.data() + begin_, count, id_width_, width);
        for (const uint32_t id : ids_) to = write_little(to, id, id_width_);
        for (const uint32_t id : ids_) to = write_little(to, starts_[id], width);
        write_little(to, total, width);
        if (keys_.size() > count) return keys_.append_metadata(metadata);
        metadata.append(metadata_.data(), metadata_.size());
        return true;
    }

private:
    static Raw key_of(const Column& column) { return Raw::of(column.name); }
    size_t head(uint32_t width) const { return object_head(ids_.size(), id_width_, width); }

    // The result of an overflowing number is rejected in the end.
    void start() { starts_[added_++] = static_cast<uint32_t>(value_->size() - begin_ - gap_); }

    VariantKeys keys_;
    std::vector<uint32_t> ids_;     // of the names, in the order of an object's keys
    std::vector<uint32_t> starts_;  // of the values, by id: both count the output columns
    Bytes metadata_;                // for rows that add no keys
    bool has_metadata_;
    uint32_t id_width_;
    uint32_t width_ = 1;  // of the last row's offsets: mostly also of the next row's
    Bytes* value_ = nullptr;
    size_t begin_ = 0;
    size_t gap_ = 0;
    size_t added_ = 0;
};

}  // namespace mysqlbinlog
