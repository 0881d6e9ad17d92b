// Arrow columns under construction, and the rows of one table that fill them.
//
// A column does not count its rows: the caller passes the row of each value, in ascending order,
// and has reserved memory for it. A row that turns out to be damaged is simply written again.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrow/arrow_export.hpp"

namespace mysqlbinlog {

// Type of a column in Arrow.
enum class Out : uint8_t {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Float,
    Double,
    Decimal,   // 128 bits
    Date,      // days
    Micros,    // of a timestamp
    Duration,  // microseconds
    Text,      // and binary
    Geometry,  // struct of srid and wkb
    Variant,   // struct of value and metadata, neither ever null
};

// The indexes of one table's rows in a batch, if it has other rows as well.
struct Spread {
    const uint32_t* places;
    size_t count;
    size_t total;
    Buffer valid;
};

class OutColumn {
public:
    OutColumn(Out type, uint8_t scale, std::string name, bool nullable = true)
        : type_(type), scale_(scale), nullable_(nullable), name_(std::move(name)) {
        if (type == Out::Geometry) {
            children_.push_back(std::make_unique<OutColumn>(Out::Int32, 0, "srid"));
            children_.push_back(std::make_unique<OutColumn>(Out::Text, 0, "wkb"));
        } else if (type == Out::Variant) {
            children_.push_back(std::make_unique<OutColumn>(Out::Text, 0, "value", false));
            children_.push_back(std::make_unique<OutColumn>(Out::Text, 0, "metadata", false));
        }
    }
    OutColumn(const OutColumn&) = delete;
    OutColumn& operator=(const OutColumn&) = delete;
    ~OutColumn() {
        std::free(fixed_);
        std::free(valid_);
    }

    Out type() const { return type_; }
    uint8_t scale() const { return scale_; }
    const std::string& name() const { return name_; }
    OutColumn& child(size_t at) { return *children_[at]; }

    // Reserves memory for rows up to `capacity`.
    void reserve(size_t capacity) {
        const size_t width = row_width();
        if (width != 0) {
            const size_t size = (capacity + (type_ == Out::Text ? 1 : 0)) * width;
            fixed_ = resized(fixed_, size);
            if (type_ == Out::Text && capacity_ == 0) {
                std::memset(fixed_, 0, width);
                data_.room(expected_text_);
            }
        }
        if (valid_ != nullptr) {
            const size_t before = bitmap_size(capacity_), after = bitmap_size(capacity);
            valid_ = resized(valid_, after);
            std::memset(valid_ + before, 0xff, after - before);
        }
        capacity_ = capacity;
        for (auto& child : children_) child->reserve(capacity);
    }

    template <typename Value>
    void put(size_t row, Value value) {
        std::memcpy(fixed_ + row * sizeof value, &value, sizeof value);
    }
    // The bytes of a Text's row are appended here, followed by a call of `end_text`.
    Bytes& text() { return data_; }
    // False if the column exceeds Arrow's offsets.
    bool end_text(size_t row) {
        if (data_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) return false;
        put(row + 1, static_cast<int32_t>(data_.size()));
        return true;
    }
    void put_null(size_t row) {
        if (nullable_) {
            if (valid_ == nullptr) {
                valid_ = resized(nullptr, bitmap_size(capacity_));
                std::memset(valid_, 0xff, bitmap_size(capacity_));
            }
            clear_bit(valid_, row);
            ++nulls_;
        }
        if (type_ == Out::Text) {
            put(row + 1, text_end(row));
        } else if (const size_t width = row_width(); width != 0) {
            std::memset(fixed_ + row * width, 0, width);
        }
        for (auto& child : children_) child->put_null(row);
    }
    // Removes the values of this row, which is the last.
    void take_back(size_t row) {
        if (valid_ != nullptr && !bit_at(valid_, row)) {
            set_bit(valid_, row);
            --nulls_;
        }
        if (type_ == Out::Text) data_.truncate(static_cast<size_t>(text_end(row)));
        for (auto& child : children_) child->take_back(row);
    }

    // Returns the column of `rows` rows; it is then empty, without any memory.
    Array finish(size_t rows, const Spread* spread, Zeros& zeros) {
        const size_t length = spread == nullptr ? rows : spread->total;
        std::vector<Buffer> buffers{nullptr};
        size_t nulls = 0;
        if (nullable_) {
            nulls = nulls_ + (length - rows);
            if (spread != nullptr) {
                buffers[0] = nulls_ == 0 ? spread->valid : spread_valid(*spread);
            } else if (nulls_ != 0) {
                buffers[0] = own(std::exchange(valid_, nullptr));
            }
        }
        std::vector<Array> arrays;
        for (auto& child : children_) arrays.push_back(child->finish(rows, spread, zeros));
        if (type_ == Out::Text) {
            buffers.push_back(spread == nullptr ? own(std::exchange(fixed_, nullptr))
                                                : spread_offsets(*spread));
            const bool is_empty = data_.size() == 0;
            // The next batch is probably similar; growing would copy it several times.
            expected_text_ = std::min(data_.size() + data_.size() / 16, MOST_EXPECTED);
            buffers.push_back(is_empty ? zeros.of(0) : own(data_.release()));
        } else if (type_ == Out::Bool) {
            buffers.push_back(packed_bits(rows, spread));
        } else if (row_width() != 0) {
            buffers.push_back(spread == nullptr ? own(std::exchange(fixed_, nullptr))
                                                : spread_fixed(*spread));
        }
        clear();
        return Array(length, nulls, std::move(buffers), std::move(arrays));
    }

    // The column of `length` rows that are all null.
    Array nulls(size_t length, Zeros& zeros) const {
        std::vector<Buffer> buffers{nullptr};
        if (nullable_) buffers[0] = zeros.of(bitmap_size(length));
        std::vector<Array> arrays;
        for (const auto& child : children_) arrays.push_back(child->nulls(length, zeros));
        if (row_width() != 0) buffers.push_back(zeros.of((length + 1) * row_width()));
        if (type_ == Out::Text) buffers.push_back(zeros.of(0));
        return Array(length, nullable_ ? length : 0, std::move(buffers), std::move(arrays));
    }

private:
    // Bytes of a row before its text; 0 for structs. A Bool is a byte until the batch is finished.
    size_t row_width() const {
        switch (type_) {
            case Out::Bool:
            case Out::Int8: return 1;
            case Out::Int16: return 2;
            case Out::Int32:
            case Out::Float:
            case Out::Date:
            case Out::Text: return 4;
            case Out::Int64:
            case Out::Double:
            case Out::Micros:
            case Out::Duration: return 8;
            case Out::Decimal: return 16;
            case Out::Geometry:
            case Out::Variant: break;
        }
        return 0;
    }
    static uint8_t* resized(uint8_t* data, size_t size) {
        auto* moved = static_cast<uint8_t*>(std::realloc(data, size == 0 ? 1 : size));
        if (moved == nullptr) throw std::bad_alloc();
        return moved;
    }
    // Start of a row's text: the end of the previous row's.
    int32_t text_end(size_t row) const {
        int32_t end;
        std::memcpy(&end, fixed_ + row * sizeof end, sizeof end);
        return end;
    }
    void clear() {
        std::free(std::exchange(fixed_, nullptr));
        std::free(std::exchange(valid_, nullptr));
        data_.clear();
        nulls_ = capacity_ = 0;
    }

    Buffer spread_valid(const Spread& spread) const {
        Buffer bits = allocate_zeros(bitmap_size(spread.total));
        for (size_t i = 0; i < spread.count; ++i)
            if (bit_at(valid_, i)) set_bit(bits.get(), spread.places[i]);
        return bits;
    }
    Buffer spread_fixed(const Spread& spread) const {
        const size_t width = row_width();
        Buffer out = allocate_zeros(spread.total * width);
        switch (width) {
            case 1: scatter<1>(spread, out.get()); break;
            case 2: scatter<2>(spread, out.get()); break;
            case 4: scatter<4>(spread, out.get()); break;
            case 8: scatter<8>(spread, out.get()); break;
            default: scatter<16>(spread, out.get());
        }
        return out;
    }
    template <size_t WIDTH>
    void scatter(const Spread& spread, uint8_t* out) const {
        for (size_t i = 0; i < spread.count; ++i)
            std::memcpy(out + spread.places[i] * WIDTH, fixed_ + i * WIDTH, WIDTH);
    }
    Buffer spread_offsets(const Spread& spread) const {
        Buffer out = allocate((spread.total + 1) * sizeof(int32_t));
        uint8_t* const at = out.get();
        size_t row = 0;
        for (size_t i = 0; i <= spread.count; ++i) {
            // All rows up to this one start where the previous text ended.
            const size_t upto = i < spread.count ? spread.places[i] : spread.total;
            const int32_t end = text_end(i);
            for (; row <= upto; ++row) std::memcpy(at + row * sizeof end, &end, sizeof end);
        }
        return out;
    }
    Buffer packed_bits(size_t rows, const Spread* spread) const {
        Buffer bits = allocate_zeros(bitmap_size(spread == nullptr ? rows : spread->total));
        for (size_t i = 0; i < rows; ++i)
            if (fixed_[i] != 0) set_bit(bits.get(), spread == nullptr ? i : spread->places[i]);
        return bits;
    }

    static constexpr size_t MOST_EXPECTED = size_t{16} << 20;

    Out type_;
    uint8_t scale_;
    bool nullable_;
    std::string name_;
    size_t expected_text_ = 0;
    uint8_t* fixed_ = nullptr;  // values, or a Text's offsets: one more than rows
    uint8_t* valid_ = nullptr;  // bits; made with the first null
    size_t nulls_ = 0;
    size_t capacity_ = 0;
    Bytes data_;
    std::vector<std::unique_ptr<OutColumn>> children_;
};

// The rows of one table in a batch: its columns, and the indexes of its rows.
class TableRows {
public:
    std::vector<std::unique_ptr<OutColumn>> columns;

    size_t count() const { return places_.size(); }

    // Reserves memory for one more row.
    void reserve_row() {
        if (places_.size() < capacity_) return;
        capacity_ = capacity_ == 0 ? expected_ : capacity_ * (capacity_ < MANY_ROWS ? 4 : 2);
        for (auto& column : columns) column->reserve(capacity_);
        places_.reserve(capacity_);
    }
    void add(size_t place) { places_.push_back(static_cast<uint32_t>(place)); }
    // Removes the last row, or the values written for the row that would have been next.
    void remove_last() {
        places_.pop_back();
        take_back();
    }
    void take_back() {
        for (auto& column : columns) column->take_back(places_.size());
    }

    // Returns the columns of a batch of `total` rows; null for other tables' rows. `valid` is the
    // bitmap of its own rows, empty if all are its own.
    std::vector<Array> finish(size_t total, Buffer& valid, Zeros& zeros) {
        std::vector<Array> arrays;
        const size_t rows = places_.size();
        if (rows == 0) {
            valid = zeros.of(bitmap_size(total));
            for (auto& column : columns) arrays.push_back(column->nulls(total, zeros));
            return arrays;
        }
        std::optional<Spread> spread;
        if (rows < total) {
            valid = allocate_zeros(bitmap_size(total));
            for (const uint32_t place : places_) set_bit(valid.get(), place);
            spread = Spread{places_.data(), rows, total, valid};
        }
        for (auto& column : columns)
            arrays.push_back(column->finish(rows, spread ? &*spread : nullptr, zeros));
        places_.clear();
        capacity_ = 0;
        // The next batch is probably similar.
        expected_ = std::max<size_t>(rows, 16);
        return arrays;
    }
    const std::vector<uint32_t>& places() const { return places_; }

private:
    static constexpr size_t MANY_ROWS = 4096;

    std::vector<uint32_t> places_;
    size_t capacity_ = 0;
    size_t expected_ = 16;
};

}  // namespace mysqlbinlog
