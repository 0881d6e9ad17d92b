// The tables known to the scan: which of them are captured, by the bytes of their names; and their
// ids in the current transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mysqlbinlog {

// Whether a table's events are captured; for Unknown, Python must decide.
enum class Captured : uint8_t { No, Yes, Unknown };

inline Captured captured_if(bool is_captured) { return is_captured ? Captured::Yes : Captured::No; }

// Tables announced in the current transaction. Cleared all at once.
class TableIds {
public:
    TableIds() : slots_(16) {}

    void clear() {
        ++generation_;
        count_ = 0;
    }
    // Unknown: not announced.
    Captured find(uint64_t id) const {
        for (size_t at = hash(id);; ++at) {
            const Slot& slot = slots_[at & (slots_.size() - 1)];
            if (slot.generation != generation_) return Captured::Unknown;
            if (slot.id == id) return captured_if(slot.captured);
        }
    }
    void set(uint64_t id, bool captured) {
        if (2 * (count_ + 1) > slots_.size()) grow();
        put(id, captured);
    }

private:
    struct Slot {
        uint64_t generation = 0;
        uint64_t id = 0;
        bool captured = false;
    };

    static size_t hash(uint64_t id) { return static_cast<size_t>(id * 0x9E3779B97F4A7C15u >> 20); }
    void put(uint64_t id, bool captured) {
        for (size_t at = hash(id);; ++at) {
            Slot& slot = slots_[at & (slots_.size() - 1)];
            if (slot.generation == generation_ && slot.id != id) continue;
            count_ += slot.generation != generation_;
            slot = {generation_, id, captured};
            return;
        }
    }
    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        count_ = 0;
        for (const Slot& slot : old) {
            if (slot.generation == generation_) put(slot.id, slot.captured);
        }
    }

    std::vector<Slot> slots_;
    uint64_t generation_ = 1;
    size_t count_ = 0;
};

// Tables that Python has seen. The decision for a name is final.
class KnownTables {
public:
    // `whole_maps`: a captured table's map is known only if an equal one was learnt, byte for byte.
    explicit KnownTables(bool whole_maps) : whole_maps_(whole_maps) {}

    // Adds a table map's body that Python has parsed.
    void learn(std::string_view body, bool captured) {
        size_t size = 0;
        if (!name_length(body, size)) return;
        if (names_.size() >= MOST_NAMES) names_.clear();
        names_[std::string(body.substr(NAMES, size))] = captured;
        if (captured && whole_maps_) {
            if (maps_.size() >= MOST_MAPS) maps_.clear();
            maps_.emplace(body);
        }
        last_map_.clear();
    }
    void forget_maps() {
        maps_.clear();
        last_map_.clear();
    }

    // Finds a table by its table map's body.
    Captured find(std::string_view body) {
        // Servers repeat a map for every statement.
        if (!last_map_.empty() && body == last_map_) return last_captured_;
        size_t size = 0;
        if (!name_length(body, size)) return Captured::Unknown;
        const auto known = names_.find(body.substr(NAMES, size));
        if (known == names_.end()) return Captured::Unknown;
        if (known->second && whole_maps_ && maps_.find(body) == maps_.end()) return Captured::Unknown;
        last_map_.assign(body);
        last_captured_ = captured_if(known->second);
        return last_captured_;
    }

private:
    static constexpr size_t MOST_NAMES = 100'000;
    static constexpr size_t MOST_MAPS = 10'000;
    static constexpr size_t NAMES = 8;  // table id u48 | flags u16 | names

    // Bytes of both names with their lengths and zeros, from NAMES on; false if cut short.
    static bool name_length(std::string_view body, size_t& size) {
        size_t end = NAMES;
        for (int name = 0; name < 2; ++name) {
            if (body.size() <= end) return false;
            end += static_cast<uint8_t>(body[end]) + 2u;
            if (body.size() < end) return false;
        }
        size = end - NAMES;
        return true;
    }

    const bool whole_maps_;
    std::map<std::string, bool, std::less<>> names_;
    std::set<std::string, std::less<>> maps_;
    std::string last_map_;
    Captured last_captured_ = Captured::Unknown;
};

}  // namespace mysqlbinlog
