// Counts events, rows and bytes by table, and the size of transactions, in events that the scan has
// passed. The Python reference is connector/inspection/tally.py.
//
// Rows are counted by the lengths of their values, without decoding. Before an event that it does
// not support the tally stops, and the Python reference counts that one event: a table map that was
// not learnt, a rows event with JSON diffs, damaged rows, statements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/event.hpp"
#include "events/query.hpp"
#include "events/rows_head.hpp"

namespace mysqlbinlog {

// How a column's values are stored: `size` bytes, or a length of `size` bytes before them.
struct StoredColumn {
    uint32_t size;
    bool is_prefix;
};

// The transaction in progress: its state, as `TransactionState` in decoder/events/transactions.py
// tracks it, and its counts.
struct OpenTransaction {
    bool is_named = false;
    bool is_in_group = false;
    int64_t begin = 0;
    int64_t rows = 0;
    int64_t events = 0;

    bool in_progress() const { return is_named || is_in_group; }
};

struct TableCount {
    uint64_t rows = 0;
    uint64_t events = 0;
    uint64_t bytes = 0;
};

class Tally {
public:
    static constexpr size_t MOST_MAPS = 10'000;
    // The index of a table whose rows are not counted.
    static constexpr size_t NOT_COUNTED = static_cast<size_t>(-1);

    OpenTransaction open;

    // Adds a table map's body, with the index of its table and how its columns are stored.
    void learn(std::string_view body, size_t table, std::vector<StoredColumn> columns) {
        // Those of the ids stay: their rows may follow.
        if (known_.size() >= MOST_MAPS) known_.clear();
        auto& known = known_[std::string(body)];
        known = std::make_shared<Known>();
        known->table = table;
        known->columns = std::move(columns);
        if (table != NOT_COUNTED && counts_.size() <= table) counts_.resize(table + 1);
    }
    void forget_ids() { ids_.clear(); }
    void forget_id(uint64_t id) { ids_.erase(id); }
    // The body of the table map of an id; empty without one.
    std::string_view body_of(uint64_t id) const {
        const auto mapped = ids_.find(id);
        return mapped == ids_.end() ? std::string_view{} : mapped->second.first;
    }

    // Counts events from the offset `at` on, up to the end or to an event for Python. The first
    // event begins at `pos`. Afterwards, `at` and `pos` are those of the next event. packets: as
    // in Scanner::open. trailer: bytes of each checksum. payload_end: the position after the
    // payload that contains the events; -1 outside of one.
    void scan(const uint8_t* data, size_t size, size_t& at, int64_t& pos, bool packets,
              size_t trailer, int64_t payload_end) {
        while (at < size) {
            const size_t head = packets ? at + PACKET_HEADER : at;
            if (size < head || size - head < EVENT_HEADER) return;
            const EventHeader header = EventHeader::read(data + head);
            if (header.length < EVENT_HEADER + trailer || header.length > size - head) return;
            const EventView event{data + head + EVENT_HEADER,
                                  header.length - EVENT_HEADER - trailer,
                                  pos,
                                  pos + header.length,
                                  -1,
                                  header.timestamp,
                                  header.server_id,
                                  header.flags,
                                  header.type};
            if (!count(event, header.length, payload_end)) return;
            types_[header.type].first += 1;
            types_[header.type].second += header.length;
            at = head + header.length;
            pos = event.end;
        }
    }

    const std::array<std::pair<uint64_t, uint64_t>, 256>& types() const { return types_; }
    const std::vector<std::array<TableCount, 3>>& counts() const { return counts_; }
    // begin, bytes, rows, events and time of each transaction that ended.
    std::vector<int64_t>& ended() { return ended_; }

private:
    static constexpr size_t PACKET_HEADER = 5;

    struct Known {
        size_t table = 0;
        std::vector<StoredColumn> columns;
        // The columns of the last images, by their bitmaps.
        std::string present[2];
        std::vector<StoredColumn> chosen[2];
    };

    bool count(const EventView& event, uint32_t length, int64_t payload_end) {
        int64_t rows = 0;
        const bool was_open = open.in_progress();
        bool ends = false;
        switch (event.type) {
            case GTID_LOG_EVENT:
            case GTID_TAGGED_LOG_EVENT:
            case ANONYMOUS_GTID_LOG_EVENT:
                open.is_named = true;
                open.is_in_group = false;
                break;
            case MARIADB_GTID_EVENT:
                if (event.size < MARIADB_GTID) return false;
                open.is_named = true;
                open.is_in_group = !is_standalone(event.body);
                break;
            case QUERY_EVENT: {
                std::string_view sql;
                if (!read_statement(event.input(), sql)) return false;
                if (sql == "BEGIN") {
                    open.is_in_group = true;
                } else if (sql == "COMMIT") {
                    ends = true;
                } else {
                    return false;
                }
                break;
            }
            case XID_EVENT:
                ends = true;
                break;
            case TABLE_MAP_EVENT:
                if (!map_table(event)) return false;
                break;
            case ROWS_QUERY_LOG_EVENT:
            case MARIADB_ANNOTATE_ROWS_EVENT:
                break;
            default:
                if (!is_rows_event(event.type) || !count_rows(event, length, rows)) return false;
        }
        if (!was_open && (open.in_progress() || ends)) {
            open.begin = event.start;
            open.rows = open.events = 0;
        }
        ++open.events;
        open.rows += rows;
        if (ends) {
            const int64_t end = payload_end >= 0 ? payload_end : event.end;
            ended_.insert(ended_.end(), {open.begin, end - open.begin, open.rows, open.events,
                                         int64_t{event.timestamp}});
            open.is_named = open.is_in_group = false;
            // A transaction has the maps of its rows.
            if (ids_.size() >= MOST_MAPS) ids_.clear();
        }
        return true;
    }

    bool map_table(const EventView& event) {
        if (event.size < 6) return false;
        const uint64_t id = load48(event.body);
        const std::string_view body = event.text();
        // Servers repeat a map for every statement.
        const auto mapped = ids_.find(id);
        if (mapped != ids_.end() && mapped->second.first == body) return true;
        const auto known = known_.find(std::string(body));
        if (known == known_.end()) {
            ids_.erase(id);
            return false;
        }
        ids_[id] = {std::string(body), known->second};
        return true;
    }

    bool count_rows(const EventView& event, uint32_t length, int64_t& rows) {
        RowsHead head;
        if (!head.parse(event)) return false;
        const auto mapped = ids_.find(head.table_id);
        if (mapped == ids_.end()) return false;
        Known& known = *mapped->second.second;
        if (known.table == NOT_COUNTED) return true;
        if (head.column_count != known.columns.size()) return false;
        const std::vector<StoredColumn>* images[2] = {nullptr, nullptr};
        if (head.has_before) images[0] = &columns_of(known, 0, head.before);
        if (head.has_after) images[1] = &columns_of(known, 1, head.after);
        Input in = head.rows;
        while (in.left() != 0) {
            const uint8_t* const begin = in.at;
            for (const auto* image : images) {
                if (image != nullptr && !skip_image(in, *image)) return false;
            }
            if (in.at == begin) return false;
            ++rows;
        }
        const size_t operation = head.op == 'c' ? 0 : head.op == 'u' ? 1 : 2;
        TableCount& count = counts_[known.table][operation];
        count.rows += static_cast<uint64_t>(rows);
        count.events += 1;
        count.bytes += length;
        return true;
    }

    static const std::vector<StoredColumn>& columns_of(Known& known, size_t side,
                                                       std::string_view present) {
        if (known.present[side] != present || known.present[side].empty()) {
            known.present[side] = present;
            known.chosen[side].clear();
            for (size_t at = 0; at < known.columns.size(); ++at) {
                if (bit_at(Raw::of(present).data, at)) {
                    known.chosen[side].push_back(known.columns[at]);
                }
            }
        }
        return known.chosen[side];
    }

    static bool skip_image(Input& in, const std::vector<StoredColumn>& columns) {
        const uint8_t* nulls;
        if (!in.take(bitmap_size(columns.size()), nulls)) return false;
        for (size_t at = 0; at < columns.size(); ++at) {
            if (bit_at(nulls, at)) continue;
            size_t size = columns[at].size;
            if (columns[at].is_prefix) {
                const uint8_t* length;
                if (!in.take(size, length)) return false;
                size_t value = 0;
                for (size_t byte = 0; byte < size; ++byte) {
                    value |= static_cast<size_t>(length[byte]) << 8 * byte;
                }
                size = value;
            }
            if (!in.skip(size)) return false;
        }
        return true;
    }

    std::array<std::pair<uint64_t, uint64_t>, 256> types_{};
    std::vector<std::array<TableCount, 3>> counts_;
    std::vector<int64_t> ended_;
    std::unordered_map<std::string, std::shared_ptr<Known>> known_;
    std::unordered_map<uint64_t, std::pair<std::string, std::shared_ptr<Known>>> ids_;
};

}  // namespace mysqlbinlog
