// The layouts of CPython's versions.
#include "diagnosis/stacks/python_layout.h"

#include <array>
#include <charconv>
#include <string_view>

#include "diagnosis/stacks/elf_symbol.h"

namespace ddprun::agent {
namespace {

constexpr std::string_view kCookie = "xdebugpy";

// PY_VERSION_HEX is 0x030d00f0 for 3.13.0. 0: it is none of Python 3.
int minor_in(std::uint64_t version) {
    return version >> 24 == 3 ? static_cast<int>(version >> 16 & 0xff) : 0;
}

PythonLayout layout_of_39() {
    PythonLayout layout;
    layout.minor = 9;
    layout.runtime = {.interpreters = 32, .gil = 360};
    layout.interpreter = {.next = 0, .threads = 8};
    layout.gil = {.holder = 0, .locked = 8};
    layout.thread = {.next = 8, .pthread_id = 176, .frame = 24};
    layout.frame = {.previous = 24, .code = 32, .instruction = 104};
    layout.code = {.file = 104, .name = 112, .first_line = 40, .lines = 120};
    layout.line_table = LineTable::lnotab;
    return layout;
}

PythonLayout layout_of_310() {
    PythonLayout layout = layout_of_39();
    layout.minor = 10;
    layout.frame.instruction = 96;
    layout.line_table = LineTable::ranges;
    return layout;
}

PythonLayout layout_of_311() {
    PythonLayout layout;
    layout.minor = 11;
    layout.runtime = {.interpreters = 40, .gil = 368};
    layout.interpreter = {.next = 0, .threads = 16};
    layout.gil = {.holder = 0, .locked = 8};
    layout.thread = {
        .next = 8, .native_id = 160, .pthread_id = 152, .frame = 56, .frame_in_c_frame = 8};
    layout.frame = {.previous = 48, .code = 32, .instruction = 56, .owner = 69};
    layout.code = {.file = 112, .name = 128, .first_line = 72, .lines = 136, .instructions = 184};
    return layout;
}

PythonLayout layout_of_312() {
    PythonLayout layout;
    layout.minor = 12;
    layout.runtime = {.interpreters = 40};
    layout.interpreter = {.next = 0, .threads = 72, .gil_pointer = 384};
    layout.gil = {.holder = 8, .locked = 16};
    layout.thread = {
        .next = 8, .native_id = 144, .pthread_id = 136, .frame = 56, .frame_in_c_frame = 0};
    layout.frame = {.previous = 8, .code = 0, .instruction = 56, .owner = 70};
    layout.code = {.file = 112, .name = 128, .first_line = 68, .lines = 136, .instructions = 192};
    layout.text = {.length = 16, .state = 32, .ascii = 40, .compact = 56};
    return layout;
}

// Indexes of the words in _Py_DebugOffsets that are used here.
struct Described {
    std::size_t interpreters, interpreter_next, threads, gil, gil_locked, gil_holder;
    std::size_t thread_next, current_frame, pthread_id, native_id;
    std::size_t previous, executable, instruction, owner;
    std::size_t file, qualified_name, lines, first_line, instructions;
    std::size_t bytes_size, bytes_first, text_size, text_state, text_length, ascii;
    std::size_t words;
};
constexpr std::size_t kVersionWord = 1, kFreeThreadedWord = 2;
constexpr Described k313{5,  8,  9,  15, 17, 18, 21, 23, 24, 25, 29, 30, 31,
                         33, 35, 37, 38, 39, 43, 65, 66, 67, 68, 69, 70, 71};
constexpr Described k314{5,  8,  9,  16, 18, 19, 24, 26, 27, 28, 32, 33, 34,
                         36, 40, 42, 43, 44, 48, 75, 76, 77, 78, 79, 80, 81};

std::optional<PythonLayout> described_layout(Memory& memory, const PythonRuntime& runtime,
                                             const Described& at) {
    std::array<std::uint64_t, k314.words> words{};
    if (!memory.read(runtime.address, words.data(), at.words * sizeof words[0]))
        return std::nullopt;
    if (words[kFreeThreadedWord] != 0) return std::nullopt;
    PythonLayout layout;
    layout.minor = runtime.minor;
    layout.runtime = {.interpreters = words[at.interpreters]};
    layout.interpreter = {
        .next = words[at.interpreter_next], .threads = words[at.threads], .gil = words[at.gil]};
    // They are counted from the begin of the interpreter.
    layout.gil = {.holder = words[at.gil_holder] - words[at.gil],
                  .locked = words[at.gil_locked] - words[at.gil]};
    layout.thread = {.next = words[at.thread_next],
                     .native_id = words[at.native_id],
                     .pthread_id = words[at.pthread_id],
                     .frame = words[at.current_frame]};
    layout.frame = {.previous = words[at.previous],
                    .code = words[at.executable],
                    .instruction = words[at.instruction],
                    .owner = words[at.owner]};
    layout.code = {.file = words[at.file],
                   .name = words[at.qualified_name],
                   .first_line = words[at.first_line],
                   .lines = words[at.lines],
                   .instructions = words[at.instructions]};
    layout.bytes = {.size = words[at.bytes_size], .first = words[at.bytes_first]};
    layout.text = {.length = words[at.text_length],
                   .state = words[at.text_state],
                   .ascii = words[at.ascii],
                   // What has other letters than ASCII has the length in UTF-8 and a pointer more.
                   .compact = words[at.ascii] + 2 * sizeof(Address)};
    return layout;
}

// 3.13 and later say it themselves.
int described_minor(Memory& memory, Address runtime) {
    std::array<char, kCookie.size()> cookie{};
    if (!memory.read(runtime, cookie.data(), cookie.size()) ||
        std::string_view(cookie.data(), cookie.size()) != kCookie)
        return 0;
    const auto version = memory.value<std::uint64_t>(runtime + kVersionWord * sizeof(Address));
    return version ? minor_in(*version) : 0;
}

// 3.11 and later have a symbol whose value is that of PY_VERSION_HEX.
int exported_minor(Memory& memory, Address load) {
    const Address at = elf_symbol(memory, load, "Py_Version");
    const auto version = at == 0 ? std::nullopt : memory.value<std::uint64_t>(at);
    return version ? minor_in(*version) : 0;
}

int minor_in_name(const std::string& name) {
    constexpr std::string_view kPython = "python3.";
    const auto at = name.find(kPython);
    int minor = 0;
    if (at != std::string::npos)
        std::from_chars(name.data() + at + kPython.size(), name.data() + name.size(), minor);
    return minor;
}

}  // namespace

PythonRuntime find_python(Memory& memory, Address load, const std::string& name) {
    PythonRuntime found{elf_symbol(memory, load, "_PyRuntime"), 0};
    if (found.address == 0) return found;
    found.minor = described_minor(memory, found.address);
    if (found.minor == 0) found.minor = exported_minor(memory, load);
    if (found.minor == 0) found.minor = minor_in_name(name);
    return found;
}

std::optional<PythonLayout> python_layout(Memory& memory, const PythonRuntime& runtime) {
    switch (runtime.minor) {
        case 9:
            return layout_of_39();
        case 10:
            return layout_of_310();
        case 11:
            return layout_of_311();
        case 12:
            return layout_of_312();
        case 13:
            return described_layout(memory, runtime, k313);
        case 14:
            return described_layout(memory, runtime, k314);
        default:
            return std::nullopt;
    }
}

}  // namespace ddprun::agent
