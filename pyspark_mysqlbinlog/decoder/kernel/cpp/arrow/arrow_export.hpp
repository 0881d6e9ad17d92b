// Arrow's C data interface: exports finished columns to any reader of Arrow, without a copy.
// https://arrow.apache.org/docs/format/CDataInterface.html
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "bytes/bytes.hpp"

namespace mysqlbinlog {

// The public ABI: names and order of the members are Arrow's.
struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

// Memory from malloc, freed with the last array that uses it.
using Buffer = std::shared_ptr<uint8_t>;

inline Buffer own(uint8_t* data) { return Buffer(data, std::free); }

inline Buffer allocate(size_t size) {
    auto* data = static_cast<uint8_t*>(std::malloc(size == 0 ? 1 : size));
    if (data == nullptr) throw std::bad_alloc();
    return own(data);
}

inline Buffer allocate_zeros(size_t size) {
    auto* data = static_cast<uint8_t*>(std::calloc(size == 0 ? 1 : size, 1));
    if (data == nullptr) throw std::bad_alloc();
    return own(data);
}

// An array that has not been exported.
class Array {
public:
    Array() = default;
    // The first buffer is the validity bitmap, empty if there are no nulls.
    Array(size_t length, size_t null_count, std::vector<Buffer> buffers,
          std::vector<Array> children = {}) {
        auto parts = std::make_unique<Parts>();
        parts->buffers = std::move(buffers);
        for (const Buffer& buffer : parts->buffers) parts->pointers.push_back(buffer.get());
        parts->children.resize(children.size());
        for (size_t i = 0; i < children.size(); ++i) {
            parts->children[i] = children[i].raw_;
            children[i].raw_.release = nullptr;
            parts->child_pointers.push_back(&parts->children[i]);
        }
        raw_.length = static_cast<int64_t>(length);
        raw_.null_count = static_cast<int64_t>(null_count);
        raw_.n_buffers = static_cast<int64_t>(parts->pointers.size());
        raw_.n_children = static_cast<int64_t>(parts->child_pointers.size());
        raw_.buffers = parts->pointers.data();
        raw_.children = parts->child_pointers.data();
        raw_.release = &Array::release;
        raw_.private_data = parts.release();
    }
    Array(Array&& other) noexcept : raw_(other.raw_) { other.raw_.release = nullptr; }
    Array& operator=(Array&& other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() {
        if (raw_.release != nullptr) raw_.release(&raw_);
    }

    // Moves the array to `to`; the reader must then call its release callback.
    void hand_on(ArrowArray* to) {
        *to = raw_;
        raw_.release = nullptr;
    }

private:
    // Memory that an array's pointers refer to. Children are released one by one; those that were
    // moved out have no release callback any more.
    struct Parts {
        std::vector<Buffer> buffers;
        std::vector<const void*> pointers;
        std::vector<ArrowArray> children;
        std::vector<ArrowArray*> child_pointers;
        ~Parts() {
            for (ArrowArray& child : children)
                if (child.release != nullptr) child.release(&child);
        }
    };
    static void release(ArrowArray* array) {
        array->release = nullptr;
        delete static_cast<Parts*>(array->private_data);
    }

    ArrowArray raw_{};
};

// Zeros for all-null columns: one buffer for all such arrays of this and later batches.
class Zeros {
public:
    Buffer of(size_t size) {
        if (buffer_ == nullptr || size_ < size) {
            // Large allocations are untouched pages, which use no memory.
            size_ = std::max(size, size_t{1} << 18);
            buffer_ = allocate_zeros(size_);
        }
        return buffer_;
    }

private:
    Buffer buffer_;
    size_t size_ = 0;
};

inline void set_bit(uint8_t* bits, size_t at) {
    bits[at >> 3] = static_cast<uint8_t>(bits[at >> 3] | 1u << (at & 7));
}
inline void clear_bit(uint8_t* bits, size_t at) {
    bits[at >> 3] = static_cast<uint8_t>(bits[at >> 3] & ~(1u << (at & 7)));
}
inline bool bit_at(const uint8_t* bits, size_t at) { return (bits[at >> 3] >> (at & 7) & 1) != 0; }
inline size_t bitmap_size(size_t count) { return (count + 7) / 8; }

}  // namespace mysqlbinlog
