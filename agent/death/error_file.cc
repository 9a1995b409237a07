// Reads a worker's error file, directly or on the file thread.
#include "agent/death/error_file.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "agent/death/error_account.h"
#include "base/system/boot_clock.h"
#include "base/system/careful_open.h"
#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

std::string size_text(off_t bytes) {
    return bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MiB"
                            : std::to_string(bytes >> 10) + " KiB";
}

// The file system's name: the highest folder above the file that lies on the same device.
std::string file_system_of(const std::string& path, dev_t device) {
    std::string name = path;
    struct stat info {};
    while (name.size() > 1) {
        const auto slash = name.find_last_of('/');
        if (slash == std::string::npos) break;
        const std::string above = slash == 0 ? "/" : name.substr(0, slash);
        if (::stat(above.c_str(), &info) != 0 || info.st_dev != device) break;
        name = above;
    }
    return name;
}

// Why a file may be empty or cut short: "; the file system /dev/shm (64 MiB) is full". Empty if
// there is room for one.
std::string full_file_system(int file, const std::string& path, dev_t device) {
    struct statvfs room {};
    if (::fstatvfs(file, &room) != 0 || room.f_bavail * room.f_frsize >= kLargestErrorFile)
        return {};
    return "; the file system " + file_system_of(path, device) + " (" +
           size_text(static_cast<off_t>(room.f_blocks * room.f_frsize)) + ") is full";
}

}  // namespace

ErrorFile read_error_file(const std::string& path) {
    ErrorFile found;
    const auto file = open_to_read(path);
    // Most programs write no error file.
    if (!file && file.error().code() == ErrorCode::not_found) return found;
    const auto problem = [&](const std::string& what) {
        found.problem = "error file " + path + " " + what;
        return found;
    };
    if (!file) return problem(file.error().sentence());
    struct stat info {};
    if (::fstat(file->get(), &info) != 0)
        return problem(std::string("cannot be read: ") + std::strerror(errno));
    // The file exists even if its content cannot be used: the report then names its path.
    found.there = true;
    if (static_cast<std::size_t>(info.st_size) > kLargestErrorFile)
        return problem("has " + size_text(info.st_size) + " (limit " +
                       size_text(kLargestErrorFile) + "), so it was not read");
    const auto account = read_error_account(read_bounded(file->get(), kLargestErrorFile));
    if (!account)
        return problem(account.error().sentence() +
                       full_file_system(file->get(), path, info.st_dev));
    found.error = account->error;
    found.exit_code = account->exit_code;
    const Duration written =
        std::chrono::seconds{info.st_mtim.tv_sec} + std::chrono::nanoseconds{info.st_mtim.tv_nsec};
    // Converts the file's time of day to our clock by its age. This is wrong if somebody sets the
    // clock in between; judge_death() accepts only times within the worker's life.
    found.written = boot_now() - (day_now() - written);
    return found;
}

// If the file system does not answer, the worker's death is reported without its account, and the
// late result is ignored.
void read_error_file(FileThread& files, const std::string& path, Duration patience,
                     std::function<void(const ErrorFile&)> done) {
    const auto found = std::make_shared<ErrorFile>();
    files.post_within(
        patience, [found, path] { *found = read_error_file(path); },
        [found, path, done = std::move(done)](bool in_time) {
            if (in_time) return done(*found);
            ErrorFile unread;
            unread.problem =
                "error file " + path + " cannot be read: its file system does not answer";
            done(unread);
        });
}

}  // namespace ddprun::agent
