// `before` or `after`: row images to one Arrow column, for each of the three payloads. The Python
// reference is payload.py, struct_payload.py and variant_payload.py.
#pragma once

#include "events/row_image.hpp"

namespace mysqlbinlog {

class PayloadSide {
public:
    // The tables of a nested struct are in databases; otherwise there is one without a name.
    struct Database {
        size_t first_table;
        size_t tables;
    };

    PayloadSide(Payload payload, const char* prefix, bool zero_dates_fail) : payload_(payload) {
        notes_.prefix = prefix;
        notes_.zero_dates_fail = zero_dates_fail;
        if (payload != Payload::Struct) {
            const Out type = payload == Payload::Variant ? Out::Variant : Out::Text;
            whole_.columns.push_back(std::make_unique<OutColumn>(type, uint8_t{0}, ""));
        }
    }

    // Payload struct: the tables, each with its columns, then the databases that contain them.
    TableRows& add_table() {
        tables_.push_back(std::make_unique<TableRows>());
        return *tables_.back();
    }
    void add_database(size_t first_table, size_t tables) {
        databases_.push_back(Database{first_table, tables});
    }
    TableRows* table(size_t at) { return at < tables_.size() ? tables_[at].get() : nullptr; }

    RowNotes& notes() { return notes_; }
    // Approximate bytes held, counted as in Python.
    size_t size() const { return size_; }

    // Appends the image at `in`; false, without appending, if Python must read it.
    bool append(const Image& image, Input& in) {
        last_size_ = size_;
        switch (payload_) {
            case Payload::Json:
            case Payload::JsonWithTexts: return append_json(image, in);
            case Payload::Struct: return append_struct(image, in);
            default: return append_variant(image, in);
        }
    }
    void append_null() {
        last_size_ = size_;
        if (payload_ != Payload::Struct) {
            whole_.reserve_row();
            whole_.columns[0]->put_null(count_);
            whole_.add(count_);
        }
        ++count_;
    }
    // Removes the last row; `image` is the one it was appended with, null for a null.
    void remove_last(const Image* image) {
        --count_;
        size_ = last_size_;
        if (payload_ != Payload::Struct) {
            whole_.remove_last();
        } else if (image != nullptr) {
            image->rows->remove_last();
        }
    }

    // Returns the column of the appended rows; it is then empty.
    Array finish(Zeros& zeros) {
        const size_t count = std::exchange(count_, 0);
        size_ = 0;
        Buffer valid;
        if (payload_ != Payload::Struct) return std::move(whole_.finish(count, valid, zeros)[0]);
        if (databases_.empty()) return finish_table(*tables_[0], count, zeros);
        return finish_nested(count, zeros);
    }

private:
    bool append_json(const Image& image, Input& in) {
        const uint8_t* nulls;
        if (!in.take(image.bitmap_length, nulls)) return false;
        whole_.reserve_row();
        OutColumn& column = *whole_.columns[0];
        Bytes& out = column.text();
        const size_t begin = out.size();
        if (!write_text(image, nulls, in, out) || !column.end_text(count_)) {
            whole_.take_back();
            return false;
        }
        whole_.add(count_++);
        size_ += out.size() - begin;
        return true;
    }
    bool write_text(const Image& image, const uint8_t* nulls, Input& in, Bytes& out) {
        const size_t begin = out.size();
        if (!write_members(image, nulls, in, out)) return false;
        // Each member begins with a comma; the first one's becomes the brace.
        if (out.size() == begin) {
            out.push('{');
        } else {
            out.data()[begin] = '{';
        }
        out.push('}');
        return true;
    }
    bool write_members(const Image& image, const uint8_t* nulls, Input& in, Bytes& out) {
        size_t at = 0;
        for (const Step& step : image.steps) {
            const bool is_null = bit_at(nulls, at++);
            if (step.fate == Step::Fate::Skip) {
                if (!is_null && !skip_value(in, *step.column)) return false;
                continue;
            }
            step.column->json_member.append_to(out);
            if (is_null) {
                out.append("null");
            } else if (!write_value(in, *step.column, out)) {
                return false;
            }
        }
        return true;
    }

    bool write_value(Input& in, const Column& column, Bytes& out) {
        const bool is_quoted = payload_ == Payload::JsonWithTexts && column.kind == Kind::Json;
        if (is_quoted) document_.clear();
        // Called in one place only, so that it is inlined.
        if (!write_json(in, column, is_quoted ? document_ : out)) return false;
        if (is_quoted) append_quoted(out, document_.view());
        return true;
    }

    bool append_struct(const Image& image, Input& in) {
        const uint8_t* begin;
        if (!in.take(image.bitmap_length, begin)) return false;
        TableRows& rows = *image.rows;
        rows.reserve_row();
        const size_t row = rows.count();
        if (!read_values(image, begin, in, row)) {
            rows.take_back();
            return false;
        }
        for (OutColumn* column : image.missing_columns) column->put_null(row);
        rows.add(count_++);
        size_ += static_cast<size_t>(in.at - begin) + 8 * rows.columns.size();
        return true;
    }
    bool read_values(const Image& image, const uint8_t* nulls, Input& in, size_t row) {
        size_t at = 0;
        if (image.reads_all) {
            for (const Step& step : image.steps) {
                if (bit_at(nulls, at++)) {
                    step.out->put_null(row);
                } else if (!step.cell(in, step, row, notes_)) {
                    return false;
                }
            }
            return true;
        }
        for (const Step& step : image.steps) {
            if (bit_at(nulls, at++)) {
                if (step.fate == Step::Fate::Read) {
                    step.out->put_null(row);
                } else if (step.fate == Step::Fate::Rescue) {
                    step.column->json_member.append_to(notes_.rescued_nulls);
                    notes_.rescued_nulls.append("null");
                }
            } else if (step.fate == Step::Fate::Read) {
                if (!step.cell(in, step, row, notes_)) return false;
            } else if (step.fate == Step::Fate::Rescue) {
                step.column->json_member.append_to(notes_.rescued);
                if (!write_json(in, *step.column, notes_.rescued)) return false;
            } else if (!skip_value(in, *step.column)) {
                return false;
            }
        }
        return true;
    }

    bool append_variant(const Image& image, Input& in) {
        const uint8_t* nulls;
        if (!in.take(image.bitmap_length, nulls)) return false;
        whole_.reserve_row();
        OutColumn& value = whole_.columns[0]->child(0);
        OutColumn& metadata = whole_.columns[0]->child(1);
        const size_t begin = value.text().size() + metadata.text().size();
        if (!write_object(image, nulls, in, value.text(), metadata.text()) ||
            !value.end_text(count_) || !metadata.end_text(count_)) {
            whole_.take_back();
            return false;
        }
        whole_.add(count_++);
        size_ += value.text().size() + metadata.text().size() - begin;
        return true;
    }
    static bool write_object(const Image& image, const uint8_t* nulls, Input& in, Bytes& value,
                             Bytes& metadata) {
        VariantImage& object = *image.variant;
        object.begin(value);
        size_t at = 0;
        for (const Step& step : image.steps) {
            const bool is_null = bit_at(nulls, at++);
            if (step.fate == Step::Fate::Skip) {
                if (!is_null && !skip_value(in, *step.column)) return false;
            } else if (is_null) {
                object.add_null();
            } else if (!object.add(in, *step.column)) {
                return false;
            }
        }
        return object.finish(metadata);
    }

    static Array finish_table(TableRows& rows, size_t count, Zeros& zeros) {
        Buffer valid;
        const size_t own_rows = rows.count();
        std::vector<Array> columns = rows.finish(count, valid, zeros);
        return Array(count, count - own_rows, {valid}, std::move(columns));
    }
    Array finish_nested(size_t count, Zeros& zeros) {
        Buffer filled = allocate_zeros(bitmap_size(count));
        size_t filled_rows = 0;
        std::vector<Array> databases;
        for (const Database& database : databases_) {
            Buffer valid = allocate_zeros(bitmap_size(count));
            size_t valid_rows = 0;
            std::vector<Array> tables;
            for (size_t at = 0; at < database.tables; ++at) {
                TableRows& rows = *tables_[database.first_table + at];
                for (const uint32_t place : rows.places()) {
                    set_bit(valid.get(), place);
                    set_bit(filled.get(), place);
                }
                valid_rows += rows.count();
                tables.push_back(finish_table(rows, count, zeros));
            }
            filled_rows += valid_rows;
            databases.push_back(Array(count, count - valid_rows, {valid}, std::move(tables)));
        }
        return Array(count, count - filled_rows, {filled}, std::move(databases));
    }

    Payload payload_;
    Bytes document_;  // the text of one document, before it is quoted
    RowNotes notes_;
    std::vector<std::unique_ptr<TableRows>> tables_;
    std::vector<Database> databases_;
    TableRows whole_;  // payloads json and variant: one column with all rows
    size_t count_ = 0;
    size_t size_ = 0;
    size_t last_size_ = 0;
};

}  // namespace mysqlbinlog
