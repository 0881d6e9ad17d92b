// The head of a rows event; decoder/rows.py draws it and is the twin.
#pragma once

#include <string_view>

#include "arrow_export.hpp"
#include "blocks.hpp"

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

    // False where the head is cut short or its numbers can't be.
    bool parse(const EventView& event) {
        Input in = event.input();
        if (!in.has(8)) return false;
        table_id = load48(in.at);
        in.at += 8;
        if (event.type >= WRITE_ROWS_EVENT) {
            // Extra data, whose length counts itself.
            if (!in.has(2)) return false;
            const size_t extra = load16(in.at);
            if (extra < 2 || !in.has(extra)) return false;
            in.at += extra;
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
    static bool read_lenenc(Input& in, uint64_t& value) {
        if (!in.has(1)) return false;
        const uint8_t first = *in.at++;
        if (first < 0xfb) {
            value = first;
            return true;
        }
        const size_t size = first == 0xfc ? 2 : first == 0xfd ? 3 : first == 0xfe ? 8 : 0;
        if (size == 0 || !in.has(size)) return false;
        value = size == 2 ? load16(in.at) : size == 3 ? load24(in.at) : load64(in.at);
        in.at += size;
        return true;
    }
    static bool read_bitmap(Input& in, size_t size, std::string_view& bitmap) {
        if (!in.has(size)) return false;
        bitmap = std::string_view(reinterpret_cast<const char*>(in.at), size);
        in.at += size;
        return true;
    }
};

}  // namespace mysqlbinlog
