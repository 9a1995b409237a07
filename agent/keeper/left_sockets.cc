// Finds and removes socket files that nobody uses any more.
#include "agent/keeper/left_sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "base/system/folder_names.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

// The variables that Python's tempfile and PyTorch's shared memory manager read, and the folder
// that they use without them.
std::vector<std::string> temporary_folders() {
    std::vector<std::string> folders;
    const auto add = [&folders](const char* name) {
        if (name && *name && std::ranges::find(folders, name) == folders.end())
            folders.emplace_back(name);
    };
    for (const char* variable : {"TMPDIR", "TEMP", "TMP", "TEMPDIR"}) add(std::getenv(variable));
    add("/tmp");
    return folders;
}

// The folders of torch_shm_manager.
bool is_of_manager(std::string_view folder) { return folder.starts_with("torch-shm-dir-"); }

bool is_of_library(std::string_view folder) {
    return folder.starts_with("pymp-") || is_of_manager(folder);
}

// lstat() and not stat(): a symbolic link in a shared /tmp may point anywhere.
bool is_ours(const fs::path& path, std::time_t since) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
           status.st_uid == ::geteuid() && status.st_mtime >= since;
}

// The last folder and the file name. A process may have bound the socket under another path to the
// same folder, but these two parts are the same, and the random part of the folder's name makes
// them unique.
std::string short_name(const fs::path& path) {
    return path.parent_path().filename() / path.filename();
}

// The names of all sockets in this network namespace that are bound to a file. /proc/net/unix also
// has connected ones.
std::set<std::string> bound_names() {
    std::set<std::string> names;
    std::ifstream table("/proc/net/unix");
    for (std::string line; std::getline(table, line);)
        if (const auto at = line.find('/'); at != line.npos)
            names.insert(short_name(line.substr(at)));
    return names;
}

// The last check, because it costs a system call for each file: connect() to a socket file also
// reaches listeners in other network namespaces, which /proc/net/unix does not show. ECONNREFUSED
// means that nobody listens.
bool nobody_listens(const fs::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& name = path.native();
    const UniqueFd caller(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!caller || name.size() >= sizeof address.sun_path) return false;
    std::ranges::copy(name, address.sun_path);
    const auto* to = reinterpret_cast<const sockaddr*>(&address);
    return ::connect(caller.get(), to, sizeof address) != 0 && errno == ECONNREFUSED;
}

}  // namespace

LeftSockets::LeftSockets() : LeftSockets(temporary_folders()) {}

LeftSockets::LeftSockets(std::vector<std::string> folders)
    : folders_(std::move(folders)),
      since_(std::time(nullptr) - 1) {}  // timestamps of files may be a clock tick old

// What is not found now stays, which does no harm.
void LeftSockets::remove() const {
    std::vector<fs::path> found;
    for (const std::string& folder : folders_)
        for_each_name(folder, [&](std::string_view made) {
            if (!is_of_library(made)) return;
            const fs::path library = fs::path(folder) / made;
            for_each_name(library, [&](std::string_view name) {
                if (is_ours(library / name, since_)) found.push_back(library / name);
            });
        });
    if (found.empty()) return;
    // Read after the files were found: a socket that was bound in between is in the list. The other
    // order would remove it.
    const std::set<std::string> bound = bound_names();
    for (const fs::path& path : found) {
        if (bound.contains(short_name(path)) || !nobody_listens(path)) continue;
        // rmdir() removes the manager's folder only when nothing else is in it.
        ::unlink(path.c_str());
        if (is_of_manager(path.parent_path().filename().string())) ::rmdir(path.parent_path().c_str());
    }
}

}  // namespace ddprun::agent
