// Finds the socket files of dead workers and removes them.
#include "keeper/killing/left_sockets.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/system/folder_names.h"
#include "base/system/small_file.h"
#include "keeper/killing/descendants.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

// Of a job that makes new ones for ever, the later ones stay.
constexpr std::size_t kMostSeen = 4096;
// The flag of a socket that listens. One that was accepted there has the same name.
constexpr unsigned long kListens = 0x10000;
constexpr std::string_view kLink = "socket:[";

bool is_of_library(const fs::path& file) {
    const std::string folder = file.parent_path().filename();
    return file.is_absolute() &&
           (folder.starts_with("pymp-") || folder.starts_with("torch-shm-dir-"));
}

struct Bound {
    ino_t number = 0;
    bool listens = false;
    std::string file;
};

// The sockets of this network namespace that have a file of the libraries. A line has eight
// columns: address, references, protocol, flags, type, state, number, file.
std::vector<Bound> bound_sockets(const std::string& table) {
    std::vector<Bound> found;
    std::istringstream lines(read_small_file(table));
    for (std::string line; std::getline(lines, line);) {
        if (line.find("/pymp-") == line.npos && line.find("/torch-shm-dir-") == line.npos) continue;
        std::istringstream columns(line);
        std::string ignored, flags;
        Bound bound;
        columns >> ignored >> ignored >> ignored >> flags >> ignored >> ignored >> bound.number;
        std::getline(columns >> std::ws, bound.file);
        bound.listens = (std::strtoul(flags.c_str(), nullptr, 16) & kListens) != 0;
        if (is_of_library(bound.file)) found.push_back(std::move(bound));
    }
    return found;
}

// The numbers of all sockets that a process has open. A link of /proc/PID/fd reads "socket:[7]".
template <class Each>
void for_each_socket(pid_t pid, Each each) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd/";
    for_each_name(folder, [&](std::string_view name) {
        char link[64];
        const std::string path = folder + std::string(name);
        const ssize_t length = ::readlink(path.c_str(), link, sizeof link);
        const std::string_view text(link, length > 0 ? static_cast<std::size_t>(length) : 0);
        ino_t number = 0;
        if (!text.starts_with(kLink)) return;
        if (std::from_chars(link + kLink.size(), link + text.size(), number).ec == std::errc{})
            each(number);
    });
}

// lstat() and not stat(): a symbolic link in a shared /tmp may point anywhere.
bool is_ours(const std::string& path, std::time_t since) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
           status.st_uid == ::geteuid() && status.st_mtime >= since;
}

}  // namespace

LeftSockets::LeftSockets(std::string table)
    : table_(std::move(table)),
      since_(std::time(nullptr) - 1) {}  // timestamps of files may be a clock tick old

// The table comes first: most jobs have none of these sockets, and then no process is looked at.
void LeftSockets::see(pid_t root) {
    std::map<ino_t, std::string> candidates;
    for (Bound& bound : bound_sockets(table_))
        if (bound.listens) candidates.emplace(bound.number, std::move(bound.file));
    if (candidates.empty()) return;
    for (const pid_t pid : find_descendants(root))
        for_each_socket(pid, [&](ino_t number) {
            const auto found = candidates.find(number);
            if (found != candidates.end() && seen_.size() < kMostSeen) seen_.insert(*found);
        });
}

// The folder goes, too, if it is empty then. It was made by a process of the job, of which none
// lives.
void LeftSockets::remove() const {
    if (seen_.empty()) return;
    std::set<std::string> bound;
    for (const Bound& each : bound_sockets(table_)) bound.insert(each.file);
    for (const auto& [number, file] : seen_) {
        if (bound.contains(file) || !is_ours(file, since_)) continue;
        ::unlink(file.c_str());
        ::rmdir(fs::path(file).parent_path().c_str());
    }
}

}  // namespace ddprun::agent
