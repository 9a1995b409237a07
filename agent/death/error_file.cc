// Reads a worker's error file, directly or on the file thread.
#include "agent/death/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "agent/death/error_account.h"
#include "base/system/boot_clock.h"
#include "base/system/small_file.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

std::string size_text(off_t bytes) {
    return bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MiB"
                            : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

ErrorFile read_error_file(const std::string& path) {
    ErrorFile found;
    // O_NONBLOCK: a worker could have put a FIFO there.
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    // Most programs write no error file.
    if (!file && errno == ENOENT) return found;
    const auto problem = [&](const std::string& what) {
        found.problem = "error file " + path + " " + what;
        return found;
    };
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0)
        return problem(std::string("cannot be read: ") + std::strerror(errno));
    if (!S_ISREG(info.st_mode)) return problem("is not a regular file");
    // The file exists even if its content cannot be used: the report then names its path.
    found.there = true;
    if (static_cast<std::size_t>(info.st_size) > kLargestErrorFile)
        return problem("has " + size_text(info.st_size) + " (limit " +
                       size_text(kLargestErrorFile) + "), so it was not read");
    const auto account = read_error_account(read_bounded(file.get(), kLargestErrorFile));
    if (!account) return problem(account.error().sentence());
    found.error = *account;
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
