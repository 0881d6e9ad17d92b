// The head of a rows event; the Python reference decoder/events/rows.py describes it.
#pragma once

#include <string_view>

#include "arrow/arrow_export.hpp"
#include "bytes/blocks.hpp"

namespace mysqlbinlog {

enum class Operation : uint8_t { Insert = 1, Update = 2, Delete = 4 };

struct RowsHead {
    uint64_t table_id;
    Operation operation;
    char op;
    uint64_t column_count;
    bool has_before;
    bool has_after;
    std::string_view before;  // bitmaps of the columns present
    std::string_view after;
    Input rows;  // the row images

    // False if the head is cut short or its numbers are invalid.
    bool parse(const EventView& event) {
        Input in = event.input();
        const uint8_t* at;
        if (!in.take(8, at)) return false;
        table_id = load48(at);
        if (event.type >= WRITE_ROWS_EVENT) {
            // Extra data; its length includes itself.
            if (!in.has(2)) return false;
            const size_t extra = load16(in.at);
            if (extra < 2 || !in.skip(extra)) return false;
        }
        if (!read_lenenc(in, column_count)) return false;
        if (column_count > 8 * in.left()) return false;
        const size_t size = bitmap_size(column_count);
        switch (event.type) {
            case WRITE_ROWS_EVENT_V1:
            case WRITE_ROWS_EVENT: operation = Operation::Insert; break;
            case UPDATE_ROWS_EVENT_V1:
            case UPDATE_ROWS_EVENT: operation = Operation::Update; break;
            default: operation = Operation::Delete;
        }
        op = operation == Operation::Insert ? 'c' : operation == Operation::Update ? 'u' : 'd';
        has_before = operation != Operation::Insert;
        has_after = operation != Operation::Delete;
        if (has_before && !read_bitmap(in, size, before)) return false;
        if (has_after && !read_bitmap(in, size, after)) return false;
        rows = in;
        return true;
    }

private:
    static bool read_bitmap(Input& in, size_t size, std::string_view& bitmap) {
        const uint8_t* at;
        if (!in.take(size, at)) return false;
        bitmap = as_text(at, size);
        return true;
    }
};

}  // namespace mysqlbinlog
