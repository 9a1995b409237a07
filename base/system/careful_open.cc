// Opens files without following links and without waiting for what is no file.
#include "base/system/careful_open.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/system/random_bytes.h"
#include "base/system/write_all.h"

namespace ddprun {
namespace {

// O_NOFOLLOW: a link could lead to any file of ours. O_NONBLOCK: open() of a FIFO would wait for
// its other end. O_NOCTTY: a terminal must not become ours.
constexpr int kCareful = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// Why open() could not open a name. `cannot` says for what: "cannot be read".
Error failed(int code, const char* cannot) {
    if (code == ENOENT) return {ErrorCode::not_found, "does not exist"};
    if (code == ELOOP) return {ErrorCode::refused, "is a link, and links are not followed there"};
    // ENXIO: a FIFO without a reader, or a socket.
    if (code == ENXIO) return {ErrorCode::refused, "is not a regular file"};
    return {ErrorCode::unavailable, std::string(cannot) + ": " + std::strerror(code)};
}

// Looks at the open descriptor and not at the path, which could be exchanged in between.
Result<UniqueFd> regular(UniqueFd file, const char* cannot) {
    if (!file) return failed(errno, cannot);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return failed(errno, cannot);
    if (!S_ISREG(status.st_mode)) return Error(ErrorCode::refused, "is not a regular file");
    return file;
}

}  // namespace

Result<UniqueFd> open_to_read(const std::string& path) {
    return regular(UniqueFd(::open(path.c_str(), O_RDONLY | kCareful)), "cannot be read");
}

Result<UniqueFd> open_to_append(const std::string& path) {
    return regular(UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | kCareful, 0666)),
                   "cannot be written");
}

// O_DIRECTORY refuses everything else before it is opened.
Result<UniqueFd> open_folder(const std::string& path) {
    UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | kCareful));
    if (!folder) return failed(errno, "cannot be opened");
    return folder;
}

Result<UniqueFd> make_fifo(const std::string& path) {
    struct stat status {};
    // Only an old FIFO is replaced. Any other file under this name belongs to the user.
    if (::lstat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) ::unlink(path.c_str());
    if (::mkfifo(path.c_str(), 0600) != 0)
        return Error(errno == EEXIST ? ErrorCode::refused : ErrorCode::unavailable,
                     std::strerror(errno));
    UniqueFd fifo(::open(path.c_str(), O_RDWR | kCareful));
    if (!fifo) return Error(ErrorCode::unavailable, std::strerror(errno));
    // Somebody may have replaced it since.
    if (::fstat(fifo.get(), &status) != 0 || !S_ISFIFO(status.st_mode))
        return Error(ErrorCode::refused, "something else than the new FIFO lies there");
    return fifo;
}

// The name of the unfinished file is random: nobody can have put something there, and several nodes
// may write the same file. rename() replaces the name in one step.
Result<> replace_file(const std::string& path, const std::string& text) {
    const std::string unfinished = path + ".part-" + std::to_string(random_number());
    UniqueFd file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | kCareful, 0666));
    if (!file) return Error(ErrorCode::unavailable, std::strerror(errno));
    int code = write_all(file.get(), text);
    // close() may report a write error, on NFS.
    if (::close(file.release()) != 0 && code == 0) code = errno;
    if (code == 0 && ::rename(unfinished.c_str(), path.c_str()) != 0) code = errno;
    if (code == 0) return {};
    ::unlink(unfinished.c_str());
    return Error(ErrorCode::unavailable, std::strerror(code));
}

}  // namespace ddprun
