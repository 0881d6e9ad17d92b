// The columns around the row images: op, ts, names, seq, source. The Python reference is
// decoder/payloads/envelope.py.
//
// The rows of one rows event have the same values except their row number. A batch has one `Run`
// for them, or a few if a row has values of its own; the columns are filled run by run when the
// batch is finished.
#pragma once

#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrow/output_column.hpp"
#include "events/transactions.hpp"

namespace mysqlbinlog {

// A text in the envelope's arena; null unless it is set.
struct Span {
    size_t begin = 0;
    size_t size = 0;
    bool is_set = false;
};

using Names = std::vector<std::string>;

// Values shared by consecutive rows of one rows event. Names are kept alive by the plan or the
// image that they come from, or by the envelope (`keep`).
struct Run {
    char op;
    int64_t ts;  // microseconds since 1970 UTC
    const std::string* database;
    const std::string* table;
    Span file;
    int32_t ordinal;
    int64_t pos;
    int64_t source_pos;
    uint32_t server_id;
    bool has_tx_pos;
    int64_t tx_pos;
    bool has_thread_id;
    uint32_t thread_id;
    Span gtid;
    Span query;
    const Names* key;            // null if it is unknown
    const Names* missing;        // null if there are none
    const Names* invalid_dates;  // null if there are none
    int32_t first_row;
    uint32_t rows;
};

// A column of the batch, or a field of `seq` or `source`; Ordinal is the number of a file.
enum class Field : uint8_t {
    Op,
    Ts,
    Database,
    Table,
    Before,
    After,
    Seq,
    Source,
    Rescued,
    Epoch,
    Ordinal,
    Pos,
    Row,
    ServerId,
    File,
    TxPos,
    ThreadId,
    Gtid,
    Query,
    Key,
    Missing,
    InvalidDates,
    SourcePos,
};

class Envelope {
public:
    std::vector<uint8_t> top;
    std::vector<uint8_t> seq;
    std::vector<uint8_t> source;
    int32_t epoch = 0;

    size_t rows() const { return rows_; }
    bool has_rescued() const {
        return std::find(top.begin(), top.end(), static_cast<uint8_t>(Field::Rescued)) != top.end();
    }

    // Stores a text that runs may refer to until the batch is finished.
    Span keep(std::string_view text) {
        const Span span{arena_.size(), text.size(), true};
        arena_.append(text);
        return span;
    }
    const Names* keep(Names names) {
        names_.push_back(std::move(names));
        return &names_.back();
    }
    void add(const Run& run) {
        runs_.push_back(run);
        rows_ += run.rows;
        are_places_different_ |= run.source_pos != run.pos;
    }
    // Values that do not fit the struct, of a row of this batch.
    void rescue(size_t row, std::string_view text) {
        rescued_.push_back({row, keep(text)});
    }

    // Returns the batch as one struct; the envelope is then empty.
    Array finish(Array before, Array after, Zeros& zeros) {
        std::vector<Array> columns;
        for (const uint8_t code : top) {
            switch (static_cast<Field>(code)) {
                case Field::Before: columns.push_back(std::move(before)); break;
                case Field::After: columns.push_back(std::move(after)); break;
                case Field::Seq: columns.push_back(whole_struct(seq)); break;
                case Field::Source: columns.push_back(whole_struct(source)); break;
                case Field::Rescued: columns.push_back(rescued(zeros)); break;
                default: columns.push_back(column(static_cast<Field>(code)));
            }
        }
        Array batch(rows_, 0, {nullptr}, std::move(columns));
        runs_.clear();
        names_.clear();
        rescued_.clear();
        arena_.clear();
        rows_ = 0;
        are_places_different_ = false;
        pos_.reset();
        row_.reset();
        return batch;
    }

private:
    struct Rescued {
        size_t row;
        Span text;
    };

    std::string_view text(const Span& span) const {
        return arena_.view().substr(span.begin, span.size);
    }

    Array whole_struct(const std::vector<uint8_t>& fields) {
        std::vector<Array> columns;
        for (const uint8_t code : fields) columns.push_back(column(static_cast<Field>(code)));
        return Array(rows_, 0, {nullptr}, std::move(columns));
    }
    Array column(Field field) {
        switch (field) {
            case Field::Op:
                return texts([](const Run& run) { return std::string_view(&run.op, 1); });
            case Field::Ts: return numbers<int64_t>([](const Run& run) { return run.ts; });
            case Field::Database:
                return texts([](const Run& run) { return std::string_view(*run.database); });
            case Field::Table:
                return texts([](const Run& run) { return std::string_view(*run.table); });
            case Field::Epoch:
                return numbers<int32_t>([this](const Run&) { return epoch; });
            case Field::Ordinal:
                return numbers<int32_t>([](const Run& run) { return run.ordinal; });
            case Field::SourcePos:
                if (are_places_different_)
                    return numbers<int64_t>([](const Run& run) { return run.source_pos; });
                [[fallthrough]];
            case Field::Pos:
                // Used twice in the batch: in seq and in source.
                if (pos_ == nullptr)
                    pos_ = filled<int64_t>([](const Run& run) { return run.pos; });
                return Array(rows_, 0, {nullptr, pos_});
            case Field::Row:
                if (row_ == nullptr) row_ = row_numbers();
                return Array(rows_, 0, {nullptr, row_});
            case Field::ServerId:
                return numbers<int64_t>([](const Run& run) { return int64_t{run.server_id}; });
            case Field::File: return texts([this](const Run& run) { return text(run.file); });
            case Field::TxPos:
                return numbers<int64_t>([](const Run& run) { return run.tx_pos; },
                                        [](const Run& run) { return run.has_tx_pos; });
            case Field::ThreadId:
                return numbers<int64_t>([](const Run& run) { return int64_t{run.thread_id}; },
                                        [](const Run& run) { return run.has_thread_id; });
            case Field::Gtid:
                return texts([this](const Run& run) { return text(run.gtid); },
                             [](const Run& run) { return run.gtid.is_set; });
            case Field::Query:
                return texts([this](const Run& run) { return text(run.query); },
                             [](const Run& run) { return run.query.is_set; });
            case Field::Key: return lists([](const Run& run) { return run.key; });
            case Field::Missing: return lists([](const Run& run) { return run.missing; });
            case Field::InvalidDates:
                return lists([](const Run& run) { return run.invalid_dates; });
            default: return Array();  // not reached: the codes are checked where they are given
        }
    }

    static bool always(const Run&) { return true; }

    // The bitmap of the rows whose runs have a value, and the number of those without.
    template <typename Has>
    Buffer validity(Has has, size_t& nulls) const {
        nulls = 0;
        for (const Run& run : runs_)
            if (!has(run)) nulls += run.rows;
        if (nulls == 0) return nullptr;
        Buffer bits = allocate_zeros(bitmap_size(rows_));
        size_t row = 0;
        for (const Run& run : runs_) {
            if (has(run))
                for (size_t i = 0; i < run.rows; ++i) set_bit(bits.get(), row + i);
            row += run.rows;
        }
        return bits;
    }
    template <typename Number, typename Value>
    Buffer filled(Value value) const {
        Buffer out = allocate(rows_ * sizeof(Number));
        auto* at = reinterpret_cast<Number*>(out.get());
        for (const Run& run : runs_) {
            const Number number = value(run);
            at = std::fill_n(at, run.rows, number);
        }
        return out;
    }
    template <typename Number, typename Value, typename Has = bool (*)(const Run&)>
    Array numbers(Value value, Has has = always) const {
        size_t nulls = 0;
        Buffer valid = validity(has, nulls);
        return Array(rows_, nulls, {valid, filled<Number>(value)});
    }
    Buffer row_numbers() const {
        Buffer out = allocate(rows_ * sizeof(int32_t));
        auto* at = reinterpret_cast<int32_t*>(out.get());
        for (const Run& run : runs_)
            for (uint32_t i = 0; i < run.rows; ++i) *at++ = run.first_row + static_cast<int32_t>(i);
        return out;
    }

    // Appends `times` copies of a text, one after another.
    static void repeat(Bytes& out, std::string_view text, size_t times) {
        if (times == 0) return;
        out.append(text);
        repeat_last(out, text.size(), times);
    }
    // Repeats the last `length` bytes until there are `times` copies of them.
    static void repeat_last(Bytes& out, size_t length, size_t times) {
        const size_t size = length * times;
        if (size <= length) return;
        uint8_t* const begin = out.room(size - length) - length;
        for (size_t done = length; done < size;) {
            const size_t more = std::min(done, size - done);
            std::memcpy(begin + done, begin, more);
            done += more;
        }
        out.advance(size - length);
    }
    // Rows repeat their run's text. The total size is computed and checked before anything is
    // copied. The size that limits batches includes each row's query.
    template <typename Text, typename Has = bool (*)(const Run&)>
    Array texts(Text text_of, Has has = always) const {
        size_t nulls = 0;
        Buffer valid = validity(has, nulls);
        size_t size = 0;
        for (const Run& run : runs_)
            if (has(run)) size += text_of(run).size() * run.rows;
        check_offsets(size);
        Bytes data;
        data.room(size + 1);
        Buffer offsets = allocate((rows_ + 1) * sizeof(int32_t));
        auto* at = reinterpret_cast<int32_t*>(offsets.get());
        int32_t end = 0;
        *at++ = end;
        for (const Run& run : runs_) {
            const std::string_view text = has(run) ? text_of(run) : std::string_view();
            repeat(data, text, run.rows);
            const auto step = static_cast<int32_t>(text.size());
            for (uint32_t i = 0; i < run.rows; ++i) *at++ = end += step;
        }
        return Array(rows_, nulls, {valid, offsets, own(data.release())});
    }
    template <typename List>
    Array lists(List list_of) const {
        size_t nulls = 0;
        Buffer valid = validity([&](const Run& run) { return list_of(run) != nullptr; }, nulls);
        size_t items = 0, size = 0;
        for (const Run& run : runs_) {
            const Names* names = list_of(run);
            if (names == nullptr) continue;
            items += names->size() * run.rows;
            for (const std::string& name : *names) size += name.size() * run.rows;
        }
        check_offsets(size);
        check_offsets(items);
        Buffer offsets = allocate((rows_ + 1) * sizeof(int32_t));
        Buffer item_offsets = allocate((items + 1) * sizeof(int32_t));
        auto* at = reinterpret_cast<int32_t*>(offsets.get());
        auto* item_at = reinterpret_cast<int32_t*>(item_offsets.get());
        Bytes data;
        data.room(size + 1);
        *at++ = 0;
        *item_at++ = 0;
        int32_t item = 0, end = 0;
        for (const Run& run : runs_) {
            const Names* names = list_of(run);
            if (names == nullptr) {
                at = std::fill_n(at, run.rows, item);
                continue;
            }
            const size_t begin = data.size();
            for (const std::string& name : *names) data.append(name);
            repeat_last(data, data.size() - begin, run.rows);
            for (uint32_t i = 0; i < run.rows; ++i) {
                for (const std::string& name : *names)
                    *item_at++ = end += static_cast<int32_t>(name.size());
                *at++ = item += static_cast<int32_t>(names->size());
            }
        }
        std::vector<Array> children;
        children.push_back(Array(items, 0, {nullptr, item_offsets, own(data.release())}));
        return Array(rows_, nulls, {valid, offsets}, std::move(children));
    }
    Array rescued(Zeros& zeros) const {
        if (rescued_.empty()) {
            return Array(rows_, rows_,
                         {zeros.of(bitmap_size(rows_)), zeros.of((rows_ + 1) * 4), zeros.of(0)});
        }
        Buffer valid = allocate_zeros(bitmap_size(rows_));
        Buffer offsets = allocate((rows_ + 1) * sizeof(int32_t));
        auto* at = reinterpret_cast<int32_t*>(offsets.get());
        Bytes data;
        data.room(1);
        size_t row = 0;
        for (const Rescued& each : rescued_) {
            for (; row <= each.row; ++row) at[row] = static_cast<int32_t>(data.size());
            set_bit(valid.get(), each.row);
            data.append(text(each.text));
            check_offsets(data.size());
        }
        for (; row <= rows_; ++row) at[row] = static_cast<int32_t>(data.size());
        return Array(rows_, rows_ - rescued_.size(), {valid, offsets, own(data.release())});
    }
    // Because of the batch limits, only a single row with 2 GB of text can exceed this.
    static void check_offsets(size_t size) {
        if (size > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
            throw std::length_error("a column has more than 2 GB of text in one batch");
    }

    std::vector<Run> runs_;
    std::deque<Names> names_;
    std::vector<Rescued> rescued_;
    Bytes arena_;
    size_t rows_ = 0;
    bool are_places_different_ = false;  // source_pos of a run is not its pos
    Buffer pos_;
    Buffer row_;
};

}  // namespace mysqlbinlog
