// Bytes in and out: the checked cursor for all reads, and the growing buffer for all writes. Both
// are independent of the bytes' meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace mysqlbinlog {

inline std::string_view as_text(const uint8_t* data, size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

// Bytes owned by others.
struct Raw {
    const uint8_t* data;
    size_t size;

    static Raw of(std::string_view text) {
        return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
    }
    std::string_view text() const { return as_text(data, size); }
};

// The unread rest of one event's body.
struct Input {
    const uint8_t* at;
    const uint8_t* end;

    size_t left() const { return static_cast<size_t>(end - at); }
    bool has(size_t size) const { return left() >= size; }

    // Takes the next `size` bytes: they start at `from`, and `at` is after them. False, without
    // taking any, if there are fewer. (A null pointer instead would cost every read one more test.)
    [[nodiscard, gnu::always_inline]] bool take(size_t size, const uint8_t*& from) {
        if (!has(size)) return false;
        from = at;
        at += size;
        return true;
    }
    [[nodiscard, gnu::always_inline]] bool skip(size_t size) {
        const uint8_t* passed;
        return take(size, passed);
    }
};

// Little-endian numbers of any alignment. The caller checks bounds.
inline uint16_t load16(const uint8_t* at) {
    return static_cast<uint16_t>(at[0] | at[1] << 8);
}
inline uint32_t load24(const uint8_t* at) {
    return static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8 |
           static_cast<uint32_t>(at[2]) << 16;
}
inline uint32_t load32(const uint8_t* at) { return load24(at) | static_cast<uint32_t>(at[3]) << 24; }
inline uint64_t load48(const uint8_t* at) {
    return load32(at) | static_cast<uint64_t>(load16(at + 4)) << 32;
}
inline uint64_t load64(const uint8_t* at) {
    return load32(at) | static_cast<uint64_t>(load32(at + 4)) << 32;
}
// Stores the low `size` bytes of a number.
inline void store(uint8_t* to, uint64_t number, size_t size) {
    for (size_t byte = 0; byte < size; ++byte) to[byte] = static_cast<uint8_t>(number >> 8 * byte);
}
// The same, big-endian.
inline uint32_t load_big16(const uint8_t* at) { return static_cast<uint32_t>(at[0] << 8 | at[1]); }
inline uint32_t load_big24(const uint8_t* at) { return load_big16(at) << 8 | at[2]; }
inline uint32_t load_big32(const uint8_t* at) { return load_big24(at) << 8 | at[3]; }
// `size` bytes, big-endian; at most 8. Most sizes are known at compile time, or are the same for
// all rows.
[[gnu::always_inline]] inline uint64_t load_big(const uint8_t* at, size_t size) {
    switch (size) {
        case 0: return 0;
        case 1: return at[0];
        case 2: return load_big16(at);
        case 3: return load_big24(at);
        case 4: return load_big32(at);
        default: break;
    }
    uint64_t value = load_big32(at);
    for (size_t i = 4; i < size; ++i) value = value << 8 | at[i];
    return value;
}

// A length-encoded integer; false if it is cut short or invalid.
inline bool read_lenenc(Input& in, uint64_t& value) {
    if (!in.has(1)) return false;
    const uint8_t first = *in.at++;
    if (first < 0xfb) {
        value = first;
        return true;
    }
    const size_t size = first == 0xfc ? 2 : first == 0xfd ? 3 : first == 0xfe ? 8 : 0;
    const uint8_t* at;
    if (size == 0 || !in.take(size, at)) return false;
    value = size == 2 ? load16(at) : size == 3 ? load24(at) : load64(at);
    return true;
}

inline constexpr uint64_t HIGH_BITS = 0x8080808080808080;

inline uint64_t load_word(const uint8_t* at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
}
inline void store_word(uint8_t* to, uint64_t word) { std::memcpy(to, &word, sizeof word); }

// Most texts are short, and a call of memcpy takes longer than copying them. Null requires size 0.
[[gnu::always_inline]] inline void copy_bytes(uint8_t* to, const uint8_t* from, size_t size) {
    if (size > 16) {
        std::memcpy(to, from, size);
    } else if (size >= 8) {
        // The first and the last 8 bytes, which may overlap.
        const uint64_t last = load_word(from + size - 8);
        store_word(to, load_word(from));
        store_word(to + size - 8, last);
    } else {
        for (size_t at = 0; at < size; ++at) to[at] = from[at];
    }
}

// A growing buffer. Its memory comes from malloc, so that `release` can pass it to an owner that
// frees it.
class Bytes {
public:
    Bytes() = default;
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    Bytes(Bytes&& other) noexcept { swap(other); }
    Bytes& operator=(Bytes&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Bytes() { std::free(data_); }

    uint8_t* data() { return data_; }
    const uint8_t* data() const { return data_; }
    size_t size() const { return size_; }
    std::string_view view() const { return as_text(data_, size_); }

    // Reserves `more` bytes after the end; returns their start. `advance` then adds them.
    uint8_t* room(size_t more) {
        if (capacity_ - size_ < more) grow(more);
        return data_ + size_;
    }
    void advance(size_t written) { size_ += written; }

    void append(const void* from, size_t size) {
        copy_bytes(room(size), static_cast<const uint8_t*>(from), size);
        size_ += size;
    }
    void append(std::string_view text) { append(text.data(), text.size()); }
    void push(char byte) {
        *room(1) = static_cast<uint8_t>(byte);
        ++size_;
    }
    void fill(uint8_t byte, size_t size) {
        if (size == 0) return;
        std::memset(room(size), byte, size);
        size_ += size;
    }

    // Back to `size` bytes.
    void truncate(size_t size) { size_ = size; }
    void clear() { size_ = 0; }

    // Returns the memory, for std::free; the buffer is then empty.
    uint8_t* release() {
        uint8_t* data = data_;
        data_ = nullptr;
        size_ = capacity_ = 0;
        return data;
    }
    void swap(Bytes& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

private:
    void grow(size_t more) {
        size_t capacity = capacity_ + capacity_ / 2;
        if (capacity < size_ + more) capacity = size_ + more;
        if (capacity < 64) capacity = 64;
        void* data = std::realloc(data_, capacity);
        if (data == nullptr) throw std::bad_alloc();
        data_ = static_cast<uint8_t*>(data);
        capacity_ = capacity;
    }

    uint8_t* data_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

// A text that is appended often: a short one is copied at once, together with the bytes after it.
class Snippet {
public:
    Snippet() = default;
    explicit Snippet(std::string_view text) : size_(text.size()) {
        if (size_ <= sizeof short_) {
            std::memcpy(short_, text.data(), size_);
        } else {
            long_ = text;
        }
    }
    void append_to(Bytes& out) const {
        if (size_ > sizeof short_) {
            out.append(long_);
            return;
        }
        std::memcpy(out.room(sizeof short_), short_, sizeof short_);
        out.advance(size_);
    }

private:
    size_t size_ = 0;
    char short_[32] = {};
    std::string long_;
};

}  // namespace mysqlbinlog
