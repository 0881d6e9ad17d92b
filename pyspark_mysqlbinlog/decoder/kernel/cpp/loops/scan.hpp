// The scan: reads events in memory, from a dump or a file, and finds the captured ones. It is the
// compiled counterpart of protocol/event_reader.py and decoder/filtering/event_filter.py for most
// of a binlog: rows between BEGIN and COMMIT, of tables with known names.
//
// All its decisions are those of the Python reference. Before any other event (DDL, savepoints, XA,
// rotations, heartbeats, unknown names, damaged bytes) the scan stops: Python processes that one
// event, and the scan continues after it. Python owns the state of the binlog. There are therefore
// two ways through a chunk:
//
// * between transactions, `scan_transactions` reads whole ones, or nothing of one;
// * inside a transaction, `scan_group` reads rows, table maps and statement texts, and returns the
//   state that Python would have after them.
//
// A third, `skip_rows`, is for callers that search for statements only: it skips row changes and
// their frames, of all tables.
//
// Captured events are not copied but recorded as segments of the chunk; `pack` copies them.
//
// A small payload with a whole transaction is decompressed here, and its events are recorded after
// a marker (see protocol/blocks.py). Python reads the stream of a larger payload, and passes it as
// the chunk. The events of payloads have no checksum and no log_pos: their positions are offsets in
// the stream, and `pack` writes these into the headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "bytes/bytes.hpp"
#include "bytes/crc32.hpp"
#include "events/event.hpp"
#include "events/payload_event.hpp"
#include "events/query.hpp"
#include "loops/scan_tables.hpp"
#include "events/transactions.hpp"
#include "bytes/zstd.hpp"

namespace mysqlbinlog {

// A captured event: header and body, without its checksum; or the marker before those of a payload.
struct Segment {
    int64_t end;             // position after the event, or offset in its payload's stream
    size_t offset;           // in the chunk, or in the decompressed streams
    uint32_t size;
    uint32_t inner_size = 0; // of a marker: bytes of the events after it
    int64_t payload = -1;    // position of the payload with the event

    bool is_marker() const { return inner_size != 0; }
    bool is_inner() const { return payload >= 0; }
    // The position in the binlog.
    int64_t place() const { return is_inner() ? payload : end; }
};

// A boundary, and the totals before it.
struct Ending {
    int64_t end;
    uint64_t kept;    // bytes of captured events since the beginning of the scan
    size_t segments;  // likewise
    size_t last_length;      // of the event that ends there, its checksum included
    uint32_t last_checksum;
};

// Consecutive transactions whose GTIDs count up.
struct GtidRun {
    size_t transaction;  // index of the first one; 0 where transactions are not counted
    size_t count;
    Segment event;       // of the first one
};

enum class ScanStop : uint8_t {
    More,   // the next event, or the rest of its transaction, has not arrived yet
    Odd,    // the next event, or one of its transaction, is for Python
    Pause,  // after the requested position
    Full,   // enough was decompressed
};

class Scanner {
public:
    // `whole_maps`: a captured table's map passes only if an equal one was learnt, byte for byte.
    explicit Scanner(bool whole_maps) : known_(whole_maps) {}

    // --- known tables

    // Adds a table map's body that Python has parsed.
    void learn(std::string_view body, bool captured) { known_.learn(body, captured); }
    // Requires every captured table's map to be parsed again.
    void forget_maps() { known_.forget_maps(); }

    // --- the chunk

    // packets: events come as a dump's packets, otherwise back to back. checksum: each has a CRC32.
    // may_lack_positions: a log_pos of 0 is no reason to stop (see event_reader.py).
    // shift: the amount by which a log_pos exceeds the position after its event, modulo 2^32.
    // verified: number of bytes whose checksums an earlier scan has verified.
    // in_payload: positions are offsets in a payload's stream.
    void open(const uint8_t* data, size_t size, int64_t pos, int64_t limit, bool packets,
              bool checksum, bool may_lack_positions, uint32_t shift, size_t verified,
              bool in_payload) {
        data_ = data;
        size_ = size;
        limit_ = limit;
        packets_ = packets;
        may_lack_positions_ = may_lack_positions;
        shift_ = shift;
        trailer_ = checksum ? EVENT_CHECKSUM : 0;
        in_payload_ = in_payload;
        verified_ = verified;
        at_ = 0;
        pos_ = pos;
        time_ = 0;
        kept_ = 0;
        segments_.clear();
        endings_.clear();
        gtids_.clear();
        gtid_ = Segment{};
        streams_.clear();
        statement_.clear();
        new_ids_.clear();
        new_statement_ = false;
        state_ = TransactionState();
        kept_rows_events_ = 0;
        last_offset_ = last_length_ = 0;
    }

    // --- results of a scan

    ScanStop stop() const { return stop_; }
    size_t consumed() const { return at_; }   // bytes of the chunk
    int64_t pos() const { return pos_; }      // after the last event
    uint32_t time() const { return time_; }   // of the last event, from its header
    size_t verified() const { return verified_ > at_ ? verified_ - at_ : 0; }
    uint64_t kept() const { return kept_; }
    // Of the last scanned event: bytes, and the CRC32 of all but its own checksum.
    size_t last_length() const { return last_length_; }
    uint32_t last_checksum() const {
        if (last_length_ == 0) return 0;
        const uint8_t* head = data_ + last_offset_;
        if (EventHeader::read(head).log_pos != static_cast<uint32_t>(pos_)) {
            return placed_checksum(head);
        }
        if (trailer_ != 0) return load32(head + last_length_ - EVENT_CHECKSUM);
        return crc32(head, last_length_);
    }
    size_t trailer() const { return trailer_; }
    const std::vector<Segment>& segments() const { return segments_; }
    const std::vector<Ending>& endings() const { return endings_; }
    const std::vector<GtidRun>& gtids() const { return gtids_; }
    // Inside a transaction: the text and the table maps of the statement in progress, or those
    // added to it; and the rest of EventFilter's state.
    const std::vector<Segment>& statement() const { return statement_; }
    bool new_statement() const { return new_statement_; }
    bool text_waits() const { return text_waits_; }
    bool text_is_here() const { return text_is_here_; }
    bool rows_seen() const { return state_.are_rows_seen; }
    uint64_t kept_rows_events() const { return kept_rows_events_; }
    const std::vector<std::pair<uint64_t, bool>>& new_ids() const { return new_ids_; }

    // Bytes of the segments [first, last).
    size_t packed_size(size_t first, size_t last) const {
        size_t size = 0;
        for (size_t n = first; n < last; ++n) size += segments_[n].size;
        return size;
    }
    // Each header gets its position, which the server may have left out.
    void pack(size_t first, size_t last, uint8_t* out) const {
        for (size_t n = first; n < last; ++n) {
            const Segment& segment = segments_[n];
            if (segment.is_marker()) {
                std::memset(out, 0, segment.size);
                out[4] = TRANSACTION_PAYLOAD_EVENT;
                EventHeader::store_log_pos(out, segment.payload);
                store(out + EVENT_HEADER, static_cast<uint64_t>(segment.end), 8);
                store(out + EVENT_HEADER + 8, segment.inner_size, 4);
            } else {
                const uint8_t* const from = segment.is_inner() ? streams_.data() : data_;
                std::memcpy(out, from + segment.offset, segment.size);
                EventHeader::store_log_pos(out, segment.end);
            }
            out += segment.size;
        }
    }

    // --- the two ways

    // Whole transactions, beginning between two.
    void scan_transactions() {
        do {
            const size_t segments = segments_.size();
            const uint64_t kept = kept_;
            const size_t at = at_;
            const int64_t pos = pos_;
            const uint32_t time = time_;
            const size_t last_offset = last_offset_;
            const size_t last_length = last_length_;
            const size_t streams = streams_.size();
            if (!scan_transaction()) {
                segments_.resize(segments);
                streams_.truncate(streams);
                kept_ = kept;
                at_ = at;
                pos_ = pos;
                time_ = time;
                last_offset_ = last_offset;
                last_length_ = last_length;
                return;
            }
            note_gtid();
            endings_.push_back({pos_, kept_, segments_.size(), last_length_, last_checksum()});
        } while (true);
    }

    // Inside a transaction. `ids` contains its announced tables; the arguments are the filter's
    // state; `frame_waits`: GTID and BEGIN have not been passed on; pause_at: stop after the first
    // rows event that ends there or later.
    void scan_group(bool frame_waits, bool text_waits, bool rows_seen, int64_t pause_at) {
        text_waits_ = text_waits;
        text_is_here_ = false;
        state_.begin();
        state_.are_rows_seen = rows_seen;
        Event event{};
        while (read(event)) {
            switch (event.kind) {
                case Kind::Rows: {
                    const Captured captured = captured_rows(event);
                    if (captured == Captured::Unknown) return odd();
                    state_.rows();
                    if (captured == Captured::Yes) {
                        keep(event);
                        ++kept_rows_events_;
                    }
                    pass(event);
                    if (pos_ >= pause_at) {
                        stop_ = ScanStop::Pause;
                        return;
                    }
                    break;
                }
                case Kind::Text:
                    statement_.assign(1, segment(event));
                    new_statement_ = text_waits_ = text_is_here_ = true;
                    state_.text();
                    pass(event);
                    break;
                case Kind::Map: {
                    const Captured captured = captured_map(event);
                    if (captured == Captured::Unknown) return odd();
                    const bool is_captured = captured == Captured::Yes;
                    // The filter passes on a frame, or a text from before the chunk.
                    const bool takes_text = text_waits_ && !state_.are_rows_seen;
                    if (is_captured && (frame_waits || (takes_text && !text_is_here_))) return odd();
                    if (state_.table_map()) {
                        statement_.clear();
                        new_statement_ = true;
                        text_waits_ = false;
                    }
                    const uint64_t id = load48(event.body);
                    ids.set(id, is_captured);
                    new_ids_.emplace_back(id, is_captured);
                    if (is_captured) {
                        if (text_waits_) keep(statement_[0]);
                        text_waits_ = false;
                        keep(event);
                    }
                    statement_.push_back(segment(event));
                    pass(event);
                    break;
                }
                default:
                    return odd();
            }
        }
    }

    // Row changes and their frames, without checking tables or grouping.
    void skip_rows() {
        Event event{};
        while (read(event)) {
            if (event.kind == Kind::Payload ||
                (event.kind == Kind::Query && !is_query(event, "BEGIN") &&
                 !is_query(event, "COMMIT"))) {
                return odd();
            }
            if (event.kind == Kind::Gtid || event.kind == Kind::MariadbGtid) {
                gtid_ = segment(event);
                note_gtid();
            }
            pass(event);
        }
    }

    TableIds ids;

private:
    enum class Kind : uint8_t { Odd, Rows, Map, Query, Xid, Gtid, MariadbGtid, Text, Payload };

    struct Event {
        Kind kind;
        const uint8_t* body;
        size_t body_size;
        size_t offset;  // of the header, in the chunk
        size_t next;    // after the event
        int64_t end;
        // Of the payload with this event; -1 outside of one.
        int64_t payload = -1;
    };

    // Of a chunk and the streams in it together: what is kept must fit into a task (see
    // MAX_INLINE_BYTES_PER_TASK in connector/tail/buffer.py).
    static constexpr size_t MOST_BYTES = 800'000;
    // GTID: flags u8 | uuid 16 bytes | number u64
    static constexpr size_t GTID_UUID = 1;
    static constexpr size_t GTID_NUMBER = 17;
    static constexpr size_t GTID = 25;
    static constexpr uint16_t ARTIFICIAL_FLAG = 0x20;
    static constexpr size_t PACKET_HEADER = 5;  // length u24 | sequence u8 | status u8
    static constexpr uint32_t FULL_PACKET = 0xFFFFFF;

    static Kind kind_of(uint8_t type) {
        if (is_rows_event(type) || type == PARTIAL_UPDATE_ROWS_EVENT) return Kind::Rows;
        switch (type) {
            case TABLE_MAP_EVENT: return Kind::Map;
            case QUERY_EVENT: return Kind::Query;
            case XID_EVENT: return Kind::Xid;
            case TRANSACTION_PAYLOAD_EVENT: return Kind::Payload;
            case GTID_LOG_EVENT:
            case GTID_TAGGED_LOG_EVENT:
            case ANONYMOUS_GTID_LOG_EVENT: return Kind::Gtid;
            case MARIADB_GTID_EVENT: return Kind::MariadbGtid;
            case ROWS_QUERY_LOG_EVENT:
            case MARIADB_ANNOTATE_ROWS_EVENT: return Kind::Text;
            default: return Kind::Odd;
        }
    }

    static bool is_dummy(uint64_t id) { return id == 0xFFFFFF || id == 0xFFFFFFFFFFFF; }

    void odd() { stop_ = ScanStop::Odd; }
    bool stopped(ScanStop why) {
        stop_ = why;
        return false;
    }

    // Reads the event at at_ with all checks of EventReader; false if the scan must stop there.
    bool read(Event& event) {
        size_t offset = at_;
        size_t length;
        if (packets_) {
            if (size_ - offset < PACKET_HEADER) return stopped(ScanStop::More);
            const uint32_t packet = load24(data_ + offset);
            if (packet == FULL_PACKET || packet < 1 + EVENT_HEADER || data_[offset + 4] != 0) {
                return stopped(ScanStop::Odd);
            }
            offset += PACKET_HEADER;
            length = packet - 1;
            if (size_ - offset < length) return stopped(ScanStop::More);
        } else {
            if (size_ - offset < EVENT_HEADER) return stopped(ScanStop::More);
            length = EventHeader::read(data_ + offset).length;
            if (length < EVENT_HEADER) return stopped(ScanStop::Odd);
            if (size_ - offset < length) return stopped(ScanStop::More);
        }
        const uint8_t* head = data_ + offset;
        const EventHeader header = EventHeader::read(head);
        event.kind = kind_of(header.type);
        event.end = pos_ + static_cast<int64_t>(length);
        const bool is_placed = in_payload_ || (header.log_pos == 0
                                                   ? may_lack_positions_
                                                   : static_cast<uint32_t>(event.end) + shift_ ==
                                                         header.log_pos);
        if (event.kind == Kind::Odd || header.length != length || !is_placed ||
            event.end > limit_ || header.flags & ARTIFICIAL_FLAG ||
            length < EVENT_HEADER + trailer_) {
            return stopped(ScanStop::Odd);
        }
        event.offset = offset;
        event.next = offset + length;
        event.body = head + EVENT_HEADER;
        event.body_size = length - EVENT_HEADER - trailer_;
        if (trailer_ != 0 && event.next > verified_) {
            if (crc32(head, length - EVENT_CHECKSUM) != load32(head + length - EVENT_CHECKSUM)) {
                return stopped(ScanStop::Odd);
            }
            verified_ = event.next;
        }
        return true;
    }

    void pass(const Event& event) {
        at_ = event.next;
        pos_ = event.end;
        time_ = load32(data_ + event.offset);
        last_offset_ = event.offset;
        last_length_ = event.next - event.offset;
    }
    Segment segment(const Event& event) const {
        const size_t size = EVENT_HEADER + event.body_size;
        return {event.end, event.offset, static_cast<uint32_t>(size), 0, event.payload};
    }
    void keep(const Segment& segment) {
        if (segment.is_inner()) {
            if (segments_.empty() || !segments_.back().is_inner()) {
                marker_ = segments_.size();
                segments_.push_back({segment.end, 0, PAYLOAD_MARKER, 0, segment.payload});
                kept_ += PAYLOAD_MARKER;
            }
            segments_[marker_].inner_size += segment.size;
        }
        segments_.push_back(segment);
        kept_ += segment.size;
    }
    void keep(const Event& event) { keep(segment(event)); }

    // Counts the GTID of the transaction that has ended, if it has one.
    void note_gtid() {
        if (gtid_.size == 0) return;
        if (!gtids_.empty() && continues(gtids_.back())) {
            ++gtids_.back().count;
        } else {
            gtids_.push_back({endings_.size(), 1, gtid_});
        }
        gtid_ = Segment{};
    }

    // Whether the GTID is the next one of the same source. (A tagged one begins a run of its own.)
    bool continues(const GtidRun& run) const {
        const uint8_t* const first = data_ + run.event.offset;
        const uint8_t* const here = data_ + gtid_.offset;
        const uint8_t type = here[EVENT_TYPE];
        if (first[EVENT_TYPE] != type) return false;
        const uint8_t* const a = first + EVENT_HEADER;
        const uint8_t* const b = here + EVENT_HEADER;
        switch (type) {
            case ANONYMOUS_GTID_LOG_EVENT:
                return true;
            case GTID_LOG_EVENT:
                return run.event.size >= EVENT_HEADER + GTID && gtid_.size >= EVENT_HEADER + GTID &&
                       load64(b + GTID_NUMBER) == load64(a + GTID_NUMBER) + run.count &&
                       std::memcmp(a + GTID_UUID, b + GTID_UUID, GTID_NUMBER - GTID_UUID) == 0;
            case MARIADB_GTID_EVENT:
                // number u64 | domain u32; the server's id is in the header
                return run.event.size >= EVENT_HEADER + MARIADB_GTID &&
                       gtid_.size >= EVENT_HEADER + MARIADB_GTID &&
                       load64(b) == load64(a) + run.count && load32(a + 8) == load32(b + 8) &&
                       load32(first + EVENT_SERVER_ID) == load32(here + EVENT_SERVER_ID);
            default:
                return false;
        }
    }

    Captured captured_rows(const Event& event) const {
        if (event.body_size < 6) return Captured::Unknown;
        const uint64_t id = load48(event.body);
        const Captured captured = ids.find(id);
        return captured == Captured::Unknown && is_dummy(id) ? Captured::No : captured;
    }

    Captured captured_map(const Event& event) {
        return known_.find(as_text(event.body, event.body_size));
    }

    // The CRC32 of the last event with its position, which its header lacks or has shifted, as
    // Python computes it.
    uint32_t placed_checksum(const uint8_t* head) const {
        uint8_t log_pos[4];
        store(log_pos, static_cast<uint64_t>(pos_), sizeof log_pos);
        constexpr size_t after = EVENT_LOG_POS + sizeof log_pos;
        const uint32_t before = crc32(log_pos, sizeof log_pos, crc32(head, EVENT_LOG_POS));
        return crc32(head + after, last_length_ - after - trailer_, before);
    }

    static bool is_query(const Event& event, std::string_view text) {
        std::string_view sql;
        return read_statement({event.body, event.body + event.body_size}, sql) && sql == text;
    }

    // A transaction whose end has not been read.
    struct Transaction {
        Segment frame[2];
        size_t frame_size = 0;
        Segment text{};
        bool is_taken = false, has_text = false;
        TransactionState state;
    };
    enum class Step : uint8_t { More, End, Odd };

    // Reads one whole transaction; false if the scan must stop before it.
    bool scan_transaction() {
        ids.clear();
        gtid_ = Segment{};
        Transaction transaction;
        Event event{};
        while (read(event)) {
            if (event.kind == Kind::Payload) {
                if (!scan_payload(event, transaction)) return false;
                pass(event);
                return true;
            }
            const Step step = take(event, transaction);
            if (step == Step::Odd) return stopped(ScanStop::Odd);
            pass(event);
            if (step == Step::End) return true;
        }
        return false;
    }

    // Reads the events of a payload, with which the transaction must begin and end.
    [[gnu::noinline]] bool scan_payload(const Event& event, Transaction& transaction) {
        PayloadEvent payload;
        if (!transaction.state.is_named || transaction.state.is_in_group ||
            !payload.parse({event.body, event.body + event.body_size}) || payload.size == 0) {
            return stopped(ScanStop::Odd);
        }
        // The limit holds even if the rest of the chunk is kept, and no sum overflows.
        if (payload.size > MOST_BYTES || size_ + streams_.size() + payload.size > MOST_BYTES) {
            return stopped(endings_.empty() ? ScanStop::Odd : ScanStop::Full);
        }
        const size_t begin = streams_.size();
        const size_t size = static_cast<size_t>(payload.size);
        uint8_t* const stream = streams_.room(size);
        if (!zstd_.decompress(payload.data.at, payload.data.left(), stream, size)) {
            return stopped(ScanStop::Odd);
        }
        streams_.advance(size);
        for (size_t at = 0; at < size;) {
            if (size - at < EVENT_HEADER) return stopped(ScanStop::Odd);
            const EventHeader header = EventHeader::read(stream + at);
            if (header.length < EVENT_HEADER || header.length > size - at) {
                return stopped(ScanStop::Odd);
            }
            Event inner{};
            inner.kind = kind_of(header.type);
            inner.body = stream + at + EVENT_HEADER;
            inner.body_size = header.length - EVENT_HEADER;
            inner.offset = begin + at;
            at += header.length;
            inner.end = static_cast<int64_t>(at);
            inner.payload = pos_;
            const bool is_part = inner.kind != Kind::Gtid && inner.kind != Kind::MariadbGtid &&
                                 inner.kind != Kind::Payload;
            const Step step = is_part ? take(inner, transaction) : Step::Odd;
            if (step == Step::Odd || (step == Step::End) != (at == size)) {
                return stopped(ScanStop::Odd);
            }
        }
        return true;
    }

    // Inlined, because a call for each event is felt where transactions are small.
    [[gnu::always_inline]] Step take(const Event& event, Transaction& transaction) {
        TransactionState& state = transaction.state;
        switch (event.kind) {
            case Kind::Gtid:
                if (state.in_progress()) return Step::Odd;
                gtid_ = segment(event);
                transaction.frame[transaction.frame_size++] = gtid_;
                state.gtid();
                return Step::More;
            case Kind::MariadbGtid:
                if (state.in_progress() || event.body_size < MARIADB_GTID ||
                    is_standalone(event.body)) {
                    return Step::Odd;
                }
                gtid_ = segment(event);
                transaction.frame[transaction.frame_size++] = gtid_;
                state.gtid(true);
                return Step::More;
            case Kind::Query:
                if (!state.is_in_group) {
                    if (!is_query(event, "BEGIN")) return Step::Odd;
                    transaction.frame[transaction.frame_size++] = segment(event);
                    state.begin();
                    return Step::More;
                }
                if (!is_query(event, "COMMIT")) return Step::Odd;
                if (transaction.is_taken) keep(event);
                return Step::End;
            case Kind::Xid:
                if (!state.is_in_group) return Step::Odd;
                if (transaction.is_taken) keep(event);
                return Step::End;
            case Kind::Text:
                if (!state.is_in_group) return Step::Odd;
                transaction.text = segment(event);
                transaction.has_text = true;
                state.text();
                return Step::More;
            case Kind::Map: {
                const Captured captured =
                    state.is_in_group ? captured_map(event) : Captured::Unknown;
                if (captured == Captured::Unknown) return Step::Odd;
                if (state.table_map()) transaction.has_text = false;
                ids.set(load48(event.body), captured == Captured::Yes);
                if (captured == Captured::No) return Step::More;
                if (!transaction.is_taken) {
                    for (size_t n = 0; n < transaction.frame_size; ++n) keep(transaction.frame[n]);
                    transaction.is_taken = true;
                }
                if (transaction.has_text) keep(transaction.text);
                transaction.has_text = false;
                keep(event);
                return Step::More;
            }
            case Kind::Rows: {
                const Captured captured =
                    state.is_in_group ? captured_rows(event) : Captured::Unknown;
                if (captured == Captured::Unknown) return Step::Odd;
                state.rows();
                if (captured == Captured::Yes) keep(event);
                return Step::More;
            }
            default:
                return Step::Odd;
        }
    }

    KnownTables known_;

    const uint8_t* data_ = nullptr;
    size_t size_ = 0;
    size_t at_ = 0;
    size_t verified_ = 0;
    size_t trailer_ = 0;
    size_t last_offset_ = 0;
    size_t last_length_ = 0;
    int64_t pos_ = 0;
    uint32_t time_ = 0;
    int64_t limit_ = 0;
    bool packets_ = false;
    bool may_lack_positions_ = false;
    uint32_t shift_ = 0;
    bool in_payload_ = false;
    ScanStop stop_ = ScanStop::More;
    uint64_t kept_ = 0;
    std::vector<Segment> segments_;
    size_t marker_ = 0;  // index of the last marker
    std::vector<Ending> endings_;
    std::vector<GtidRun> gtids_;
    Segment gtid_{};  // of the transaction that is scanned; of size 0 without one
    Zstd zstd_;
    Bytes streams_;  // of the payloads in the chunk
    std::vector<Segment> statement_;
    std::vector<std::pair<uint64_t, bool>> new_ids_;
    bool new_statement_ = false;
    bool text_waits_ = false;
    bool text_is_here_ = false;
    TransactionState state_;
    uint64_t kept_rows_events_ = 0;
};

}  // namespace mysqlbinlog
