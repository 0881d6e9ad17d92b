// The events of a packed block (protocol/blocks.py), one after another.
#pragma once

#include "bytes.hpp"
#include "event.hpp"

namespace mysqlbinlog {

// One event. Positions count from the beginning of the file, not modulo 2^32.
struct EventView {
    const uint8_t* body;
    size_t size;  // of the body
    int64_t start;
    int64_t end;
    uint32_t timestamp;
    uint32_t server_id;
    uint16_t flags;
    uint8_t type;

    Input input() const { return Input{body, body + size}; }
    std::string_view text() const { return as_text(body, size); }
};

// Iterates over a block. The caller of `open` keeps its bytes alive.
class BlockReader {
public:
    // trailer: by how much each event is longer in the binlog; negative for one that is compressed
    // there. At least -2^31.
    void open(const uint8_t* data, size_t size, int64_t first_end, int64_t trailer) {
        begin_ = data;
        in_ = Input{data, data + size};
        end_ = first_end;
        trailer_ = trailer;
    }
    bool at_end() const { return in_.left() == 0; }
    size_t offset() const { return static_cast<size_t>(in_.at - begin_); }

    // The next event; false if the block is cut short or its lengths are invalid.
    bool peek(EventView& event) const {
        if (!in_.has(EVENT_HEADER)) return false;
        const EventHeader header = EventHeader::read(in_.at);
        const int64_t here = int64_t{header.length} - trailer_;
        if (header.length < EVENT_HEADER || here < int64_t{EVENT_HEADER}) return false;
        event.size = static_cast<size_t>(here) - EVENT_HEADER;
        if (in_.left() - EVENT_HEADER < event.size) return false;
        event.timestamp = header.timestamp;
        event.type = header.type;
        event.server_id = header.server_id;
        event.end = end_ + static_cast<uint32_t>(header.log_pos - static_cast<uint32_t>(end_));
        event.start = event.end - int64_t{header.length};
        event.flags = header.flags;
        event.body = in_.at + EVENT_HEADER;
        return true;
    }
    // Advances after the event that `peek` returned.
    void pass(const EventView& event) {
        in_.at = event.body + event.size;
        end_ = event.end;
    }

private:
    const uint8_t* begin_ = nullptr;
    Input in_{nullptr, nullptr};
    int64_t end_ = 0;
    int64_t trailer_ = 0;
};

}  // namespace mysqlbinlog
