// Looks for _PyRuntime in the files that are mapped in a process, and reads from there.
#include "diagnosis/stacks/python_process.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/system/small_file.h"
#include "diagnosis/stacks/process_memory.h"
#include "diagnosis/stacks/python_layout.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

fs::path process_folder(std::int64_t pid) { return fs::path("/proc") / std::to_string(pid); }

// By the name under which it was started, "python3.11", which everybody may read. For a process of
// another user.
bool is_called_python(std::int64_t pid) {
    const std::string command = read_small_file((process_folder(pid) / "cmdline").string());
    const std::string name = fs::path(command.c_str()).filename().string();
    return name.substr(0, name.find_last_not_of("0123456789.") + 1) == "python";
}

// A line of /proc/PID/maps: "7f12-7f34 r--p 00000000 08:01 1234   /usr/bin/python3.11".
struct Mapping {
    Address begin = 0, offset = 0;
    std::string_view path;
};

Mapping mapping_in(std::string_view line) {
    Mapping mapping;
    const std::size_t slash = line.find('/'), rights = line.find(' ');
    if (slash == std::string_view::npos) return mapping;
    mapping.path = line.substr(slash);
    std::from_chars(line.data(), line.data() + rights, mapping.begin, 16);
    constexpr std::size_t kRights = 6;  // " r--p "
    if (rights + kRights < line.size())
        std::from_chars(line.data() + rights + kRights, line.data() + line.size(), mapping.offset,
                        16);
    return mapping;
}

}  // namespace

std::vector<LoadedFile> loaded_files(std::int64_t pid) {
    std::error_code error;
    const std::string program = fs::read_symlink(process_folder(pid) / "exe", error).string();
    const std::string maps = read_small_file((process_folder(pid) / "maps").string());
    std::vector<LoadedFile> files;
    for (std::size_t from = 0, to = 0; from < maps.size(); from = to + 1) {
        to = std::min(maps.find('\n', from), maps.size());
        const Mapping mapping = mapping_in(std::string_view(maps).substr(from, to - from));
        const std::string_view name = mapping.path.substr(mapping.path.rfind('/') + 1);
        if (mapping.offset != 0 || mapping.path.empty()) continue;
        if (mapping.path == program || name.starts_with("libpython3"))
            files.push_back({mapping.begin, std::string(name)});
    }
    return files;
}

PythonProcess read_python(std::int64_t pid, Threads which) {
    ProcessMemory memory(pid);
    for (const LoadedFile& file : loaded_files(pid)) {
        const PythonRuntime runtime = find_python(memory, file.load, file.name);
        if (runtime.address == 0) continue;
        PythonProcess found{true, {}, {}};
        if (const auto layout = python_layout(memory, runtime))
            found.threads = python_stack(memory, runtime, *layout, which);
        else
            found.problem = "Python 3." + std::to_string(runtime.minor) + " is not known to ddprun";
        if (found.threads.empty() && found.problem.empty())
            found.problem = "no thread of it runs Python code";
        return found;
    }
    if (!is_called_python(pid)) return {};
    const int error = memory.error() != 0 ? memory.error() : EACCES;
    return {true, {}, "its memory may not be read: " + std::system_category().message(error)};
}

}  // namespace ddprun::agent
