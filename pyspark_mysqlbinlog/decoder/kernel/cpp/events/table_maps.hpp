// The table maps that rows events may refer to, with their plans. The Python reference is
// `TableMapRegistry` in decoder/events/table_map.py: the last `CAPACITY` used ones of one file.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "events/row_image.hpp"

namespace mysqlbinlog {

struct MappedTable {
    std::string body;  // of the TABLE_MAP
    uint64_t last_use = 0;
    // For rows events that begin in [planned_from, planned_until) of the file, where the schema is
    // constant. Without a plan, Python decodes them.
    TablePlan* plan = nullptr;
    int64_t planned_from = 0;
    int64_t planned_until = 0;

    bool is_planned_at(int64_t pos) const { return planned_from <= pos && pos < planned_until; }
};

class TableMaps {
public:
    static constexpr size_t CAPACITY = 1024;
    static constexpr uint64_t NONE = std::numeric_limits<uint64_t>::max();

    // Whether this exact TABLE_MAP is known; if so, it becomes the last one used.
    bool repeats(std::string_view body) {
        if (body.size() < 6) return false;
        MappedTable* table = find(id_of(body));
        if (table == nullptr || table->body != body) return false;
        table->last_use = ++uses_;
        return true;
    }
    // Adds a TABLE_MAP in place of another one of that id, or of the least recently used one, whose
    // id is returned; otherwise NONE.
    uint64_t add(std::string_view body) {
        const uint64_t id = id_of(body);
        MappedTable& table = tables_[id];
        table = MappedTable();
        table.body = body;
        table.last_use = ++uses_;
        last_id_ = NONE;
        if (tables_.size() <= CAPACITY) return NONE;
        auto oldest = tables_.begin();
        for (auto at = tables_.begin(); at != tables_.end(); ++at)
            if (at->second.last_use < oldest->second.last_use) oldest = at;
        const uint64_t forgotten = oldest->first;
        tables_.erase(oldest);
        return forgotten;
    }
    MappedTable* find(uint64_t id) {
        // Consecutive rows events often have the same table.
        if (id == last_id_) return last_;
        const auto found = tables_.find(id);
        if (found == tables_.end()) return nullptr;
        last_id_ = id;
        last_ = &found->second;
        return last_;
    }
    void clear() {
        tables_.clear();
        last_id_ = NONE;
    }

private:
    static uint64_t id_of(std::string_view body) {
        return load48(Raw::of(body).data);
    }

    std::unordered_map<uint64_t, MappedTable> tables_;
    uint64_t uses_ = 0;
    uint64_t last_id_ = NONE;
    MappedTable* last_ = nullptr;
};

}  // namespace mysqlbinlog
