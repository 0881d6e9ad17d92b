// The dictionary of one variant: its keys in the order of their first use. The Python reference is
// `Keys` and `encode_metadata` in decoder/payloads/variant.py.
#pragma once

#include <chrono>
#include <vector>

#include "bytes/bytes.hpp"
#include "values/charsets.hpp"
#include "values/values.hpp"

namespace mysqlbinlog {

// org.apache.spark.types.variant.VariantUtil.SIZE_LIMIT, for the value and for the metadata.
inline constexpr size_t VARIANT_SIZE_LIMIT = size_t{128} << 20;

// Bytes of an id or offset that is at most `number`.
inline uint32_t variant_width(uint64_t number) {
    return number < 1 << 8 ? 1 : number < 1 << 16 ? 2 : number < 1 << 24 ? 3 : 4;
}

// Writes the low `width` bytes; returns the position after them.
inline uint8_t* write_little(uint8_t* to, uint64_t number, uint32_t width) {
    for (uint32_t i = 0; i < width; ++i, number >>= 8) *to++ = static_cast<uint8_t>(number);
    return to;
}

// A field of an object that is being written.
struct VariantField {
    const uint8_t* key;
    uint32_t length;
    uint32_t start;  // of its value, among the object's values
    uint32_t id;

    Raw raw() const { return Raw{key, length}; }
};

// Open addressing; the keys' bytes are stored one after another, as in the metadata.
class VariantKeys {
public:
    VariantKeys() : table_(64, 0) {
        // Authors of keys must not be able to predict hash collisions.
        seed_ = static_cast<uint64_t>(
                    std::chrono::steady_clock::now().time_since_epoch().count()) ^
                reinterpret_cast<uintptr_t>(table_.data());
    }

    size_t size() const { return entries_.size(); }

    // Reused memory for writers that use these keys: the fields of the open objects, and the starts
    // of the elements of the open arrays.
    std::vector<VariantField> fields;
    std::vector<uint32_t> starts;

    // The number of a key; a new key gets the next one.
    uint32_t id(Raw key) {
        const uint64_t hash = hash_of(key);
        const size_t mask = table_.size() - 1;
        size_t slot = hash & mask;
        for (; table_[slot] != 0; slot = (slot + 1) & mask) {
            const uint32_t found = table_[slot] - 1;
            if (entries_[found].hash == hash && is_key(found, key)) return found;
        }
        const uint32_t added = static_cast<uint32_t>(entries_.size());
        text_.append(key.data, key.size);
        entries_.push_back(Entry{hash, text_.size(), slot});
        table_[slot] = added + 1;
        if (entries_.size() * 2 > table_.size()) grow();
        return added;
    }

    // Removes all keys but the first `kept`, in reverse order of insertion, so that each slot is
    // restored.
    void cut(size_t kept) {
        while (entries_.size() > kept) {
            table_[entries_.back().slot] = 0;
            entries_.pop_back();
        }
        text_.truncate(kept == 0 ? 0 : entries_.back().end);
    }

    // False if it is too large for Spark.
    bool append_metadata(Bytes& out) const {
        const size_t count = entries_.size();
        const uint32_t width = variant_width(text_.size() > count ? text_.size() : count);
        const size_t head = 1 + (count + 2) * width;
        if (head + text_.size() > VARIANT_SIZE_LIMIT) return false;
        uint8_t* to = out.room(head + text_.size());
        *to++ = static_cast<uint8_t>((width - 1) << 6 | VERSION);
        to = write_little(to, count, width);
        to = write_little(to, 0, width);
        for (const Entry& entry : entries_) to = write_little(to, entry.end, width);
        if (text_.size() != 0) std::memcpy(to, text_.data(), text_.size());
        out.advance(head + text_.size());
        return true;
    }

private:
    static constexpr uint32_t VERSION = 1;

    struct Entry {
        uint64_t hash;
        size_t end;  // of the key in the text
        size_t slot;
    };

    static uint64_t mixed(uint64_t number) {
        const unsigned __int128 product =
            static_cast<unsigned __int128>(number) * 0x9e3779b97f4a7c15;
        return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }

    uint64_t hash_of(Raw key) const {
        uint64_t hash = seed_ ^ key.size;
        const uint8_t* at = key.data;
        size_t left = key.size;
        for (; left >= 8; left -= 8, at += 8) hash = mixed(hash ^ load_word(at));
        uint64_t rest = 0;
        for (; left != 0; --left) rest = rest << 8 | *at++;
        return mixed(hash ^ rest);
    }

    bool is_key(uint32_t id, Raw key) const {
        const size_t begin = id == 0 ? 0 : entries_[id - 1].end;
        return entries_[id].end - begin == key.size &&
               (key.size == 0 || std::memcmp(text_.data() + begin, key.data, key.size) == 0);
    }

    void grow() {
        table_.assign(table_.size() * 4, 0);
        const size_t mask = table_.size() - 1;
        for (size_t id = 0; id < entries_.size(); ++id) {
            size_t slot = entries_[id].hash & mask;
            while (table_[slot] != 0) slot = (slot + 1) & mask;
            table_[slot] = static_cast<uint32_t>(id + 1);
            entries_[id].slot = slot;
        }
    }

    uint64_t seed_;
    std::vector<uint32_t> table_;  // id + 1; 0 is free
    std::vector<Entry> entries_;
    Bytes text_;
};

}  // namespace mysqlbinlog
