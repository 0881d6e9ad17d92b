// zstd, from the system's shared library. The Python reference uses pyarrow, which has its own copy
// of zstd but does not export it. Without the library, Python decompresses.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace mysqlbinlog {

// Decompresses frames into memory, with a context that is reused: a new one costs more than a small
// frame.
class Zstd {
public:
    Zstd() = default;
    Zstd(const Zstd&) = delete;
    Zstd& operator=(const Zstd&) = delete;
    ~Zstd() {
        if (context_ != nullptr) library().destroy(context_);
    }

    // Whether there is a library.
    static bool is_loaded() { return library().decompress != nullptr; }

    // Decompresses all frames; false if they do not have exactly this content.
    bool decompress(const void* from, size_t size, void* to, size_t content) {
        if (!is_loaded()) return false;
        if (context_ == nullptr) context_ = library().create();
        // Errors are returned as sizes that no memory has.
        return context_ != nullptr &&
               library().decompress(context_, to, content, from, size) == content;
    }

    // Decompresses the next part of a sequence of frames; false if they are damaged. `written` is
    // less than `room` only at the end.
    bool read(const uint8_t*& from, const uint8_t* end, uint8_t* to, size_t room,
              size_t& written) {
        written = 0;
        if (!is_loaded()) return false;
        if (context_ == nullptr) context_ = library().create();
        if (context_ == nullptr) return false;
        Output output{to, room, 0};
        while (output.at < room && (from != end || is_inside_)) {
            Input input{from, static_cast<size_t>(end - from), 0};
            const size_t before = output.at;
            const size_t more = library().read(context_, &output, &input);
            if (library().is_error(more) != 0) return false;
            from += input.at;
            // 0: a frame has ended, and everything of it is written.
            is_inside_ = more != 0;
            if (is_inside_ && from == end && output.at == before) return false;  // cut short
        }
        written = output.at;
        return true;
    }

private:
    struct Input {
        const void* data;
        size_t size;
        size_t at;
    };
    struct Output {
        void* data;
        size_t size;
        size_t at;
    };
    // Of zstd.h; the interface has been stable since 1.0.
    struct Library {
        void* (*create)() = nullptr;
        size_t (*destroy)(void*) = nullptr;
        size_t (*decompress)(void*, void*, size_t, const void*, size_t) = nullptr;
        size_t (*read)(void*, Output*, Input*) = nullptr;
        unsigned (*is_error)(size_t) = nullptr;

        Library() {
            for (const char* name : {"libzstd.so.1", "libzstd.1.dylib"}) {
                void* const opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
                if (opened == nullptr) continue;
                find(opened, "ZSTD_createDCtx", create);
                find(opened, "ZSTD_freeDCtx", destroy);
                find(opened, "ZSTD_decompressDCtx", decompress);
                find(opened, "ZSTD_decompressStream", read);
                find(opened, "ZSTD_isError", is_error);
                if (create != nullptr && destroy != nullptr && decompress != nullptr &&
                    read != nullptr && is_error != nullptr) {
                    return;
                }
                decompress = nullptr;
            }
        }
        template <typename Function>
        static void find(void* opened, const char* name, Function*& function) {
            function = reinterpret_cast<Function*>(dlsym(opened, name));
        }
    };
    static const Library& library() {
        static const Library loaded;
        return loaded;
    }

    void* context_ = nullptr;
    bool is_inside_ = false;  // a frame that `read` has begun
};

}  // namespace mysqlbinlog
