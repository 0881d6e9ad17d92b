// The body of a QUERY event; the Python reference is `Query` in protocol/messages.py.
#pragma once

#include <string_view>

#include "bytes/bytes.hpp"

namespace mysqlbinlog {

// Whether the status variables up to the character sets are complete; those after them are not
// read.
inline bool are_variables(Input in) {
    while (in.left() != 0) {
        const uint8_t code = *in.at++;
        size_t length = 0;
        switch (code) {
            case 0: length = 4; break;  // Q_FLAGS2
            case 1: length = 8; break;  // Q_SQL_MODE
            case 3: length = 4; break;  // Q_AUTO_INCREMENT
            case 4: return in.has(6);   // Q_CHARSET
            case 2:                     // Q_CATALOG, followed by a 0x00
            case 5:                     // Q_TIME_ZONE
            case 6:                     // Q_CATALOG_NZ
                if (!in.has(1)) return false;
                length = *in.at++ + (code == 2 ? 1u : 0u);
                break;
            case 131:  // Q_CHARACTER_SET_COLLATIONS of MariaDB: pairs of u16
                if (!in.has(1)) return false;
                length = *in.at++ * 4u;
                break;
            default: return true;
        }
        if (!in.skip(length)) return false;
    }
    return true;
}

// Finds the statement; false for a body that Python rejects.
//
// thread_id u32 | exec_time u32 | database length u8 | error u16 | status variables length u16
// | status variables | database | 0x00 | statement
inline bool read_statement(Input in, std::string_view& sql) {
    constexpr size_t HEAD = 13;
    const uint8_t* at;
    if (!in.take(HEAD, at)) return false;
    const size_t database = at[8];
    const size_t variables = load16(at + 11);
    if (!in.take(variables + database + 1, at)) return false;
    if (!are_variables({at, at + variables}) || at[variables + database] != 0) return false;
    sql = as_text(in.at, in.left());
    return true;
}

}  // namespace mysqlbinlog
