// The events of a packed block (protocol/blocks.py), one after another.
#pragma once

#include "bytes/bytes.hpp"
#include "events/event.hpp"

namespace mysqlbinlog {

// One event. Positions count from the beginning of the file, not modulo 2^32.
struct EventView {
    const uint8_t* body;
    size_t size;  // of the body
    int64_t start;
    int64_t end;
    int64_t offset;  // in the stream of its payload; -1 outside of one
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
    // there. At least -2^31. Events of payloads have none.
    void open(const uint8_t* data, size_t size, int64_t first_end, int64_t trailer) {
        begin_ = data;
        in_ = Input{data, data + size};
        end_ = first_end;
        trailer_ = block_trailer_ = trailer;
        payload_ = -1;
        if (is_marker_next()) enter_payload();
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
        event.end = after(header.log_pos);
        event.start = event.end - int64_t{header.length};
        event.offset = -1;
        event.flags = header.flags;
        event.body = in_.at + EVENT_HEADER;
        if (payload_ >= 0) {
            event.offset = event.start;
            event.start = event.end = payload_;
        }
        return true;
    }
    // Advances after the event that `peek` returned.
    void pass(const EventView& event) {
        const uint8_t* const begin = in_.at;
        in_.at = event.body + event.size;
        end_ = event.end;
        if (payload_ >= 0) {
            end_ = event.offset + (in_.at - begin);
            if (in_.left() == 0) leave_payload();
        }
        if (is_marker_next()) enter_payload();
    }

private:
    // The first position from `end_` on with these low 32 bits.
    int64_t after(uint32_t log_pos) const {
        return end_ + static_cast<uint32_t>(log_pos - static_cast<uint32_t>(end_));
    }
    bool is_marker_next() const {
        return in_.has(EVENT_HEADER) && in_.at[4] == TRANSACTION_PAYLOAD_EVENT;
    }
    // Reads a marker. In a payload, `in_` ends with its events.
    [[gnu::noinline]] void enter_payload() {
        if (payload_ >= 0 || !in_.has(PAYLOAD_MARKER)) return;
        const uint8_t* const rest = in_.at + EVENT_HEADER;
        const size_t size = load32(rest + 8);
        if (size == 0 || in_.left() - PAYLOAD_MARKER < size) return;  // `peek` rejects it
        payload_ = after(EventHeader::read(in_.at).log_pos);
        end_ = static_cast<int64_t>(load64(rest));
        block_end_ = in_.end;
        trailer_ = 0;
        in_ = Input{in_.at + PAYLOAD_MARKER, in_.at + PAYLOAD_MARKER + size};
    }
    [[gnu::noinline]] void leave_payload() {
        in_.end = block_end_;
        trailer_ = block_trailer_;
        end_ = payload_;
        payload_ = -1;
    }

    const uint8_t* begin_ = nullptr;
    Input in_{nullptr, nullptr};
    int64_t end_ = 0;
    int64_t trailer_ = 0;        // of the next event
    int64_t block_trailer_ = 0;  // of events outside of payloads
    int64_t payload_ = -1;
    const uint8_t* block_end_ = nullptr;
};

}  // namespace mysqlbinlog
