// Looks at owners and modes, and makes folders that nobody else can enter.
#include "rendezvous/ledger/ledger_owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/hexadecimal.h"
#include "base/system/random_bytes.h"
#include "base/system/unique_fd.h"

namespace ddprun::rendezvous {
namespace {

constexpr const char* kOther = "choose another with --ledger=directory:PATH";
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

Error not_ours(const std::string& what, const std::string& why) {
    return Error(ErrorCode::refused,
                 what + " " + why + ", so another user could change the job; " + kOther);
}

Error cannot_own(const std::string& what, int code) {
    return Error(ErrorCode::unavailable, what + ": " + std::strerror(code) + "; " + kOther);
}

// Whom the file system takes us for. A server that maps users (root_squash, NFSv4 without a common
// domain) gives a file that we have just made to another user. That one is us then.
bool is_us(int folder, uid_t owner) {
    if (owner == ::geteuid()) return true;
    const std::string name = ".writing-owner-" + hexadecimal(random_number());
    const UniqueFd probe(
        ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    struct stat made {};
    const bool known = probe && ::fstat(probe.get(), &made) == 0;
    if (probe) ::unlinkat(folder, name.c_str(), 0);
    return known && made.st_uid == owner;
}

}  // namespace

Result<> check_owner(int folder, int file, const std::string& what) {
    struct stat status {};
    if (::fstat(file, &status) != 0) return cannot_own(what, errno);
    if (!is_us(folder, status.st_uid))
        return not_ours(what, "belongs to user " + std::to_string(status.st_uid));
    // In a folder that others may write, they can replace a file whoever owns it.
    if (S_ISDIR(status.st_mode) && (status.st_mode & kOthersWrite) != 0)
        return not_ours(what, "can be written by others");
    return {};
}

Result<> check_link(const std::string& folder) {
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0 || !S_ISLNK(status.st_mode) ||
        status.st_uid == ::geteuid())
        return {};
    return not_ours("ledger folder " + folder,
                    "is a link of user " + std::to_string(status.st_uid));
}

Result<> make_folder(const std::string& folder) {
    // The parents first. A umask cannot widen 0700, and the group of a setgid parent gets nothing.
    for (std::size_t end = 0; end != std::string::npos;) {
        end = folder.find('/', end + 1);
        const std::string part = folder.substr(0, end);
        if (::mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
        const int code = errno;
        std::error_code ignored;
        // A parent that cannot be made may still exist (a read-only file system, no permission).
        if (end == std::string::npos || !std::filesystem::is_directory(part, ignored))
            return cannot_own("ledger folder " + folder, code);
    }
    // Not through a link: who made it would choose which folder of ours is closed to others.
    const UniqueFd file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    struct stat status {};
    if (file && ::fstat(file.get(), &status) == 0 && status.st_uid == ::geteuid() &&
        (status.st_mode & kOthersWrite) != 0)
        ::fchmod(file.get(), status.st_mode & ~kOthersWrite & 07777);
    return {};
}

}  // namespace ddprun::rendezvous
