// The body of a TRANSACTION_PAYLOAD; the Python reference is protocol/transaction_payload.py.
#pragma once

#include "bytes/bytes.hpp"

namespace mysqlbinlog {

struct PayloadEvent {
    uint64_t size = 0;  // decompressed
    Input data{nullptr, nullptr};

    // False for a body that Python must handle.
    bool parse(Input in) {
        uint64_t field, length, value, packed = 0, algorithm = 1;
        for (;;) {
            if (!read_lenenc(in, field)) return false;
            if (field == END) break;
            if (!read_lenenc(in, length)) return false;
            const uint8_t* const begin = in.at;
            if (field > DECOMPRESSED_SIZE || !read_lenenc(in, value)) return false;
            if (static_cast<uint64_t>(in.at - begin) != length) return false;
            if (field == SIZE) packed = value;
            if (field == ALGORITHM) algorithm = value;
            if (field == DECOMPRESSED_SIZE) size = value;
        }
        data = in;
        return algorithm == ZSTD && packed == in.left();
    }

private:
    static constexpr uint64_t END = 0, SIZE = 1, ALGORITHM = 2, DECOMPRESSED_SIZE = 3;
    static constexpr uint64_t ZSTD = 0;
};

}  // namespace mysqlbinlog
