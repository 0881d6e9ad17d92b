// The main loop: decodes events of packed blocks into batches. The Python reference is
// decoder/decode.py.
//
// It stops before every event that it does not fully support, and before the exact row that is
// invalid, so that Python handles it, or raises its error. The loop does not need the interpreter.
#pragma once

#include "events/envelope.hpp"
#include "loops/payload_side.hpp"
#include "events/rows_head.hpp"
#include "events/table_maps.hpp"

namespace mysqlbinlog {

// Why the loop stopped.
enum class Stop : uint8_t {
    End,      // the block is finished
    Full,     // a batch must be finished
    Event,    // the next event is for the Python decoder
    Plan,     // the next event's table has no plan yet
    Damaged,  // the block itself is cut short
};

class DecodeLoop {
public:
    DecodeLoop(Payload payload, bool zero_dates_fail, uint8_t operations, size_t batch_rows,
               size_t batch_bytes)
        : before(payload, "before.", zero_dates_fail),
          after(payload, "after.", zero_dates_fail),
          payload_(payload),
          operations_(operations),
          batch_rows_(batch_rows),
          batch_bytes_(batch_bytes) {}

    PayloadSide before;
    PayloadSide after;
    Envelope envelope;
    TransactionContext transaction;
    TableMaps tables;

    Payload payload() const { return payload_; }
    PayloadSide& side(size_t at) { return at == 0 ? before : after; }

    // The caller keeps the block's bytes alive. Without an ordinal of its file no rows can be read:
    // Python raises the error.
    void open(const uint8_t* data, size_t size, int64_t first_end, int64_t trailer,
              std::string_view file, bool has_ordinal, int32_t ordinal) {
        block_.open(data, size, first_end, trailer);
        if (file != file_) file_span_.is_set = false;
        file_ = file;
        has_ordinal_ = has_ordinal;
        ordinal_ = ordinal;
        is_inside_ = is_committed_ = false;
    }
    // The opened block belongs to a prepared XA transaction. The ordinal is that of the file with
    // its XA COMMIT.
    void commit_at(int64_t pos, int64_t begin) {
        is_committed_ = true;
        commit_pos_ = pos;
        commit_begin_ = begin;
    }
    void close() {
        block_ = BlockReader();
        is_inside_ = false;
    }
    // Whether a TABLE_MAP is known, and its plan with it.
    bool knows_table(std::string_view body) {
        return file_ == mapped_file_ && tables.repeats(body);
    }
    // Table ids are valid in one file only, the one of the last TABLE_MAP.
    void map_table(std::string_view body, uint64_t& forgotten) {
        if (file_ != mapped_file_) tables.clear();
        mapped_file_ = file_;
        forgotten = tables.add(body);
    }

    size_t offset() const { return block_.offset(); }
    bool peek(EventView& event) const { return !block_.at_end() && block_.peek(event); }
    // Skips the event that the Python decoder has processed.
    void pass() {
        EventView event;
        if (peek(event)) block_.pass(event);
        is_inside_ = false;
    }
    // Where the loop stopped in the event: a row, and the offset of its images in the body; 0 and 0
    // before the whole event.
    size_t stopped_row() const { return is_inside_ ? row_ : 0; }
    size_t stopped_offset() const {
        return is_inside_ ? static_cast<size_t>(in_.at - event_.body) : 0;
    }

    Stop run() {
        for (;;) {
            if (is_inside_) {
                const Stop stop = read_rows();
                if (stop != Stop::End) return stop;
                continue;
            }
            if (block_.at_end()) return Stop::End;
            if (!block_.peek(event_)) return Stop::Damaged;
            if (is_rows_event(event_.type)) {
                const Stop stop = begin_rows();
                if (stop != Stop::End) return stop;
                if (is_inside_) continue;
            } else if (event_.type == TABLE_MAP_EVENT) {
                if (!knows_table(event_.text())) return Stop::Event;
                transaction.follow_table_map();
            } else if (!transaction.follow(event_)) {
                return Stop::Event;
            }
            block_.pass(event_);
        }
    }

    // Returns the batch of the rows read; there is at least one.
    void finish(ArrowArray* out) {
        Array first = before.finish(zeros_);
        Array second = after.finish(zeros_);
        envelope.finish(std::move(first), std::move(second), zeros_).hand_on(out);
        shared_bytes_ = names_bytes_ = 0;
        ++batch_;
        retired_.clear();
        file_span_.is_set = false;
    }

private:
    // Limit for text that the payload size does not include, in bytes: a batch is finished before
    // Arrow's offsets overflow.
    static constexpr size_t MOST_NAMES = size_t{1} << 30;
    // Approximate size of the envelope's columns per row.
    static constexpr size_t ENVELOPE_BYTES = 100;

    // Stop::End: the event is begun (`is_inside_`), or skipped.
    Stop begin_rows() {
        RowsHead head;
        if (!head.parse(event_)) return Stop::Event;
        MappedTable* table = file_ == mapped_file_ ? tables.find(head.table_id) : nullptr;
        if (table == nullptr) return Stop::Event;
        if ((operations_ & static_cast<uint8_t>(head.operation)) == 0) {
            transaction.follow_rows();
            return Stop::End;
        }
        if (!table->is_planned_at(event_.start)) return Stop::Plan;
        TablePlan* plan = table->plan;
        if (plan == nullptr || !has_ordinal_ || head.column_count != plan->column_count())
            return Stop::Event;
        image_[0] = image_[1] = nullptr;
        if (head.has_before) {
            image_[0] = plan->image(0, head.has_after, head.before, retired_);
            if (image_[0] == nullptr) return Stop::Event;
        }
        if (head.has_after) {
            image_[1] = plan->image(1, head.has_before, head.after, retired_);
            if (image_[1] == nullptr) return Stop::Event;
        }
        if ((image_[0] == nullptr || image_[0]->steps.empty()) &&
            (image_[1] == nullptr || image_[1]->steps.empty()))
            return Stop::Event;
        transaction.follow_rows();
        set_seq();
        plan_ = plan;
        op_ = head.op;
        in_ = head.rows;
        row_ = first_ = 0;
        run_batch_ = NO_BATCH;
        is_inside_ = true;
        return Stop::End;
    }

    // `seq` of the first row; the Python reference is `Event.first_seq` in protocol/events.py.
    void set_seq() {
        constexpr int ROW_BITS = 30;
        int64_t offset = event_.offset;
        seq_pos_ = event_.start;
        if (is_committed_) {
            seq_pos_ = commit_pos_;
            if (offset < 0) offset = event_.start - commit_begin_;
        }
        seq_row_ = 0;
        if (offset < 0) return;
        seq_pos_ += offset >> ROW_BITS;
        seq_row_ = offset & ((int64_t{1} << ROW_BITS) - 1);
    }

    // Continues in the current event; Stop::End when it is finished, and passed.
    Stop read_rows() {
        for (;;) {
            if (run_batch_ != batch_) begin_run();
            const uint8_t* const begin = in_.at;
            if (!read_row()) {
                in_.at = begin;
                close_run();
                return Stop::Event;
            }
            ++row_;
            shared_bytes_ += row_bytes_;
            const bool is_last = in_.left() == 0;
            const bool is_full = envelope.rows() + (row_ - first_) >= batch_rows_ ||
                                 before.size() + after.size() + shared_bytes_ >= batch_bytes_ ||
                                 names_bytes_ >= MOST_NAMES;
            if (!is_last && !is_full) continue;
            close_run();
            if (is_last) {
                is_inside_ = false;
                block_.pass(event_);
            }
            return is_full ? Stop::Full : Stop::End;
        }
    }

    // False, without appending, if Python must read the row.
    bool read_row() {
        const int64_t row = seq_row_ + static_cast<int64_t>(row_);
        if (row >= std::numeric_limits<int32_t>::max()) return false;
        if (!append(before, image_[0])) return refuse(0);
        if (!append(after, image_[1])) return refuse(1);
        if (payload_ != Payload::Struct) return true;
        const RowNotes& notes_before = before.notes();
        const RowNotes& notes_after = after.notes();
        const bool is_rescued = notes_before.has_rescued() || notes_after.has_rescued();
        if (is_rescued && !envelope.has_rescued()) return refuse(2);
        if (is_rescued) rescue();
        if (!notes_before.invalid_dates.empty() || !notes_after.invalid_dates.empty())
            add_run_with_invalid_dates();
        return true;
    }
    bool append(PayloadSide& payload, const Image* image) {
        if (image != nullptr) return payload.append(*image, in_);
        payload.append_null();
        return true;
    }
    // Removes the first `sides` sides of the row, and all notes.
    bool refuse(size_t sides) {
        for (size_t at = 0; at < sides; ++at) side(at).remove_last(image_[at]);
        before.notes().clear();
        after.notes().clear();
        return false;
    }

    // {"before":{"c":1},"after":{"c":2}}
    void rescue() {
        Bytes& text = scratch_;
        text.clear();
        text.push('{');
        for (size_t at = 0; at < 2; ++at) {
            RowNotes& notes = side(at).notes();
            if (!notes.has_rescued()) continue;
            if (text.size() > 1) text.push(',');
            text.append(at == 0 ? "\"before\":{" : "\"after\":{");
            // Each member has a comma before it.
            const size_t begin = text.size();
            text.append(notes.rescued.view());
            text.append(notes.rescued_nulls.view());
            std::memmove(text.data() + begin, text.data() + begin + 1, text.size() - begin - 1);
            text.data()[text.size() - 1] = '}';
            notes.rescued.clear();
            notes.rescued_nulls.clear();
        }
        text.push('}');
        envelope.rescue(envelope.rows() + (row_ - first_), text.view());
        shared_bytes_ += count_characters(text.view());
    }

    // A run of its own, because the rows of a run share `invalid_dates`.
    void add_run_with_invalid_dates() {
        close_run();
        Names invalid_dates;
        for (size_t at = 0; at < 2; ++at) {
            RowNotes& notes = side(at).notes();
            for (std::string& text : notes.invalid_dates) {
                names_bytes_ += text.size();
                invalid_dates.push_back(std::move(text));
            }
            notes.invalid_dates.clear();
        }
        Run run = run_;
        run.invalid_dates = envelope.keep(std::move(invalid_dates));
        run.first_row = static_cast<int32_t>(seq_row_ + static_cast<int64_t>(row_));
        run.rows = 1;
        envelope.add(run);
        first_ = row_ + 1;
    }

    // Values shared by the next rows; texts already in the batch are not copied again.
    void begin_run() {
        if (!file_span_.is_set) file_span_ = envelope.keep(file_);
        if (context_batch_ != batch_ || context_changes_ != transaction.changes) {
            gtid_ = query_ = Span();
            if (transaction.gtid.is_set) gtid_ = envelope.keep(transaction.gtid.text);
            query_characters_ = 0;
            if (transaction.query.is_set) {
                query_ = envelope.keep(transaction.query.text);
                query_characters_ = count_characters(transaction.query.text);
            }
            context_batch_ = batch_;
            context_changes_ = transaction.changes;
        }
        run_.op = op_;
        run_.ts = int64_t{event_.timestamp} * MICROS_PER_SECOND;
        run_.database = &plan_->database;
        run_.table = &plan_->table;
        run_.file = file_span_;
        run_.ordinal = ordinal_;
        run_.pos = seq_pos_;
        run_.source_pos = is_committed_ ? event_.start : seq_pos_;
        run_.server_id = event_.server_id;
        run_.has_tx_pos = transaction.has_tx_pos;
        run_.tx_pos = transaction.has_tx_pos ? transaction.tx_pos : 0;
        run_.has_thread_id = transaction.has_thread_id;
        run_.thread_id = transaction.has_thread_id ? transaction.thread_id : 0;
        run_.gtid = gtid_;
        run_.query = query_;
        run_.key = plan_->has_key ? &plan_->key : nullptr;
        run_.missing = missing();
        missing_bytes_ = 0;
        row_bytes_ = query_characters_ + ENVELOPE_BYTES;
        if (run_.missing != nullptr) {
            for (const std::string& name : *run_.missing) {
                missing_bytes_ += name.size();
                row_bytes_ += count_characters(name);
            }
        }
        run_batch_ = batch_;
    }
    const Names* missing() {
        const Names* parts[2] = {nullptr, nullptr};
        for (size_t at = 0; at < 2; ++at)
            if (image_[at] != nullptr && !image_[at]->missing.empty())
                parts[at] = &image_[at]->missing;
        if (parts[0] == nullptr || parts[1] == nullptr)
            return parts[0] == nullptr ? parts[1] : parts[0];
        Names both = *parts[0];
        both.insert(both.end(), parts[1]->begin(), parts[1]->end());
        return envelope.keep(std::move(both));
    }
    void close_run() {
        if (first_ == row_) return;
        run_.first_row = static_cast<int32_t>(seq_row_ + static_cast<int64_t>(first_));
        run_.rows = static_cast<uint32_t>(row_ - first_);
        envelope.add(run_);
        names_bytes_ += missing_bytes_ * run_.rows;
        first_ = row_;
    }

    static constexpr uint64_t NO_BATCH = std::numeric_limits<uint64_t>::max();

    const Payload payload_;
    const uint8_t operations_;  // bits of Operation
    const size_t batch_rows_;
    const size_t batch_bytes_;

    BlockReader block_;
    std::string file_;
    std::string mapped_file_;
    bool has_ordinal_ = false;
    int32_t ordinal_ = 0;
    bool is_committed_ = false;
    int64_t commit_pos_ = 0;
    int64_t commit_begin_ = 0;

    // The current rows event, if `is_inside_`.
    bool is_inside_ = false;
    EventView event_{};
    int64_t seq_pos_ = 0;
    int64_t seq_row_ = 0;
    TablePlan* plan_ = nullptr;
    const Image* image_[2] = {nullptr, nullptr};
    char op_ = 0;
    Input in_{nullptr, nullptr};
    size_t row_ = 0;    // the next to read
    size_t first_ = 0;  // the first that is in no run
    Run run_{};
    uint64_t run_batch_ = NO_BATCH;
    size_t row_bytes_ = 0;
    size_t missing_bytes_ = 0;

    // The current batch.
    uint64_t batch_ = 0;
    size_t shared_bytes_ = 0;
    size_t names_bytes_ = 0;
    std::vector<std::unique_ptr<Image>> retired_;
    Span file_span_;
    Span gtid_;
    Span query_;
    size_t query_characters_ = 0;
    uint64_t context_batch_ = NO_BATCH;
    uint64_t context_changes_ = 0;
    Bytes scratch_;
    Zeros zeros_;
};

}  // namespace mysqlbinlog
