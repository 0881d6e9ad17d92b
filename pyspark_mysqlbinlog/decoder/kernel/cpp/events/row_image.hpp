// The plan of a table: how the columns of its row images are read. The Python reference is
// decoder/payloads/plan.py. decoder/kernel/plan.py makes it once per (table map, schema); each
// bitmap of present columns (binlog_row_image minimal, noblob) has an `Image`, also made once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "values/cells.hpp"
#include "json/variant.hpp"

namespace mysqlbinlog {

// JsonWithTexts: as Json, but each document of a JSON column is a JSON string of its text.
enum class Payload : uint8_t { Json, Struct, Variant, JsonWithTexts };

// One kind of row image, of one side.
struct Image {
    std::string present;  // the bitmap as in the binlog
    bool is_readable = true;
    bool reads_all = true;  // every step is Read
    size_t bitmap_length = 0;
    std::vector<Step> steps;
    // Payload struct: the table's rows, and its columns that the image lacks.
    TableRows* rows = nullptr;
    std::vector<OutColumn*> missing_columns;
    // `before.a`: names in `source.missing` of columns that the image lacks.
    std::vector<std::string> missing;
    std::unique_ptr<VariantImage> variant;
};

class TablePlan {
public:
    static constexpr size_t MAX_IMAGES = 256;

    TablePlan(Payload payload, std::string database, std::string table)
        : database(std::move(database)), table(std::move(table)), payload_(payload) {}

    const std::string database;
    const std::string table;
    bool has_key = false;
    std::vector<std::string> key;

    size_t column_count() const { return columns_.size(); }

    // side: 0 for before, 1 for after; payload struct only.
    void set_rows(size_t side, TableRows* rows) { rows_[side] = rows; }
    // Adds the next column, with the steps of each side. An unreliable one is omitted from the
    // before images of updates.
    void add_column(const Step& before, const Step& after, bool before_image_unreliable) {
        columns_.push_back(Both{{before, after}, before_image_unreliable});
        has_doubtful_ = has_doubtful_ || before_image_unreliable;
    }

    // The image with these columns; null if Python must raise an error. Images that are replaced go
    // to `retired`: pending rows may still use their names.
    const Image* image(size_t side, bool is_update, std::string_view present,
                       std::vector<std::unique_ptr<Image>>& retired) {
        const bool leaves_out = has_doubtful_ && is_update && side == 0;
        std::vector<std::unique_ptr<Image>>& images = images_[leaves_out ? 2 : side];
        for (size_t at = 0; at < images.size(); ++at) {
            if (images[at]->present != present) continue;
            // The next one is probably the same.
            if (at != 0) std::swap(images[0], images[at]);
            return images[0]->is_readable ? images[0].get() : nullptr;
        }
        if (images.size() >= MAX_IMAGES) {
            for (auto& image : images) retired.push_back(std::move(image));
            images.clear();
        }
        images.push_back(make_image(side, leaves_out, present));
        std::swap(images.front(), images.back());
        return images.front()->is_readable ? images.front().get() : nullptr;
    }
private:
    struct Both {
        Step side[2];
        bool before_image_unreliable;
    };

    std::unique_ptr<Image> make_image(size_t side, bool leaves_out,
                                      std::string_view present) const {
        auto image = std::make_unique<Image>();
        image->present = present;
        image->rows = rows_[side];
        const std::string prefix = side == 0 ? "before." : "after.";
        std::vector<const Column*> shown;
        for (size_t at = 0; at < columns_.size(); ++at) {
            const Step& step = columns_[at].side[side];
            const bool is_present = bit_at(Raw::of(present).data, at);
            if (is_present && leaves_out && columns_[at].before_image_unreliable) {
                image->steps.push_back(step);
                image->steps.back().fate = Step::Fate::Skip;
                image->reads_all = false;
                if (payload_ != Payload::Struct)
                    image->missing.push_back(prefix + step.column->name);
            } else if (is_present) {
                image->steps.push_back(step);
                image->is_readable = image->is_readable && step.fate != Step::Fate::Refuse;
                image->reads_all = image->reads_all && step.fate == Step::Fate::Read;
                if (step.fate == Step::Fate::Read) shown.push_back(step.column);
            } else if (payload_ != Payload::Struct && step.fate == Step::Fate::Read) {
                image->missing.push_back(prefix + step.column->name);
            }
        }
        image->bitmap_length = bitmap_size(image->steps.size());
        if (payload_ == Payload::Struct) find_missing(*image, prefix);
        if (payload_ == Payload::Variant) {
            image->variant = std::make_unique<VariantImage>(shown);
            image->is_readable = image->is_readable && image->variant->is_possible();
        }
        return image;
    }
    static void find_missing(Image& image, const std::string& prefix) {
        if (image.rows == nullptr) {
            image.is_readable = false;
            return;
        }
        for (const auto& column : image.rows->columns) {
            const bool is_held =
                std::any_of(image.steps.begin(), image.steps.end(), [&](const Step& step) {
                    return step.fate == Step::Fate::Read && step.out == column.get();
                });
            if (is_held) continue;
            image.missing_columns.push_back(column.get());
            image.missing.push_back(prefix + column->name());
        }
    }

    Payload payload_;
    TableRows* rows_[2] = {nullptr, nullptr};
    std::vector<Both> columns_;
    bool has_doubtful_ = false;
    // Of before, after, and before without the unreliable columns.
    std::vector<std::unique_ptr<Image>> images_[3];
};

}  // namespace mysqlbinlog
