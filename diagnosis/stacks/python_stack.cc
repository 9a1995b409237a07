// Follows interpreters, threads, frames and code objects of CPython.
#include "diagnosis/stacks/python_stack.h"

#include <algorithm>

#include "base/printable.h"
#include "diagnosis/stacks/python_lines.h"

namespace ddprun::agent {
namespace {

// What is shown at most.
constexpr std::size_t kReadThreads = 256, kFrames = 100;
// Reads altogether: a broken list may be a circle. A thread with twenty frames takes some 200.
constexpr std::size_t kReads = 50'000;
// What is read at most: letters of a name, bytes of a line table.
constexpr std::size_t kLetters = 512, kTable = 1 << 20;
// Owners of frames: from this on, it is none of the script but one of the interpreter itself.
constexpr std::uint8_t kOwnedByInterpreter = 3;

// After so many reads nothing is there any more, so whatever follows pointers comes to an end.
class LimitedMemory : public Memory {
  public:
    explicit LimitedMemory(Memory& memory) : memory_(memory) {}
    bool read(Address from, void* to, std::size_t size) override {
        return left_ > 0 && left_-- && memory_.read(from, to, size);
    }

  private:
    Memory& memory_;
    std::size_t left_ = kReads;
};

class Reader {
  public:
    Reader(Memory& memory, Address runtime, const PythonLayout& layout)
        : memory_(memory), runtime_(runtime), layout_(layout) {}

    std::vector<PythonThread> threads(Threads which) {
        std::vector<PythonThread> all;
        // CPython puts new threads first.
        std::vector<Found> found = find();
        if (which == Threads::main && found.size() > 1) found.erase(found.begin(), found.end() - 1);
        for (auto thread = found.rbegin(); thread != found.rend(); ++thread) {
            all.push_back(thread_at(thread->at));
            all.back().holds_gil = thread->holds_gil;
        }
        return all;
    }

  private:
    struct Found {
        Address at = 0;
        bool holds_gil = false;
    };
    std::vector<Found> find() {
        std::vector<Found> found;
        Address interpreter = memory_.pointer(runtime_ + layout_.runtime.interpreters);
        while (interpreter != 0 && found.size() < kReadThreads) {
            const Address holder = gil_holder(interpreter);
            Address thread = memory_.pointer(interpreter + layout_.interpreter.threads);
            for (; thread != 0 && found.size() < kReadThreads;
                 thread = memory_.pointer(thread + layout_.thread.next))
                found.push_back({thread, thread == holder});
            interpreter = memory_.pointer(interpreter + layout_.interpreter.next);
        }
        return found;
    }
    // The thread that has the global interpreter lock; 0: none.
    Address gil_holder(Address interpreter) {
        Address gil = 0;
        if (layout_.runtime.gil != PythonLayout::kAbsent)
            gil = runtime_ + layout_.runtime.gil;
        else if (layout_.interpreter.gil_pointer != PythonLayout::kAbsent)
            gil = memory_.pointer(interpreter + layout_.interpreter.gil_pointer);
        else
            gil = interpreter + layout_.interpreter.gil;
        const auto locked = memory_.value<std::int32_t>(gil + layout_.gil.locked);
        return locked == 1 ? memory_.pointer(gil + layout_.gil.holder) : 0;
    }

    std::int64_t thread_id(Address thread) {
        if (layout_.thread.native_id != PythonLayout::kAbsent)
            return static_cast<std::int64_t>(memory_.pointer(thread + layout_.thread.native_id));
#if defined(__x86_64__) || defined(__aarch64__)
            // glibc's `struct pthread` has the kernel's number here.
#ifdef __x86_64__
        constexpr Address kTid = 720;
#else
        constexpr Address kTid = 208;
#endif
        const Address pthread = memory_.pointer(thread + layout_.thread.pthread_id);
        return memory_.value<std::int32_t>(pthread + kTid).value_or(0);
#else
        return 0;
#endif
    }

    PythonThread thread_at(Address thread) {
        PythonThread result;
        result.id = thread_id(thread);
        Address frame = memory_.pointer(thread + layout_.thread.frame);
        if (layout_.thread.frame_in_c_frame != PythonLayout::kAbsent && frame != 0)
            frame = memory_.pointer(frame + layout_.thread.frame_in_c_frame);
        while (frame != 0 && result.frames.size() < kFrames) {
            if (!of_interpreter(frame)) result.frames.push_back(frame_at(frame));
            frame = memory_.pointer(frame + layout_.frame.previous);
        }
        result.cut = frame != 0;
        return result;
    }

    bool of_interpreter(Address frame) {
        if (layout_.frame.owner == PythonLayout::kAbsent) return false;
        return memory_.value<std::uint8_t>(frame + layout_.frame.owner)
                   .value_or(kOwnedByInterpreter) >= kOwnedByInterpreter;
    }

    PythonFrame frame_at(Address frame) {
        // From 3.14 on, the lowest bits of a reference are used for something else.
        const Address code = memory_.pointer(frame + layout_.frame.code) & ~Address{7};
        if (code == 0) return {};
        PythonFrame result;
        result.file = text_at(memory_.pointer(code + layout_.code.file));
        result.function = text_at(memory_.pointer(code + layout_.code.name));
        const auto first = memory_.value<std::int32_t>(code + layout_.code.first_line);
        result.line =
            python_line(layout_.line_table, bytes_at(memory_.pointer(code + layout_.code.lines)),
                        first.value_or(0), offset_of(frame, code));
        return result;
    }

    // Bytes from the first instruction of the code to the one at which the frame is.
    std::int64_t offset_of(Address frame, Address code) {
        const Address at = frame + layout_.frame.instruction;
        if (layout_.code.instructions != PythonLayout::kAbsent)
            return static_cast<std::int64_t>(memory_.pointer(at) - code -
                                             layout_.code.instructions);
        // 3.10 counts instructions of two bytes, 3.9 counts bytes.
        const std::int64_t number = memory_.value<std::int32_t>(at).value_or(0);
        return layout_.line_table == LineTable::ranges ? 2 * number : number;
    }

    // A str of CPython, which has one, two or four bytes for a letter.
    std::string text_at(Address text) {
        if (text == 0) return {};
        const std::uint64_t length = memory_.pointer(text + layout_.text.length);
        const auto state = memory_.value<std::uint32_t>(text + layout_.text.state).value_or(0);
        const std::size_t width = state >> 2 & 7;
        const bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
        if (!compact || (width != 1 && width != 2 && width != 4)) return {};
        const Address begin = text + (ascii ? layout_.text.ascii : layout_.text.compact);
        // The end of a path says more than its begin.
        const std::uint64_t skipped = length > kLetters ? length - kLetters : 0;
        std::string raw((length - skipped) * width, '\0');
        if (!memory_.read(begin + skipped * width, raw.data(), raw.size())) return {};
        std::string letters = skipped > 0 ? "…" : "";
        for (std::size_t i = 0; i < raw.size(); i += width) {
            std::uint32_t letter = 0;
            std::memcpy(&letter, raw.data() + i, width);
            append_utf8(letters, letter);
        }
        return printable(letters);
    }

    static void append_utf8(std::string& text, std::uint32_t letter) {
        const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
        if (letter < 0x80) return add(letter);
        if (letter < 0x800) {
            add(0xc0 | letter >> 6);
        } else {
            if (letter < 0x10000) {
                add(0xe0 | letter >> 12);
            } else {
                add(0xf0 | (letter >> 18 & 7));
                add(0x80 | (letter >> 12 & 0x3f));
            }
            add(0x80 | (letter >> 6 & 0x3f));
        }
        add(0x80 | (letter & 0x3f));
    }

    std::string bytes_at(Address bytes) {
        if (bytes == 0) return {};
        const std::uint64_t size = memory_.pointer(bytes + layout_.bytes.size);
        if (size > kTable) return {};
        std::string raw(size, '\0');
        return memory_.read(bytes + layout_.bytes.first, raw.data(), raw.size()) ? raw : "";
    }

    LimitedMemory memory_;
    Address runtime_;
    const PythonLayout& layout_;
};

}  // namespace

std::vector<PythonThread> python_stack(Memory& memory, const PythonRuntime& runtime,
                                       const PythonLayout& layout, Threads which) {
    return Reader(memory, runtime.address, layout).threads(which);
}

bool is_users_own(const PythonFrame& frame) {
    if (frame.file.empty() || frame.file.starts_with('<')) return false;
    for (const char* folder : {"/site-packages/", "/dist-packages/", "/lib/python3"})
        if (frame.file.find(folder) != std::string::npos) return false;
    return true;
}

std::string called_operation(const std::vector<PythonFrame>& frames, std::size_t caller) {
    for (std::size_t i = caller; i-- > 0;)
        if (frames[i].file.ends_with("/torch/distributed/distributed_c10d.py"))
            return frames[i].function.substr(frames[i].function.rfind('.') + 1);
    return {};
}

std::string frame_text(const PythonFrame& frame) {
    if (frame.file.empty() && frame.function.empty()) return "?";
    std::string place = frame.file;
    if (frame.line > 0) place += ":" + std::to_string(frame.line);
    return (frame.function.empty() ? "?" : frame.function) + " (" + place + ")";
}

}  // namespace ddprun::agent
