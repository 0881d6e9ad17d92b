// The state of the binlog within its transactions, and the transaction data of rows. The Python
// reference is decoder/events/transactions.py. It handles the events that are unsupported here; the
// state is copied between the two.
#pragma once

#include <cstring>
#include <string>

#include "bytes/blocks.hpp"
#include "values/charsets.hpp"
#include "bytes/digits.hpp"
#include "events/query.hpp"

namespace mysqlbinlog {

// A text that may be missing.
struct OptionalText {
    bool is_set = false;
    std::string text;

    void reset() { is_set = false; }
};

// Tracks the state over supported events; SAVEPOINT and XA START are not. The scan and the decode
// loop call the method of an event's type.
struct TransactionState {
    bool is_named = false;         // the transaction has a GTID event
    bool is_in_group = false;      // it has begun, so that rows can come
    bool is_begun_by_gtid = false; // by MariaDB's GTID event
    bool are_rows_seen = false;    // the next table map begins another statement
    bool is_ended = false;         // the last event ended a transaction

    bool in_progress() const { return is_in_group || is_named; }

    void gtid(bool begins = false) {
        *this = TransactionState();
        is_named = true;
        is_in_group = is_begun_by_gtid = begins;
    }
    void begin() {
        is_in_group = true;
        is_begun_by_gtid = is_ended = false;
    }
    void text() { are_rows_seen = is_ended = false; }
    // Whether it begins another statement.
    bool table_map() {
        const bool begins = are_rows_seen;
        are_rows_seen = is_ended = false;
        return begins;
    }
    void rows() {
        are_rows_seen = true;
        is_ended = false;
    }
    void end() {
        *this = TransactionState();
        is_ended = true;
    }
};

class TransactionContext {
public:
    TransactionState state;
    bool has_tx_pos = false;
    int64_t tx_pos = 0;
    bool has_thread_id = false;
    uint32_t thread_id = 0;
    OptionalText gtid;
    OptionalText query;
    // The Python decoder has no state of this transaction yet.
    bool is_new = true;
    // Incremented when gtid or query changes.
    uint64_t changes = 0;

    // Updates the state for an event other than a TABLE_MAP or rows; false, without a change, for
    // one that Python must handle.
    bool follow(const EventView& event) {
        switch (event.type) {
            case XID_EVENT:
            case XA_PREPARE_LOG_EVENT:
                start_event();
                state.end();
                return true;
            case GTID_LOG_EVENT: return follow_gtid(event);
            case GTID_TAGGED_LOG_EVENT: return follow_tagged_gtid(event);
            case ANONYMOUS_GTID_LOG_EVENT:
                begin(event.start);
                state.gtid();
                return true;
            case ROWS_QUERY_LOG_EVENT:
                if (event.size < 1) return false;
                start_event();
                set_query(event.body + 1, event.size - 1);
                return true;
            case MARIADB_ANNOTATE_ROWS_EVENT:
                start_event();
                set_query(event.body, event.size);
                return true;
            case MARIADB_GTID_EVENT: return follow_mariadb_gtid(event);
            case QUERY_EVENT: return follow_query(event);
            default: return false;
        }
    }
    void follow_rows() {
        start_event();
        state.rows();
    }
    void follow_table_map() {
        start_event();
        // The text of the previous statement does not apply.
        if (!state.table_map()) return;
        if (query.is_set) ++changes;
        query.reset();
    }

private:
    // The server of the last GTID, and its text.
    uint8_t last_uuid[16] = {};
    std::string uuid_text;

    void start_event() {
        if (state.is_ended) reset();
    }
    void reset() {
        ++changes;
        has_tx_pos = has_thread_id = false;
        gtid.reset();
        query.reset();
        state = TransactionState();
        is_new = true;
    }
    void begin(int64_t start) {
        reset();
        has_tx_pos = true;
        tx_pos = start;
    }

    // flags u8 | uuid 16 bytes | number u64
    bool follow_gtid(const EventView& event) {
        if (event.size < 25) return false;
        begin(event.start);
        set_uuid(event.body + 1);
        append_number(gtid.text, load64(event.body + 17));
        return true;
    }
    // Gtid.parse_tagged: version, length, last required field, then fields 0 to 3.
    bool follow_tagged_gtid(const EventView& event) {
        constexpr uint64_t LAST_FIELD = 11;
        Input in = event.input();
        uint64_t number, size;
        uint8_t uuid[16];
        if (!read_varlen(in, number) || number != 1) return false;
        if (!read_varlen(in, number) || number != event.size) return false;
        if (!read_varlen(in, number) || number > LAST_FIELD) return false;
        if (!read_varlen(in, number) || number != 0 || !read_varlen(in, number)) return false;
        if (!read_varlen(in, number) || number != 1) return false;
        for (uint8_t& byte : uuid) {
            if (!read_varlen(in, number) || number > 0xFF) return false;
            byte = static_cast<uint8_t>(number);
        }
        if (!read_varlen(in, number) || number != 2) return false;
        uint64_t gno;
        if (!read_varlen(in, gno) || (gno & 1) != 0) return false;
        if (!read_varlen(in, number) || number != 3 || !read_varlen(in, size)) return false;
        const uint8_t* tag;
        if (size == 0 || !in.has(size) || !in.take(size, tag)) return false;
        for (size_t at = 0; at < size; ++at)
            if (tag[at] >= 0x80) return false;
        begin(event.start);
        set_uuid(uuid);
        gtid.text.append(as_text(tag, size));
        gtid.text += ':';
        append_number(gtid.text, gno >> 1);
        return true;
    }
    void set_uuid(const uint8_t* uuid) {
        state.gtid();
        gtid.is_set = true;
        // Usually all transactions come from one server.
        if (uuid_text.empty() || std::memcmp(uuid, last_uuid, sizeof last_uuid) != 0) {
            std::memcpy(last_uuid, uuid, sizeof last_uuid);
            uuid_text.clear();
            for (size_t i = 0; i < sizeof last_uuid; ++i) {
                if (i == 4 || i == 6 || i == 8 || i == 10) uuid_text += '-';
                append_hex(uuid_text, uuid[i]);
            }
            uuid_text += ':';
        }
        gtid.text = uuid_text;
    }
    // Reader.varlen
    static bool read_varlen(Input& in, uint64_t& value) {
        const uint8_t* at;
        if (!in.take(1, at)) return false;
        const uint8_t first = *at;
        size_t more = 0;
        while (more < 8 && (first >> more & 1) != 0) ++more;
        if (!in.take(more, at)) return false;
        value = 0;
        for (size_t byte = more; byte-- > 0;) value = value << 8 | at[byte];
        if (more < 7) value = (value << 8 | first) >> (more + 1);
        return true;
    }
    bool follow_mariadb_gtid(const EventView& event) {
        if (event.size < MARIADB_GTID) return false;
        begin(event.start);
        state.gtid(!is_standalone(event.body));
        gtid.is_set = true;
        gtid.text.clear();
        append_number(gtid.text, load32(event.body + 8));
        gtid.text += '-';
        append_number(gtid.text, event.server_id);
        gtid.text += '-';
        append_number(gtid.text, load64(event.body));
        return true;
    }
    static void append_hex(std::string& text, uint8_t byte) {
        text += HEX_DIGITS[byte >> 4];
        text += HEX_DIGITS[byte & 15];
    }
    static void append_number(std::string& text, uint64_t number) {
        uint8_t digits[20];
        const uint8_t* const end = write_unsigned(digits, number);
        text.append(as_text(digits, static_cast<size_t>(end - digits)));
    }

    // Only BEGIN and COMMIT, in the server's spelling.
    bool follow_query(const EventView& event) {
        std::string_view sql;
        if (!read_statement(event.input(), sql)) return false;
        const bool is_begin = sql == "BEGIN";
        if (!is_begin && sql != "COMMIT") return false;
        start_event();
        if (!is_begin) {
            state.end();
            return true;
        }
        if (!has_tx_pos || (state.is_in_group && !state.is_begun_by_gtid)) begin(event.start);
        has_thread_id = true;
        thread_id = load32(event.body);
        state.begin();
        return true;
    }
    // Invalid UTF-8 bytes stay visible, as \xe9.
    void set_query(const uint8_t* at, size_t size) {
        ++changes;
        state.text();
        query.is_set = true;
        query.text.clear();
        if (is_utf8(at, size)) {
            query.text.assign(as_text(at, size));
            return;
        }
        const uint8_t* const end = at + size;
        while (at < end) {
            size_t length = 1;
            while (length <= 4 && length <= static_cast<size_t>(end - at) && !is_utf8(at, length))
                ++length;
            if (length <= 4 && length <= static_cast<size_t>(end - at)) {
                query.text.append(as_text(at, length));
                at += length;
            } else {
                query.text += "\\x";
                append_hex(query.text, *at++);
            }
        }
    }
};

// Characters of a text in UTF-8.
inline size_t count_characters(std::string_view text) {
    size_t count = 0;
    for (const char byte : text) count += !is_continuation(static_cast<uint8_t>(byte));
    return count;
}

}  // namespace mysqlbinlog
