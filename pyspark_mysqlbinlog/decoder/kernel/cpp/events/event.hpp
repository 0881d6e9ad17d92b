// Event types, the header before the body, and the length of the checksum after it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bytes/bytes.hpp"

namespace mysqlbinlog {

inline constexpr size_t EVENT_HEADER = 19;
// Offsets in the header.
inline constexpr size_t EVENT_TYPE = 4;
inline constexpr size_t EVENT_SERVER_ID = 5;
inline constexpr size_t EVENT_LOG_POS = 13;
inline constexpr size_t EVENT_CHECKSUM = 4;

// timestamp u32 | type u8 | server id u32 | length u32 | position after it u32 | flags u16
struct EventHeader {
    uint32_t timestamp;
    uint8_t type;
    uint32_t server_id;
    uint32_t length;   // of the whole event
    uint32_t log_pos;  // after the event, modulo 2^32
    uint16_t flags;

    // Of the EVENT_HEADER bytes at `at`.
    static EventHeader read(const uint8_t* at) {
        return {load32(at),     at[4],           load32(at + 5),
                load32(at + 9), load32(at + 13), load16(at + 17)};
    }
    static void store_log_pos(uint8_t* at, int64_t pos) {
        store(at + EVENT_LOG_POS, static_cast<uint64_t>(pos), 4);
    }
};

// The event types that the kernel supports; all others are handled in Python.
enum EventType : uint8_t {
    QUERY_EVENT = 2,
    XID_EVENT = 16,
    TABLE_MAP_EVENT = 19,
    WRITE_ROWS_EVENT_V1 = 23,
    UPDATE_ROWS_EVENT_V1 = 24,
    DELETE_ROWS_EVENT_V1 = 25,
    ROWS_QUERY_LOG_EVENT = 29,
    WRITE_ROWS_EVENT = 30,
    UPDATE_ROWS_EVENT = 31,
    DELETE_ROWS_EVENT = 32,
    GTID_LOG_EVENT = 33,
    ANONYMOUS_GTID_LOG_EVENT = 34,
    XA_PREPARE_LOG_EVENT = 38,
    PARTIAL_UPDATE_ROWS_EVENT = 39,
    TRANSACTION_PAYLOAD_EVENT = 40,
    GTID_TAGGED_LOG_EVENT = 42,
    MARIADB_ANNOTATE_ROWS_EVENT = 160,
    MARIADB_GTID_EVENT = 162,
};

inline bool is_rows_event(uint8_t type) {
    return (type >= WRITE_ROWS_EVENT_V1 && type <= DELETE_ROWS_EVENT_V1) ||
           (type >= WRITE_ROWS_EVENT && type <= DELETE_ROWS_EVENT);
}

// Bytes of the marker before the events of a payload in a packed block (see protocol/blocks.py). It
// is a header with the type of a payload, whose log_pos is the payload's position; the offset after
// the first event in the payload's stream u64; and the bytes of the events u32.
inline constexpr size_t PAYLOAD_MARKER = EVENT_HEADER + 12;

// MARIADB_GTID_EVENT: number u64 | domain u32 | flags u8. It replaces BEGIN, unless its flags
// mark it as standalone.
inline constexpr size_t MARIADB_GTID = 13;
inline bool is_standalone(const uint8_t* mariadb_gtid) { return (mariadb_gtid[12] & 0x01) != 0; }

}  // namespace mysqlbinlog
