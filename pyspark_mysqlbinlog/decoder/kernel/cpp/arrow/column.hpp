// The properties of one column's values: the table map's entry and the schema, combined. Set once
// per column of a plan, from kernel/columns.py's spec, then only read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bytes/bytes.hpp"

namespace mysqlbinlog {

// How a value is stored. The kind defines `size`.
enum class Kind : uint8_t {
    Integer,       // size: 1, 2, 3, 4 or 8 bytes, little-endian
    Float,         // 4
    Double,        // 8
    Decimal,       // precision, scale; size: all its bytes
    Bit,           // bits; size: its bytes, big-endian
    Year,          // 1
    Date,          // 3
    TimeOld,       // 3: the layout before 5.6, also for the next two
    DatetimeOld,   // 8
    TimestampOld,  // 4
    Time,          // fsp; size: all its bytes
    Datetime,
    Timestamp,
    Text,          // charset; size: bytes of the length before it: 1 to 4
    Binary,        // padded; size as Text
    Enum,          // labels; size: 1 or 2
    Set,           // labels; size: 1, 2, 3, 4 or 8
    Json,          // size as Text
    Geometry,      // size as Text
    FixedSkip,     // excluded: skipped; size: all its bytes (may be 0)
    PrefixedSkip,  // excluded: skipped; size as Text
    Masked,        // masked; its value is stored as that of `masked->column`
};

// Conversion of a character set's bytes to UTF-8 (see charsets.hpp).
struct CharsetTable;
// A column and its mask (see masks.hpp).
struct MaskedColumn;

struct Column {
    Kind kind = Kind::FixedSkip;
    uint32_t size = 0;
    bool is_unsigned = false;
    uint8_t precision = 0;
    uint8_t scale = 0;
    uint8_t fsp = 0;
    uint8_t bits = 0;
    int32_t padded = -1;  // BINARY(n): n; otherwise -1
    std::string name;
    std::vector<std::string> labels;       // UTF-8; ENUM: labels[0] is '', the invalid value
    std::vector<std::string> json_labels;  // the same as JSON strings
    const CharsetTable* charset = nullptr;
    std::shared_ptr<const MaskedColumn> masked;

    // Made by `prepare`.
    Snippet json_member;                // ,"name":
    std::vector<Snippet> shown_values;  // ENUM: each label; SET of a few labels: each set of them

    bool is_skipped() const { return kind == Kind::FixedSkip || kind == Kind::PrefixedSkip; }

    // To be called when the fields above are set.
    void prepare(std::string_view member) {
        json_member = Snippet(member);
        shown_values.clear();
        if (kind == Kind::Enum) {
            for (const std::string& label : labels) shown_values.emplace_back(label);
        } else if (kind == Kind::Set && labels.size() <= FEW_LABELS) {
            for (size_t bits = 0; bits < size_t{1} << labels.size(); ++bits)
                shown_values.emplace_back(joined_labels(bits));
        }
    }

private:
    static constexpr size_t FEW_LABELS = 8;

    std::string joined_labels(size_t bits) const {
        std::string text;
        for (size_t at = 0; at < labels.size(); ++at) {
            if ((bits >> at & 1) == 0) continue;
            // As in MySQL; see `append_set`.
            if (!text.empty()) text += ',';
            text += labels[at];
        }
        return text;
    }
};

}  // namespace mysqlbinlog
