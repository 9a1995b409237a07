// Makes a locked temporary folder, and removes folders whose owner is dead.
#include "agent/output/temporary_folder.h"

#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "agent/output/attempt_names.h"
#include "base/system/careful_open.h"
#include "base/system/folder_names.h"
#include "base/system/random_bytes.h"
#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

namespace fs = std::filesystem;

// Seconds. Between mkdtemp() and flock() a new folder has no lock yet, so young folders are left
// alone.
constexpr std::time_t kUntouched = 60;
// A start costs no more than these, however many folders others have left.
constexpr std::size_t kMostLooked = 64;
constexpr std::uint64_t kPlenty = std::uint64_t{256} << 20;
// A generation of 1000 workers needs about twice as many.
constexpr std::uint64_t kFewInodes = 2500;
// linux/magic.h does not have this one.
constexpr long kXfs = 0x58465342;

// Local file systems only. A network file system may not show locks of other hosts, so an unlocked
// folder there proves nothing.
bool is_of_this_host(const std::string& folder) {
    struct statfs status {};
    if (::statfs(folder.c_str(), &status) != 0) return false;
    const long local[] = {TMPFS_MAGIC, EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, kXfs,
                          OVERLAYFS_SUPER_MAGIC};
    return std::ranges::find(local, static_cast<long>(status.f_type)) != std::end(local);
}

// Bytes that the file system has left for us, and 0 if it is read-only or has few inodes left. Some
// file systems do not count inodes (f_files is 0 then).
std::uint64_t room_in(const std::string& folder) {
    struct statvfs status {};
    if (::statvfs(folder.c_str(), &status) != 0 || (status.f_flag & ST_RDONLY) != 0) return 0;
    if (status.f_files != 0 && status.f_favail < kFewInodes) return 0;
    return std::uint64_t{status.f_bavail} * status.f_frsize;
}

// An exclusive lock can be taken only if no ddprun holds its shared lock. The kernel releases locks
// when a process dies, however it dies. A record is written under the lock, so a folder that has
// one is not just being made. Without one the name alone, ddprun_backup, says nothing: then only an
// empty folder goes.
void look_at(const std::string& path, OthersFolders& found) {
    auto folder = open_folder(path);
    struct stat status {};
    if (!folder || ::fstat(folder->get(), &status) != 0 || status.st_uid != ::geteuid()) return;
    if (::flock(folder->get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) found.held.push_back(path);
        return;
    }
    std::string origin = read_small_file(path + "/" + kOriginFile);
    if (!origin.empty())
        found.abandoned.push_back({path, std::move(origin), std::move(*folder)});
    else if (status.st_mtime < std::time(nullptr) - kUntouched)
        ::rmdir(path.c_str());
}

}  // namespace

// Only as many are looked at as are needed: a file system may hang.
std::vector<std::string> by_room(std::vector<std::string> parents) {
    std::vector<std::pair<std::uint64_t, std::string>> known;
    for (auto parent = parents.begin(); parent != parents.end(); ++parent) {
        const std::uint64_t room = room_in(*parent);
        if (room >= kPlenty) {
            std::rotate(parents.begin(), parent, parent + 1);
            return parents;
        }
        known.emplace_back(room, *parent);
    }
    std::ranges::stable_sort(known, std::greater{}, &std::pair<std::uint64_t, std::string>::first);
    for (std::size_t i = 0; i < known.size(); ++i) parents[i] = std::move(known[i].second);
    return parents;
}

std::string draw_temporary_name() {
    constexpr std::string_view kCharacters =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    std::string name = kTemporaryFolder;
    const auto first = static_cast<std::ptrdiff_t>(name.find('X'));
    std::uint64_t number = random_number();
    for (char& c : std::span(name.begin() + first, name.end())) {
        c = kCharacters[number % kCharacters.size()];
        number /= kCharacters.size();
    }
    return name;
}

TemporaryFolder make_temporary_folder(const std::string& parent, const std::string& name) {
    std::string path = parent + "/" + name;
    if (name.empty() || ::mkdir(path.c_str(), 0700) != 0) {
        if (!name.empty() && errno != EEXIST) return {};
        path = parent + "/" + kTemporaryFolder;
        if (!::mkdtemp(path.data())) return {};
    }
    // The caller's umask may take even the owner's rights.
    if (::chmod(path.c_str(), 0700) != 0) return {};
    auto lock = open_folder(path);
    // The result is ignored: if the file system has no locks, ddprun works without. Then nobody
    // removes the folder after a crash.
    if (lock) ::flock(lock->get(), LOCK_SH | LOCK_NB);
    std::error_code ignored;
    return {fs::absolute(path, ignored).string(), lock ? std::move(*lock) : UniqueFd()};
}

void record_origin(const TemporaryFolder& folder, const std::string& origin) {
    // Without a lock the record would look like that of a dead owner.
    if (folder.lock && ::flock(folder.lock.get(), LOCK_SH | LOCK_NB) == 0)
        (void)replace_file(folder.path + "/" + kOriginFile, origin);
}

OthersFolders look_at_folders(const std::vector<std::string>& paths) {
    OthersFolders found;
    for (const std::string& path : paths) look_at(path, found);
    return found;
}

OthersFolders look_beside(const TemporaryFolder& own) {
    const fs::path parent = fs::path(own.path).parent_path();
    if (!is_of_this_host(parent)) return {};
    const std::string_view pattern = kTemporaryFolder;
    const std::string_view prefix = pattern.substr(0, pattern.find('X'));
    std::vector<std::string> paths;
    for_each_name(parent, [&](std::string_view name) {
        if (name.size() != pattern.size() || !name.starts_with(prefix)) return;
        if (const fs::path path = parent / name; path != own.path) paths.push_back(path);
    });
    // Each start looks at others of them.
    if (paths.size() > kMostLooked) {
        const auto first = static_cast<std::ptrdiff_t>(random_number() % paths.size());
        std::ranges::rotate(paths, paths.begin() + first);
        paths.resize(kMostLooked);
    }
    return look_at_folders(paths);
}

}  // namespace ddprun::agent
