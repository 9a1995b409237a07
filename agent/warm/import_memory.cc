// Reads and writes the file, on a thread of its own.
#include "agent/warm/import_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/system/careful_open.h"
#include "base/system/small_file.h"

namespace ddprun::agent::warm {
namespace {

namespace fs = std::filesystem;

// Usually it takes less than a millisecond.
constexpr Duration kPatience = std::chrono::milliseconds{200};
// Of 200 KB each.
constexpr std::size_t kMostFiles = 100;
constexpr std::size_t kMostText = std::size_t{16} << 20;

std::optional<KnownImports> read_file(const std::string& path) {
    const Result<UniqueFd> file = open_to_read(path);
    struct stat status {};
    // Another user's file would name what this one imports.
    if (!file || ::fstat(file->get(), &status) != 0 || status.st_uid != ::geteuid())
        return std::nullopt;
    return read_known_imports(read_bounded(file->get(), kMostText));
}

std::string path_of(const PythonCommand& command,
                    const std::map<std::string, std::string>& environment) {
    std::error_code error;
    const std::string folder = imports_folder(environment);
    const std::string name =
        imports_file_name(command, fs::current_path(error).string(), environment);
    return error || folder.empty() || name.empty() ? "" : folder + "/" + name;
}

void remove_oldest(const std::string& folder) {
    std::vector<std::pair<fs::file_time_type, fs::path>> found;
    std::error_code error;
    for (fs::directory_iterator each(folder, error), end; !error && each != end;
         each.increment(error)) {
        std::error_code gone;
        found.emplace_back(each->last_write_time(gone), each->path());
    }
    if (error || found.size() <= kMostFiles) return;
    std::ranges::sort(found);
    for (std::size_t i = 0; i < found.size() - kMostFiles; ++i) fs::remove(found[i].second, error);
}

}  // namespace

std::optional<KnownImports> recall_imports(const PythonCommand& command,
                                           const std::map<std::string, std::string>& environment) {
    const std::string path = path_of(command, environment);
    return path.empty() ? std::nullopt : read_file(path);
}

ImportMemory::ImportMemory(boost::asio::io_context& loop, const PythonCommand& command,
                           const std::map<std::string, std::string>& environment)
    : folder_(imports_folder(environment)), path_(path_of(command, environment)), files_(loop) {}

void ImportMemory::read(Done done) {
    const auto known = std::make_shared<std::optional<KnownImports>>();
    files_.post_within(
        kPatience,
        [known, path = path_] {
            if (!path.empty()) *known = read_file(path);
        },
        // Late work may still be at it.
        [known, done = std::move(done)](bool in_time) {
            done(in_time ? std::move(*known) : std::nullopt);
        });
}

void ImportMemory::write(const KnownImports& known) {
    if (path_.empty()) return;
    files_.post([folder = folder_, path = path_, text = known_imports_text(known)] {
        std::error_code error;
        fs::create_directories(fs::path(folder).parent_path(), error);
        ::mkdir(folder.c_str(), 0700);
        (void)replace_file(path, text);
        remove_oldest(folder);
    });
}

void ImportMemory::forget() {
    if (!path_.empty()) files_.post([path = path_] { ::unlink(path.c_str()); });
}

}  // namespace ddprun::agent::warm
