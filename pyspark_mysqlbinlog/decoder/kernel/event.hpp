// What events are called, and how long what stands around their bodies is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mysqlbinlog {

// timestamp u32 | type u8 | server id u32 | length u32 | position behind u32 | flags u16
inline constexpr size_t EVENT_HEADER = 19;
inline constexpr size_t EVENT_CHECKSUM = 4;

// The types of events that the kernel knows; all others are the Python twins'.
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
    MARIADB_ANNOTATE_ROWS_EVENT = 160,
    MARIADB_GTID_EVENT = 162,
};

}  // namespace mysqlbinlog
